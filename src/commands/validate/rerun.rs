//! Recording the command that is then counted exactly, in the same environment.

use std::env;
use std::ffi::OsString;
use std::io;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use collector::with_inherited;
use perfdata::Recording;

use crate::commands::truth::pinned_environment;

/// Options of `record` that are passed on.
#[derive(clap::Args)]
pub struct RecordArgs {
    /// Percent of the command's CPU time that software tracing may take, as for `record`
    #[arg(long, value_name = "PCT", requires = "command")]
    overhead: Option<f64>,

    /// How to trace branches in software, as for `record`
    #[arg(long, value_name = "HOW", requires = "command")]
    tracer: Option<String>,

    /// Instructions of a burst (a traced path)
    #[arg(long, value_name = "N", requires = "command")]
    burst: Option<u64>,

    /// Samples per second of each event, instead of periods
    #[arg(short = 'F', long, value_name = "HZ", requires = "command")]
    freq: Option<u64>,
}

impl RecordArgs {
    fn options(&self) -> Vec<String> {
        let options = [
            ("--overhead", self.overhead.map(|value| value.to_string())),
            ("--tracer", self.tracer.clone()),
            ("--burst", self.burst.map(|value| value.to_string())),
            ("--freq", self.freq.map(|value| value.to_string())),
        ];
        options.into_iter().flat_map(|(name, value)| value.map(|value| format!("{name}={value}"))).collect()
    }
}

/// Runs `hbbp record` on a command in the environment that its exact counts are made in. That is a process of its own, not a session of
/// this one as other reports have ([`crate::commands::record::record_for_analysis`]): the command inherits the environment of whoever
/// records it, and the user sees what `record` says of the options. The recording lives in a file that has no name any more.
pub fn record(args: &RecordArgs, command: &[OsString]) -> anyhow::Result<Recording> {
    let folder = tempfile::Builder::new().prefix("hbbp-").tempdir().context("a folder for the recording")?;
    let file = folder.path().join("hbbp.data");
    let mut record = Command::new(env::current_exe().context("where hbbp itself is")?);
    record
        .args(["record", "--output"])
        .arg(&file)
        .args(args.options())
        .arg("--")
        .args(command)
        .envs(pinned_environment())
        .stdout(Stdio::from(io::stderr()));
    let status = with_inherited(&mut record).status().context("hbbp record cannot be run")?;
    if !file.exists() {
        bail!("the command could not be recorded ({status})");
    }
    Ok(Recording::open(&file)?)
}
