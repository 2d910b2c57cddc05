//! `hbbp mix`: the instruction mix as a pivot table.

mod keys;
mod unmatched;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::slice::from_ref;

use analyzer::counting::{GroupBy, TaskGroups};
use analyzer::mix::{Cell, Dimension, Filter, Key, Mix, NO_SOURCE, Query, Taxonomies, UNREADABLE, Uncertainty, mix};
use analyzer::uncertainty::Interval;
use anyhow::Context;
use serde_json::{Map, Value, json};

use crate::commands::record::{SAMPLING, Wanted};
use crate::input::{Input, InputArgs, Reader, Reads, without_samples};
use crate::output;
use crate::output::{
    Align, Format, Head, MARKED, OutputArgs, Precision, Table, Unit, rounded, share, share_cells, write_to,
};
use crate::taxonomies::with_files;
use crate::usage::wrong_usage;

/// Arguments of `mix`.
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

/// What is asked for. The process ends with what is wrong, if something is.
fn query(args: &Args, taxonomies: &Taxonomies) -> Query {
    fn wrong(option: &str, why: impl Display) -> ! {
        wrong_usage::<Args>("hbbp mix", format!("{option}: {why}"))
    }
    let keys = |option: &str, names: &[String]| -> Vec<Key> {
        let key = |name: &String| Key::named(name, taxonomies).unwrap_or_else(|error| wrong(option, error));
        names.iter().map(key).collect()
    };
    let filter = |text: &String| Filter::read(text, taxonomies).unwrap_or_else(|error| wrong("--filter", error));
    Query {
        rows: keys("--rows", &args.rows),
        columns: keys("--columns", &args.columns),
        filters: args.filters.iter().map(filter).collect(),
        threads: args.input.analysis.threads(),
    }
}

fn print(args: &Args, query: &Query, input: &Input<'_>) -> anyhow::Result<()> {
    let analysis = input.analyze(group_by(query))?;
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
    head.precision = Precision::of(
        &analysis,
        result.cells.chunk_by(|a, b| a.row == b.row).map(|row| {
            let count: f64 = row.iter().map(|cell| cell.count).sum();
            (count / result.instructions, result.uncertainty(row).share)
        }),
    );
    let row_keys_need_code = query.rows.iter().all(|key| key.is_of_instruction() || *key == Dimension::Function);
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
        Format::Table => report.table(out),
        Format::Csv => report.csv(out),
        Format::Json => report.json(out),
    })
}

/// What to do where rows are of the source, and none is known.
fn without_source(rows: &[Key], mix: &Mix) -> Option<String> {
    let at = rows.iter().position(|key| key.is_of_source())?;
    let has_none = |cell: &Cell| cell.row[at] == NO_SOURCE || cell.row[at] == UNREADABLE;
    mix.cells.iter().all(has_none).then(|| {
        "no line of the source is known: build with debug information (-g, or debug = 1 in Cargo.toml), or name files \
         that have it (--binary, --symfs)"
            .to_owned()
    })
}

/// The options that ask for the same rows and columns.
fn query_options(query: &Query, taxonomies: &[PathBuf]) -> Vec<OsString> {
    let keys = |keys: &[Key]| keys.iter().map(Key::to_string).collect::<Vec<_>>().join(",");
    let mut options = vec!["--rows".to_owned(), keys(&query.rows)];
    if !query.columns.is_empty() {
        options.extend(["--columns".to_owned(), keys(&query.columns)]);
    }
    options.extend(query.filters.iter().flat_map(|filter| ["--filter".to_owned(), filter.to_string()]));
    let taxonomies = taxonomies.iter().flat_map(|file| ["--taxonomy".into(), file.into()]);
    options.into_iter().map(OsString::from).chain(taxonomies).collect()
}

fn group_by(query: &Query) -> GroupBy {
    let keys = query.rows.iter().chain(&query.columns).chain(query.filters.iter().map(|filter| &filter.key));
    keys.filter_map(Key::dimension).fold(GroupBy::default(), |by, key| match key {
        Dimension::Thread => GroupBy { tasks: TaskGroups::Thread, ..by },
        Dimension::Process | Dimension::Comm => GroupBy { tasks: by.tasks.max(TaskGroups::Process), ..by },
        Dimension::Phase => GroupBy { phases: true, ..by },
        _ => by,
    })
}

fn title_of(column: &[String]) -> String {
    column.join("/")
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

    fn table(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        let width = self.width;
        self.head.print(self.mix.instructions, out, width)?;
        let rows: Vec<&[Cell]> = self.rows().collect();
        let (shown, left_out) = rows.split_at(self.top.min(rows.len()));
        let across = self.columns_by_size();
        let unit = if across.len() > 1 { Unit::for_counts_up_to(self.mix.instructions) } else { Unit::ONE };
        let (columns, more_columns) = across.split_at(self.columns_that_fit(&across, unit, width));

        let mut titles: Vec<(String, Align)> =
            self.query.rows.iter().map(|key| (key.to_string(), Align::Left)).collect();
        if !self.query.columns.is_empty() {
            titles.extend(columns.iter().map(|(column, _)| (title_of(column), Align::Right)));
        }
        titles.push((format!("count{}", unit.suffix), Align::Right));
        titles.extend(["share", "±"].map(|title| (title.into(), Align::Right)));
        let mut table = Table::new(titles);
        let mut marked = false;
        for row in shown {
            let mut cells = row[0].row.clone();
            if !self.query.columns.is_empty() {
                cells.extend(columns.iter().map(|(column, _)| {
                    let cell = row.iter().find(|cell| &cell.column == *column);
                    let shown =
                        |cell: &Cell| unit.show(rounded(cell.count, self.mix.uncertainty(from_ref(cell)).count));
                    cell.map_or(String::new(), shown)
                }));
            }
            let total: f64 = row.iter().map(|cell| cell.count).sum();
            let uncertainty = self.mix.uncertainty(row);
            marked |= uncertainty.share.rests_on_little;
            cells.push(unit.show(rounded(total, uncertainty.count)));
            cells.extend(share_cells(total, self.mix.instructions, uncertainty.share));
            table.row(cells);
        }
        table.print(out, width)?;
        if !left_out.is_empty() {
            let rest: f64 = left_out.iter().flat_map(|row| row.iter()).map(|cell| cell.count).sum();
            let rest = share(rest, self.mix.instructions);
            writeln!(out, "... {} more rows with {rest} (--top 0 shows them)", left_out.len())?;
        }
        if !more_columns.is_empty() {
            let rest = share(more_columns.iter().map(|(_, sum)| sum).sum(), self.mix.instructions);
            writeln!(out, "... {} more columns with {rest} do not fit (--format csv has them)", more_columns.len())?;
        }
        if marked {
            writeln!(out, "{MARKED}")?;
        }
        Ok(())
    }

    /// How many of the columns, largest first, fit beside the row keys.
    fn columns_that_fit(&self, columns: &[(&Vec<String>, f64)], unit: Unit, width: Option<usize>) -> usize {
        const ROW_KEY: usize = 14;
        const COUNT_AND_SHARE: usize = 29;
        let Some(width) = width else { return columns.len() };
        let mut left = width.saturating_sub(ROW_KEY * self.query.rows.len() + COUNT_AND_SHARE);
        let needed = |(column, sum): &(&Vec<String>, f64)| title_of(column).len().max(unit.show(*sum).len()) + 2;
        let fitting = columns.iter().take_while(|column| {
            let fits = left >= needed(column);
            left = left.saturating_sub(needed(column));
            fits
        });
        fitting.count()
    }

    fn columns_by_size(&self) -> Vec<(&Vec<String>, f64)> {
        let mut sums: BTreeMap<&Vec<String>, f64> = BTreeMap::new();
        for cell in &self.mix.cells {
            *sums.entry(&cell.column).or_default() += cell.count;
        }
        let mut columns: Vec<(&Vec<String>, f64)> = sums.into_iter().collect();
        columns.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
        columns
    }

    fn csv(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        let keys = self.query.rows.iter().chain(&self.query.columns).map(|key| key.as_str());
        csv.write_record(keys.chain(["count", "share", "count_error", "share_error", "rests_on_little"]))?;
        for cell in self.rows().take(self.top).flatten() {
            let values = cell.row.iter().chain(&cell.column).cloned();
            let share = cell.count / self.mix.instructions;
            let Uncertainty { count: of_count, share: of_share } = self.mix.uncertainty(from_ref(cell));
            let width = |interval: Interval| interval.half_width.map_or(String::new(), |width| width.to_string());
            let errors = [width(of_count), width(of_share), of_share.rests_on_little.to_string()];
            csv.write_record(values.chain([cell.count.to_string(), share.to_string()]).chain(errors))?;
        }
        csv.flush().context("cannot write the table")
    }

    fn json(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        let keys: Vec<&str> = self.query.rows.iter().chain(&self.query.columns).map(|key| key.as_str()).collect();
        let rows: Vec<Value> = self
            .rows()
            .take(self.top)
            .flatten()
            .map(|cell| {
                let values = cell.row.iter().chain(&cell.column).map(|value| json!(value));
                let mut row: Map<String, Value> = keys.iter().map(ToString::to_string).zip(values).collect();
                row.insert("count".into(), json!(cell.count));
                row.insert("share".into(), json!(cell.count / self.mix.instructions));
                let uncertainty = self.mix.uncertainty(from_ref(cell));
                row.insert("count_error".into(), json!(uncertainty.count.half_width));
                row.insert("share_error".into(), json!(uncertainty.share.half_width));
                row.insert("rests_on_little".into(), json!(uncertainty.share.rests_on_little));
                Value::Object(row)
            })
            .collect();
        let document = json!({
            "schema": "hbbp-mix/1",
            "source": self.head.source,
            "instructions": self.mix.instructions,
            "head": self.head,
            "rows": rows,
        });
        serde_json::to_writer(&mut *out, &document)?;
        Ok(writeln!(out)?)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    /// What `--precision` looks at is the same mix.
    #[test]
    fn options_ask_for_the_same_query() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mine.toml");
        std::fs::write(&file, "name = \"mine\"\ndescription = \"x\"\n").unwrap();
        let taxonomy = file.to_str().unwrap();
        let given = [
            "--rows",
            "mine,isa",
            "--columns",
            "flops",
            "--filter",
            "flops>=2",
            "--filter",
            "function!~a|b",
            "--filter",
            "mnemonic=mov*,lea",
            "--taxonomy",
            taxonomy,
        ];
        let parsed = |words: Vec<OsString>| Cli::parse_from([OsString::from("x")].into_iter().chain(words)).args;
        let args = parsed(given.map(OsString::from).to_vec());
        let asked = query(&args, &with_files(&args.taxonomies).unwrap());
        let words = query_options(&asked, &args.taxonomies);
        let args = parsed(words.clone());
        let again = query(&args, &with_files(&args.taxonomies).unwrap());
        assert_eq!((&asked.rows, &asked.columns), (&again.rows, &again.columns));
        let filters = |query: &Query| query.filters.iter().map(Filter::to_string).collect::<Vec<_>>();
        assert_eq!(filters(&asked), filters(&again));
        assert_eq!(filters(&asked), ["flops>=2", "function!~a|b", "mnemonic=mov*,lea"]);
        assert_eq!(words, query_options(&again, &args.taxonomies));
    }
}
