//! `hbbp-fleet query`: what SQL asks.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::Context;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::csv;
use datafusion::arrow::json::ArrayWriter;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::parquet::arrow::ArrowWriter;
use futures::StreamExt;

use crate::engine::Engine;
use crate::store::Store;

/// Ask a store in SQL
///
/// The tables are recordings, modules and flow: docs/formats/fleet-store.md has their columns. `SELECT * FROM information_schema.columns`
/// lists them, too.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folder of the store
    store: PathBuf,

    /// The question
    sql: String,

    #[command(flatten)]
    answer: AnswerArgs,
}

/// Where an answer goes.
#[derive(clap::Args)]
pub struct AnswerArgs {
    /// How the answer is written
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  hbbp-fleet query profiles \"SELECT service, version, count(*) FROM recordings GROUP BY 1, 2\"
  hbbp-fleet query profiles --format csv \"SELECT module, sum(count) FROM flow WHERE kind = 'branch' GROUP BY 1 ORDER BY 2 DESC LIMIT 10\"";

/// How an answer is written.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    /// For people
    Table,
    /// A line for each row, after one with names
    Csv,
    /// An array of objects
    Json,
    /// For other engines
    Parquet,
}

/// Answers a question.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    answer(&Engine::of(&Store::open(&args.store)?).await?, &args.sql, &args.answer).await
}

/// Writes an answer, as its rows come; a table when all are there, for its columns are as wide as what is in them.
///
/// # Errors
/// It is no question, the store cannot be read, or the answer cannot be written.
pub async fn answer(engine: &Engine, sql: &str, args: &AnswerArgs) -> anyhow::Result<()> {
    let question = engine.ask(sql).await?;
    let schema = question.schema().as_arrow().clone();
    let mut answer = question.execute_stream().await?;
    let out: Box<dyn Write + Send> = match &args.output {
        Some(file) => Box::new(File::create(file).with_context(|| file.display().to_string())?),
        None => Box::new(std::io::stdout()),
    };
    let mut out = BufWriter::new(out);
    match args.format {
        Format::Table => {
            let mut rows: Vec<RecordBatch> = Vec::new();
            while let Some(next) = answer.next().await {
                rows.push(next?);
            }
            if rows.is_empty() {
                rows.push(RecordBatch::new_empty(schema.into()));
            }
            // Names of files can have anything in them, and terminals obey.
            let is_harmless = |c: char| c == '\n' || !c.is_control();
            let text: String = pretty_format_batches(&rows)?.to_string();
            let text: String = text.chars().map(|c| if is_harmless(c) { c } else { '\u{fffd}' }).collect();
            writeln!(out, "{text}")?;
        }
        Format::Csv => {
            let mut writer = csv::Writer::new(&mut out);
            writer.write(&RecordBatch::new_empty(schema.into()))?;
            while let Some(rows) = answer.next().await {
                writer.write(&rows?)?;
            }
        }
        Format::Json => {
            let mut writer = ArrayWriter::new(&mut out);
            while let Some(rows) = answer.next().await {
                writer.write(&rows?)?;
            }
            writer.finish()?;
            drop(writer);
            writeln!(out)?;
        }
        Format::Parquet => {
            let mut writer = ArrowWriter::try_new(&mut out, schema.into(), None)?;
            while let Some(rows) = answer.next().await {
                writer.write(&rows?)?;
            }
            writer.close()?;
        }
    }
    Ok(out.flush()?)
}
