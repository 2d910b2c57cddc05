//! Where the standard output of a command goes that is recorded for a report: the report has ours.

use std::convert::Infallible;
use std::fs::File;
use std::io::{IsTerminal, PipeReader, PipeWriter, Read, pipe, stderr};
use std::os::fd::{AsRawFd, RawFd};
use std::path::PathBuf;
use std::process::Stdio;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::spawn;
use std::time::Duration;

use anyhow::Context;

use crate::output::count;

/// How long it may take to read the rest of what a command printed. What it has left behind may print for ever.
const REST: Duration = Duration::from_secs(1);

/// Where the standard output of a command goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandOutput {
    /// To standard error.
    Stderr,
    /// Nowhere: it is read, as from a pipe, and forgotten. To `/dev/null` some programs do less.
    Hidden,
    /// Into this file.
    File(PathBuf),
}

impl FromStr for CommandOutput {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "stderr" => Self::Stderr,
            "hidden" => Self::Hidden,
            file => Self::File(file.into()),
        })
    }
}

/// The same, ready for a command.
pub enum OpenedOutput {
    /// Standard error.
    Stderr,
    /// A pipe that nobody reads yet.
    Pipe(PipeReader, PipeWriter),
    /// A pipe that is read.
    Read(PipeWriter, Reading),
    /// A file.
    File(File),
}

/// What is read of a pipe.
pub struct Reading {
    bytes: Arc<AtomicU64>,
    ended: Receiver<()>,
}

impl OpenedOutput {
    /// Opens it, before a command runs for nothing. By default, what a command prints is not shown at a terminal, where it would stand between
    /// the lines of the report.
    pub fn open(wanted: Option<&CommandOutput>) -> anyhow::Result<Self> {
        let usual = if stderr().is_terminal() { CommandOutput::Hidden } else { CommandOutput::Stderr };
        Ok(match wanted.unwrap_or(&usual) {
            CommandOutput::Stderr => Self::Stderr,
            CommandOutput::Hidden => {
                let (reader, writer) = pipe().context("a pipe for the standard output of the command")?;
                Self::Pipe(reader, writer)
            }
            CommandOutput::File(file) => {
                Self::File(File::create(file).with_context(|| format!("cannot write {}", file.display()))?)
            }
        })
    }

    /// The descriptor that is to be the command's standard output.
    pub fn descriptor(&self) -> RawFd {
        match self {
            Self::Stderr => stderr().as_raw_fd(),
            Self::Pipe(_, writer) | Self::Read(writer, _) => writer.as_raw_fd(),
            Self::File(file) => file.as_raw_fd(),
        }
    }

    /// The same for a process of the standard library.
    pub fn stdio(&self) -> anyhow::Result<Stdio> {
        Ok(match self {
            Self::Stderr => stderr().into(),
            Self::Pipe(_, writer) | Self::Read(writer, _) => writer.try_clone()?.into(),
            Self::File(file) => file.try_clone()?.into(),
        })
    }

    /// Begins to read what the command prints, where that is for nobody. A session blocks signals that are for the recorder: a thread that
    /// began before would take them.
    pub fn begin(&mut self) {
        *self = match std::mem::replace(self, Self::Stderr) {
            Self::Pipe(mut reader, writer) => {
                let (bytes, (ending, ended)) = (Arc::new(AtomicU64::new(0)), channel());
                let read = bytes.clone();
                spawn(move || {
                    let mut buffer = vec![0; 1 << 16];
                    while let Ok(bytes @ 1..) = reader.read(&mut buffer) {
                        read.fetch_add(bytes as u64, Ordering::Relaxed);
                    }
                    let _ = ending.send(());
                });
                Self::Read(writer, Reading { bytes, ended })
            }
            other => other,
        };
    }

    /// The command has ended: says how much of what it printed nobody has seen.
    pub fn end(self) {
        if let Self::Read(writer, Reading { bytes, ended }) = self {
            drop(writer);
            if ended.recv_timeout(REST).is_err() {
                say!(
                    "a process that the command has started may print yet, and would get SIGPIPE: --stdout stderr lets it"
                );
            }
            let bytes = bytes.load(Ordering::Relaxed);
            if bytes > 0 {
                let unit = if bytes == 1 { "byte" } else { "bytes" };
                let bytes = count(bytes as f64);
                say!(
                    "the command printed {bytes} {unit}, which are not shown: --stdout FILE keeps them, --stdout stderr shows them"
                );
            }
        }
    }
}
