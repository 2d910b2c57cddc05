//! `hbbp again`: what `record --precision` records, a command that is run until there is a file that says that it is enough.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use collector::session::run_again;
use rustix::process::getppid;

/// Run a command again and again, as one
#[derive(clap::Args)]
pub struct Args {
    /// Where the files are.
    folder: PathBuf,
    /// The command.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// There once it is enough.
pub fn enough(folder: &Path) -> PathBuf {
    folder.join("enough")
}

/// Has the number of runs that have ended.
pub fn runs(folder: &Path) -> PathBuf {
    folder.join("runs")
}

/// Runs the command until it is enough, or it fails.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let recorder = getppid();
    let status = run_again(&args.command, |number| {
        // One that was killed says nothing any more.
        getppid() == recorder
            && fs::write(runs(&args.folder), number.to_string()).is_ok()
            && !enough(&args.folder).exists()
    })?;
    Ok(ExitCode::from(status.exit_code()))
}
