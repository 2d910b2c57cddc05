//! A child that waits before its `exec`.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr;

use rustix::io::retry_on_intr;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitOptions, waitpid};

use crate::sys::inherited;
use crate::sys::sharing_child::SharingChild;
use crate::sys::signals::SignalFd;

/// A child that waits before its `exec`.
pub(crate) struct StoppedChild {
    pid: Pid,
    /// A byte here lets it go; closing it without one makes it exit.
    go: Option<OwnedFd>,
    /// Says why `exec` failed; closed by an `exec` that did not.
    failure: OwnedFd,
    /// A tracer waits for its end: this thread must not, or it would take the tracer's reports.
    traced: bool,
    /// What it works with, until its exec or its end.
    own: Option<SharingChild<Task>>,
}

/// What a child is to do. The descriptors are those that it has, too.
struct Task {
    arguments: Strings,
    environment: Option<Strings>,
    stdout: Option<RawFd>,
    go: RawFd,
    not_its_own: RawFd,
    failure: RawFd,
    mask: libc::sigset_t,
}

/// Strings as `execvp` wants them.
struct Strings {
    /// Of each of the strings, and a null.
    pointers: Vec<*const libc::c_char>,
    _strings: Vec<CString>,
}

impl From<Vec<CString>> for Strings {
    fn from(strings: Vec<CString>) -> Self {
        let pointers = strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect();
        Self { pointers, _strings: strings }
    }
}

impl StoppedChild {
    /// Starts it. The child will run `arguments[0]`, searched in `PATH`, with the signal mask the caller had before `signals`;
    /// `stdout`: the descriptor that is its standard output; `None`: that of this process. `environment`: what it has of that, `NAME=value`
    /// each; `None`: what this process has.
    pub(crate) fn start_waiting(
        arguments: Vec<CString>,
        environment: Option<Vec<CString>>,
        signals: &SignalFd,
        stdout: Option<RawFd>,
    ) -> io::Result<Self> {
        let (go_read, go_write) = pipe_with(PipeFlags::CLOEXEC)?;
        let (failure_read, failure_write) = pipe_with(PipeFlags::CLOEXEC)?;
        // Who starts us may ignore SIGCHLD; the kernel would then throw the child's exit status away.
        // SAFETY: the default action is no handler that could be called.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
        // `execvp` has the path on the stack, and for scripts a copy of the arguments' addresses.
        let path = std::env::var_os("PATH").map_or(0, |path| path.len());
        let more = path + (arguments.len() + 8) * size_of::<*const libc::c_char>();
        let task = Task {
            arguments: arguments.into(),
            environment: environment.map(Strings::from),
            stdout,
            go: go_read.as_raw_fd(),
            not_its_own: go_write.as_raw_fd(),
            failure: failure_write.as_raw_fd(),
            mask: signals.before,
        };
        let mut own = SharingChild::new(task, run, more);
        // SAFETY: the child calls only what is async-signal-safe (and `execvp` and `execvpe`, which glibc makes so). Its calls fail only
        // while this thread waits in `start`. What it works with is kept until it has gone: see `start` and `drop`.
        let pid = unsafe { own.start() }?;
        Ok(Self { pid, go: Some(go_write), failure: failure_read, traced: false, own: Some(own) })
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
        match retry_on_intr(|| rustix::io::read(&self.failure, &mut errno)) {
            Ok(4) => {
                self.wait_for_end();
                Err(io::Error::from_raw_os_error(i32::from_ne_bytes(errno)))
            }
            _ => Ok(self.pid),
        }
    }
}

impl StoppedChild {
    /// It ends by itself. Where only a tracer may wait for that, what it works with stays.
    fn wait_for_end(&mut self) {
        if self.traced {
            std::mem::forget(self.own.take());
        } else {
            let _ = retry_on_intr(|| waitpid(Some(self.pid), WaitOptions::empty()));
        }
    }
}

impl Drop for StoppedChild {
    fn drop(&mut self) {
        if self.go.take().is_some() {
            self.wait_for_end();
        }
    }
}

/// What the child does: wait, restore signals, `exec`.
///
/// # Safety
/// Only in a child; the pointers of the task are to strings, and a null, and the descriptors are open there.
unsafe fn run(task: &Task) -> ! {
    // SAFETY: the callee's contract; all pointers are to live locals or to the caller's strings.
    unsafe {
        rustix::io::close(task.not_its_own);
        if let Some(stdout) = task.stdout {
            libc::dup2(stdout, libc::STDOUT_FILENO);
        }
        let mut byte = [0_u8];
        if rustix::io::read(BorrowedFd::borrow_raw(task.go), &mut byte) != Ok(1) {
            libc::_exit(0);
        }
        inherited::restore();
        end_if_one_waits(&task.mask);
        libc::pthread_sigmask(libc::SIG_SETMASK, &task.mask, ptr::null_mut());
        let arguments = &task.arguments.pointers;
        match &task.environment {
            Some(environment) => libc::execvpe(arguments[0], arguments.as_ptr(), environment.pointers.as_ptr()),
            None => libc::execvp(arguments[0], arguments.as_ptr()),
        };
        let errno = (*libc::__errno_location()).to_ne_bytes();
        let _ = rustix::io::write(BorrowedFd::borrow_raw(task.failure), &errno);
        libc::_exit(127)
    }
}

/// Ends the child as a shell would say that a signal did, if one waits that dumps core: kernels before 5.16 end all processes
/// that share the memory then, and the recorder does.
///
/// # Safety
/// Only in a child.
unsafe fn end_if_one_waits(mask: &libc::sigset_t) {
    const DUMPING: [libc::c_int; 10] = [
        libc::SIGQUIT,
        libc::SIGILL,
        libc::SIGTRAP,
        libc::SIGABRT,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGSEGV,
        libc::SIGXCPU,
        libc::SIGXFSZ,
        libc::SIGSYS,
    ];
    // SAFETY: sets and action are live; what is asked for is written to them.
    unsafe {
        let mut pending = std::mem::zeroed();
        if libc::sigpending(&raw mut pending) != 0 {
            return;
        }
        for signal in DUMPING {
            let comes = libc::sigismember(&raw const pending, signal) == 1 && libc::sigismember(mask, signal) == 0;
            let mut action: libc::sigaction = std::mem::zeroed();
            let known = libc::sigaction(signal, ptr::null(), &raw mut action) == 0;
            if comes && known && action.sa_sigaction == libc::SIG_DFL {
                libc::_exit(128 + signal);
            }
        }
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
