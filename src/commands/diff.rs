//! `hbbp diff`: two profiles side by side.

mod csv;
mod json;
mod limit;
pub(super) mod names;
mod pivot;
pub(super) mod table;
mod work;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use analyzer::flow::{AnalysedFlow, BlockName, Comparison, FunctionName, InstructionKind, Moved, SourceLine, compare};
use analyzer::mix::{Mix, Query, Taxonomies};
use analyzer::uncertainty::{RowName, Rows, Side, change_error, width_of_many};
use analyzer::{Analysis, Origin};
use anyhow::bail;

use crate::commands::filtering::FilterArgs;
use crate::commands::mix::query::key;
use crate::commands::mix::{keys, titles, unmatched, without_source};
use crate::input::{AnalysisArgs, Asked, Reader, Reads, is_recording};
use crate::output::profile::sampled_only;
use crate::output::{Colours, Format, Layout, OutputArgs};
use crate::usage::wrong_usage;
use limit::Limit;
use names::Names;
use pivot::Pivot;

/// Compare two recordings: what they have in common, what moved, and which kinds of instructions changed
///
/// The overlap is the sum of the smaller of both shares: 100 % is the same, 0 % has nothing in common. It is computed over blocks (of
/// files that are the same on both sides), over functions (by name; by name without suffixes such as .constprop.0 where a name is on one
/// side only), and over source lines (counted from the start of their function, where there is debug information).
#[derive(clap::Args)]
#[command(after_help = keys::after(EXAMPLES))]
#[command(mut_arg("filters", |filters| filters.requires("rows")), mut_arg("taxonomies", |files| files.requires("rows")))]
#[command(mut_arg("model", |model| model.help(MODEL)))]
pub struct Args {
    /// The first side: a recording, a file of `hbbp merge`, or exact counts (from `hbbp truth`)
    before: PathBuf,

    /// The second side: the same kinds of files
    after: PathBuf,

    /// Compare the mixes of both sides by these keys, in place of functions, blocks and lines: see the list below
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    rows: Vec<String>,

    #[command(flatten)]
    kept: FilterArgs,

    /// Rows of each list; 0 prints all [default: 20 in a table, all in csv and json]
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    /// Exit with status 3 if this has changed by more than that, and by more than chance can explain: instructions>+2%,
    /// instructions:FUNCTION>+2%, or share:FUNCTION>+1% (points); `<-2%` for what must not become less. Limits are of all
    /// instructions, whatever --rows shows
    #[arg(long, value_name = "LIMIT", conflicts_with = "filters")]
    fail_if: Vec<Limit>,

    #[command(flatten)]
    analysis: AnalysisArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// What the process exits with where a limit is broken.
const BROKEN: u8 = 3;

const READER: Reader = Reader { name: "hbbp diff", reads: Reads::Flows, records: false };

const MODEL: &str = "\
Count blocks by the source that is chosen for each, as `hbbp mix` does: the file of a model, `published` (the paper's rule), or the \
kind of sources that a model is for (hardware, software, simulated) [default: branches alone, or samples where there are none]";

const EXAMPLES: &str = "\
Examples:
  hbbp diff monday.data tuesday.data
  hbbp diff run.data gzip.truth.json --top 5      an estimate and exact counts
  hbbp diff old.data new.data --rows isa,packing  what became packed?
  hbbp diff old.data new.data --rows mnemonic --filter 'function=matmul*'
  hbbp diff old.truth.json new.truth.json --fail-if 'instructions>+2%'
  hbbp diff before.flow after.flow --format json";

/// All that the printed differences are made from.
pub(super) struct Report<'a> {
    pub files: [String; 2],
    /// Whether the counts of each side are executions.
    pub executions: [bool; 2],
    pub comparison: &'a Comparison,
    /// What is known of the uncertainty of each.
    pub sides: [&'a Side; 2],
    /// The comparison by keys, if there are any.
    pub pivot: Option<&'a Pivot>,
    /// What is known of the limits.
    pub limits: Vec<limit::Kept>,
    /// Rows of each list.
    pub top: usize,
    pub layout: Layout,
    pub colours: Colours,
}

/// Two analyses, compared: for what shows more of them than how they differ.
pub(super) struct Compared {
    comparison: Comparison,
    /// What is known of the uncertainty of each.
    pub sides: [Side; 2],
    executions: [bool; 2],
    /// What is not compared of each, in a sentence.
    pub left_out: [Option<String>; 2],
}

impl Compared {
    /// Of analyses with branches, before and after.
    pub fn of(analyses: [&Analysis; 2], args: &AnalysisArgs) -> Self {
        let nothing = AnalysedFlow::default();
        let flows = analyses.map(|analysis| analysis.flow.as_ref().unwrap_or(&nothing));
        let sides = analyses.map(|analysis| match analysis.origin {
            Origin::Recording => Side::Sampled(Rows::of(analysis).into()),
            Origin::Flow => Side::Unknown,
            Origin::Exact => Side::Exact,
        });
        Compared::of_flows(flows, sides, args)
    }

    fn of_flows(flows: [&AnalysedFlow; 2], sides: [Side; 2], args: &AnalysisArgs) -> Self {
        let executions = flows.map(|flow| flow.flow().executions);
        let left_out = flows.map(left_out);
        Compared { comparison: compare(flows, &args.search(), args.threads()), sides, executions, left_out }
    }

    /// What is printed of it, with what the sides are called.
    pub fn report(&self, files: [String; 2]) -> Report<'_> {
        Report {
            files,
            executions: self.executions,
            comparison: &self.comparison,
            sides: [&self.sides[0], &self.sides[1]],
            pivot: None,
            limits: Vec::new(),
            top: usize::MAX,
            layout: Layout::Text,
            colours: Colours::NONE,
        }
    }
}

/// How far a change is from none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Noise {
    /// Half the width of the interval of the change, as a share of all; `None` where it is not known.
    pub error: Option<f64>,
    /// Whether the change is less than that, and may be none.
    pub is_within: Option<bool>,
    /// Whether it is more than chance does in any of all the rows of its list.
    pub is_finding: Option<bool>,
}

impl Report<'_> {
    /// How far the change of a function is from none.
    pub fn of_function(&self, of: &Moved<FunctionName>) -> Noise {
        let rows = self.rows_of_function(&of.what);
        self.noise(of, [&rows[0], &rows[1]], self.comparison.functions.len())
    }

    /// The rows of each side that are a function.
    fn rows_of_function(&self, name: &FunctionName) -> [Vec<RowName>; 2] {
        let modules = modules(&name.module);
        [0, 1].map(|side| {
            let of = |function| RowName::Function(modules[side].clone(), function);
            self.names_of_function(name, side).into_iter().map(of).collect()
        })
    }

    /// What a function is called on a side: it may be several there that were added up. `None` is code that was not read.
    pub fn names_of_function(&self, name: &FunctionName, side: usize) -> Vec<Option<String>> {
        match self.comparison.joined.get(name) {
            Some(names) => names[side].iter().cloned().map(Some).collect(),
            None => vec![name.function.clone()],
        }
    }

    fn of_block(&self, of: &Moved<BlockName>) -> Noise {
        let rows = modules(&of.what.function.module).map(|module| [RowName::Block(module, of.what.start)]);
        self.noise(of, [&rows[0], &rows[1]], self.comparison.blocks.len())
    }

    /// How far the change of a line of the source is from none.
    fn of_line(&self, of: &Moved<SourceLine>) -> Noise {
        let files = self.comparison.blocks_of_lines.get(&of.what).map_or(&[][..], Vec::as_slice);
        let rows = [0, 1].map(|side| -> Vec<RowName> {
            let of_side = files.iter().filter(|(file, _)| file.is_on[side]);
            of_side
                .flat_map(|(file, blocks)| {
                    let module = modules(&file.module)[side].clone();
                    let part = move |&(start, instructions)| RowName::PartOfBlock(module.clone(), start, instructions);
                    blocks.iter().map(part)
                })
                .collect()
        });
        self.noise(of, [&rows[0], &rows[1]], self.comparison.lines.len())
    }

    fn of_kind(&self, of: &Moved<InstructionKind>) -> Noise {
        let row = [RowName::Kind(of.what.isa.into(), of.what.packing.into())];
        self.noise(of, [&row, &row], self.comparison.mix.len())
    }

    /// How far the change of a value of an attribute of instructions is from none, one of so many values.
    pub fn of_value(&self, key: &str, of: &Moved<&str>, values: usize) -> Noise {
        let row = [RowName::Value(key.to_owned(), of.what.to_owned())];
        self.noise(of, [&row, &row], values)
    }

    fn noise<N>(&self, of: &Moved<N>, names: [&[RowName]; 2], rows: usize) -> Noise {
        noise(of, self.sides, names, rows)
    }
}

/// How far a change is from none, of a list of so many rows.
fn noise<N>(of: &Moved<N>, sides: [&Side; 2], names: [&[RowName]; 2], rows: usize) -> Noise {
    let error = change_error(sides, names);
    let is_finding = of.is_within(error.map(|error| error * width_of_many(rows, sides))).map(|within| !within);
    Noise { error, is_within: of.is_within(error), is_finding }
}

/// What is not compared of a flow, in a sentence.
fn left_out(flow: &AnalysedFlow) -> Option<String> {
    if flow.is_by_choice() { None } else { sampled_only(flow.flow()) }
}

/// The name of a module on each side: versions of one program may be named differently.
pub(super) fn modules(name: &str) -> [String; 2] {
    let (before, after) = name.split_once('|').unwrap_or((name, name));
    [before, after].map(String::from)
}

/// What is asked for by keys. The process ends with what is wrong, if something is.
fn query(args: &Args, taxonomies: &Taxonomies) -> Query {
    let key = |name: &String| {
        key(name, taxonomies).unwrap_or_else(|why| wrong_usage::<Args>(READER.name, format!("--rows: {why}")))
    };
    Query {
        rows: args.rows.iter().map(key).collect(),
        filters: args.kept.filters::<Args>(READER.name, taxonomies),
        threads: args.analysis.threads(),
        ..Query::default()
    }
}

/// Says what there is to say of the mix of a side.
fn say_of_mix(file: &Path, mix: Option<&Mix>, query: Option<&Query>) {
    let Some((mix, query)) = mix.zip(query) else { return };
    let unmatched = mix.unmatched.iter().map(unmatched::sentence);
    let without_source = without_source(&query.rows, mix).map(str::to_owned);
    let said = mix.notes.iter().cloned().chain(unmatched).chain(without_source);
    said.for_each(|note| say!("{}: {note}", file.display()));
}

/// Prints what two recordings, flows or truths differ in.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.output.check()?;
    if args.analysis.chooses()
        && let Some(file) = [&args.before, &args.after].into_iter().find(|file| !is_recording(file))
    {
        let why = format!("--model chooses between the sources of recordings: {} is none", file.display());
        wrong_usage::<Args>(READER.name, why);
    }
    let taxonomies = args.kept.taxonomies()?;
    let query = (!args.rows.is_empty()).then(|| query(args, &taxonomies));
    let chosen = args.analysis.rules()?;
    let asked = Asked { errors: true, mix: query.as_ref(), options: true, ..Asked::default() };
    let before = args.analysis.side_of_file(&chosen, &args.before, &READER, asked)?;
    let after = args.analysis.side_of_file(&chosen, &args.after, &READER, asked)?;
    let compared = Compared::of_flows([&before.flow, &after.flow], [before.side, after.side], &args.analysis);
    let said = [(&args.before, &before.notes, &before.mix), (&args.after, &after.notes, &after.mix)];
    for ((file, notes, mix), left_out) in said.into_iter().zip(&compared.left_out) {
        notes.iter().chain(left_out).for_each(|note| say!("{}: {note}", file.display()));
        say_of_mix(file, mix.as_ref(), query.as_ref());
    }
    let mixes = before.mix.as_ref().zip(after.mix.as_ref());
    if let Some((before, after)) = mixes
        && before.cells.is_empty()
        && after.cells.is_empty()
    {
        bail!("there is nothing to show: no instruction of either side passes the filters");
    }
    let mut report = compared.report([&args.before, &args.after].map(|file| file.display().to_string()));
    let names = Names::of(report.comparison);
    let pivot = query
        .as_ref()
        .zip(mixes)
        .map(|(query, (before, after))| Pivot::of(query, [before, after], report.sides, &names));
    for (file, sum) in [&args.before, &args.after].into_iter().zip(report.comparison.instructions) {
        if sum <= 0.0 {
            bail!("{}: nothing was seen running", file.display());
        }
    }
    report.pivot = pivot.as_ref();
    report.top = args.output.format.rows_of_lists(args.top);
    (report.layout, report.colours) = (args.output.layout(), args.output.colours());
    let (mut kept, mut unknown) = (Vec::new(), Vec::new());
    for limit in &args.fail_if {
        match limit.look(&report) {
            Ok(known) => kept.push(known),
            Err(why) => unknown.push(why),
        }
    }
    report.limits = kept;
    let keys = query.as_ref().map(|query| titles(&query.rows)).unwrap_or_default();
    args.output.write(&keys, |out| match args.output.format {
        Format::Table | Format::Markdown => table::print(&report, out),
        Format::Csv | Format::Parquet => csv::print(&report, out),
        Format::Json => json::print(&report, out),
    })?;
    let broken = limit::say(&report.limits);
    // The report is there whatever is not known of limits.
    if let Some(last) = unknown.pop() {
        unknown.iter().for_each(crate::complain);
        return Err(last);
    }
    Ok(if broken > 0 { ExitCode::from(BROKEN) } else { ExitCode::SUCCESS })
}
