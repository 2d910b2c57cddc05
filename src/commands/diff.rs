//! `hbbp diff`: two profiles side by side.

mod csv;
mod json;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use analyzer::flow::{Comparison, compare};
use anyhow::bail;

use crate::input::{AnalysisArgs, is_recording};
use crate::output::profile::sampled_only;
use crate::output::{Format, OutputArgs, write_to};
use crate::usage::wrong_usage;

/// Compare two recordings: what they have in common, what moved, and which kinds of instructions changed
///
/// The overlap is the sum of the smaller of both shares: 100 % is the same, 0 % has nothing in common. It is computed over blocks (of
/// files that are the same on both sides), over functions (by name), and over source lines (counted from the start of their function,
/// where there is debug information).
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

const MODEL: &str = "\
Count blocks by the source that is chosen for each, as `hbbp mix` does: the file of a model, `published` (the paper's rule), or the \
kind of sources that a model is for (hardware, software, simulated) [default: branches alone, or samples where there are none]";

const EXAMPLES: &str = "\
Examples:
  hbbp diff monday.data tuesday.data
  hbbp diff run.data gzip.truth.json --top 5      an estimate and exact counts
  hbbp diff before.flow after.flow --format json";

/// All that the printed differences are made from.
struct Report<'a> {
    files: [String; 2],
    /// Whether the counts of each side are executions.
    executions: [bool; 2],
    comparison: &'a Comparison,
    /// Rows of each list.
    top: usize,
    width: Option<usize>,
}

/// Prints what two recordings, flows or truths differ in.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.analysis.chooses()
        && let Some(file) = [&args.before, &args.after].into_iter().find(|file| !is_recording(file))
    {
        let why = format!("--model chooses between the sources of recordings: {} is none", file.display());
        wrong_usage::<Args>("hbbp diff", why);
    }
    let chosen = args.analysis.rules()?;
    let (before, before_notes) = args.analysis.flow_of_file(&chosen, &args.before)?;
    let (after, after_notes) = args.analysis.flow_of_file(&chosen, &args.after)?;
    for (file, flow, notes) in [(&args.before, &before, before_notes), (&args.after, &after, after_notes)] {
        let sampled_only = if flow.is_by_choice() { None } else { sampled_only(flow.flow()) };
        notes.into_iter().chain(sampled_only).for_each(|note| say!("{}: {note}", file.display()));
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
        top: args.output.format.rows_of_lists(args.top),
        width: args.output.width(),
    };
    write_to(args.output.file.as_deref(), |out| match args.output.format {
        Format::Table => table::print(&report, out),
        Format::Csv => csv::print(&report, out),
        Format::Json => json::print(&report, out),
    })?;
    Ok(ExitCode::SUCCESS)
}
