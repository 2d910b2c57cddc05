//! `hbbp paths`: which paths are taken, and which branches lead to a place.

mod csv;
mod json;
mod table;

use std::process::ExitCode;

use analyzer::Analysis;
use analyzer::counting::GroupBy;
use analyzer::mix::{Dimension, Filter, Unmatched};
use analyzer::paths::{BranchEvent, BranchPaths, Destination, Frequency, PathQuery};
use analyzer::uncertainty::Interval;
use anyhow::bail;
use clap::ArgGroup;
use model::Source;
use reports::Arguments;
use reports::nearest::did_you_mean;

use crate::commands::filtering::{FilterArgs, passing};
use crate::commands::mix::keys;
use crate::input::{FILE_OF_SAMPLES, Input, InputArgs, Reader, Reads, WITHOUT_CODE};
use crate::output;
use crate::output::{Format, Head, HeadArgs, Layout, OutputArgs, Precision, say_head};
use crate::usage::CommandLine;

/// Print the most executed paths through functions, or the branches that lead to a place
///
/// A path goes from where a function begins, or from the header of one of its loops, to the next back edge or to where the function ends. With
/// `--to` it is the last branches before a place, much as `perf report --branch-history` shows them; but one that is taken again and again is one
/// branch, so a loop does not fill a path.
#[derive(clap::Args)]
#[command(after_help = keys::after(EXAMPLES))]
#[command(mut_arg("filters", |filters| filters.help(FILTER).conflicts_with("histories")))]
#[command(mut_arg("recording", |file| file.help(FILE_OF_SAMPLES)))]
#[command(group = ArgGroup::new("histories").args(["to", "to_event"]))]
pub struct Args {
    /// Print the branches that lead to this place: a function (where it begins), FUNCTION+0xOFFSET, MODULE+0xADDRESS, 0xADDRESS, or FILE:LINE
    #[arg(long, value_name = "PLACE")]
    to: Option<String>,

    /// Print the branches that lead to the branches to which this happened: each of these is the last of its path
    #[arg(long, value_name = "EVENT")]
    to_event: Option<Event>,

    /// How many branches are told: before the place, or up to the event; one that is taken again and again counts once
    #[arg(long, value_name = "N", requires = "histories", default_value = "4",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(PathQuery::MOST_BRANCHES)))]
    branches: u32,

    /// Print only paths through functions of this name: without its arguments, or with `*` for any text; may be repeated
    #[arg(short = 'f', long = "function", value_name = "NAME", conflicts_with = "histories")]
    functions: Vec<String>,

    #[command(flatten)]
    kept: FilterArgs,

    /// Print only the first N paths; 0 prints all [default: 20 in a table, all in csv and json]
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    head: HeadArgs,
}

/// What the branch records say happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Event {
    /// It went another way than was predicted
    Mispredicted,
    /// It is the abort of a transaction
    Abort,
}

const READER: Reader = Reader { name: "hbbp paths", reads: Reads::Recordings, records: true };

const FILTER: &str = "Print only paths with instructions of these values, as `hbbp mix --filter` does: key=value, key=one,other, key~regex, \
                      key>=number";

const EXAMPLES: &str = "\
Examples:
  hbbp paths run.data                              where do the instructions go, path by path?
  hbbp paths run.data -f 'deflate*' --top 5        the hottest paths through these functions
  hbbp paths run.data --filter latency=long        the hottest paths that divide
  hbbp paths run.data --to malloc                  who calls malloc, and how did it come there?
  hbbp paths run.data --to main.c:12 --branches 8  which eight branches led to the line?
  hbbp paths run.data --to-event mispredicted      on which ways does it go wrong?
  hbbp paths --overhead 5 -- ./bench               record and print in one go
  hbbp paths run.data --format json";

/// All that the report is printed from.
struct Report<'a> {
    paths: &'a BranchPaths,
    /// What `--to` says, or which branches `--to-event` asks for.
    to: Option<&'a str>,
    head: &'a Head,
    /// All executed instructions, by blocks.
    instructions: f64,
    /// Those of them in code that only samples count, as bursts do not see the kernel: they are in no path.
    sampled_only: f64,
    top: usize,
    layout: Layout,
}

impl Args {
    /// What the branches that are printed lead to.
    fn destination(&self) -> Option<Destination> {
        let event = self.to_event.map(|event| match event {
            Event::Mispredicted => BranchEvent::Mispredicted,
            Event::Abort => BranchEvent::Abort,
        });
        event.map(Destination::of_event).or_else(|| self.to.as_deref().map(Destination::read))
    }
}

/// Prints the paths of a recording.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.output.check()?;
    let filters = args.kept.filters_of_code::<Args>(READER.name, &args.kept.taxonomies()?);
    let input = args.input.begin(&READER, None)?;
    input.end(print(args, filters, &input))
}

fn print(args: &Args, filters: Vec<Filter>, input: &Input<'_>) -> anyhow::Result<()> {
    let to = args.destination();
    let history = to.clone().map(|to| (to, args.branches));
    let query = PathQuery { hot: history.is_none(), history, ..PathQuery::default() };
    let to = to.as_ref().map(Destination::text);
    let mut analysis = input.analyze_with_paths(GroupBy::default(), &query)?;
    if analysis.sources.lbr.as_ref().is_some_and(|lbr| lbr.is_trace) {
        bail!(
            "paths need the order of branches, which is not kept of a processor's trace: record samples of branches, or bursts"
        );
    }
    let mut head = Head { verbose: args.head.verbose, ..Head::of(&analysis) };
    let nothing = args.output.say_without_samples(&analysis);
    if nothing.is_none() && analysis.sources.lbr.is_some() && !analysis.has_readable_code() {
        say_head(&head, analysis.instructions());
        bail!(WITHOUT_CODE);
    }
    let Some(mut paths) = analysis.paths.take().or_else(|| nothing.is_some().then(BranchPaths::default)) else {
        bail!(
            "the recording has no branch stacks, so nothing is known of paths: `hbbp record` traces them where the \
             hardware has none{}",
            analysis.sources.degradations.iter().map(|why| format!("; {why}")).collect::<String>()
        );
    };
    let function = Dimension::Function.as_str();
    if let Some(Err(none)) = &paths.history {
        let name = to.unwrap_or_default();
        let mean = did_you_mean(name, &none.functions, "--to", &CommandLine.values_of(function), str::to_owned);
        bail!("{none}{mean}");
    }
    if let Some(hot) = paths.hot.as_mut().filter(|_| !args.functions.is_empty()) {
        let mut filter = Filter::any_of(Dimension::Function, &args.functions);
        let names = hot.paths.iter().filter_map(|path| path.function.as_deref().map(str::to_owned)).collect();
        let sentences: Vec<String> = filter
            .resolve(&names)
            .iter()
            .map(|unmatched| {
                let (Unmatched { value, existing, .. }, values) = (unmatched, CommandLine.values_of(function));
                let mean = did_you_mean(value, existing, "--function", &values, str::to_owned);
                format!("no path goes through a function {value:?}{mean}")
            })
            .collect();
        hot.paths.retain(|path| path.function.as_deref().is_some_and(|name| filter.keeps(name)));
        if hot.paths.is_empty() && nothing.is_none() {
            bail!("there is nothing to show: {}", sentences.join("; "));
        }
        sentences.iter().for_each(output::say);
    }
    if let Some(hot) = paths.hot.as_mut().filter(|_| !filters.is_empty() && nothing.is_none()) {
        let blocks = passing(&analysis, filters, args.input.analysis.threads())?.blocks(&analysis);
        hot.paths.retain(|path| path.blocks.iter().any(|block| blocks.contains(&(&*block.module, block.address))));
        if hot.paths.is_empty() {
            bail!("there is nothing to show: no path goes through instructions that pass the filters");
        }
    }
    if let Some(Ok(history)) = &paths.history
        && history.seen == 0
        && nothing.is_none()
    {
        let facts = &paths.facts;
        let why = match args.to_event {
            Some(Event::Mispredicted) if facts.predicted == 0 => {
                "the branch records do not say which branches were mispredicted: bursts and some hardware cannot"
            }
            Some(Event::Mispredicted) => "no branch was mispredicted",
            Some(Event::Abort) => "no branch record is of the abort of a transaction",
            None => bail!("there is nothing to show: no branch stack has a way to {}", to.unwrap_or_default()),
        };
        bail!("there is nothing to show: {why}");
    }
    head.precision = Precision::of(&analysis, shares(&paths).into_iter());
    if let Some(precision) = head.precision.as_mut().filter(|_| analysis.summary.estimate.is_some()) {
        precision.text += "; ± is of chance alone, not of what code is taken to cost";
    }
    let report = Report {
        paths: &paths,
        to,
        head: &head,
        instructions: analysis.instructions(),
        sampled_only: sampled_only(&analysis),
        top: args.output.format.rows_of_lists(args.top),
        layout: args.output.layout(),
    };
    args.output.write(&[], |out| match args.output.format {
        Format::Table | Format::Markdown => table::print(&report, out),
        Format::Csv | Format::Parquet => csv::print(&report, out),
        Format::Json => json::print(&report, out),
    })
}

/// Executed instructions of blocks that no branch record has, and samples count.
fn sampled_only(analysis: &Analysis) -> f64 {
    let blocks = analysis.counted.iter().flat_map(|module| &module.blocks);
    let sampled = blocks.filter(|block| block.count.chosen == Source::Ebs && block.count.lbr_streams == 0);
    sampled.map(|block| block.count.count * block.size.instructions).sum()
}

fn shares(paths: &BranchPaths) -> Vec<(f64, Interval)> {
    let of = |frequency: &Frequency| (frequency.share, frequency.share_interval);
    match (&paths.hot, &paths.history) {
        (Some(hot), _) => hot.paths.iter().map(|path| of(&path.frequency)).collect(),
        (_, Some(Ok(history))) => history.paths.iter().map(|path| of(&path.frequency)).collect(),
        _ => Vec::new(),
    }
}
