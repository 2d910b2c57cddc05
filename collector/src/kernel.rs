//! Everything this crate asks of the kernel through pointers: the only file with unsafe code.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull, addr_of_mut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lookahead::{PAGE, Page, Registers, VectorState};
use perf_event_open_sys::bindings as sys;
use perfdata::{Avma, EventAttr};
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
        let mut words = attr_words(attr);
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

    /// From now on its overflows send `signal` to `thread`. The signal's `si_fd` is the number of this descriptor.
    pub(crate) fn signal_to(&self, thread: i32, signal: i32) -> Result<(), Errno> {
        // asm-generic/fcntl.h; `struct f_owner_ex` is type and id.
        const F_SETSIG: i32 = 10;
        const F_SETOWN_EX: i32 = 15;
        const F_OWNER_TID: i32 = 0;
        let owner = [F_OWNER_TID, thread];
        let fd = self.0.as_raw_fd();
        // SAFETY: F_SETSIG and F_SETFL take numbers, F_SETOWN_EX reads two integers from the address given.
        let results = unsafe {
            [
                libc::fcntl(fd, F_SETOWN_EX, owner.as_ptr()),
                libc::fcntl(fd, F_SETSIG, signal),
                libc::fcntl(fd, libc::F_SETFL, libc::O_RDONLY | libc::O_ASYNC),
            ]
        };
        if results.contains(&-1) { Err(Errno::last()) } else { Ok(()) }
    }

    /// Changes the period.
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
    /// A tracer waits for its end: this thread must not, or it would take the tracer's reports.
    traced: bool,
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
                Some(pid) => Ok(Self { pid, go: Some(go_write), failure: failure_read, traced: false }),
                None => Err(io::Error::other("fork returned no process id")),
            },
        }
    }

    /// Its process id.
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

/// Something a traced thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// It ended; the status of `wait`.
    Ended(i32),
    /// It is about to be given this signal.
    Signal(i32),
    /// It stopped at a `PTRACE_EVENT_*`; with `PTRACE_EVENT_STOP`, for this signal.
    Event(i32, i32),
}

/// What came with a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SignalInfo {
    pub(crate) code: i32,
    /// `si_fd`, where the code is one of `POLL_*`.
    pub(crate) fd: i32,
}

/// `PTRACE_SEIZE`: the calling thread becomes the tracer of `thread`, which goes on running.
pub(crate) fn seize(thread: i32, options: i32) -> Result<(), Errno> {
    ptrace(libc::PTRACE_SEIZE, thread, options as usize)
}

/// `PTRACE_INTERRUPT`: `thread` will stop.
pub(crate) fn interrupt(thread: i32) -> Result<(), Errno> {
    ptrace(libc::PTRACE_INTERRUPT, thread, 0)
}

/// `PTRACE_SINGLESTEP`: one instruction, with a signal for the thread or 0.
pub(crate) fn single_step(thread: i32, signal: i32) -> Result<(), Errno> {
    ptrace(libc::PTRACE_SINGLESTEP, thread, signal as usize)
}

/// `PTRACE_CONT`, with a signal for the thread or 0.
pub(crate) fn resume(thread: i32, signal: i32) -> Result<(), Errno> {
    ptrace(libc::PTRACE_CONT, thread, signal as usize)
}

/// `sched_getscheduler` of the calling thread: `SCHED_OTHER`, ..., or -1.
pub(crate) fn policy() -> libc::c_int {
    // SAFETY: it takes and returns numbers.
    unsafe { libc::sched_getscheduler(0) }
}

/// `sched_setscheduler` of the calling thread, to a policy without priorities.
pub(crate) fn set_policy(policy: libc::c_int) -> Result<(), Errno> {
    // SAFETY: a zeroed sched_param is valid, and what these policies want; the kernel reads it.
    let result = unsafe {
        let parameter: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(0, policy, &parameter)
    };
    if result < 0 { Err(Errno::last()) } else { Ok(()) }
}

/// `PTRACE_LISTEN`: a thread that was stopped by a signal such as SIGSTOP stays so.
pub(crate) fn listen(thread: i32) -> Result<(), Errno> {
    ptrace(libc::PTRACE_LISTEN, thread, 0)
}

/// `PTRACE_SETOPTIONS` of a stopped thread.
pub(crate) fn set_options(thread: i32, options: i32) -> Result<(), Errno> {
    ptrace(libc::PTRACE_SETOPTIONS, thread, options as usize)
}

/// `PTRACE_DETACH` of a stopped thread, with a signal for it or 0.
pub(crate) fn detach(thread: i32, signal: i32) -> Result<(), Errno> {
    ptrace(libc::PTRACE_DETACH, thread, signal as usize)
}

fn ptrace(request: libc::c_uint, thread: i32, data: usize) -> Result<(), Errno> {
    // SAFETY: the requests above take numbers, not pointers; the kernel checks that the thread is ours.
    if unsafe { libc::ptrace(request, thread, 0_usize, data) } < 0 { Err(Errno::last()) } else { Ok(()) }
}

/// A register of a stopped thread: `offset` is that of a field of `user_regs_struct`.
pub(crate) fn register(thread: i32, offset: usize) -> u64 {
    // SAFETY: PEEKUSER takes numbers. What the wrapper of the C library returns is the word, or -1 for an error.
    unsafe { libc::ptrace(libc::PTRACE_PEEKUSER, thread, offset, 0_usize) as u64 }
}

/// Changes a register of a stopped thread.
pub(crate) fn set_register(thread: i32, offset: usize, value: u64) -> Result<(), Errno> {
    // SAFETY: POKEUSER takes numbers; the registers are those of a thread of another process that is ours to trace.
    let result = unsafe { libc::ptrace(libc::PTRACE_POKEUSER, thread, offset, value as usize) };
    if result < 0 { Err(Errno::last()) } else { Ok(()) }
}

/// `PTRACE_GETEVENTMSG`: the new thread of a clone, the former id of a thread that called exec.
pub(crate) fn event_message(thread: i32) -> Result<u64, Errno> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: the kernel writes one unsigned long to the address given.
    let result = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, thread, 0_usize, addr_of_mut!(message)) };
    if result < 0 { Err(Errno::last()) } else { Ok(message) }
}

/// `PTRACE_GETSIGINFO`.
pub(crate) fn signal_info(thread: i32) -> Result<SignalInfo, Errno> {
    // `siginfo_t`: si_signo, si_errno, si_code, padding, then for POLL_*: si_band (8 bytes), si_fd.
    let mut info = [0_i32; 32];
    // SAFETY: a siginfo_t is 128 bytes, which is what the kernel writes.
    let result = unsafe { libc::ptrace(libc::PTRACE_GETSIGINFO, thread, 0_usize, info.as_mut_ptr()) };
    if result < 0 { Err(Errno::last()) } else { Ok(SignalInfo { code: info[2], fd: info[6] }) }
}

/// `PTRACE_GETSIGMASK`: bit n - 1 for signal n.
pub(crate) fn signal_mask(thread: i32) -> Result<u64, Errno> {
    const PTRACE_GETSIGMASK: libc::c_uint = 0x420a;
    let mut mask = 0_u64;
    // SAFETY: the kernel writes as many bytes as the address argument says, 8.
    let result = unsafe { libc::ptrace(PTRACE_GETSIGMASK, thread, 8_usize, addr_of_mut!(mask)) };
    if result < 0 { Err(Errno::last()) } else { Ok(mask) }
}

/// The register set of `PTRACE_GETREGSET` that is an XSAVE area.
const NT_X86_XSTATE: usize = 0x202;

/// The code segment of 64-bit code in user space; 32-bit code has another.
pub(crate) const USER_CS_64: u64 = 0x33;

/// Memory to read a thread's registers through, used again and again.
pub(crate) struct RegisterArea {
    /// The XSAVE area, of which `length` bytes were filled last.
    words: Vec<u64>,
    length: usize,
    general: libc::user_regs_struct,
}

/// The registers of a stopped thread.
pub(crate) struct ThreadRegisters {
    pub(crate) registers: Registers,
    /// The system call the thread is in or comes from; negative: none.
    pub(crate) system_call: i64,
}

impl RegisterArea {
    /// Bytes enough for AMX tiles, the largest state there is.
    pub(crate) fn new() -> Self {
        // SAFETY: user_regs_struct is plain integers.
        Self { words: vec![0; 16384 / 8], length: 0, general: unsafe { std::mem::zeroed() } }
    }

    /// `PTRACE_GETREGS` and `PTRACE_GETREGSET` of `NT_X86_XSTATE`.
    pub(crate) fn read(&mut self, thread: i32) -> Result<ThreadRegisters, Errno> {
        let mut area = libc::iovec { iov_base: self.words.as_mut_ptr().cast(), iov_len: self.words.len() * 8 };
        // SAFETY: user_regs_struct is plain integers, of which the kernel fills one; to `area` it writes no more than its length.
        let regs = unsafe {
            let mut regs: libc::user_regs_struct = std::mem::zeroed();
            if libc::ptrace(libc::PTRACE_GETREGS, thread, 0_usize, addr_of_mut!(regs)) < 0
                || libc::ptrace(libc::PTRACE_GETREGSET, thread, NT_X86_XSTATE, addr_of_mut!(area)) < 0
            {
                return Err(Errno::last());
            }
            regs
        };
        (self.length, self.general) = (area.iov_len, regs);
        // SAFETY: any bytes are u8, and `iov_len` is at most the length given.
        let bytes = unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast::<u8>(), area.iov_len) };
        let general = [
            regs.rax, regs.rcx, regs.rdx, regs.rbx, regs.rsp, regs.rbp, regs.rsi, regs.rdi, regs.r8, regs.r9, regs.r10,
            regs.r11, regs.r12, regs.r13, regs.r14, regs.r15,
        ];
        let registers = Registers {
            general,
            rip: regs.rip,
            rflags: regs.eflags,
            fs_base: regs.fs_base,
            gs_base: regs.gs_base,
            vector: VectorState::from_xsave(bytes).ok_or(Errno::EINVAL)?,
        };
        if regs.cs != USER_CS_64 {
            return Err(Errno::ENOSYS);
        }
        Ok(ThreadRegisters { registers, system_call: regs.orig_rax as i64 })
    }

    /// `PTRACE_SETREGS`, and `PTRACE_SETREGSET` of `NT_X86_XSTATE` if `vector`: gives `thread`, whose registers were the last to be read,
    /// these ones. What [`Registers`] does not hold stays as it was, and no system call will be made again.
    pub(crate) fn write(&mut self, thread: i32, registers: &Registers, vector: bool) -> Result<(), Errno> {
        let [rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15] = registers.general;
        let (rip, eflags) = (registers.rip, registers.rflags);
        let (fs_base, gs_base, orig_rax) = (registers.fs_base, registers.gs_base, u64::MAX);
        let regs = libc::user_regs_struct {
            rax,
            rcx,
            rdx,
            rbx,
            rsp,
            rbp,
            rsi,
            rdi,
            r8,
            r9,
            r10,
            r11,
            r12,
            r13,
            r14,
            r15,
            rip,
            eflags,
            fs_base,
            gs_base,
            orig_rax,
            ..self.general
        };
        // SAFETY: the kernel reads one user_regs_struct; the registers are those of a thread of another process that is ours to trace.
        if unsafe { libc::ptrace(libc::PTRACE_SETREGS, thread, 0_usize, ptr::addr_of!(regs)) } < 0 {
            return Err(Errno::last());
        }
        if !vector {
            return Ok(());
        }
        // SAFETY: any bytes are u8, and `length` is what the kernel filled, at most the length of `words`.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast::<u8>(), self.length) };
        registers.vector.to_xsave(bytes);
        let area = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        // SAFETY: the kernel reads `iov_len` bytes, which are there.
        let result = unsafe { libc::ptrace(libc::PTRACE_SETREGSET, thread, NT_X86_XSTATE, ptr::addr_of!(area)) };
        if result < 0 { Err(Errno::last()) } else { Ok(()) }
    }
}

/// The next report of a thread that the calling thread traces, if there is one.
pub(crate) fn next_report() -> Option<(i32, Report)> {
    let mut status = 0;
    // SAFETY: the kernel writes one int to the address given.
    let thread = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::__WNOTHREAD | libc::WNOHANG) };
    if thread <= 0 {
        return None;
    }
    let report = if !libc::WIFSTOPPED(status) {
        Report::Ended(status)
    } else if status >> 16 != 0 {
        Report::Event(status >> 16, libc::WSTOPSIG(status))
    } else {
        Report::Signal(libc::WSTOPSIG(status))
    };
    Some((thread, report))
}

/// `process_vm_readv`: reads the pages at `addresses` into `pages`, in order, up to the first that cannot be read. Returns how many
/// were read.
pub(crate) fn read_pages(process: i32, addresses: &[Avma], pages: &mut [Page]) -> usize {
    const MOST: usize = 512;
    let mut done = 0;
    for (addresses, pages) in addresses.chunks(MOST).zip(pages.chunks_mut(MOST)) {
        let length = pages.len().min(addresses.len());
        let local = libc::iovec { iov_base: pages.as_mut_ptr().cast(), iov_len: length * PAGE };
        // The kernel takes neighbours together.
        let runs = addresses[..length].chunk_by(|one, next| one.0.wrapping_add(PAGE as u64) == next.0);
        let remote = runs.map(|run| libc::iovec { iov_base: run[0].0 as *mut _, iov_len: run.len() * PAGE });
        let remote: Vec<libc::iovec> = remote.collect();
        let count = remote.len() as libc::c_ulong;
        // SAFETY: the kernel writes at most `iov_len` bytes to `pages`; the remote addresses are the other process's affair.
        let read = unsafe { libc::process_vm_readv(process, &local, 1, remote.as_ptr(), count, 0) };
        let whole = usize::try_from(read).unwrap_or(0) / PAGE;
        done += whole;
        if whole < length {
            break;
        }
    }
    done
}

/// Reads `bytes.len()` bytes of a process's memory; whether all could be read.
pub(crate) fn read_memory(process: i32, address: Avma, bytes: &mut [u8]) -> bool {
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let remote = libc::iovec { iov_base: address.0 as *mut _, iov_len: bytes.len() };
    // SAFETY: the kernel writes at most `iov_len` bytes to `bytes`; the remote address is the other process's affair.
    unsafe { libc::process_vm_readv(process, &local, 1, &remote, 1, 0) == bytes.len() as isize }
}

/// `process_vm_writev`: writes the pieces to a process's memory, each at its address. Returns the first address that could not be written.
pub(crate) fn write_memory(process: i32, pieces: &[(Avma, &[u8])]) -> Result<(), Avma> {
    // IOV_MAX.
    for pieces in pieces.chunks(1024) {
        let local =
            pieces.iter().map(|(_, bytes)| libc::iovec { iov_base: bytes.as_ptr() as *mut _, iov_len: bytes.len() });
        let remote = pieces.iter().map(|(to, bytes)| libc::iovec { iov_base: to.0 as *mut _, iov_len: bytes.len() });
        let (local, remote): (Vec<libc::iovec>, Vec<libc::iovec>) = (local.collect(), remote.collect());
        let count = pieces.len() as libc::c_ulong;
        // SAFETY: the kernel reads the pieces, which are there; what it writes to is the other process's memory.
        let written = unsafe { libc::process_vm_writev(process, local.as_ptr(), count, remote.as_ptr(), count, 0) };
        let mut left = usize::try_from(written).unwrap_or(0);
        for (to, bytes) in pieces {
            if left < bytes.len() {
                return Err(Avma(to.0 + left as u64));
            }
            left -= bytes.len();
        }
    }
    Ok(())
}

/// Copies a page of this process that the kernel changes at any time (`[vvar]`), or that may not be there.
pub(crate) fn copy_own_page(pipe: &(OwnedFd, OwnedFd), address: Avma, page: &mut Page) -> bool {
    // SAFETY: `write` only hands an address to the kernel, which answers EFAULT if there is no page.
    let written = unsafe { libc::write(pipe.1.as_raw_fd(), address.0 as *const libc::c_void, PAGE) };
    written > 0 && rustix::io::read(&pipe.0, &mut page[..]) == Ok(PAGE)
}

/// SIGCHLD and one more signal kept pending for a thread that waits for them.
pub(crate) struct Waiting {
    set: libc::sigset_t,
    before: libc::sigset_t,
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

/// A realtime signal the C library leaves free.
pub(crate) fn realtime_signal() -> i32 {
    libc::SIGRTMIN() + 7
}

/// The id of the calling thread.
pub(crate) fn own_thread() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}
