//! `hbbp truth`: exact block counts by instrumentation.

mod callgrind;
mod environment;
mod files;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use analyzer::BinarySearch;
use analyzer::truth::{ExactCounter, Truth};

pub use callgrind::count_under_callgrind;
pub use environment::pinned_environment;
pub use files::read_truth;

use crate::input::BinaryArgs;
use crate::output;
use crate::output::{count, share, write_to, written_to};

/// Count exactly how often every basic block runs, by instrumentation
///
/// Runs the command under valgrind's callgrind, 10 to 100 times slower than natively, and writes the block list of `hbbp blocks
/// --format json` with exact counts: user code only, all processes of the command together. Valgrind's CPU lacks AVX-512, so
/// libraries would choose other functions than in a recording. Environment variables pin their choice (--environment).
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// File to write
    #[arg(short, long, value_name = "FILE", default_value = "hbbp.truth.json")]
    output: PathBuf,

    /// Convert files that were made elsewhere by callgrind (--dump-instr=yes) or by SDE's or Pin's -mix, all of one run
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["command", "environment"])]
    from: Vec<PathBuf>,

    /// Print the variables that pin what libraries choose, so that a recording executes the same code
    #[arg(long, conflicts_with = "command")]
    environment: bool,

    #[command(flatten)]
    binaries: BinaryArgs,

    /// Command to run
    #[arg(last = true, value_name = "COMMAND", required_unless_present_any = ["from", "environment"])]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  hbbp truth -o gzip.json -- gzip -t big.tar.gz
  env $(hbbp truth --environment) hbbp record -o gzip.data -- gzip -t big.tar.gz
  hbbp validate gzip.data --truth gzip.json    how good were the estimates?
  hbbp truth -o sde.json --from sde-mix-out.txt   what `sde64 -mix -top_blocks 100000` counted";

/// Counts by instrumentation, or reads such counts, and prints or writes them.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.environment {
        pinned_environment().iter().for_each(|(name, value)| println!("{name}={value}"));
        return Ok(ExitCode::SUCCESS);
    }
    let search = args.binaries.search();
    let truth = if args.from.is_empty() {
        count_under_callgrind(&args.command, search, (None, false))?
    } else {
        convert(&args.from, search)?
    };
    write_to(Some(&args.output), |out| Ok(truth.write_json(out)?))?;
    summary(&truth).iter().for_each(output::say);
    say!("written to {}", written_to(&args.output));
    Ok(ExitCode::SUCCESS)
}

fn convert(files: &[PathBuf], search: BinarySearch) -> anyhow::Result<Truth> {
    let mut counter = ExactCounter::new(search);
    for file in files {
        files::add(file, &mut counter)?;
    }
    Ok(counter.finish()?)
}

/// What was counted and what was left out.
fn summary(truth: &Truth) -> Vec<String> {
    let counted = truth.counted as f64;
    let blocks: usize = truth.modules.iter().map(|module| module.blocks.len()).sum();
    let mut lines = vec![format!(
        "{}: {} instructions of {} in {} blocks of {} modules",
        truth.engine,
        count(counted),
        match truth.processes {
            1 => "1 process".to_string(),
            more => format!("{more} processes"),
        },
        count(blocks as f64),
        truth.modules.len()
    )];
    lines.extend(truth.left_out.iter().map(|left| {
        let instructions = left.instructions as f64;
        format!("left out: {} ({}) {}", count(instructions), share(instructions, counted), left.what)
    }));
    if blocks == 0 {
        lines.push("no block could be placed: the counts by mnemonic alone can be compared".into());
    }
    lines
}
