//! `hbbp mix`: the instruction mix as a pivot table.

mod csv;
mod json;
mod keys;
mod query;
mod table;
pub(super) mod unmatched;

use std::path::PathBuf;
use std::process::ExitCode;

use analyzer::mix::{Cell, Dimension, Key, Mix, NO_SOURCE, Query, UNREADABLE, mix};

use crate::commands::record::{SAMPLING, Wanted};
use crate::input::{Input, InputArgs, Reader, Reads, WITHOUT_LINES, without_samples};
use crate::output;
use crate::output::{Format, Head, HeadArgs, OutputArgs, Precision, write_to};
use crate::taxonomies::with_files;
pub(super) use query::group_by;
use query::{query, query_options};

/// Print the instruction mix as a pivot table
#[derive(clap::Args)]
#[command(after_help = keys::after(EXAMPLES))]
pub struct Args {
    /// Keys of the rows: see the list below
    #[arg(long, value_name = "KEYS", value_delimiter = ',', default_value = "mnemonic")]
    rows: Vec<String>,

    /// Keys of the columns: the same as for rows
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    columns: Vec<String>,

    /// Keep only instructions with these values: key=value, key=one,other (`*` matches any text), key~regex, key>=number; `!=` and `!~` leave out; <, <= and > compare numbers, too
    #[arg(long = "filter", value_name = "COMPARISON")]
    filters: Vec<String>,

    /// A file with a taxonomy of your own, whose name is one more key
    #[arg(long = "taxonomy", value_name = "FILE")]
    taxonomies: Vec<PathBuf>,

    /// Print only the N largest rows; 0 prints all [default: 40 in a table, all in csv and json]
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    /// Run the command again and again, for five minutes at most, until the largest rows are right within so many percent by chance
    #[arg(long, value_name = "PCT", help_heading = SAMPLING, conflicts_with = "off")]
    precision: Option<Wanted>,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    head: HeadArgs,
}

const READER: Reader = Reader { name: "hbbp mix", reads: Reads::Recordings, records: true };

const EXAMPLES: &str = "\
Examples:
  hbbp mix -- gzip -t big.tar.gz                   record and print by mnemonic
  hbbp mix --overhead 5 -- ./bench                 with five times the bursts
  hbbp mix run.data --rows isa --columns packing   how well is it vectorized?
  hbbp mix --rows function --filter latency=long   who divides? (reads hbbp.data)
  hbbp mix --rows function --columns vectorization a taxonomy: `hbbp taxonomy list` has all
  hbbp mix --rows line,function --top 20           the lines of the source that execute most
  hbbp mix --rows loop --top 20                    the loops that execute most
  hbbp mix --rows mnemonic --filter 'function=deflate*' --format json
  hbbp mix --model mine.json                       let a trained model choose between the sources";

/// Prints the instruction mix of a recording as a pivot table.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let query = query(args, &with_files(&args.taxonomies)?);
    let options = || [query_options(&query, &args.taxonomies), args.input.analysis.words()].concat();
    let precision = args.precision.map(|wanted| (wanted, options()));
    let input = args.input.begin(&READER, precision)?;
    input.end(print(args, &query, &input))
}

fn print(args: &Args, query: &Query, input: &Input<'_>) -> anyhow::Result<()> {
    let by = group_by(query);
    let analysis = if query.asks_loops() { input.analyze_with_branches(by) } else { input.analyze(by) }?;
    let result = mix(&analysis, query)?;
    let nothing = without_samples(&analysis);
    let unmatched: Vec<String> = result.unmatched.iter().map(unmatched::sentence).collect();
    nothing.iter().for_each(output::say);
    if result.cells.is_empty() && nothing.is_none() {
        let why = if query.filters.is_empty() {
            "the samples say that they stand for nothing (their periods are 0)"
        } else {
            "no instruction passes the filters"
        };
        let why = [&[why.to_owned()], unmatched.as_slice()].concat().join("; ");
        anyhow::bail!("there is nothing to show: {why}");
    }
    if nothing.is_none() {
        result.notes.iter().chain(&unmatched).for_each(output::say);
        without_source(&query.rows, &result).iter().for_each(output::say);
    }
    let mut head = Head::of(&analysis);
    head.verbose = args.head.verbose;
    head.precision = Precision::of(
        &analysis,
        result.cells.chunk_by(|a, b| a.row == b.row).map(|row| {
            let count: f64 = row.iter().map(|cell| cell.count).sum();
            (count / result.instructions, result.uncertainty(row.iter()).share)
        }),
    );
    let is_of_code = |key: &Key| key.is_of_instruction() || *key == Dimension::Function || *key == Dimension::Loop;
    let row_keys_need_code = query.rows.iter().all(is_of_code);
    if nothing.is_none() && row_keys_need_code && !analysis.has_readable_code() {
        head.print(analysis.instructions(), &mut std::io::stderr().lock(), None)?;
        anyhow::bail!(
            "the code of no module could be read, so there is no mix by {}: name the binaries with --binary \
             [RECORDED=]FILE or --symfs DIR, or ask for --rows module",
            query.rows.iter().map(Key::to_string).collect::<Vec<_>>().join(",")
        );
    }
    let report =
        Report { query, mix: &result, head: &head, top: args.output.format.rows(args.top), width: args.output.width() };
    write_to(args.output.file.as_deref(), |out| match args.output.format {
        Format::Table => table::print(&report, out),
        Format::Csv => csv::print(&report, out),
        Format::Json => json::print(&report, out),
    })
}

/// What to do where rows are of the source, and none is known.
fn without_source(rows: &[Key], mix: &Mix) -> Option<&'static str> {
    let at = rows.iter().position(|key| key.is_of_source())?;
    let has_none = |cell: &Cell| cell.row[at] == NO_SOURCE || cell.row[at] == UNREADABLE;
    mix.cells.iter().all(has_none).then_some(WITHOUT_LINES)
}

struct Report<'a> {
    query: &'a Query,
    mix: &'a Mix,
    head: &'a Head,
    top: usize,
    width: Option<usize>,
}

impl Report<'_> {
    /// The cells row by row, largest row first.
    fn rows(&self) -> impl Iterator<Item = &[Cell]> {
        self.mix.cells.chunk_by(|a, b| a.row == b.row)
    }

    /// How many rows are not among the largest, and their cells.
    fn others(&self) -> (usize, &[Cell]) {
        let shown: usize = self.rows().take(self.top).map(<[Cell]>::len).sum();
        (self.rows().skip(self.top).count(), self.mix.cells.get(shown..).unwrap_or_default())
    }
}
