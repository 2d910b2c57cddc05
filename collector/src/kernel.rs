//! Everything this crate asks of the kernel through pointers: the only file with unsafe code.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull, addr_of_mut};
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings as sys;
use perfdata::EventAttr;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitOptions, waitpid};

use crate::errno::Errno;

/// What an event is opened on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// A thread (0: the calling one), on one CPU or on any.
    Thread(i32, Option<u32>),
    /// Every thread, on one CPU.
    Cpu(u32),
}

/// An open perf event.
#[derive(Debug)]
pub(crate) struct EventFd(OwnedFd);

impl EventFd {
    /// Opens `attr`; the descriptor is closed on exec.
    pub(crate) fn open(attr: &EventAttr, scope: Scope) -> Result<Self, Errno> {
        let (thread, cpu) = match scope {
            Scope::Thread(thread, cpu) => (thread, cpu.map_or(-1, |cpu| cpu as i32)),
            Scope::Cpu(cpu) => (-1, cpu as i32),
        };
        // Words, so that the structure is aligned. The kernel writes the size it knows into it when it refuses the size.
        let mut words: Vec<u64> = attr
            .to_bytes()
            .chunks(8)
            .map(|chunk| chunk.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)))
            .collect();
        // SAFETY: `words` holds a `perf_event_attr` of the length its size field states; the kernel reads and writes no more.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                words.as_mut_ptr(),
                thread,
                cpu,
                -1,
                libc::c_ulong::from(sys::PERF_FLAG_FD_CLOEXEC),
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

/// The memory through which the kernel hands over records.
#[derive(Debug)]
pub(crate) struct Ring {
    page: NonNull<sys::perf_event_mmap_page>,
    length: usize,
    data: NonNull<u8>,
    /// A power of two.
    data_size: usize,
    tail: u64,
}

impl Ring {
    /// Maps the ring of `event`, `pages` (a power of two) pages large; further events may share it.
    pub(crate) fn map(event: &EventFd, pages: usize) -> Result<Self, Errno> {
        let page_size = rustix::param::page_size();
        let data_size = pages.checked_mul(page_size).ok_or(Errno::EINVAL)?;
        let length = data_size.checked_add(page_size).ok_or(Errno::EINVAL)?;
        // SAFETY: a new mapping at an address of the kernel's choice changes no memory that is in use.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.0.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        // SAFETY: the mapping is `page_size + data_size` bytes long, so its second page is inside it.
        let data = unsafe { start.cast::<u8>().add(page_size) };
        match (NonNull::new(start.cast()), NonNull::new(data)) {
            (Some(page), Some(data)) => Ok(Self { page, length, data, data_size, tail: 0 }),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Appends all records the ring holds to `records`, and gives their room back. Returns how many bytes.
    pub(crate) fn drain(&mut self, records: &mut Vec<u8>) -> usize {
        let page = self.page.as_ptr();
        // SAFETY: the page stays mapped as long as `self` lives; the kernel accesses the field as a whole u64 as well.
        let head = unsafe { AtomicU64::from_ptr(addr_of_mut!((*page).data_head)) }.load(Ordering::Acquire);
        let length = (head.wrapping_sub(self.tail) as usize).min(self.data_size);
        let start = self.tail as usize & (self.data_size - 1);
        let first = length.min(self.data_size - start);
        records.reserve(length);
        let end = records.len();
        // SAFETY: `start + first` and `length - first` are at most `data_size`, so both sources are inside the mapping; the kernel
        // does not write between tail and head; `length` bytes are reserved, and set when the length is.
        unsafe {
            let target = records.as_mut_ptr().add(end);
            ptr::copy_nonoverlapping(self.data.as_ptr().add(start), target, first);
            ptr::copy_nonoverlapping(self.data.as_ptr(), target.add(first), length - first);
            records.set_len(end + length);
        }
        self.tail = head;
        // SAFETY: as for `data_head`.
        unsafe { AtomicU64::from_ptr(addr_of_mut!((*page).data_tail)) }.store(head, Ordering::Release);
        length
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: this is the whole mapping made in `map`, and nothing refers to it any more.
        unsafe { libc::munmap(self.page.as_ptr().cast(), self.length) };
    }
}

/// Signals kept from their handlers and read from a descriptor instead, as long as it lives.
pub(crate) struct SignalFd {
    fd: OwnedFd,
    before: libc::sigset_t,
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

    /// A signal that has come: its number, and whether a terminal sent it (to the whole foreground process group).
    pub(crate) fn next(&self) -> Option<(i32, bool)> {
        // SAFETY: signalfd_siginfo is plain data of any bits, and `read` writes at most its size.
        unsafe {
            let mut info: libc::signalfd_siginfo = std::mem::zeroed();
            let size = std::mem::size_of_val(&info);
            let length = libc::read(self.fd.as_raw_fd(), addr_of_mut!(info).cast(), size);
            // SI_KERNEL.
            (length == size as isize).then_some((info.ssi_signo as i32, info.ssi_code == 0x80))
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

/// A child that waits before its `exec`.
#[derive(Debug)]
pub(crate) struct StoppedChild {
    pid: Pid,
    /// A byte here lets it go; closing it without one makes it exit.
    go: Option<OwnedFd>,
    /// Says why `exec` failed; closed by an `exec` that did not.
    failure: OwnedFd,
}

impl StoppedChild {
    /// Forks. The child will run `arguments[0]`, searched in `PATH`, with the signal mask the caller had before `signals`;
    /// with `stdout_to_stderr` what it prints goes where its errors go.
    pub(crate) fn fork(arguments: &[CString], signals: &SignalFd, stdout_to_stderr: bool) -> io::Result<Self> {
        let mut pointers: Vec<*const libc::c_char> = arguments.iter().map(|argument| argument.as_ptr()).collect();
        pointers.push(ptr::null());
        let (go_read, go_write) = pipe_with(PipeFlags::CLOEXEC)?;
        let (failure_read, failure_write) = pipe_with(PipeFlags::CLOEXEC)?;
        // Who starts us may ignore SIGCHLD; the kernel would then throw the child's exit status away.
        // SAFETY: the default action is no handler that could be called.
        let on_child = unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
        // SAFETY: the child calls only what is async-signal-safe (and `execvp`, which glibc makes so) and ends in `run_child`.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop(go_write);
                // SAFETY: we are in the forked child, `pointers` ends with a null and its strings live on.
                unsafe {
                    libc::signal(libc::SIGCHLD, on_child);
                    if stdout_to_stderr {
                        libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO);
                    }
                    run_child(&pointers, &go_read, &failure_write, &signals.before)
                }
            }
            pid => match Pid::from_raw(pid) {
                Some(pid) => Ok(Self { pid, go: Some(go_write), failure: failure_read }),
                None => Err(io::Error::other("fork returned no process id")),
            },
        }
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Lets it go. Returns when its `exec` has been done, or why it could not be; the child is then gone.
    pub(crate) fn start(mut self) -> Result<Pid, io::Error> {
        if let Some(go) = self.go.take() {
            rustix::io::write(&go, &[1])?;
        }
        let mut errno = [0; 4];
        match rustix::io::retry_on_intr(|| rustix::io::read(&self.failure, &mut errno)) {
            Ok(4) => {
                let _ = waitpid(Some(self.pid), WaitOptions::empty());
                Err(io::Error::from_raw_os_error(i32::from_ne_bytes(errno)))
            }
            _ => Ok(self.pid),
        }
    }
}

impl Drop for StoppedChild {
    fn drop(&mut self) {
        if self.go.take().is_some() {
            let _ = waitpid(Some(self.pid), WaitOptions::empty());
        }
    }
}

/// What the forked child does: wait, restore signals, `exec`.
///
/// # Safety
/// Only in a forked child; `arguments` must be pointers to strings, and a null.
unsafe fn run_child(arguments: &[*const libc::c_char], go: &OwnedFd, failure: &OwnedFd, mask: &libc::sigset_t) -> ! {
    // SAFETY: the callee's contract; all pointers are to live locals or to the caller's strings.
    unsafe {
        let mut byte = 0_u8;
        if libc::read(go.as_raw_fd(), addr_of_mut!(byte).cast(), 1) != 1 {
            libc::_exit(0);
        }
        // Rust ignores SIGPIPE; programs expect the default.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::pthread_sigmask(libc::SIG_SETMASK, mask, ptr::null_mut());
        libc::execvp(arguments[0], arguments.as_ptr());
        let errno = (*libc::__errno_location()).to_ne_bytes();
        libc::write(failure.as_raw_fd(), errno.as_ptr().cast(), errno.len());
        libc::_exit(127)
    }
}

/// Whether whoever started this process had it ignore `signal`, as `nohup` does with SIGHUP.
pub(crate) fn is_ignored(signal: i32) -> bool {
    // SAFETY: sigaction is plain data of any bits; without a new action the call only writes the present one to a local.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
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
