//! `hbbp-fleet parquet`: a table in CSV as Parquet, for `hbbp mix --format parquet` and the others.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use datafusion::arrow::csv::reader::Format;
use datafusion::arrow::csv::{Reader, ReaderBuilder};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::parquet::arrow::ArrowWriter;

use crate::output::Output;

/// Write a table in CSV, from standard input, as Parquet
///
/// The first line names the columns. Those with nothing but numbers, or with nothing, are numbers (DOUBLE), all others texts; what is empty is
/// NULL.
#[derive(clap::Args)]
pub struct Args {
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Columns that are texts even if there are only numbers in them
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    text: Vec<String>,
}

/// Writes the table.
///
/// # Errors
/// It is no CSV, or the table cannot be written.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let mut csv = tempfile::tempfile().context("a temporary file")?;
    std::io::copy(&mut std::io::stdin().lock(), &mut csv).context("standard input")?;
    let output = Output::begin(args.output.as_deref())?;
    let mut out = BufWriter::new(output.writer()?);
    write(csv, &args.text, &mut out)?;
    out.flush()?;
    output.finish()
}

fn write(csv: File, texts: &[String], out: &mut (dyn Write + Send)) -> anyhow::Result<()> {
    let rows = read(csv, texts).context("standard input is no CSV")?;
    let mut writer = ArrowWriter::try_new(out, rows.schema(), None)?;
    for rows in rows {
        writer.write(&rows.context("standard input is no CSV")?)?;
    }
    writer.close()?;
    Ok(())
}

/// The rows of a table in CSV, from its beginning. `texts`: columns that are texts even if there are only numbers in them.
///
/// # Errors
/// It is no CSV.
pub fn read(mut csv: File, texts: &[impl AsRef<str>]) -> anyhow::Result<Reader<BufReader<File>>> {
    csv.rewind()?;
    let schema = Arc::new(schema(&csv, texts)?);
    csv.rewind()?;
    Ok(ReaderBuilder::new(schema).with_header(true).build(BufReader::new(csv))?)
}

/// Names and types of the columns.
fn schema(csv: impl Read, texts: &[impl AsRef<str>]) -> anyhow::Result<Schema> {
    let (found, _) = Format::default().with_header(true).infer_schema(csv, None)?;
    let column = |field: &Arc<Field>| {
        let is_number = matches!(field.data_type(), DataType::Int64 | DataType::Float64 | DataType::Null);
        let is_number = is_number && !texts.iter().any(|text| text.as_ref() == field.name());
        let kind = if is_number { DataType::Float64 } else { DataType::Utf8 };
        Field::new(field.name(), kind, true)
    };
    Ok(Schema::new(found.fields().iter().map(column).collect::<Vec<_>>()))
}
