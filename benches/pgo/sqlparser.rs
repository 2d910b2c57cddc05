//! Parses a file of SQL and writes its statements again, so many times.

use std::{env, error::Error, fs, hint::black_box};

use sqlparser::{dialect::SQLiteDialect, parser::Parser};

fn main() -> Result<(), Box<dyn Error>> {
    let [times, file] = env::args().skip(1).collect::<Vec<_>>().try_into().map_err(|_| "sqlparser TIMES FILE")?;
    let text = fs::read_to_string(file)?;
    let mut letters = 0;
    for _ in 0..times.parse()? {
        for statement in Parser::parse_sql(&SQLiteDialect {}, black_box(&text))? {
            letters += statement.to_string().len();
        }
    }
    println!("{letters}");
    Ok(())
}
