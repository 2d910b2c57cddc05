//! Renders a file of Markdown as HTML, so many times.

use std::{env, error::Error, fs, hint::black_box};

use pulldown_cmark::{Options, Parser, html};

fn main() -> Result<(), Box<dyn Error>> {
    let [times, file] = env::args().skip(1).collect::<Vec<_>>().try_into().map_err(|_| "markdown TIMES FILE")?;
    let text = fs::read_to_string(file)?;
    let mut page = String::new();
    for _ in 0..times.parse()? {
        page.clear();
        html::push_html(&mut page, Parser::new_ext(black_box(&text), Options::all()));
    }
    println!("{}", page.len());
    Ok(())
}
