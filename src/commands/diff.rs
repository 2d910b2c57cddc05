//! `hbbp diff`: two profiles side by side.

mod csv;
mod json;
pub(super) mod table;
mod work;

use std::path::PathBuf;
use std::process::ExitCode;

use analyzer::flow::{AnalysedFlow, BlockName, Comparison, FunctionName, InstructionKind, Moved, compare};
use analyzer::uncertainty::{RowName, Rows, Side, change_error, width_of_many};
use analyzer::{Analysis, Origin};
use anyhow::bail;

use crate::input::{AnalysisArgs, Reader, Reads, is_recording};
use crate::output::profile::sampled_only;
use crate::output::{Colours, Format, Layout, OutputArgs, write_to};
use crate::usage::wrong_usage;

/// Compare two recordings: what they have in common, what moved, and which kinds of instructions changed
///
/// The overlap is the sum of the smaller of both shares: 100 % is the same, 0 % has nothing in common. It is computed over blocks (of
/// files that are the same on both sides), over functions (by name; by name without suffixes such as .constprop.0 where a name is on one
/// side only), and over source lines (counted from the start of their function, where there is debug information).
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(mut_arg("model", |model| model.help(MODEL)))]
pub struct Args {
    /// The first side: a recording, a file of `hbbp merge`, or exact counts (from `hbbp truth`)
    before: PathBuf,

    /// The second side: the same kinds of files
    after: PathBuf,

    /// Rows of each list; 0 prints all [default: 20 in a table, all in csv and json]
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    #[command(flatten)]
    analysis: AnalysisArgs,

    #[command(flatten)]
    output: OutputArgs,
}

const READER: Reader = Reader { name: "hbbp diff", reads: Reads::Flows, records: false };

const MODEL: &str = "\
Count blocks by the source that is chosen for each, as `hbbp mix` does: the file of a model, `published` (the paper's rule), or the \
kind of sources that a model is for (hardware, software, simulated) [default: branches alone, or samples where there are none]";

const EXAMPLES: &str = "\
Examples:
  hbbp diff monday.data tuesday.data
  hbbp diff run.data gzip.truth.json --top 5      an estimate and exact counts
  hbbp diff before.flow after.flow --format json";

/// All that the printed differences are made from.
pub(super) struct Report<'a> {
    pub files: [String; 2],
    /// Whether the counts of each side are executions.
    pub executions: [bool; 2],
    pub comparison: &'a Comparison,
    /// What is known of the uncertainty of each.
    pub sides: [&'a Side; 2],
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
        let name = &of.what;
        let modules = modules(&name.module);
        let rows = [0, 1].map(|side| {
            let of = |function| RowName::Function(modules[side].clone(), function);
            self.names_of_function(name, side).into_iter().map(of).collect::<Vec<_>>()
        });
        self.noise(of, [&rows[0], &rows[1]], self.comparison.functions.len())
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
        let error = change_error(self.sides, names);
        let is_finding = of.is_within(error.map(|error| error * width_of_many(rows, self.sides))).map(|within| !within);
        Noise { error, is_within: of.is_within(error), is_finding }
    }
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

/// Prints what two recordings, flows or truths differ in.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.analysis.chooses()
        && let Some(file) = [&args.before, &args.after].into_iter().find(|file| !is_recording(file))
    {
        let why = format!("--model chooses between the sources of recordings: {} is none", file.display());
        wrong_usage::<Args>(READER.name, why);
    }
    let chosen = args.analysis.rules()?;
    let (before, before_notes, side_before) = args.analysis.side_of_file(&chosen, &args.before, &READER, true)?;
    let (after, after_notes, side_after) = args.analysis.side_of_file(&chosen, &args.after, &READER, true)?;
    for (file, flow, notes) in [(&args.before, &before, before_notes), (&args.after, &after, after_notes)] {
        notes.into_iter().chain(left_out(flow)).for_each(|note| say!("{}: {note}", file.display()));
    }
    let comparison = compare([&before, &after], &args.analysis.search(), args.analysis.threads());
    for (file, sum) in [&args.before, &args.after].into_iter().zip(comparison.instructions) {
        if sum <= 0.0 {
            bail!("{}: nothing was seen running", file.display());
        }
    }
    let report = Report {
        files: [&args.before, &args.after].map(|file| file.display().to_string()),
        executions: [before.flow().executions, after.flow().executions],
        comparison: &comparison,
        sides: [&side_before, &side_after],
        top: args.output.format.rows_of_lists(args.top),
        layout: args.output.layout(),
        colours: if args.output.is_read_at_once() { Colours::of_terminal() } else { Colours::NONE },
    };
    write_to(args.output.file.as_deref(), |out| match args.output.format {
        Format::Table | Format::Markdown => table::print(&report, out),
        Format::Csv => csv::print(&report, out),
        Format::Json => json::print(&report, out),
    })?;
    Ok(ExitCode::SUCCESS)
}
