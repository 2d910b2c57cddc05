//! `hbbp export`: profiles for compilers, optimizers and other tools.

use std::path::PathBuf;
use std::process::ExitCode;

use analyzer::flow::Flow;
use anyhow::bail;

use crate::commands::truth::read_truth;
use crate::input::InputArgs;
use crate::output::profile::{self, NotWritten, Profiled};
use crate::output::write_to;

/// Write a profile for a compiler, an optimizer or another tool
///
/// Reads a recording, or exact counts (--truth). Most formats are profiles of one binary: the one named with --binary, or else the one
/// that ran most.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Format of the profile
    #[arg(long, value_enum)]
    format: Format,

    /// Exact counts instead of a recording: what `hbbp truth` wrote, or a file of callgrind (--dump-instr=yes) or of SDE's -mix
    #[arg(long, value_name = "FILE", conflicts_with_all = ["input", "command"])]
    truth: Option<PathBuf>,

    #[command(flatten)]
    input: InputArgs,

    /// Write the profile to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For `llvm-bolt -data`: branches and fall-throughs, or samples where there are no branches
    Bolt,
    /// For `perf2bolt -pa`: branches and ranges by address
    BoltPreagg,
    /// For `llvm-profgen --unsymbolized-profile`: ranges and branches
    LlvmProfgen,
    /// What `perf script --show-mmap-events -F ip,brstack` prints of the recording
    PerfScript,
}

const EXAMPLES: &str = "\
Examples:
  hbbp export --format llvm-profgen -i run.data --binary ./server -o server.ranges
  llvm-profgen --unsymbolized-profile=server.ranges --binary=./server --output=server.prof";

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.format == Format::PerfScript {
        return perf_script(args);
    }
    let search = args.input.analysis.search();
    let (flow, notes) = flow(args)?;
    let profiled = Profiled::choose(&flow, &search)?;
    notes.iter().chain(&profiled.describe()).for_each(|line| eprintln!("hbbp: {line}"));
    write_to(args.output.as_deref(), |out| match args.format {
        Format::Bolt => Ok(profile::bolt(&profiled, out)?),
        Format::BoltPreagg => Ok(profile::bolt_preagg(&profiled, out)?),
        Format::LlvmProfgen => Ok(profile::llvm_profgen(&profiled, out)?),
        Format::PerfScript => Ok(()), // It is of no binary: see above.
    })?;
    Ok(ExitCode::SUCCESS)
}

fn flow(args: &Args) -> anyhow::Result<(Flow, Vec<String>)> {
    let search = args.input.analysis.search();
    match &args.truth {
        Some(file) => Ok(Flow::of_truth(&read_truth(file, search.clone())?, &search)),
        None => args.input.flow(),
    }
}

/// Every sample as it stands in the recording.
fn perf_script(args: &Args) -> anyhow::Result<ExitCode> {
    if args.truth.is_some() {
        bail!("exact counts have no samples: --format perf-script is made from recordings only");
    }
    let recording = args.input.recording()?;
    recording.notes().iter().for_each(|note| eprintln!("hbbp: {note}"));
    let mut not_written = NotWritten::default();
    write_to(args.output.as_deref(), |out| {
        not_written = profile::perf_script(&recording, out)?;
        Ok(())
    })?;
    let NotWritten { without_stack, malformed } = not_written;
    for (number, what) in
        [(without_stack, "samples without a branch stack"), (malformed, "records that cannot be read")]
    {
        if number > 0 {
            eprintln!("hbbp: left out: {number} {what}");
        }
    }
    Ok(ExitCode::SUCCESS)
}
