//! `hbbp-fleet`: what ran on all machines, from their recordings.
//!
//! ```text
//! recordings -- evidence --> sums of flows -- rows, writer --> store: Parquet files by day
//!                                                                 |
//!                           SQL -- query <-- engine (DataFusion) -+
//!            hbbp's reports <-- reports <-- selection: a flow <---+
//! ```

mod cluster;
mod compact;
mod engine;
mod evidence;
mod ingest;
mod output;
mod overview;
mod parquet;
mod places;
mod push;
mod query;
mod remove;
mod report_tables;
mod reports;
mod rewrite;
mod rows;
mod selection;
mod store;
mod tables;
mod worth;
mod writer;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Profiles of many machines: recordings are kept as Parquet files and asked in SQL, and `hbbp` makes its reports of any slice of them.
#[derive(Parser)]
#[command(name = "hbbp-fleet", version, about, after_help = EXAMPLES, max_term_width = 140)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  hbbp-fleet ingest profiles web1.data web2.data --service web --version 4.2
  hbbp-fleet query profiles \"SELECT service, count(*) FROM recordings GROUP BY service\"
  hbbp-fleet mix profiles --service web --since 7d --rows function --columns isa
  hbbp-fleet diff profiles --service web --before version=4.1 --after version=4.2";

#[derive(Subcommand)]
enum Command {
    Ingest(ingest::Args),
    Query(query::Args),
    Slice(reports::SliceArgs),
    /// The instruction mix of a slice: `hbbp mix`
    Mix(reports::Args),
    /// How often the basic blocks of a slice ran: `hbbp blocks`
    Blocks(reports::Args),
    /// The hottest functions of a slice, instruction by instruction: `hbbp annotate`
    Annotate(reports::Args),
    /// Which part of the floating-point and vector work of a slice is scalar: `hbbp vectorization`
    Vectorization(reports::Args),
    /// A page for the browser about a slice: `hbbp report`
    Report(reports::Args),
    /// A profile of a slice for a compiler or another tool: `hbbp export`
    Export(reports::Args),
    /// What changed from a slice to another: `hbbp diff`
    Diff(Box<reports::DiffArgs>),
    Top(overview::TopArgs),
    Stale(overview::StaleArgs),
    Compact(compact::Args),
    Push(push::Args),
    Remove(remove::Args),
    Parquet(parquet::Args),
}

/// Questions are read and planned by functions that call themselves: once for each part of a sum.
const STACK: usize = 512 << 20;

fn main() -> ExitCode {
    let run = || -> std::io::Result<ExitCode> {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        Ok(runtime.thread_stack_size(STACK).enable_all().build()?.block_on(run()))
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(run);
    match thread.map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))) {
        Ok(Ok(code)) => code,
        Ok(Err(error)) | Err(error) => {
            eprintln!("hbbp-fleet: no thread can be started: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> ExitCode {
    let done = |result: anyhow::Result<()>| result.map(|()| ExitCode::SUCCESS);
    let result = match Cli::parse().command {
        Command::Ingest(args) => done(ingest::run(&args).await),
        Command::Query(args) => done(query::run(&args).await),
        Command::Slice(args) => done(reports::slice(&args).await),
        Command::Mix(args) => reports::report("mix", &args).await,
        Command::Blocks(args) => reports::report("blocks", &args).await,
        Command::Annotate(args) => reports::report("annotate", &args).await,
        Command::Vectorization(args) => reports::report("vectorization", &args).await,
        Command::Report(args) => reports::report("report", &args).await,
        Command::Export(args) => reports::report("export", &args).await,
        Command::Diff(args) => reports::diff(&args).await,
        Command::Top(args) => done(overview::top(&args).await),
        Command::Stale(args) => done(overview::stale(&args).await),
        Command::Compact(args) => done(compact::run(&args).await),
        Command::Push(args) => done(push::run(&args).await),
        Command::Remove(args) => done(remove::run(&args).await),
        Command::Parquet(args) => done(parquet::run(&args)),
    };
    result.unwrap_or_else(|error| {
        if is_closed_pipe(&error) {
            return ExitCode::SUCCESS;
        }
        output::say(&format!("{error:#}"));
        ExitCode::FAILURE
    })
}

/// `hbbp-fleet query .. | head` has seen enough.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let kind =
        |cause: &(dyn std::error::Error + 'static)| cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    error.chain().any(|cause| kind(cause) == Some(std::io::ErrorKind::BrokenPipe))
}
