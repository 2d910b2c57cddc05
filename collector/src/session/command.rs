//! The command that is recorded, from before its start to its end.

use std::env;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, kill_process, pidfd_open, waitpid};

use crate::error::RecordError;
use crate::session::command_outcome::{CommandError, CommandStatus};
use crate::sys::process::is_running;
use crate::sys::{SignalFd, StoppedChild, c_strings, is_executable};
use crate::tracer::Shared;

/// A command that has been started.
#[derive(Debug)]
pub(crate) struct Command {
    pid: Pid,
    /// Becomes readable when it ends; kernels before 5.3 have none.
    pub(crate) pidfd: Option<OwnedFd>,
    status: Option<CommandStatus>,
    /// The tracer, which alone may wait for it while it is traced.
    tracer: Option<Arc<Shared>>,
}

/// A command that waits to be started.
pub(crate) struct PreparedCommand {
    program: PathBuf,
    child: StoppedChild,
    tracer: Option<Arc<Shared>>,
}

impl PreparedCommand {
    /// Starts a child that waits; nothing of the command runs yet. `added`: a variable of its environment, in place of what this process has.
    pub(crate) fn start_waiting(
        arguments: &[OsString],
        added: Option<(&str, OsString)>,
        signals: &SignalFd,
        stdout: Option<RawFd>,
    ) -> Result<Self, RecordError> {
        let program = PathBuf::from(&arguments[0]);
        let environment = added.map(|(name, value)| environment(name, &value));
        let both = (c_strings(arguments), environment.as_deref().map(c_strings).transpose());
        let (arguments, environment) = match both {
            (Ok(arguments), Ok(environment)) => (arguments, environment),
            (Err(source), _) | (_, Err(source)) => return Err(CommandError { program, source }.into()),
        };
        // What fails here is a matter of limits of this process, not of the command.
        let child = StoppedChild::start_waiting(arguments, environment, signals, stdout);
        let child = child.map_err(RecordError::system("starting a process for the command"))?;
        Ok(Self { program, child, tracer: None })
    }

    /// The process that becomes the command.
    pub(crate) fn pid(&self) -> u32 {
        self.child.pid().as_raw_nonzero().get() as u32
    }

    /// From here on the tracer waits for it.
    pub(crate) fn leave_to(&mut self, tracer: Arc<Shared>) {
        self.child.leave_to_tracer();
        self.tracer = Some(tracer);
    }

    /// Lets the command begin.
    pub(crate) fn start(self) -> Result<Command, CommandError> {
        let (program, tracer) = (self.program, self.tracer);
        let pid = self.child.start().map_err(|source| CommandError { program, source })?;
        Ok(Command { pid, pidfd: pidfd_open(pid, PidfdFlags::empty()).ok(), status: None, tracer })
    }
}

/// The environment of this process with one variable of another value.
fn environment(name: &str, value: &OsStr) -> Vec<OsString> {
    let variable = |name: &OsStr, value: &OsStr| [name, OsStr::new("="), value].into_iter().collect::<OsString>();
    let others = env::vars_os().filter(|(other, _)| other != name);
    others.map(|(other, value)| variable(&other, &value)).chain([variable(OsStr::new(name), value)]).collect()
}

impl Command {
    /// How it ended, if it has.
    pub(crate) fn status(&mut self) -> Option<CommandStatus> {
        if let Some(tracer) = &self.tracer {
            self.status = self.status.or(tracer.status.get().copied().map(CommandStatus::from_wait));
            // While it runs, waiting for it would take the tracer's reports; when it has ended, the tracer may not be there to tell.
            if self.status.is_none() && self.has_ended() {
                self.status = self.reaped().or(tracer.status.get().copied().map(CommandStatus::from_wait));
            }
        } else if self.status.is_none() {
            self.status = match waitpid(Some(self.pid), WaitOptions::NOHANG) {
                Ok(Some((_, status))) => ended(status),
                Ok(None) => None,
                // Someone else has reaped it and knows how it ended: not to be taken for success.
                Err(_) => Some(CommandStatus::Exited(1)),
            };
        }
        self.status
    }

    /// Whether it is a zombie or gone.
    fn has_ended(&self) -> bool {
        let Some(pidfd) = &self.pidfd else { return !is_running(self.pid.as_raw_nonzero().get() as u32) };
        let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// How it ended, if nobody else was told.
    fn reaped(&self) -> Option<CommandStatus> {
        waitpid(Some(self.pid), WaitOptions::NOHANG).ok().flatten().and_then(|(_, status)| ended(status))
    }

    /// It is not traced any more.
    pub(crate) fn take_back(&mut self) {
        if let Some(tracer) = self.tracer.take() {
            self.status = self.status.or(tracer.status.get().copied().map(CommandStatus::from_wait));
        }
    }

    /// Sends it SIGTERM.
    pub(crate) fn terminate(&self) {
        let _ = kill_process(self.pid, Signal::TERM);
    }

    /// Sends it SIGINT.
    pub(crate) fn interrupt(&self) {
        let _ = kill_process(self.pid, Signal::INT);
    }
}

fn ended(status: WaitStatus) -> Option<CommandStatus> {
    let exited = status.exit_status().map(CommandStatus::Exited);
    exited.or_else(|| status.terminating_signal().map(CommandStatus::Killed))
}

/// Whether there is such a program to run, in the way `execvp` looks for it: before any file is written.
///
/// # Errors
/// No file of that name on `PATH`, or none that may be run.
pub fn find_program(name: &OsString) -> Result<(), CommandError> {
    let error = |errno: i32| CommandError { program: PathBuf::from(name), source: io::Error::from_raw_os_error(errno) };
    let check = |path: PathBuf| {
        let c_path = CString::new(path.as_os_str().as_bytes()).ok()?;
        Some((path.is_file(), is_executable(&c_path)))
    };
    let candidates: Vec<PathBuf> = if name.as_bytes().contains(&b'/') {
        vec![PathBuf::from(name)]
    } else {
        let path = env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
        env::split_paths(&path).map(|dir| dir.join(name)).collect()
    };
    let found: Vec<(bool, bool)> = candidates.into_iter().filter_map(check).collect();
    if found.contains(&(true, true)) {
        Ok(())
    } else if found.iter().any(|&(file, _)| file) {
        Err(error(libc::EACCES))
    } else {
        Err(error(libc::ENOENT))
    }
}
