//! `hbbp-fleet query`: what SQL asks.

use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::bail;
use datafusion::arrow::array::{AsArray, RecordBatch, StringArray};
use datafusion::arrow::csv;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::json::WriterBuilder;
use datafusion::arrow::json::writer::JsonArray;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::parquet::arrow::ArrowWriter;
use futures::StreamExt;

use crate::cluster::ClusterArgs;
use crate::engine::Engine;
use crate::output::{Output, printable as printable_text};
use crate::report_tables::ReportTables;
use crate::store::Store;

/// Ask a store in SQL
///
/// The tables are recordings, modules and flow: docs/formats/fleet-store.md has their columns. `SELECT * FROM information_schema.columns`
/// lists them, too. For a question about mix, functions or blocks, `hbbp` makes these tables first, of each version of each service:
/// docs/guide/fleet.md has their columns.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folder of the store
    store: PathBuf,

    /// The question
    sql: String,

    #[command(flatten)]
    answer: AnswerArgs,

    #[command(flatten)]
    cluster: ClusterArgs,

    #[command(flatten)]
    reports: ReportTables,
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
  hbbp-fleet query profiles --format csv \"SELECT module, sum(count) FROM flow WHERE kind = 'branch' GROUP BY 1 ORDER BY 2 DESC LIMIT 10\"
  hbbp-fleet query profiles \"SELECT version, isa, sum(count) FROM mix GROUP BY 1, 2 ORDER BY 1, 3 DESC\" --service web --since 7d";

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

/// Bytes of a question; one of many parts takes much of the stack.
const MOST_SQL: usize = 8192;

/// Answers a question.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    if args.sql.len() > MOST_SQL {
        bail!("the question has {} bytes, expected at most {MOST_SQL}", args.sql.len());
    }
    let engine = Engine::of(&Store::open(&args.store)?).await?.on(args.cluster.cluster()?);
    args.reports.make(&engine, &args.sql).await?;
    answer(&engine, &args.sql, &args.answer).await
}

/// Writes an answer, as its rows come; a table when all are there, for its columns are as wide as what is in them.
///
/// # Errors
/// It is no question, the store cannot be read, or the answer cannot be written.
pub async fn answer(engine: &Engine, sql: &str, args: &AnswerArgs) -> anyhow::Result<()> {
    let mut answer = engine.ask(sql).await?;
    let schema = answer.schema();
    let output = Output::begin(args.output.as_deref())?;
    let mut out = BufWriter::new(output.writer()?);
    if let Err(error) = write(&mut answer, schema, args.format, &mut out).await {
        // A closed pipe is told by this, too, and not by texts of the library alone.
        out.flush()?;
        return Err(error);
    }
    out.flush()?;
    output.finish()
}

/// Writes all rows in a format.
async fn write(
    answer: &mut SendableRecordBatchStream,
    schema: SchemaRef,
    format: Format,
    mut out: &mut (dyn Write + Send),
) -> anyhow::Result<()> {
    match format {
        Format::Table => {
            let mut rows: Vec<RecordBatch> = Vec::new();
            while let Some(next) = answer.next().await {
                rows.push(next?);
            }
            if rows.is_empty() {
                rows.push(RecordBatch::new_empty(schema));
            }
            // Names of files can have anything in them, and terminals obey.
            let rows = rows.iter().map(printable).collect::<anyhow::Result<Vec<_>>>()?;
            let is_harmless = |c: char| c == '\n' || !c.is_control();
            let text: String = pretty_format_batches(&rows)?.to_string();
            let text: String = text.chars().map(|c| if is_harmless(c) { c } else { '\u{fffd}' }).collect();
            writeln!(out, "{text}")?;
        }
        Format::Csv => {
            let mut writer = csv::Writer::new(&mut out);
            writer.write(&RecordBatch::new_empty(schema))?;
            while let Some(rows) = answer.next().await {
                writer.write(&rows?)?;
            }
        }
        Format::Json => {
            let mut writer = WriterBuilder::new().with_explicit_nulls(true).build::<_, JsonArray>(&mut out);
            while let Some(rows) = answer.next().await {
                writer.write(&rows?)?;
            }
            writer.finish()?;
            drop(writer);
            writeln!(out)?;
        }
        Format::Parquet => {
            let mut writer = ArrowWriter::try_new(&mut out, schema, None)?;
            while let Some(rows) = answer.next().await {
                writer.write(&rows?)?;
            }
            writer.close()?;
        }
    }
    Ok(())
}

/// Texts with their control characters as Rust writes them; lines stay lines.
fn printable(rows: &RecordBatch) -> anyhow::Result<RecordBatch> {
    let columns = rows.columns().iter().map(|column| match column.as_string_opt::<i32>() {
        Some(texts) => Arc::new(texts.iter().map(|text| text.map(printable_text)).collect::<StringArray>()) as _,
        None => column.clone(),
    });
    Ok(RecordBatch::try_new(rows.schema(), columns.collect())?)
}
