//! Signals: taken from a descriptor, waited for, asked about.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, addr_of_mut};
use std::time::Duration;

use crate::errno::Errno;

/// Signals kept from their handlers and read from a descriptor instead, as long as it lives.
pub(crate) struct SignalFd {
    fd: OwnedFd,
    pub(super) before: libc::sigset_t,
}

impl SignalFd {
    /// Blocks `signals` in the calling thread.
    pub(crate) fn block(signals: &[i32]) -> io::Result<Self> {
        // SAFETY: a zeroed sigset_t is a valid place for sigemptyset and pthread_sigmask to write to; the pointers are to locals.
        unsafe {
            let (mut set, mut before): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigemptyset(&mut set);
            for &signal in signals {
                libc::sigaddset(&mut set, signal);
            }
            let fd = libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            let fd = OwnedFd::from_raw_fd(fd);
            match libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut before) {
                0 => Ok(Self { fd, before }),
                error => Err(io::Error::from_raw_os_error(error)),
            }
        }
    }

    /// A signal that has come: its number, and what came with it.
    pub(crate) fn next_info(&self) -> Option<(i32, SignalInfo)> {
        let info = self.read()?;
        Some((info.ssi_signo as i32, SignalInfo { code: info.ssi_code, fd: info.ssi_fd }))
    }

    /// A signal that has come: its number, and whether a terminal sent it (to the whole foreground process group).
    pub(crate) fn next(&self) -> Option<(i32, bool)> {
        // SI_KERNEL.
        self.read().map(|info| (info.ssi_signo as i32, info.ssi_code == 0x80))
    }

    fn read(&self) -> Option<libc::signalfd_siginfo> {
        // SAFETY: signalfd_siginfo is plain data of any bits, and `read` writes at most its size.
        unsafe {
            let mut info: libc::signalfd_siginfo = std::mem::zeroed();
            let size = std::mem::size_of_val(&info);
            let length = libc::read(self.fd.as_raw_fd(), addr_of_mut!(info).cast(), size);
            (length == size as isize).then_some(info)
        }
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for SignalFd {
    fn drop(&mut self) {
        // What came meanwhile has been dealt with: it must not end the process now.
        while self.next().is_some() {}
        // SAFETY: `before` is the mask pthread_sigmask returned.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, ptr::null_mut()) };
    }
}

/// `si_code` of an event that has overflowed, and of one that has used up its limit of overflows (asm-generic/siginfo.h).
pub(crate) const POLL_IN: i32 = 1;
pub(crate) const POLL_HUP: i32 = 6;

/// What came with a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SignalInfo {
    pub(crate) code: i32,
    /// `si_fd`, where the code is one of `POLL_*`.
    pub(crate) fd: i32,
}

impl SignalInfo {
    /// Of the words of a `siginfo_t`: si_signo, si_errno, si_code, padding, then for `POLL_*`: si_band (8 bytes), si_fd.
    pub(super) fn of_words(words: &[i32; 32]) -> Self {
        Self { code: words[2], fd: words[6] }
    }

    /// Whether it is one of those that descriptors of events send (fcntl(2), F_SETSIG).
    pub(crate) fn is_of_descriptor(self) -> bool {
        (POLL_IN..=POLL_HUP).contains(&self.code)
    }

    /// Whether it is one of the descriptor of this number.
    pub(crate) fn is_of(self, descriptor: i32) -> bool {
        self.is_of_descriptor() && self.fd == descriptor
    }
}

/// SIGCHLD and one more signal kept pending for a thread that waits for them.
pub(crate) struct Waiting {
    set: libc::sigset_t,
    pub(super) before: libc::sigset_t,
}

impl Waiting {
    /// Blocks SIGCHLD and `other` in the calling thread, and in those it will start.
    pub(crate) fn block(other: i32) -> Self {
        // SAFETY: zeroed sigset_t are valid places to write to; the pointers are to locals.
        unsafe {
            // Ignored, which is inherited, it would not be sent for stops.
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            let (mut set, mut before): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGCHLD);
            libc::sigaddset(&mut set, other);
            // What comes where no more of the other can be queued.
            libc::sigaddset(&mut set, libc::SIGIO);
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut before);
            Self { set, before }
        }
    }

    /// The signals, to be waited for by another thread.
    pub(crate) fn signals(&self) -> WaitSet {
        WaitSet(self.set)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // What is left over is nobody's business any more.
        while self.signals().wait(Duration::ZERO).is_some() {}
        // SAFETY: `before` is the mask pthread_sigmask returned.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, ptr::null_mut()) };
    }
}

/// Signals to wait for; they must be blocked.
#[derive(Clone, Copy)]
pub(crate) struct WaitSet(libc::sigset_t);

impl WaitSet {
    /// Waits until one of them comes: its number, and what came with it.
    pub(crate) fn wait(&self, timeout: Duration) -> Option<(i32, SignalInfo)> {
        let timeout = libc::timespec {
            tv_sec: timeout.as_secs() as libc::time_t,
            tv_nsec: timeout.subsec_nanos() as libc::c_long,
        };
        let mut info = [0_i32; 32];
        // SAFETY: `info` is as large as a siginfo_t and aligned for its words; the others are pointers to locals.
        let signal = unsafe { libc::sigtimedwait(&self.0, info.as_mut_ptr().cast(), &timeout) };
        (signal > 0).then_some((signal, SignalInfo { code: info[2], fd: info[6] }))
    }
}

/// Wakes the thread of this process that waits for SIGCHLD.
pub(crate) fn wake_waiting_thread() {
    // SAFETY: a signal to this process, which blocks it.
    unsafe { libc::kill(libc::getpid(), libc::SIGCHLD) };
}

/// Sends a thread a signal that carries a value.
pub(crate) fn queue_signal(process: i32, thread: i32, signal: i32, value: u64) -> Result<(), Errno> {
    // `siginfo_t`: signal, errno, code; the sender's process and user; the value.
    let mut info = [0_u64; 16];
    info[0] = signal as u64;
    info[1] = u64::from(libc::SI_QUEUE as u32);
    info[2] = u64::from(std::process::id());
    info[3] = value;
    // SAFETY: the kernel reads one siginfo_t, which has 128 bytes.
    let result = unsafe { libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, thread, signal, info.as_ptr()) };
    if result < 0 { Err(Errno::last()) } else { Ok(()) }
}

/// A realtime signal the C library leaves free.
pub(crate) fn realtime_signal() -> i32 {
    libc::SIGRTMIN() + 7
}
