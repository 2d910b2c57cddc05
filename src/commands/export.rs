//! `hbbp export`: profiles for compilers, optimizers and other tools.

mod sampled;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use analyzer::flow::Flow;
use analyzer::sample_profile::Names;
use anyhow::bail;

use crate::commands::truth::read_truth;
use crate::input::InputArgs;
use crate::output::profile::{self, GcovVersion, NotWritten, Profiled};
use crate::output::write_to;
use sampled::sample_profile;

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

    /// Version of the `gcov` format: 1 for GCC 5 to 11, 2 for 12 to 15, 3 for 16
    #[arg(long, value_name = "N", value_parser = gcov_version, default_value = "2")]
    gcov_version: GcovVersion,

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
    /// For LLVM's `-fprofile-sample-use=` (rustc: `-Zprofile-sample-use=`), as text
    LlvmText,
    /// The same in the binary form that compilers read faster
    LlvmExtbin,
    /// For GCC's `-fauto-profile=`
    Gcov,
}

const EXAMPLES: &str = "\
Examples:
  clang -O2 -gline-tables-only -fdebug-info-for-profiling -funique-internal-linkage-names -o server server.c
  hbbp export --format llvm-extbin -o server.prof -- ./server        then clang -fprofile-sample-use=server.prof
  gcc -O2 -g -o server server.c
  hbbp export --format gcov -o server.gcov -- ./server               then gcc -fauto-profile=server.gcov
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
    // Before the file is made.
    let of_source = |names| sample_profile(&profiled, names, args.input.analysis.threads());
    let write = |profile: &dyn Fn(&mut dyn Write) -> std::io::Result<()>| {
        write_to(args.output.as_deref(), |out| Ok(profile(out)?))
    };
    match args.format {
        Format::Bolt => write(&|out| profile::bolt(&profiled, out))?,
        Format::BoltPreagg => write(&|out| profile::bolt_preagg(&profiled, out))?,
        Format::LlvmProfgen => write(&|out| profile::llvm_profgen(&profiled, out))?,
        Format::PerfScript => {} // It is of no binary: see above.
        Format::LlvmText => {
            let sampled = of_source(Names::Llvm)?;
            write(&|out| profile::llvm_text(&sampled, out))?;
        }
        Format::LlvmExtbin => {
            let sampled = of_source(Names::Llvm)?;
            write(&|out| profile::llvm_extbin(&sampled, out))?;
        }
        Format::Gcov => {
            let sampled = of_source(Names::Gcc)?;
            write(&|out| profile::gcov(&sampled, args.gcov_version, out))?;
        }
    }
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

fn gcov_version(text: &str) -> Result<GcovVersion, String> {
    match text {
        "1" => Ok(GcovVersion::V1),
        "2" => Ok(GcovVersion::V2),
        "3" => Ok(GcovVersion::V3),
        _ => Err("there are 1, 2 and 3".to_owned()),
    }
}
