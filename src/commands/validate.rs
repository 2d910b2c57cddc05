//! `hbbp validate`: how good the counts are.

mod csv;
mod json;
mod plot;
mod rerun;
mod table;
mod verdict;

pub use rerun::NotRecorded;

use std::path::PathBuf;
use std::process::ExitCode;

use analyzer::Analysis;
use analyzer::counting::GroupBy;
use analyzer::recording::Subset;
use analyzer::truth::Truth;
use analyzer::validation::{Validation, validate};

use crate::commands::record::{CommandOutput, OpenedOutput};
use crate::commands::truth::{count_under_callgrind, read_truth};
use crate::input::{FILE_OF_SAMPLES, Input, InputArgs, Reader, Reads, require_samples};
use crate::output::{Format, Head, HeadArgs, Layout, OutputArgs, write_to};

/// Measure how good the counts of a recording are, against exact counts
///
/// Prints errors for event-based samples alone (ebs), for branch stacks alone (lbr), and for the counts that `hbbp blocks` prints
/// (hybrid). The error of a mnemonic is |truth - estimate| / truth; the average is weighted by the truth. Blocks and functions have
/// errors of the same kind. Two halves of the recording show how much of each error is chance. Only user code is compared.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(mut_arg("recording", |file| file.help(FILE_OF_SAMPLES)))]
pub struct Args {
    /// Exact counts: what `hbbp truth` wrote, or a file of callgrind (--dump-instr=yes) or of SDE's -mix
    #[arg(long, value_name = "FILE", required_unless_present = "command")]
    truth: Option<PathBuf>,

    /// Rows of each list; 0 prints all [default: 20 in a table, without those of no weight; in csv and json all, but 100 blocks]
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    /// Draw the errors of the most frequent mnemonics as a picture
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    head: HeadArgs,
}

const READER: Reader = Reader { name: "hbbp validate", reads: Reads::Recordings, records: true };

const EXAMPLES: &str = "\
Examples:
  hbbp validate -- gzip -t big.tar.gz             record it, count exactly, compare
  hbbp validate --overhead 5 -- ./server --once   with five times the bursts

  hbbp truth -o gzip.json -- gzip -t big.tar.gz
  env $(hbbp truth --environment) hbbp record -o gzip.data -- gzip -t big.tar.gz
  hbbp validate gzip.data --truth gzip.json --plot errors.svg
  hbbp validate gzip.data --truth sde-mix-out.txt --format json

A command runs twice: it must do the same work both times, and must not read standard input.";

/// All that the printed comparison is made from.
struct Report<'a> {
    analysis: &'a Analysis,
    head: &'a Head,
    truth: &'a Truth,
    validation: &'a Validation,
    /// Rows of each list.
    top: usize,
    /// Rows of less are in no table: a share of all instructions.
    least: f64,
    layout: Layout,
}

/// Rows of a smaller share, by truth and by the counts, are of no weight.
const NO_WEIGHT: f64 = 0.0005;

/// Compares the estimates of a recording with exact counts, and prints the errors.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.output.check()?;
    args.input.check(&READER);
    let search = args.input.analysis.search();
    let read = args.truth.as_deref().map(|file| read_truth(file, search)).transpose()?;
    let input = args.input.begin_with(&READER, || rerun::record(&args.input))?;
    input.end(compare(args, &input, read))
}

/// `read`: exact counts that were read; else the command runs again for them.
fn compare(args: &Args, input: &Input<'_>, read: Option<Truth>) -> anyhow::Result<()> {
    let search = args.input.analysis.search();
    input.recording()?; // Before a command runs for nothing.
    let truth = match read {
        Some(truth) => truth,
        None => {
            // The file has what the first run printed, and nobody wants to see it twice.
            let hidden = Some(&CommandOutput::Hidden).filter(|_| args.input.stdout() != Some(&CommandOutput::Stderr));
            let mut stdout = OpenedOutput::open(hidden.or(args.input.stdout()))?;
            stdout.begin();
            count_under_callgrind(args.input.command(), search.clone(), (Some(stdout.stdio()?), args.input.is_quiet()))?
        }
    };
    let analysis = input.analyze(GroupBy::default())?;
    require_samples(&analysis)?;
    let first = input.analyze_part(GroupBy::default(), Subset::FirstHalf)?;
    let second = input.analyze_part(GroupBy::default(), Subset::SecondHalf)?;
    let halves = [&first, &second];
    // The halves of a short recording can be empty.
    let halves = halves.iter().all(|half| half.instructions() > 0.0).then_some(halves);
    let top = args.output.format.rows_of_lists(args.top);
    let validation = validate(&analysis, halves, &truth, &search, args.top.map_or(BLOCKS, |_| top))?;
    let mut head = Head::of(&analysis);
    head.verbose = args.head.verbose;
    let report = Report {
        analysis: &analysis,
        head: &head,
        truth: &truth,
        validation: &validation,
        top,
        least: if args.top == Some(0) { 0.0 } else { NO_WEIGHT },
        layout: args.output.layout(),
    };
    if let Some(file) = &args.plot {
        write_to(Some(file), |out| Ok(out.write_all(plot::svg(&validation).as_bytes())?))?;
    }
    args.output.write(&[], |out| match args.output.format {
        Format::Table | Format::Markdown => table::print(&report, out),
        Format::Csv | Format::Parquet => csv::print(&report, out),
        Format::Json => json::print(&report, out),
    })
}

/// Blocks that are named where nobody says how many.
const BLOCKS: usize = 100;
