//! Recording the command that is then counted exactly, in the same environment.

use std::env;
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use anyhow::{Context, bail};
use collector::with_inherited;
use perfdata::Recording;

use crate::commands::record::{OpenedOutput, Recorded};
use crate::commands::truth::pinned_environment;
use crate::input::InputArgs;

/// Runs `hbbp record` on a command in the environment that its exact counts are made in. That is a process of its own, not a session of
/// this one as other reports have ([`crate::commands::record::record_for_analysis`]): the command inherits the environment of whoever
/// records it, and the user sees what `record` says of the options. The recording lives in a file that has no name any more.
pub fn record(input: &InputArgs) -> anyhow::Result<Recorded> {
    let folder = tempfile::Builder::new().prefix("hbbp-").tempdir().context("a folder for the recording")?;
    let file = folder.path().join("hbbp.data");
    let mut stdout = OpenedOutput::open(input.stdout())?;
    let mut record = Command::new(env::current_exe().context("where hbbp itself is")?);
    record
        .args(["record", "--output"])
        .arg(&file)
        .args(input.sampling().words())
        .args(input.keeps_nothing().then_some("--no-cache"))
        .args(input.is_quiet().then_some("--quiet"))
        .arg("--")
        .args(input.command())
        .envs(pinned_environment())
        .stdout(stdout.stdio()?);
    stdout.begin();
    let status = with_inherited(&mut record).status().context("hbbp record cannot be run")?;
    drop(record);
    stdout.end();
    let status = code(status);
    if !file.exists() {
        bail!(NotRecorded { status });
    }
    Ok(Recorded { recording: Recording::open(&file)?, status })
}

/// There is no recording, and `hbbp record` has said why.
#[derive(Debug)]
pub struct NotRecorded {
    /// What it exited with.
    pub status: u8,
}

impl fmt::Display for NotRecorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the command could not be recorded (exit status: {})", self.status)
    }
}

impl std::error::Error for NotRecorded {}

/// What a shell makes of it.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(1)
}
