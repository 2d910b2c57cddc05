//! Why nothing is recorded, or not all of it.

use std::io;
use std::path::PathBuf;

use crate::errno::{Errno, plain};
use crate::plan::PlanError;
use crate::session::command_outcome::{CommandError, CommandStatus};
use crate::session::limits::LimitError;
use crate::session::open::OpenError;
use crate::session::output::OutputError;
use crate::session::recorder::RecorderError;
use crate::tracer::TraceError;

/// A recording that failed.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A request that cannot be.
    #[error("{0}")]
    Request(String),
    /// `-p` or `-t` of something that is not there.
    #[error("there is no process or thread {0}")]
    NoSuchTask(u32),
    /// A control group that was there is not any more.
    #[error("the control group {0} was removed")]
    NoSuchGroup(String),
    /// No events to record.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The command cannot be run.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// There is no file to write to.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The events do not open on what is to be recorded.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The tracer that was asked for cannot be used.
    #[error("no software tracing: {0}")]
    Trace(#[from] TraceError),
    /// The recording begins switched off, or is to be switched in a place of the user's choice, and nobody could switch it.
    #[error("nobody could switch the recording on or off: {0}")]
    Control(io::Error),
    /// The events cannot be started.
    #[error("cannot start the events: {0}")]
    Enable(Errno),
    /// Records cannot be written.
    #[error(transparent)]
    Recorder(#[from] RecorderError),
    /// The recording cannot be completed.
    #[error(transparent)]
    Write(#[from] perfdata::Error),
    /// A limit of this process leaves no room.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The recording could not be written to its end; the command ran on.
    #[error("{} is not complete: {source}", .path.display())]
    Incomplete {
        /// The file that it was written to.
        path: PathBuf,
        /// Why no more could be written.
        source: Box<RecordError>,
        /// How the command ended, if there was one and it has, and not because the time was up.
        command: Option<CommandStatus>,
    },
    /// How the command ends cannot be seen; the recording is complete.
    #[error("waiting for the command: {}", plain(.0))]
    Waiting(io::Error),
    /// Something else that was asked of the system failed.
    #[error("{what}: {}", plain(.source))]
    System {
        /// What was tried, in words: `blocking signals`.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl RecordError {
    /// The exit code for it: 127 or 126 for a command that cannot be run, 2 for wrong usage, else 1. A command that ran passes its own
    /// on, unless that says success: a recording that is not complete is none.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Command(error) => error.exit_code(),
            Self::Incomplete { command, .. } => command.map_or(0, CommandStatus::exit_code).max(1),
            Self::Request(_) | Self::Plan(PlanError::NoEvents | PlanError::Name(_) | PlanError::Period { .. }) => 2,
            _ => 1,
        }
    }

    /// Whether the command ran, or what runs already was recorded, before the recording failed.
    pub fn command_ran(&self) -> bool {
        matches!(self, Self::Incomplete { .. } | Self::Waiting(_))
    }

    pub(crate) fn system(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}
