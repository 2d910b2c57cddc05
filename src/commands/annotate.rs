//! `hbbp annotate`: functions, instruction by instruction, with the counts of their blocks.

pub(super) mod code;
mod csv;
pub(super) mod heading;
pub(super) mod json;
pub(super) mod listing;
mod margin;
pub(super) mod notes;
mod summary;
mod table;

pub(super) use summary::slowest;

use std::process::ExitCode;

use analyzer::annotate::{
    AnnotatedBlock, AnnotatedFunction, Annotation, CountedLoop, NoFunction, Query, Seen, SourceTexts, annotate,
};
use analyzer::counting::{Code, GroupBy};
use analyzer::mix::{Dimension, Filter};
use analyzer::paths::{BlockCycles, LoopTrips, PathQuery};
use analyzer::{Analysis, Origin};
use anyhow::bail;
use reports::Arguments;
use reports::lacks::{streams_without_cycles, without_lines};
use reports::nearest::did_you_mean;

use crate::commands::filtering::{FilterArgs, passing};
use crate::commands::mix::keys;
use crate::commands::reporting::ReportArgs;
use crate::input::{DEFAULT_RECORDING, Input, Reader, Reads, WITHOUT_CODE};
use crate::output;
use crate::output::{Colours, Format, Head, Layout, Precision, page, say_head, write_to};
use crate::usage::{CommandLine, wrong_usage};

/// Print the hottest functions, instruction by instruction, with counts, branches and loops
#[derive(clap::Args)]
#[command(after_help = keys::after(EXAMPLES))]
#[command(mut_arg("command", |command| command.index(3)))]
#[command(mut_arg("top", |top| top.help(TOP)))]
#[command(mut_arg("filters", |filters| filters.help(FILTER)))]
pub struct Args {
    /// Print only functions of this name: without its arguments, or with `*` for any text; may be repeated
    #[arg(short = 'f', long = "function", value_name = "NAME")]
    functions: Vec<String>,

    /// The same as -f NAME; after FILE, or alone where hbbp.data is there and no file of that name
    #[arg(index = 2, value_name = "FUNCTION", conflicts_with_all = ["input", "command"])]
    named: Vec<String>,

    /// Print a table of functions instead of their code: shares of instructions and of time, and time per instruction
    #[arg(long, conflicts_with = "source")]
    summary: bool,

    /// Print the lines of the source between the instructions, and the names of inlined functions where they begin
    #[arg(long)]
    source: bool,

    /// Say of each loop how often it went around each time that it was entered, as shares of 1, 2, 3 to 4, 5 to 8 iterations and so on;
    /// reads the recording once more
    #[arg(long, conflicts_with = "summary")]
    trips: bool,

    #[command(flatten)]
    kept: FilterArgs,

    #[command(flatten)]
    report: ReportArgs,

    /// What was named alone, and is no file.
    #[arg(skip)]
    no_file: Option<String>,
}

const READER: Reader = Reader { name: "hbbp annotate", reads: Reads::Flows, records: true };

const TOP: &str = "Print only the N functions with the most executed instructions; 0 prints all [default: 3 in a table, unless functions are \
                   named, 40 with --summary; all in csv and json]";

const FILTER: &str = "Keep only functions that have executed instructions with these values, as `hbbp mix --filter` does: key=value, \
                      key=one,other, key~regex, key>=number";

const EXAMPLES: &str = "\
Examples:
  hbbp annotate run.data                           the three hottest functions
  hbbp annotate run.data --summary                 which functions take long for what they execute?
  hbbp annotate run.data main 'deflate*'           these
  hbbp annotate main                               this one of hbbp.data
  hbbp annotate run.data --filter latency=long     the hottest that divide
  hbbp annotate run.data --source --top 1          the hottest, with lines of its source
  hbbp annotate run.data main --trips              how often do its loops go around?
  hbbp annotate --overhead 5 -- ./bench            record and annotate in one go
  hbbp annotate run.data matmul --format json";

/// Functions and the analysis that they are of.
pub(super) struct Annotated<'a> {
    pub analysis: &'a Analysis,
    pub annotation: &'a Annotation,
    /// All executed instructions.
    pub instructions: f64,
    /// Whether lines of the source are wanted.
    pub has_source: bool,
}

/// All that the report is printed from.
struct Report<'a> {
    of: Annotated<'a>,
    head: &'a Head,
    layout: Layout,
    colours: Colours,
}

/// Prints functions of a recording with the counts of their blocks.
pub fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    // Of two names, the first is a file.
    if args.named.is_empty() && args.functions.is_empty() {
        args.no_file = args.report.input.take_name_of_no_file();
        args.functions.extend(args.no_file.clone());
    }
    args.functions.append(&mut args.named);
    args.report.output.check()?;
    if args.summary && !args.report.output.format.is_for_people() {
        let why = "--summary is a table; the functions of json have its numbers without it".to_owned();
        wrong_usage::<Args>(READER.name, why);
    }
    let filters = args.kept.filters_of_code::<Args>(READER.name, &args.kept.taxonomies()?);
    let input = args.report.input.begin(&READER, None)?;
    input.end(print(&args, filters, &input))
}

impl Args {
    fn most(&self) -> usize {
        const FUNCTIONS_OF_A_TABLE: usize = 3;
        match self.report.top {
            // It is not their code that is printed.
            _ if self.summary => 0,
            None if self.functions.is_empty() && self.report.output.format.is_for_people() => FUNCTIONS_OF_A_TABLE,
            None | Some(0) => usize::MAX,
            Some(top) => top,
        }
    }
}

fn print(args: &Args, filters: Vec<Filter>, input: &Input<'_>) -> anyhow::Result<()> {
    let order = PathQuery { trips: args.trips, cycles: !args.summary, ..PathQuery::default() };
    let analysis = input.analyze_with_paths(GroupBy::default(), &order)?;
    let threads = args.report.input.analysis.threads();
    let named = (!args.functions.is_empty()).then(|| Filter::any_of(Dimension::Function, &args.functions));
    let nothing = args.report.output.say_without_samples(&analysis);
    let is_filtered = !filters.is_empty() && nothing.is_none();
    let passing = is_filtered.then(|| passing(&analysis, filters, threads)).transpose()?;
    let among = passing.map(|passing| passing.functions(&analysis));
    let query =
        Query { functions: named, among, top: args.most(), most_instructions: None, source: args.source, threads };
    let mut annotation = annotate(&analysis, &query);
    annotation.lacks.extend(lacks_of_order(args, &analysis));
    let unmatched: Vec<String> = annotation.unmatched.iter().map(sentence).collect();
    let is_empty = if args.summary { annotation.ranked.is_empty() } else { annotation.functions.is_empty() };
    if is_empty && nothing.is_none() {
        if !analysis.has_readable_code() {
            say_head(&args.report.head(&analysis, None), analysis.instructions());
        }
        let why = why_nothing(&analysis, &unmatched);
        match &args.no_file {
            Some(name) => bail!("{name} is no file, and is taken for a function of {DEFAULT_RECORDING}: {why}"),
            None => bail!(why),
        }
    }
    if nothing.is_none() {
        annotation.notes.iter().chain(&unmatched).for_each(output::say);
        if args.source && !annotation.has_lines() {
            output::say(without_lines(&CommandLine));
        }
    }
    let precision = Precision::of(&analysis, annotation.ranked.iter().map(|of| (of.share, of.share_interval)));
    let head = args.report.head(&analysis, precision);
    let is_read_at_once = args.report.output.is_read_at_once();
    let report = Report {
        of: Annotated {
            analysis: &analysis,
            annotation: &annotation,
            instructions: analysis.instructions(),
            has_source: args.source,
        },
        head: &head,
        layout: args.report.output.layout(),
        colours: args.report.output.colours(),
    };
    if args.summary {
        let top = args.report.rows();
        return write_to(args.report.output.file.as_deref(), |out| summary::print(&report, top, out));
    }
    let mut texts = SourceTexts::below(args.report.input.analysis.search().symfs);
    if is_read_at_once {
        return page(|out| table::print(&report, &mut texts, out));
    }
    args.report.output.write(&[], |out| match args.report.output.format {
        Format::Table | Format::Markdown => table::print(&report, &mut texts, out),
        Format::Csv | Format::Parquet => csv::print(&report, out),
        Format::Json => json::print(&report, out),
    })
}

/// What the order of branches does not tell.
fn lacks_of_order(args: &Args, analysis: &Analysis) -> Vec<String> {
    let mut lacks = Vec::new();
    if args.trips && analysis.paths.is_none() && analysis.origin != Origin::Recording {
        let why =
            "how often loops went around each time: sums and exact counts have no order of branches, name a recording";
        lacks.push(why.to_owned());
    }
    lacks.extend(analysis.paths.as_ref().and_then(streams_without_cycles));
    lacks
}

/// Why no function can be shown.
fn why_nothing(analysis: &Analysis, unmatched: &[String]) -> String {
    if !analysis.has_readable_code() {
        return WITHOUT_CODE.into();
    }
    let why = if unmatched.is_empty() {
        "no sample fell into a function whose code was read".into()
    } else {
        unmatched.join("; ")
    };
    format!("there is nothing to show: {why}")
}

/// A sentence on a name that no function has that was seen.
fn sentence(nothing: &NoFunction) -> String {
    let NoFunction { name, is_there, existing } = nothing;
    if *is_there {
        return format!("the function {name:?} was not seen: nothing was sampled in it, so it ran seldom or never");
    }
    let mean =
        did_you_mean(name, existing, "--function", &CommandLine.values_of(Dimension::Function.as_str()), str::to_owned);
    format!("nothing has the function {name:?}{mean}")
}

impl Annotated<'_> {
    /// The path of the module of a function.
    pub fn module(&self, function: &AnnotatedFunction) -> &str {
        self.path(function.module)
    }

    /// Why the code of a function was not read, of which nothing but the name is known then; `None` if it was.
    pub fn why_unread(&self, function: &AnnotatedFunction) -> Option<&str> {
        match &self.analysis.counted.get(function.module)?.counts.code {
            Code::Read(_) => None,
            Code::Unread { why, .. } => Some(why),
        }
    }

    /// The build id of the module of a function, if it has one.
    pub fn build_id(&self, function: &AnnotatedFunction) -> Option<String> {
        let module = self.analysis.counted.get(function.module)?;
        self.analysis.build_id(module).map(ToString::to_string)
    }

    /// The path of a module, by its index among those that were counted.
    pub fn path(&self, module: usize) -> &str {
        let module = self.analysis.counted.get(module);
        module.map_or("", |module| &self.analysis.modules.get(module.counts.module).path)
    }

    /// How many times as long an instruction of a function took as one of all code; `None` where that is not known.
    pub fn time_per_instruction(&self, function: &AnnotatedFunction) -> Option<f64> {
        function.time?.per_instruction(self.share(function.executed), function.share_interval)
    }

    /// How often a loop of a function went around, where that was asked for and seen.
    pub fn trips(&self, function: &AnnotatedFunction, one: &CountedLoop) -> Option<&LoopTrips> {
        let header = function.blocks.get(one.header)?.start;
        self.analysis.paths.as_ref()?.trips_of(function.module, header)
    }

    /// How many cycles a block of a function took, where branch records say it.
    pub fn cycles(&self, function: &AnnotatedFunction, block: &AnnotatedBlock) -> Option<&BlockCycles> {
        self.analysis.paths.as_ref()?.cycles_of(function.module, block.start)
    }

    /// The part of all instructions that so many are, 0 to 1.
    pub fn share(&self, executed: f64) -> f64 {
        if self.instructions > 0.0 { executed / self.instructions } else { 0.0 }
    }
}

/// What was seen of a block, in one word.
pub(super) fn word(seen: Seen) -> &'static str {
    match seen {
        Seen::Counted => "counted",
        Seen::ByOtherSource => "by-other-source",
        Seen::Not => "not-seen",
        Seen::Padding => "padding",
    }
}
