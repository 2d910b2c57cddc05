//! A forked child that stops again and again, and measures for how long it stands still.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

/// Stops of one child at most: what it measured goes through the pipe at once.
const MOST: usize = 256;

/// A child of the calling thread that sends itself a signal again and again.
#[derive(Debug)]
pub(crate) struct StoppingChild {
    pid: Pid,
    /// A byte here lets it begin; closing it without one makes it exit.
    go: Option<OwnedFd>,
    results: OwnedFd,
    reaped: bool,
}

impl StoppingChild {
    /// Forks. The child waits until it is told to begin; then it sends itself `signal` so many times (256 at most), which does nothing
    /// to it unless someone traces it, and exits.
    ///
    /// # Errors
    /// There can be no more processes, or no more open files.
    pub(crate) fn fork(signal: i32, stops: usize) -> io::Result<Self> {
        let (go_read, go_write) = pipe_with(PipeFlags::CLOEXEC)?;
        let (results, results_write) = pipe_with(PipeFlags::CLOEXEC)?;
        // SAFETY: the child calls only what is async-signal-safe, and ends in `run`.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop(go_write);
                // SAFETY: we are in the forked child.
                unsafe { run(signal, stops.min(MOST), &go_read, &results_write) }
            }
            pid => match Pid::from_raw(pid) {
                Some(pid) => Ok(Self { pid, go: Some(go_write), results, reaped: false }),
                None => Err(io::Error::other("fork returned no process id")),
            },
        }
    }

    /// The child's process id, which is its only thread's.
    pub(crate) fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Lets it begin to send itself signals.
    ///
    /// # Errors
    /// It is not there any more.
    pub(crate) fn begin(&mut self) -> io::Result<()> {
        self.go.take().map_or(Ok(0), |go| rustix::io::write(&go, &[1]))?;
        Ok(())
    }

    /// How long it stood still, each time. It has ended, and the caller was told so by `wait`.
    pub(crate) fn stood_still(mut self) -> Vec<Duration> {
        self.reaped = true;
        let mut bytes = [0; MOST * size_of::<u64>()];
        let length = rustix::io::read(&self.results, &mut bytes).unwrap_or(0);
        let (times, _) = bytes.get(..length).unwrap_or_default().as_chunks::<8>();
        times.iter().map(|&time| Duration::from_nanos(u64::from_ne_bytes(time))).collect()
    }
}

impl Drop for StoppingChild {
    fn drop(&mut self) {
        if !self.reaped {
            let _ = kill_process(self.pid, Signal::KILL);
            let _ = waitpid(Some(self.pid), WaitOptions::empty());
        }
    }
}

/// What the forked child does.
///
/// # Safety
/// Only in a forked child; `stops` is at most `MOST`.
unsafe fn run(signal: i32, stops: usize, go: &OwnedFd, results: &OwnedFd) -> ! {
    // SAFETY: the pointers are to live locals; all calls are async-signal-safe; no more is written than there is.
    unsafe {
        let mut byte = 0_u8;
        if libc::read(go.as_raw_fd(), ptr::addr_of_mut!(byte).cast(), 1) != 1 {
            libc::_exit(0);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::signal(signal, libc::SIG_DFL);
        libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
        let now = || {
            let mut time: libc::timespec = std::mem::zeroed();
            libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time);
            time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
        };
        let (pid, mut times) = (libc::getpid(), [0_u64; MOST]);
        for time in &mut times[..stops] {
            let began = now();
            libc::syscall(libc::SYS_tgkill, pid, pid, signal);
            *time = now().saturating_sub(began);
        }
        libc::write(results.as_raw_fd(), times.as_ptr().cast(), stops * size_of::<u64>());
        libc::_exit(0)
    }
}
