//! A child that measures for how long the kernel keeps it from its own code.

use std::arch::asm;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU32};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use rustix::time::Timespec;

use crate::sys::sharing_child::SharingChild;

/// Times that one child measures of a kind at most: they go through the pipe at once.
const MOST: usize = 256;
/// For so long the child computes at most while it waits for signals, ns.
const LONGEST: u64 = 50_000_000;
/// linux/prctl.h; what the selector says; arch/x86/include/uapi/asm/processor-flags.h.
const PR_SET_SYSCALL_USER_DISPATCH: i32 = 59;
const ALLOW: u8 = 0;
const BLOCK: u8 = 1;
const TRAP_FLAG: i64 = 1 << 8;
/// Bytes of `syscall`.
const LENGTH: i64 = 2;

/// What a child measures.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Measuring {
    /// It sends itself this signal, which does nothing to it unless someone traces it: how long it stands still. Then it exits.
    Stops { signal: i32 },
    /// First it makes system calls as threads do whose bursts go on after them: how long each takes. Then it waits to be told to go on, and
    /// computes while a clock that somebody has opened for it sends it this signal: how long it is kept from computing.
    Signals { signal: i32 },
}

/// A child of the calling thread that measures.
pub(crate) struct MeasuringChild {
    pid: Pid,
    /// A byte here lets it begin, another go on.
    go: OwnedFd,
    results: OwnedFd,
    reaped: bool,
    /// What it works with, until it is gone.
    _own: SharingChild<Task>,
    /// It has this process's memory, and what signals count there: only one at a time.
    _only: MutexGuard<'static, ()>,
}

/// What a child is to do. The descriptors are those that it has, too.
struct Task {
    what: Measuring,
    times: usize,
    go: RawFd,
    not_its_own: RawFd,
    results: RawFd,
}

impl MeasuringChild {
    /// Starts it. The child waits until it is told to begin; then it measures so many times (256 at most) of each kind.
    ///
    /// # Errors
    /// There can be no more processes, or no more open files.
    pub(crate) fn start(what: Measuring, times: usize) -> io::Result<Self> {
        static ONE: Mutex<()> = Mutex::new(());
        let only = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let (go_read, go_write) = pipe_with(PipeFlags::CLOEXEC)?;
        let (results, results_write) = pipe_with(PipeFlags::CLOEXEC)?;
        let numbers = [&go_read, &go_write, &results_write].map(AsRawFd::as_raw_fd);
        let [go, not_its_own, results_number] = numbers;
        let task = Task { what, times: times.min(MOST), go, not_its_own, results: results_number };
        let mut own = SharingChild::new(task, run, 0);
        // SAFETY: the child calls only what is async-signal-safe. The value is dropped when it is gone: see `drop` and `has_ended`.
        let pid = unsafe { own.start() }?;
        Ok(Self { pid, go: go_write, results, reaped: false, _own: own, _only: only })
    }

    /// The child's process id, which is its only thread's.
    pub(crate) fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Lets it begin, or go on.
    ///
    /// # Errors
    /// It is not there any more.
    pub(crate) fn go_on(&self) -> io::Result<()> {
        rustix::io::write(&self.go, &[1])?;
        Ok(())
    }

    /// The next kind of times that it has measured; none if it does not say any in so long.
    pub(crate) fn times(&self, patience: Duration) -> Vec<Duration> {
        let timeout = Timespec::try_from(patience).ok();
        let mut polled = [PollFd::new(&self.results, PollFlags::IN)];
        let is_there = retry_on_intr(|| poll(&mut polled, timeout.as_ref())).is_ok_and(|ready| ready > 0);
        let mut bytes = [0; MOST * size_of::<u64>()];
        let length = if is_there { rustix::io::read(&self.results, &mut bytes).unwrap_or(0) } else { 0 };
        let (times, _) = bytes.get(..length).unwrap_or_default().as_chunks::<8>();
        times.iter().map(|&time| Duration::from_nanos(u64::from_ne_bytes(time))).collect()
    }

    /// It has ended, and the caller was told so by `wait`.
    pub(crate) fn has_ended(&mut self) {
        self.reaped = true;
    }
}

impl Drop for MeasuringChild {
    fn drop(&mut self) {
        if !self.reaped {
            let _ = kill_process(self.pid, Signal::KILL);
            let _ = retry_on_intr(|| waitpid(Some(self.pid), WaitOptions::empty()));
        }
    }
}

/// What the child does.
///
/// # Safety
/// Only in a child; at most `MOST` times, and the descriptors are open there.
unsafe fn run(task: &Task) -> ! {
    // SAFETY: the pointers are to live locals; all calls are async-signal-safe; no more is written than there is.
    unsafe {
        rustix::io::close(task.not_its_own);
        let wait = || {
            if rustix::io::read(BorrowedFd::borrow_raw(task.go), &mut [0_u8]) != Ok(1) {
                libc::_exit(0);
            }
        };
        wait();
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        let say = |times: &[u64]| {
            let bytes = std::slice::from_raw_parts(times.as_ptr().cast::<u8>(), size_of_val(times));
            let _ = rustix::io::write(BorrowedFd::borrow_raw(task.results), bytes);
        };
        let mut times = [0_u64; MOST];
        let times = &mut times[..task.times];
        match task.what {
            Measuring::Stops { signal } => {
                libc::signal(signal, libc::SIG_DFL);
                libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
                let pid = libc::getpid();
                for time in &mut *times {
                    let began = now();
                    libc::syscall(libc::SYS_tgkill, pid, pid, signal);
                    *time = now().saturating_sub(began);
                }
                say(times);
            }
            Measuring::Signals { signal } => {
                SELECTOR.store(ALLOW, Relaxed);
                handle(signal, overflowed);
                handle(libc::SIGSYS, in_front_of_call);
                handle(libc::SIGTRAP, after_call);
                libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
                // Where this is not to be had, a time of zero says so.
                let made = follow_calls(times);
                say(if made { times } else { &[0] });
                // What it computed before there is a clock would be for nothing: on a busy machine that takes a while.
                wait();
                let seen = wait_for_overflows(times);
                libc::signal(signal, libc::SIG_IGN);
                say(&times[..seen]);
            }
        }
        libc::_exit(0)
    }
}

/// The time of `CLOCK_MONOTONIC`, ns.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes to the live local whose address it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::ucontext_t);

/// # Safety
/// The handler does for the signal what it says.
unsafe fn handle(signal: i32, handler: Handler) {
    // SAFETY: a zeroed action is one; its handler takes what the flag says.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(signal, &action, ptr::null_mut());
    }
}

/// Overflows of the child's clock.
static OVERFLOWS: AtomicU32 = AtomicU32::new(0);

extern "C" fn overflowed(_: i32, _: *mut libc::siginfo_t, _: *mut libc::ucontext_t) {
    OVERFLOWS.fetch_add(1, Relaxed);
}

/// Computes, and notes how long it does not when a signal comes. Returns how many times it noted.
fn wait_for_overflows(times: &mut [u64]) -> usize {
    let mut seen = OVERFLOWS.load(Relaxed);
    let (mut count, mut before) = (0, now());
    let end = before + LONGEST;
    while count < times.len() && before < end {
        let time = now();
        let overflows = OVERFLOWS.load(Relaxed);
        if overflows != seen {
            // It may have come after the time was taken. Two at once tell nothing of one.
            times[count] = now().saturating_sub(before);
            count += usize::from(overflows == seen.wrapping_add(1));
            seen = overflows;
        }
        before = time;
    }
    count
}

/// Whether the kernel is to raise SIGSYS for system calls (Documentation/admin-guide/syscall-user-dispatch.rst).
static SELECTOR: AtomicU8 = AtomicU8::new(ALLOW);

/// Makes system calls with a signal before each, and another after it. Returns whether it could.
///
/// # Safety
/// The handlers of SIGSYS and SIGTRAP are those below.
unsafe fn follow_calls(times: &mut [u64]) -> bool {
    // SAFETY: the kernel reads the selector, which is there as long as the process.
    if unsafe { libc::prctl(PR_SET_SYSCALL_USER_DISPATCH, 1_u64, 0_u64, 0_u64, SELECTOR.as_ptr()) } != 0 {
        return false;
    }
    for time in times {
        let began = now();
        SELECTOR.store(BLOCK, Relaxed);
        // SAFETY: getppid has no effect; the kernel changes the registers that are named.
        unsafe {
            asm!(
                "syscall",
                "nop",
                inlateout("rax") libc::SYS_getppid => _,
                lateout("rcx") _,
                lateout("r11") _,
            );
        }
        *time = now().saturating_sub(began);
    }
    true
}

/// The call is made again, and the thread stops after it.
extern "C" fn in_front_of_call(_: i32, _: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    SELECTOR.store(ALLOW, Relaxed);
    // SAFETY: the kernel has written the context, and nobody else has it.
    let registers = unsafe { &mut (*context).uc_mcontext.gregs };
    registers[libc::REG_RIP as usize] -= LENGTH;
    registers[libc::REG_EFL as usize] |= TRAP_FLAG;
}

extern "C" fn after_call(_: i32, _: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    // SAFETY: as above.
    unsafe { (*context).uc_mcontext.gregs[libc::REG_EFL as usize] &= !TRAP_FLAG };
}
