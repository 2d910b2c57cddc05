//! `hbbp mix`: the instruction mix as a pivot table.

mod csv;
mod json;
pub(super) mod keys;
mod numbers;
pub(super) mod query;
pub(super) mod table;

use std::process::ExitCode;

use analyzer::Origin;
use analyzer::counting::Detail;
use analyzer::mix::{Key, Mix, Query, mix};
use analyzer::paths::PathQuery;
use model::Source;
use reports::mix::nested::{Line, Node, for_each_line, nested};
use reports::mix::numbers::Number;
use reports::mix::order::Order;
use reports::mix::{Asked, Shape, group_by, lacks_code, precision, said};
use reports::{Head, Reader, Reads};

use crate::commands::record::{SAMPLING, Wanted};
use crate::commands::reporting::ReportArgs;
use crate::input::{Input, WITHOUT_CODE};
use crate::output;
use crate::output::{Colours, Format, Layout, say_head, share};
use crate::usage::CommandLine;
use numbers::numbers;
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
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = numbers(), default_values_t = Number::DEFAULT)]
    values: Vec<Number>,

    /// Sort by a number, by `name`, or by a column (its title)
    #[arg(long, value_name = "NUMBER|COLUMN", default_value = "executions")]
    sort: Order,

    /// Print a line with the sum for each value of all keys but the last
    #[arg(long)]
    subtotals: bool,

    /// Run the command again and again, for five minutes at most, until the largest rows are right within so many percent by chance
    #[arg(long, value_name = "PCT", help_heading = SAMPLING, conflicts_with_all = ["off", "no_inherit"])]
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
    /// The form of the table.
    pub(super) fn shape(&self) -> Shape<'_> {
        Shape { per: &self.per, numbers: &self.values, sort: &self.sort, subtotals: self.subtotals }
    }
}

fn print(args: &Args, query: &Query, input: &Input<'_>) -> anyhow::Result<()> {
    let detail = if query.needs_branches() { Detail::Branches } else { Detail::Blocks };
    let analysis = match query.cycles {
        true => input.analyze_with_paths(group_by(query), &PathQuery { cycles: true, ..PathQuery::default() })?,
        false => input.analyze_in_detail(group_by(query), detail)?,
    };
    let result = mix(&analysis, query)?;
    let said = said((query, &args.shape()), &analysis, &result, &CommandLine)?;
    if args.report.output.say_without_samples(&analysis).is_none() {
        said.iter().for_each(output::say);
    }
    let head = args.report.head(&analysis, precision(&analysis, &result));
    if lacks_code(query, &analysis) {
        say_head(&head, analysis.instructions());
        anyhow::bail!("{WITHOUT_CODE}, or ask for --rows module");
    }
    args.sort.check(&result).map_err(|why| anyhow::anyhow!(why.sentence(&CommandLine)))?;
    let levels = args.shape().levels(query.rows.len());
    let format = args.report.output.format;
    let report = Report {
        query,
        mix: &result,
        head: &head,
        origin: analysis.origin,
        branches: analysis.title_of(Source::Lbr),
        rows: nested(&result, query, (&levels, args.per.len()), &args.sort),
        per: args.per.len(),
        numbers: &args.values,
        top: if levels.len() > 1 { format.rows_of_groups(args.report.top) } else { args.report.rows() },
        layout: args.report.output.layout(),
        colours: args.report.output.colours(),
    };
    if matches!(format, Format::Csv | Format::Parquet) {
        not_in_csv(&report, args.subtotals).iter().for_each(output::say);
    }
    args.report.output.write(&titles(&query.rows), |out| match args.report.output.format {
        Format::Table | Format::Markdown => table::print(&report, out),
        Format::Csv | Format::Parquet => csv::print(&report, out),
        Format::Json => json::print(&report, out),
    })
}

/// What of a mix a table of rows alone does not have, in sentences.
fn not_in_csv(report: &Report<'_>, subtotals: bool) -> Vec<String> {
    let (mut rows, mut left_out) = (0, 0.0);
    report.for_each_line(|line| {
        if line.others {
            rows += line.nodes.len();
            left_out += line.sum().count;
        }
    });
    let part = share(left_out, report.mix.instructions);
    let left_out = (rows > 0).then(|| {
        let what = match (rows, report.is_nested()) {
            (1, true) => "row or group",
            (1, false) => "row",
            (_, true) => "rows or groups",
            (_, false) => "rows",
        };
        let are = if rows == 1 { "is" } else { "are" };
        format!("{rows} more {what} with {part} {are} left out (--top 0 writes them)")
    });
    let subtotals =
        subtotals.then(|| "--subtotals changes nothing here: there are rows alone (--format json has the sums)".into());
    left_out.into_iter().chain(subtotals).collect()
}

/// Keys as they are written.
pub(super) fn titles(keys: &[Key]) -> Vec<String> {
    keys.iter().map(Key::to_string).collect()
}

/// What is printed.
pub(super) struct Report<'a> {
    pub query: &'a Query,
    pub mix: &'a Mix,
    pub head: &'a Head,
    pub origin: Origin,
    /// What people call the source of branches.
    pub branches: &'static str,
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

    /// What the numbers of rows are made from.
    fn asked(&self) -> Asked<'_> {
        let Report { query, mix, origin, per, numbers, .. } = *self;
        Asked { query, mix, origin, per, numbers }
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
}
