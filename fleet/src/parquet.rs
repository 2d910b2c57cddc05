//! `hbbp-fleet parquet`: a table in CSV as Parquet, for `hbbp mix --format parquet` and the others.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use datafusion::arrow::csv::ReaderBuilder;
use datafusion::arrow::csv::reader::Format;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::parquet::arrow::ArrowWriter;

use crate::output::Output;

/// Write a table in CSV, from standard input, as Parquet
///
/// The first line names the columns. Those with nothing but numbers are numbers (DOUBLE), all others texts; what is empty is NULL.
#[derive(clap::Args)]
pub struct Args {
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
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
    write(csv, &mut out)?;
    out.flush()?;
    output.finish()
}

fn write(mut csv: File, out: &mut (dyn Write + Send)) -> anyhow::Result<()> {
    csv.rewind()?;
    let schema = Arc::new(schema(&csv)?);
    csv.rewind()?;
    let rows = ReaderBuilder::new(Arc::clone(&schema)).with_header(true).build(BufReader::new(csv))?;
    let mut writer = ArrowWriter::try_new(out, schema, None)?;
    for rows in rows {
        writer.write(&rows.context("standard input is no CSV")?)?;
    }
    writer.close()?;
    Ok(())
}

/// Names and types of the columns.
fn schema(csv: impl Read) -> anyhow::Result<Schema> {
    let (found, _) = Format::default().with_header(true).infer_schema(csv, None).context("standard input is no CSV")?;
    let column = |field: &Arc<Field>| {
        let is_number = matches!(field.data_type(), DataType::Int64 | DataType::Float64);
        let kind = if is_number { DataType::Float64 } else { DataType::Utf8 };
        Field::new(field.name(), kind, true)
    };
    Ok(Schema::new(found.fields().iter().map(column).collect::<Vec<_>>()))
}
