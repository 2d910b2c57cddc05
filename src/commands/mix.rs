//! `hbbp mix`: the instruction mix as a pivot table.

mod csv;
mod json;
pub(super) mod keys;
mod more_numbers;
pub(super) mod nested;
pub(super) mod numbers;
pub(super) mod order;
pub(super) mod query;
pub(super) mod table;
pub(super) mod unmatched;

use std::collections::BTreeSet;
use std::process::ExitCode;

use analyzer::counting::Detail;
use analyzer::flow::AnalysedFlow;
use analyzer::paths::PathQuery;
use analyzer::{Analysis, Origin};

use analyzer::mix::{Cell, Dimension, Key, Mix, NO_SOURCE, Operations, Query, Sum, UNREADABLE, mix};

use crate::commands::annotate::streams_without_cycles;
use crate::commands::nearest::nearest;
use crate::commands::record::{SAMPLING, Wanted};
use crate::commands::reporting::ReportArgs;
use crate::input::{Input, Reader, Reads, WITHOUT_LINES, without_samples};
use crate::output;
use crate::output::{Colours, Format, Head, Layout, Precision};
use nested::{Line, Node, for_each_line, nested};
use numbers::{Number, unread};
use order::{Order, title_of};
pub use query::group_by;
use query::{PivotArgs, query, query_options, shaped};

/// Print the instruction mix as a pivot table
#[derive(clap::Args)]
#[command(after_help = keys::after(EXAMPLES))]
#[command(mut_arg("top", |top| top.help(TOP)))]
pub struct Args {
    #[command(flatten)]
    pivot: PivotArgs,

    /// Keys that rows are grouped by: each group has a line of its own, and shares are those of the group
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    per: Vec<String>,

    /// Numbers of each row, in this order; with --columns, the first of them is in the columns
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_enum, default_values_t = Number::DEFAULT)]
    values: Vec<Number>,

    /// Sort by a number, by `name`, or by a column (its title)
    #[arg(long, value_name = "NUMBER|COLUMN", default_value = "executions")]
    sort: Order,

    /// Print a line with the sum for each value of all keys but the last
    #[arg(long)]
    subtotals: bool,

    /// Run the command again and again, for five minutes at most, until the largest rows are right within so many percent by chance
    #[arg(long, value_name = "PCT", help_heading = SAMPLING, conflicts_with = "off")]
    precision: Option<Wanted>,

    #[command(flatten)]
    report: ReportArgs,
}

const READER: Reader = Reader { name: "hbbp mix", reads: Reads::Flows, records: true };

const TOP: &str = "Print only the N largest rows (of each group); 0 prints all [default: in a table 40, with groups 10 of them and of \
                   their rows; all in csv and json]";

const EXAMPLES: &str = "\
Examples:
  hbbp mix -- gzip -t big.tar.gz                   record and print by mnemonic
  hbbp mix --overhead 5 -- ./bench                 with five times the bursts
  hbbp mix run.data --rows isa --columns packing   how well is it vectorized?
  hbbp mix --rows function --filter latency=long   who divides? (reads hbbp.data)
  hbbp mix --rows function --columns vectorization a taxonomy: `hbbp taxonomy list` has all
  hbbp mix --rows line,function --top 20           the lines of the source that execute most
  hbbp mix --per function --rows vectorization     shares within each function
  hbbp mix --rows function --columns isa --values row-share      per cents of each row
  hbbp mix --rows function --filter latency=long --values per-call,share --sort per-call
  hbbp mix --rows branch-site,line --values mispredicted,taken,mispredict-rate --sort mispredicted
  hbbp mix --rows function,loop --values cycles,ipc,share --sort cycles      where does time go?
  hbbp mix --per loop --rows vectorization --filter 'loop-depth>=2'
  hbbp mix --rows mnemonic --filter 'function=deflate*' --format json
  hbbp mix --model mine.json                       let a trained model choose between the sources";

/// Prints the instruction mix of a recording as a pivot table.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.report.output.check()?;
    let taxonomies = args.pivot.kept.taxonomies()?;
    let query = query::<Args>(READER.name, &args.pivot, &taxonomies, args.report.input.analysis.threads());
    let query = shaped(args, query, &taxonomies);
    let options = || [query_options(&query, &args.pivot.kept.taxonomies), args.report.input.analysis.words()].concat();
    let precision = args.precision.map(|wanted| (wanted, options()));
    let input = args.report.input.begin(&READER, precision)?;
    input.end(print(args, &query, &input))
}

impl Args {
    /// Whether such a number is to be shown, or to be sorted by.
    fn asks(&self, wanted: fn(Number) -> bool) -> bool {
        let sorts = if let Order::Number(number) = self.sort { wanted(number) } else { false };
        sorts || self.values.iter().copied().any(wanted)
    }
}

/// After how many keys there is a sum: of groups, and of rows.
fn levels(args: &Args, keys: usize) -> Vec<usize> {
    let groups = args.per.len();
    let inner = if args.subtotals { groups + 1..keys } else { 0..0 };
    (groups > 0).then_some(groups).into_iter().chain(inner).chain([keys]).collect()
}

fn print(args: &Args, query: &Query, input: &Input<'_>) -> anyhow::Result<()> {
    let detail = if query.needs_branches() { Detail::Branches } else { Detail::Blocks };
    let analysis = match query.cycles {
        true => input.analyze_with_paths(group_by(query), &PathQuery { cycles: true, ..PathQuery::default() })?,
        false => input.analyze_in_detail(group_by(query), detail)?,
    };
    let result = mix(&analysis, query)?;
    let nothing = without_samples(&analysis);
    let unmatched: Vec<String> = result.unmatched.iter().map(unmatched::sentence).collect();
    nothing.iter().for_each(output::say);
    if result.cells.is_empty() && nothing.is_none() {
        let why = if !query.filters.is_empty() {
            "no instruction passes the filters"
        } else if analysis.origin == Origin::Recording {
            "the samples say that they stand for nothing (their periods are 0)"
        } else {
            "no code of it ran, or none is known"
        };
        let weaker = &analysis.summary.degradations[..];
        let more = if analysis.origin == Origin::Recording { &[] } else { weaker };
        let why = [&[why.to_owned()], more, &unmatched].concat().join("; ");
        anyhow::bail!("there is nothing to show: {why}");
    }
    if nothing.is_none() {
        result.notes.iter().chain(&unmatched).for_each(output::say);
        without_source(&query.rows, &result).iter().for_each(output::say);
        lacks_branches(query, args.asks(Number::is_of_mispredictions), &analysis).iter().for_each(output::say);
        if query.cycles {
            lacks_cycles(&analysis).iter().for_each(output::say);
        }
        result.all.operations.iter().flat_map(|all| bounds(result.all.count, &all.sum)).for_each(output::say);
    }
    let head = args.report.head(&analysis, precision(&analysis, &result));
    let of_code = [Dimension::Function, Dimension::Loop, Dimension::LoopDepth];
    let is_of_code = |key: &Key| key.is_of_instruction() || of_code.iter().any(|dimension| key == dimension);
    let row_keys_need_code = query.rows.iter().all(is_of_code);
    if nothing.is_none() && row_keys_need_code && !analysis.has_readable_code() {
        head.print(analysis.instructions(), &mut std::io::stderr().lock(), Layout::Text)?;
        anyhow::bail!(
            "the code of no module could be read, so there is no mix by {}: name the binaries with --binary \
             [RECORDED=]FILE or --symfs DIR, or ask for --rows module",
            query.rows.iter().map(Key::to_string).collect::<Vec<_>>().join(",")
        );
    }
    let levels = levels(args, query.rows.len());
    let format = args.report.output.format;
    let report = Report {
        query,
        mix: &result,
        head: &head,
        origin: analysis.origin,
        rows: nested(&result, query, (&levels, args.per.len()), &args.sort),
        per: args.per.len(),
        numbers: &args.values,
        top: if levels.len() > 1 { format.rows_of_groups(args.report.top) } else { args.report.rows() },
        layout: args.report.output.layout(),
        colours: args.report.output.colours(),
    };
    report.check_order(&args.sort)?;
    args.report.output.write(&titles(&query.rows), |out| match args.report.output.format {
        Format::Table | Format::Markdown => table::print(&report, out),
        Format::Csv | Format::Parquet => csv::print(&report, out),
        Format::Json => json::print(&report, out),
    })
}

/// Keys as they are written.
pub(super) fn titles(keys: &[Key]) -> Vec<String> {
    keys.iter().map(Key::to_string).collect()
}

/// How right the largest rows are.
pub(super) fn precision(analysis: &Analysis, mix: &Mix) -> Option<Precision> {
    let rows = mix.cells.chunk_by(|a, b| a.row == b.row).map(|row| {
        let sum = Sum::of(row);
        (sum.count / mix.instructions, mix.uncertainty_of(&sum).share)
    });
    Precision::of(analysis, rows)
}

/// What to do where rows are of the source, and none is known.
pub(super) fn without_source(rows: &[Key], mix: &Mix) -> Option<&'static str> {
    let at = rows.iter().position(|key| key.is_of_source())?;
    let has_none = |cell: &Cell| cell.row[at] == NO_SOURCE || cell.row[at] == UNREADABLE;
    mix.cells.iter().all(has_none).then_some(WITHOUT_LINES)
}

/// What is said where the recording does not have all that is asked for.
fn lacks_branches(query: &Query, asks_mispredictions: bool, analysis: &Analysis) -> Option<&'static str> {
    if !query.calls && !query.taken {
        return None;
    }
    let flow = analysis.flow.as_ref().map(AnalysedFlow::flow).filter(|flow| flow.branch_total() > 0.0);
    let Some(flow) = flow else {
        return Some("nothing is known of calls and taken branches: there are no branch stacks");
    };
    if analysis.origin == Origin::Exact {
        return Some(
            "exact counts do not say where returns and indirect branches went: they are not among those that were taken, \
             nor among calls",
        );
    }
    (asks_mispredictions && flow.mispredicted_total() == 0.0).then_some(
        "nothing is known of mispredictions: no branch of the stacks is marked as one (those of bursts never are)",
    )
}

/// What is said of cycles that no branch record tells.
fn lacks_cycles(analysis: &Analysis) -> Option<String> {
    let Some(paths) = analysis.paths.as_ref().filter(|paths| !paths.cycles.is_empty()) else {
        let why = match analysis.origin {
            Origin::Recording => {
                "no branch record has them: only those of the hardware do, of Intel's CPUs from Skylake on"
            }
            Origin::Flow => "sums of recordings do not keep them, name a recording",
            Origin::Exact => "exact counts do not tell them, name a recording",
        };
        return Some(format!("nothing is known of cycles: {why}"));
    };
    streams_without_cycles(paths).map(|streams| format!("left out: {streams}"))
}

/// What is said of operations and bytes of so many instructions: that masks and registers decide them, or that code was not read.
pub(super) fn bounds(instructions: f64, all: &Operations) -> Vec<String> {
    let mut said = Vec::new();
    if all.masked_flops > 0.0 {
        let part = output::share(all.masked_flops, all.flops);
        said.push(format!(
            "{part} of the floating-point operations have a mask, and what it leaves out is counted, too"
        ));
    }
    if all.masked_bytes > 0.0 {
        let part = output::share(all.masked_bytes, all.bytes());
        said.push(format!(
            "{part} of the bytes are of instructions with a mask, and what it leaves out is counted, too"
        ));
    }
    if all.unknown_bytes > 0.0 {
        let number = output::count(all.unknown_bytes);
        said.push(format!(
            "{number} executed instructions move as many bytes as registers say (`rep movsb`, `xsave`): these are not counted"
        ));
    }
    let unread = unread(instructions, all);
    if unread > 0.0 {
        let part = output::share(unread, instructions);
        said.push(format!(
            "the code of {part} of the instructions was not read: their floating-point operations and bytes are not counted"
        ));
    }
    said
}

/// What is printed.
pub(super) struct Report<'a> {
    pub query: &'a Query,
    pub mix: &'a Mix,
    pub head: &'a Head,
    pub origin: Origin,
    /// Rows, or groups of rows.
    pub rows: Vec<Node<'a>>,
    /// How many keys make the groups that shares are of.
    pub per: usize,
    pub numbers: &'a [Number],
    /// Rows of each group that are shown.
    pub top: usize,
    pub layout: Layout,
    pub colours: Colours,
}

impl<'a> Report<'a> {
    /// Each line of what is printed, in order.
    fn for_each_line<'r>(&'r self, mut visit: impl FnMut(Line<'r, 'a>)) {
        for_each_line(&self.rows, &self.mix.all, (self.per, self.top), &mut visit);
    }

    /// Whether rows are in groups.
    fn is_nested(&self) -> bool {
        self.rows.iter().any(|node| !node.children.is_empty())
    }

    fn has_columns(&self) -> bool {
        !self.query.columns.is_empty()
    }

    fn asks(&self, number: Number) -> bool {
        self.numbers.contains(&number)
    }

    /// Whether it is known how many samples there were.
    fn knows_samples(&self) -> bool {
        self.origin == Origin::Recording
    }

    /// The numbers of a row as a whole.
    fn numbers(&self) -> impl Iterator<Item = Number> + '_ {
        self.numbers.iter().copied().filter(|number| *number != Number::RowShare)
    }

    /// The number that is in the columns.
    fn number_of_columns(&self) -> Number {
        self.numbers.iter().copied().find(|number| *number != Number::Error).unwrap_or(Number::Executions)
    }

    /// Refuses an order by a column that is not there.
    fn check_order(&self, order: &Order) -> anyhow::Result<()> {
        let Order::Column(title) = order else { return Ok(()) };
        if self.mix.cells.is_empty() {
            return Ok(());
        }
        let titles: BTreeSet<String> = self.mix.cells.iter().map(|cell| title_of(&cell.column)).collect();
        if titles.contains(title) {
            return Ok(());
        }
        let titles: Vec<String> = titles.into_iter().filter(|title| !title.is_empty()).collect();
        let mean =
            nearest(title, &titles).first().map_or(String::new(), |near| format!(": did you mean --sort '{near}'?"));
        anyhow::bail!("--sort {title}: there is neither such a number nor such a column{mean}")
    }
}
