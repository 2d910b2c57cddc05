//! `hbbp validate`: how good the counts are.

mod csv;
mod json;
mod plot;
mod rerun;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use analyzer::Analysis;
use analyzer::counting::{Detail, GroupBy};
use analyzer::recording::Subset;
use analyzer::truth::Truth;
use analyzer::validation::{Validation, validate};
use perfdata::Recording;

use crate::commands::truth::{count_under_callgrind, read_truth};
use crate::input::{InputArgs, require_samples};
use crate::output::{Format, Head, OutputArgs, write_to};

/// Measure how good the counts of a recording are, against exact counts
///
/// Prints errors for event-based samples alone (ebs), for branch stacks alone (lbr), and for the counts that `hbbp blocks` prints
/// (hybrid). The error of a mnemonic is |truth - estimate| / truth; the average is weighted by the truth. Blocks and functions have
/// errors of the same kind. Two halves of the recording show how much of each error is chance. Only user code is compared.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Exact counts: what `hbbp truth` wrote, or a file of callgrind (--dump-instr=yes) or of SDE's -mix
    #[arg(long, value_name = "FILE", required_unless_present = "command")]
    truth: Option<PathBuf>,

    /// Rows of each list; 0 prints all [default: 20 in a table; in csv and json all, but 100 blocks]
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    /// Draw the errors of the most frequent mnemonics as a picture
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,

    #[command(flatten)]
    record: rerun::RecordArgs,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    output: OutputArgs,
}

const EXAMPLES: &str = "\
Examples:
  hbbp validate -- gzip -k9c big.tar              record it, count exactly, compare
  hbbp validate --overhead 5 -- ./server --once   with five times the bursts

  hbbp truth -o gzip.json -- gzip -k9c big.tar > /dev/null
  env $(hbbp truth --environment) hbbp record -o gzip.data -- gzip -k9c big.tar > /dev/null
  hbbp validate -i gzip.data --truth gzip.json --plot errors.svg
  hbbp validate -i gzip.data --truth sde-mix-out.txt --format json

A command runs twice: it must do the same work both times, and must not read standard input.";

/// All that the printed comparison is made from.
struct Report<'a> {
    analysis: &'a Analysis,
    head: &'a Head,
    truth: &'a Truth,
    validation: &'a Validation,
    /// Rows of each list.
    top: usize,
    width: Option<usize>,
}

/// Compares the estimates of a recording with exact counts, and prints the errors.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let input = &args.input;
    let rules = input.analysis.rules()?; // Before a command runs for nothing.
    let (recording, truth) = sides(args)?;
    let analysis = input.analysis.analyze(&rules, &recording, GroupBy::default(), Detail::Blocks, Subset::Whole)?;
    require_samples(&analysis)?;
    let first = input.analysis.analyze(&rules, &recording, GroupBy::default(), Detail::Blocks, Subset::FirstHalf)?;
    let second = input.analysis.analyze(&rules, &recording, GroupBy::default(), Detail::Blocks, Subset::SecondHalf)?;
    let halves = [&first, &second];
    // The halves of a short recording can be empty.
    let halves = halves.iter().all(|half| half.instructions() > 0.0).then_some(halves);
    let top = args.output.format.rows_of_lists(args.top);
    let validation = validate(&analysis, halves, &truth, &input.analysis.search(), args.top.map_or(BLOCKS, |_| top))?;
    let head = Head::of(&analysis);
    let report = Report {
        analysis: &analysis,
        head: &head,
        truth: &truth,
        validation: &validation,
        top,
        width: args.output.width(),
    };
    if let Some(file) = &args.plot {
        write_to(Some(file), |out| Ok(out.write_all(plot::svg(&validation).as_bytes())?))?;
    }
    write_to(args.output.file.as_deref(), |out| match args.output.format {
        Format::Table => table::print(&report, out),
        Format::Csv => csv::print(&report, out),
        Format::Json => json::print(&report, out),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Blocks that are named where nobody says how many.
const BLOCKS: usize = 100;

/// Recording and truth: read, or made by running the command.
fn sides(args: &Args) -> anyhow::Result<(Recording, Truth)> {
    let search = args.input.analysis.search();
    let read = args.truth.as_deref().map(|file| read_truth(file, search.clone())).transpose()?;
    let command = args.input.command();
    let recording = if command.is_empty() { args.input.open()? } else { rerun::record(&args.record, command)? };
    let truth = match read {
        Some(truth) => truth,
        None => count_under_callgrind(command, search, true)?,
    };
    Ok((recording, truth))
}
