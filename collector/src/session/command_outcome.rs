//! How the command ended, or why it cannot be run.

use std::fmt;
use std::io;
use std::path::PathBuf;

use serde::Serialize;

use crate::errno::plain;

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandStatus {
    /// It ended with this exit code.
    Exited(i32),
    /// It was killed by this signal.
    Killed(i32),
}

impl CommandStatus {
    /// From the status of wait(2) of a process that has ended.
    pub(crate) fn from_wait(status: i32) -> Self {
        if libc::WIFEXITED(status) {
            Self::Exited(libc::WEXITSTATUS(status))
        } else {
            Self::Killed(libc::WTERMSIG(status))
        }
    }

    /// What a shell makes of it: the exit code, or 128 and the signal's number.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Exited(code) => code as u8,
            Self::Killed(signal) => 128_u8.wrapping_add(signal as u8),
        }
    }
}

impl fmt::Display for CommandStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit code {code}"),
            Self::Killed(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// The command cannot be run.
#[derive(Debug, thiserror::Error)]
#[error("cannot run {}: {}", .program.display(), plain(.source))]
pub struct CommandError {
    /// What was to be run.
    pub program: PathBuf,
    /// Why it was not.
    pub source: io::Error,
}

impl CommandError {
    /// What a shell returns: 127 for a command that is not there, 126 for one that cannot be run.
    pub fn exit_code(&self) -> u8 {
        if self.source.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
    }
}
