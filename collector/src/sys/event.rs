//! Perf events: `perf_event_open(2)`, and what can be asked of an open event.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{self, addr_of_mut};

use perf_event_open_sys::bindings as sys;
use perfdata::EventAttr;

use crate::errno::Errno;

/// What an event is opened on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// A thread (0: the calling one), on one CPU or on any.
    Thread(i32, Option<u32>),
    /// Every thread, on one CPU.
    Cpu(u32),
    /// The threads of a control group and of all in it, on one CPU. The descriptor is that of the group's folder.
    Group(RawFd, u32),
}

/// An open perf event.
#[derive(Debug)]
pub(crate) struct EventFd(OwnedFd);

impl EventFd {
    /// Opens `attr`; the descriptor is closed on exec.
    pub(crate) fn open(attr: &EventAttr, scope: Scope) -> Result<Self, Errno> {
        let (whom, cpu, of_group) = match scope {
            Scope::Thread(thread, cpu) => (thread, cpu.map_or(-1, |cpu| cpu as i32), 0),
            Scope::Cpu(cpu) => (-1, cpu as i32, 0),
            Scope::Group(folder, cpu) => (folder, cpu as i32, sys::PERF_FLAG_PID_CGROUP),
        };
        let mut words = attr_words(attr);
        // SAFETY: `words` holds a `perf_event_attr` of the length its size field states; the kernel reads and writes no more.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                words.as_mut_ptr(),
                whom,
                cpu,
                -1,
                libc::c_ulong::from(sys::PERF_FLAG_FD_CLOEXEC | of_group),
            )
        };
        if fd < 0 {
            return Err(Errno::last());
        }
        // SAFETY: the system call has just returned this descriptor, and nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd as i32) }))
    }

    /// Starts it, and what was inherited from it.
    pub(crate) fn enable(&self) -> Result<(), Errno> {
        self.command(sys::ENABLE, 0)
    }

    /// Stops it, and what was inherited from it.
    pub(crate) fn disable(&self) -> Result<(), Errno> {
        self.command(sys::DISABLE, 0)
    }

    /// Sends its records to the ring of `other`, which must be on the same CPU.
    pub(crate) fn share_ring_of(&self, other: &Self) -> Result<(), Errno> {
        self.command(sys::SET_OUTPUT, other.0.as_raw_fd() as libc::c_ulong)
    }

    fn command(&self, request: u32, argument: libc::c_ulong) -> Result<(), Errno> {
        // SAFETY: ENABLE, DISABLE and SET_OUTPUT take a number, not a pointer.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), libc::Ioctl::from(request), argument) };
        if result < 0 { Err(Errno::last()) } else { Ok(()) }
    }

    /// From now on its overflows send `signal` to `thread`. The signal's `si_fd` is the number of this descriptor.
    pub(crate) fn signal_to(&self, thread: i32, signal: i32) -> Result<(), Errno> {
        // asm-generic/fcntl.h; `struct f_owner_ex` is type and id.
        const F_SETSIG: i32 = 10;
        const F_SETOWN_EX: i32 = 15;
        const F_OWNER_TID: i32 = 0;
        let owner = [F_OWNER_TID, thread];
        let fd = self.0.as_raw_fd();
        // Nothing is sent meanwhile: the new thread might get the old signal, which may be one that kills.
        // SAFETY: F_SETSIG and F_SETFL take numbers, F_SETOWN_EX reads two integers from the address given.
        let results = unsafe {
            [
                libc::fcntl(fd, libc::F_SETFL, libc::O_RDONLY),
                libc::fcntl(fd, F_SETOWN_EX, owner.as_ptr()),
                libc::fcntl(fd, F_SETSIG, signal),
                libc::fcntl(fd, libc::F_SETFL, libc::O_RDONLY | libc::O_ASYNC),
            ]
        };
        if results.contains(&-1) { Err(Errno::last()) } else { Ok(()) }
    }

    /// It counts no more, and sends no signal from now on: what was on its way has been sent when this returns. Disabled alone, it might have
    /// overflowed and stopped (`perf_event_disable_inatomic`, kernel/events/core.c), and send its signal after that, from an interrupt that a
    /// virtual machine delays. Signals are sent under the lock that is taken to end them (`kill_fasync`, fs/fcntl.c).
    pub(crate) fn silence(&self) {
        let _ = self.disable();
        // SAFETY: F_SETFL takes a number.
        unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_SETFL, libc::O_RDONLY) };
    }

    /// Changes the period, in units of the event, from the next overflow on.
    pub(crate) fn set_period(&self, period: u64) -> Result<(), Errno> {
        // SAFETY: PERIOD reads one u64 from the address given.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), libc::Ioctl::from(sys::PERIOD), ptr::addr_of!(period)) };
        if result < 0 { Err(Errno::last()) } else { Ok(()) }
    }

    /// Lets it overflow once; it stops counting then.
    pub(crate) fn once(&self) -> Result<(), Errno> {
        self.command(sys::REFRESH, 1)
    }

    /// Puts `attr` in place of the attr it was opened with: the way to move a breakpoint.
    pub(crate) fn modify(&self, attr: &EventAttr) -> Result<(), Errno> {
        let mut words = attr_words(attr);
        let fd = self.0.as_raw_fd();
        // SAFETY: `words` holds a `perf_event_attr` of the length its size field states; the kernel reads no more.
        let result = unsafe { libc::ioctl(fd, libc::Ioctl::from(sys::MODIFY_ATTRIBUTES), words.as_mut_ptr()) };
        if result < 0 { Err(Errno::last()) } else { Ok(()) }
    }

    /// The number of the descriptor, which its signals carry.
    pub(crate) fn number(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// Itself, if so many more files can be opened after it (the kernel gives the lowest number that is free); otherwise `EMFILE`.
    pub(crate) fn leaving_room_for(self, files: u64) -> Result<Self, Errno> {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let is_enough = limit.is_none_or(|limit| u64::from(self.number().unsigned_abs()) + files < limit);
        if is_enough { Ok(self) } else { Err(Errno::EMFILE) }
    }

    /// The id its records carry.
    pub(crate) fn id(&self) -> Result<u64, Errno> {
        let mut id = 0_u64;
        // SAFETY: ID writes one u64 to the address given.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), libc::Ioctl::from(sys::ID), addr_of_mut!(id)) };
        if result < 0 { Err(Errno::last()) } else { Ok(id) }
    }

    /// Its count and what `read_format` adds, word by word; `words` is filled as far as the kernel has words.
    pub(crate) fn read(&self, words: &mut [u64]) -> Result<usize, Errno> {
        let mut bytes = vec![0; words.len() * 8];
        let length = rustix::io::read(&self.0, &mut bytes)?;
        let read = bytes[..length].chunks_exact(8);
        let count = read.len();
        for (word, chunk) in words.iter_mut().zip(read) {
            *word = chunk.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        }
        Ok(count)
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Words, so that the structure is aligned. The kernel writes the size it knows into it when it refuses the size.
fn attr_words(attr: &EventAttr) -> Vec<u64> {
    let word = |chunk: &[u8]| chunk.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    attr.to_bytes().chunks(8).map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::own_thread;
    use crate::tracer::Clock;

    #[test]
    fn what_is_silent_sends_nothing() {
        let event = match EventFd::open(&Clock::Time.attr(), Scope::Thread(0, None)) {
            Ok(event) => event,
            Err(why) => return testing::skip!(NoTracing, "no event of a thread opens: {why}"),
        };
        let sends = || rustix::fs::fcntl_getfl(&event.0).unwrap().bits() & libc::O_ASYNC as u32 != 0;
        event.signal_to(own_thread(), libc::SIGURG).unwrap();
        assert!(sends());
        event.silence();
        assert!(!sends());
    }
}
