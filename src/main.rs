//! `hbbp`: how often every basic block of a program runs, with or without hardware branch records.
#![forbid(unsafe_code)]

#[macro_use]
mod output;

mod cache;
mod calibration;
mod commands;
mod debuginfod;
mod examples;
mod fleet;
mod input;
mod jobs;
mod missing_dashes;
mod progress;
mod search_path;
mod status;
mod usage;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use crate::examples::with_examples;

#[derive(Parser)]
#[command(name = "hbbp", version, about, after_help = EXAMPLES, max_term_width = jobs::MOST_COLUMNS)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  hbbp mix -- gzip -t big.tar.gz          record a command and print its instruction mix
  hbbp record -o run.data -- ./server     record, and pass on the exit status
  hbbp blocks run.data --top 20           the most executed basic blocks
  hbbp annotate run.data -f main          instructions with their counts, branches and loops
  hbbp paths run.data --to main.c:12      which branches lead there?
  hbbp vectorization run.data             is it vectorized? which functions are not?
  hbbp tui run.data                       look around in it
  hbbp report run.data -o report.html     all of it as a page for the browser
  hbbp export --format bolt run.data -o server.fdata
  hbbp doctor                             what this machine offers, and what would give more

Exit status: 0 done, 1 failed, 2 wrong usage. With a command to record, its exit status is passed on.
`hbbp diff --fail-if` exits with 3 where a change is past a limit.";

/// The commands, each with what the list of them says. Their arguments and help are made only for the one that is given.
#[derive(Subcommand)]
#[command(defer = true)]
enum Command {
    /// Record a command, a process, a container or the whole machine
    Record(Box<commands::record::Args>),
    /// Switch a recording that is being made on or off, or mark a phase of it
    Control(commands::control::Args),
    #[command(hide = true)]
    Again(commands::again::Args),
    /// Print the instruction mix as a pivot table
    Mix(commands::mix::Args),
    /// Say which part of the floating-point and vector work is scalar, and in which functions and loops
    Vectorization(commands::vectorization::Args),
    /// Print how often every basic block ran
    Blocks(commands::blocks::Args),
    /// Print the hottest functions, instruction by instruction, with counts, branches and loops
    Annotate(commands::annotate::Args),
    /// Print the most executed paths through functions, or the branches that lead to a place
    Paths(commands::paths::Args),
    /// Look around in a recording, or in two, in the terminal: functions, blocks, code, pivot
    Tui(commands::tui::Args),
    /// Write a page for the browser: summary, mix, annotated functions, flame graph; of two recordings what changed
    Report(commands::report::Args),
    /// Write a profile for a compiler, an optimizer or another tool
    Export(commands::export::Args),
    /// Build a program, record it, and build it again with the profile: one command to a faster program
    Pgo(Box<commands::pgo::Args>),
    /// Add up recordings of one host or many into one file, which `export` and `diff` read like a recording
    Merge(commands::merge::Args),
    /// Pack a recording and the programs that it is of into one file for other machines
    Archive(commands::archive::Args),
    /// Keep recordings of many machines, ask them in SQL, and make reports of any slice of them (with hbbp-fleet, if it is installed)
    Fleet(commands::fleet::Args),
    /// Compare two recordings: what they have in common, what moved, and which kinds of instructions changed
    Diff(commands::diff::Args),
    /// Label every block of a recording with the source that is nearer the truth, as CSV for `hbbp train`
    #[cfg(feature = "training")]
    Label(commands::label::Args),
    /// Train a model that chooses the source of each block
    #[cfg(feature = "training")]
    Train(commands::train::Args),
    /// Show, import and export models
    Model(commands::model::Args),
    /// List, check and show taxonomies: named groups of instructions
    Taxonomy(commands::taxonomy::Args),
    /// Count exactly how often every basic block runs, by instrumentation
    Truth(commands::truth::Args),
    /// Measure how good the counts of a recording are, against exact counts
    Validate(commands::validate::Args),
    /// Show what this machine offers, what `hbbp record` would use, and what would give more
    Doctor(commands::doctor::Args),
    /// Measure how far away data is on this machine, for recordings to come
    Calibrate(commands::calibrate::Args),
    /// Write manual pages, or completions for a shell
    Generate(commands::generate::Args),
}

fn main() -> ExitCode {
    collector::ignore_file_size_signal();
    let words: Vec<OsString> = std::env::args_os().collect();
    let cli = parsed(&words).unwrap_or_else(|error| missing_dashes::explain(error, &words).exit());
    let result = match cli.command {
        Command::Record(args) => commands::record::run(*args),
        Command::Control(args) => commands::control::run(&args),
        Command::Again(args) => commands::again::run(&args),
        Command::Mix(args) => commands::mix::run(&args),
        Command::Vectorization(args) => commands::vectorization::run(&args),
        Command::Blocks(args) => commands::blocks::run(&args),
        Command::Annotate(args) => commands::annotate::run(args),
        Command::Paths(args) => commands::paths::run(&args),
        Command::Tui(args) => commands::tui::run(&args),
        Command::Report(args) => commands::report::run(&args),
        Command::Export(args) => commands::export::run(&args),
        Command::Pgo(args) => commands::pgo::run(&args),
        Command::Merge(args) => commands::merge::run(&args),
        Command::Archive(args) => commands::archive::run(&args),
        Command::Fleet(args) => commands::fleet::run(&args),
        Command::Diff(args) => commands::diff::run(&args),
        #[cfg(feature = "training")]
        Command::Label(args) => commands::label::run(&args),
        #[cfg(feature = "training")]
        Command::Train(args) => commands::train::run(&args),
        Command::Model(args) => commands::model::run(&args),
        Command::Taxonomy(args) => commands::taxonomy::run(&args),
        Command::Truth(args) => commands::truth::run(&args),
        Command::Validate(args) => commands::validate::run(&args),
        Command::Doctor(args) => commands::doctor::run(args),
        Command::Calibrate(args) => commands::calibrate::run(&args),
        Command::Generate(args) => commands::generate::run(&args, Cli::command()),
    };
    result.unwrap_or_else(|error| {
        complain(&error);
        if is_closed_pipe(&error) { ExitCode::SUCCESS } else { status::of_error(&error) }
    })
}

/// The command line. The list of commands is made only where it is shown.
fn parsed(words: &[OsString]) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(words).map_err(|error| {
        let is_help =
            matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand);
        let with_list = || jobs::with_jobs(with_examples(Cli::command())).try_get_matches_from(words).err();
        if is_help { with_list().unwrap_or(error) } else { error }
    })
}

/// Says what went wrong.
fn complain(error: &anyhow::Error) {
    // `hbbp mix | head` has seen enough.
    if !is_closed_pipe(error) {
        output::say(reports::sentence(error));
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let kind = |cause: &(dyn std::error::Error + 'static)| {
        let plain = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        plain.or_else(|| cause.downcast_ref::<serde_json::Error>()?.io_error_kind())
    };
    error.chain().any(|cause| kind(cause) == Some(std::io::ErrorKind::BrokenPipe))
}
