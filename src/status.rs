//! What the process exits with when something failed.

use std::process::ExitCode;

use collector::{CommandError, RecordError};

use crate::commands::validate::NotRecorded;

/// 1, but for a command that could not be recorded: what `hbbp record` would exit with, as 127 where there is no such command.
pub fn of_error(error: &anyhow::Error) -> ExitCode {
    let of_command = error.downcast_ref::<CommandError>().map(CommandError::exit_code);
    let of_recording = || error.downcast_ref::<RecordError>().map(RecordError::exit_code);
    let of_other = || error.downcast_ref::<NotRecorded>().map(|error| error.status.max(1));
    ExitCode::from(of_command.or_else(of_recording).or_else(of_other).unwrap_or(1))
}
