//! A forked child that waits before its `exec`.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::{self, addr_of_mut};

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitOptions, waitpid};

use crate::sys::inherited;
use crate::sys::signals::SignalFd;

/// A child that waits before its `exec`.
#[derive(Debug)]
pub(crate) struct StoppedChild {
    pid: Pid,
    /// A byte here lets it go; closing it without one makes it exit.
    go: Option<OwnedFd>,
    /// Says why `exec` failed; closed by an `exec` that did not.
    failure: OwnedFd,
    /// A tracer waits for its end: this thread must not, or it would take the tracer's reports.
    traced: bool,
}

impl StoppedChild {
    /// Forks. The child will run `arguments[0]`, searched in `PATH`, with the signal mask the caller had before `signals`;
    /// with `stdout_to_stderr` what it prints goes where its errors go. `environment`: what it has of that, `NAME=value` each; `None`: what
    /// this process has.
    pub(crate) fn fork(
        arguments: &[CString],
        environment: Option<&[CString]>,
        signals: &SignalFd,
        stdout_to_stderr: bool,
    ) -> io::Result<Self> {
        let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
            strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
        };
        let (pointers, environment) = (pointers(arguments), environment.map(pointers));
        let (go_read, go_write) = pipe_with(PipeFlags::CLOEXEC)?;
        let (failure_read, failure_write) = pipe_with(PipeFlags::CLOEXEC)?;
        // Who starts us may ignore SIGCHLD; the kernel would then throw the child's exit status away.
        // SAFETY: the default action is no handler that could be called.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
        // SAFETY: the child calls only what is async-signal-safe (and `execvp` and `execvpe`, which glibc makes so) and ends in `run_child`.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop(go_write);
                // SAFETY: we are in the forked child; both lists of pointers end with a null, and the strings live on.
                unsafe {
                    if stdout_to_stderr {
                        libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO);
                    }
                    run_child(&pointers, environment.as_deref(), &go_read, &failure_write, &signals.before)
                }
            }
            pid => match Pid::from_raw(pid) {
                Some(pid) => Ok(Self { pid, go: Some(go_write), failure: failure_read, traced: false }),
                None => Err(io::Error::other("fork returned no process id")),
            },
        }
    }

    /// The child's process id, before and after its `exec`.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// From here on a tracer waits for it.
    pub(crate) fn leave_to_tracer(&mut self) {
        self.traced = true;
    }

    /// Lets it go. Returns when its `exec` has been done, or why it could not be; the child is then gone.
    pub(crate) fn start(mut self) -> Result<Pid, io::Error> {
        if let Some(go) = self.go.take() {
            rustix::io::write(&go, &[1])?;
        }
        let mut errno = [0; 4];
        match rustix::io::retry_on_intr(|| rustix::io::read(&self.failure, &mut errno)) {
            Ok(4) => {
                if !self.traced {
                    let _ = waitpid(Some(self.pid), WaitOptions::empty());
                }
                Err(io::Error::from_raw_os_error(i32::from_ne_bytes(errno)))
            }
            _ => Ok(self.pid),
        }
    }
}

impl Drop for StoppedChild {
    fn drop(&mut self) {
        if self.go.take().is_some() && !self.traced {
            let _ = waitpid(Some(self.pid), WaitOptions::empty());
        }
    }
}

/// What the forked child does: wait, restore signals, `exec`.
///
/// # Safety
/// Only in a forked child; `arguments` and `environment` must be pointers to strings, and a null.
unsafe fn run_child(
    arguments: &[*const libc::c_char],
    environment: Option<&[*const libc::c_char]>,
    go: &OwnedFd,
    failure: &OwnedFd,
    mask: &libc::sigset_t,
) -> ! {
    // SAFETY: the callee's contract; all pointers are to live locals or to the caller's strings.
    unsafe {
        let mut byte = 0_u8;
        if libc::read(go.as_raw_fd(), addr_of_mut!(byte).cast(), 1) != 1 {
            libc::_exit(0);
        }
        inherited::restore();
        libc::pthread_sigmask(libc::SIG_SETMASK, mask, ptr::null_mut());
        match environment {
            Some(environment) => libc::execvpe(arguments[0], arguments.as_ptr(), environment.as_ptr()),
            None => libc::execvp(arguments[0], arguments.as_ptr()),
        };
        let errno = (*libc::__errno_location()).to_ne_bytes();
        libc::write(failure.as_raw_fd(), errno.as_ptr().cast(), errno.len());
        libc::_exit(127)
    }
}

/// The bytes of the NUL-terminated strings `execvp` gets.
pub(crate) fn c_strings(arguments: &[std::ffi::OsString]) -> io::Result<Vec<CString>> {
    use std::os::unix::ffi::OsStrExt;
    let c_string = |argument: &std::ffi::OsString| CString::new(argument.as_bytes());
    arguments.iter().map(c_string).collect::<Result<_, _>>().map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// Whether `execve` of `path` would get past its permission check.
pub(crate) fn is_executable(path: &CStr) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}
