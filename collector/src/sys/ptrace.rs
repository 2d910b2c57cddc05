//! `ptrace(2)`: threads that stop, and what is asked of them while they stand still.

use std::ptr::addr_of_mut;

use crate::errno::Errno;
use crate::sys::signals::SignalInfo;

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

/// `PTRACE_SEIZE`: the calling thread becomes the tracer of `thread`, which goes on running.
pub(crate) fn seize(thread: i32, options: i32) -> Result<(), Errno> {
    ptrace(libc::PTRACE_SEIZE, thread, options as usize)
}

/// `PTRACE_INTERRUPT`: `thread` will stop.
pub(crate) fn interrupt(thread: i32) -> Result<(), Errno> {
    ptrace(libc::PTRACE_INTERRUPT, thread, 0)
}

/// `PTRACE_SINGLESTEP`: one instruction, with a signal for the thread or 0.
#[cfg(feature = "simulated-pmu")]
pub(crate) fn single_step(thread: i32, signal: i32) -> Result<(), Errno> {
    ptrace(libc::PTRACE_SINGLESTEP, thread, signal as usize)
}

/// `PTRACE_CONT`, with a signal for the thread or 0.
pub(crate) fn resume(thread: i32, signal: i32) -> Result<(), Errno> {
    ptrace(libc::PTRACE_CONT, thread, signal as usize)
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

/// What is known of the signal that stopped a thread (`PTRACE_GETSIGINFO`).
pub(crate) fn signal_info(thread: i32) -> Result<SignalInfo, Errno> {
    let mut info = [0_i32; 32];
    // SAFETY: a siginfo_t is 128 bytes, which is what the kernel writes.
    let result = unsafe { libc::ptrace(libc::PTRACE_GETSIGINFO, thread, 0_usize, info.as_mut_ptr()) };
    if result < 0 { Err(Errno::last()) } else { Ok(SignalInfo::of_words(&info)) }
}

/// `PTRACE_GETSIGMASK`: bit n - 1 for signal n.
pub(crate) fn signal_mask(thread: i32) -> Result<u64, Errno> {
    const PTRACE_GETSIGMASK: libc::c_uint = 0x420a;
    let mut mask = 0_u64;
    // SAFETY: the kernel writes as many bytes as the address argument says, 8.
    let result = unsafe { libc::ptrace(PTRACE_GETSIGMASK, thread, 8_usize, addr_of_mut!(mask)) };
    if result < 0 { Err(Errno::last()) } else { Ok(mask) }
}

/// `PTRACE_SETSIGMASK` of a stopped thread: bit n - 1 for signal n.
pub(crate) fn set_signal_mask(thread: i32, mask: u64) -> Result<(), Errno> {
    const PTRACE_SETSIGMASK: libc::c_uint = 0x420b;
    // SAFETY: the kernel reads as many bytes as the address argument says, 8.
    let result = unsafe { libc::ptrace(PTRACE_SETSIGMASK, thread, 8_usize, &raw const mask) };
    if result < 0 { Err(Errno::last()) } else { Ok(()) }
}

/// What came with the first signal of this number that waits for a stopped thread, and not for any of its process
/// (`PTRACE_PEEKSIGINFO`).
pub(crate) fn waiting_signal(thread: i32, signal: i32) -> Option<SignalInfo> {
    const PTRACE_PEEKSIGINFO: libc::c_uint = 0x4209;
    // `struct ptrace_peeksiginfo_args` of linux/ptrace.h.
    #[repr(C)]
    struct Which {
        offset: u64,
        flags: u32,
        number: i32,
    }
    let mut infos = [[0_i32; 32]; 32];
    let mut offset = 0;
    loop {
        let which = Which { offset, flags: 0, number: infos.len() as i32 };
        // SAFETY: the kernel writes at most as many siginfo_t, of 128 bytes each, as are asked for.
        let got = unsafe { libc::ptrace(PTRACE_PEEKSIGINFO, thread, &raw const which, infos.as_mut_ptr()) };
        let got = infos.get(..usize::try_from(got).ok().filter(|&got| got > 0)?)?;
        if let Some(info) = got.iter().find(|info| info[0] == signal) {
            return Some(SignalInfo::of_words(info));
        }
        offset += got.len() as u64;
    }
}

/// The next report of a thread that the calling thread traces, if there is one. Signals that are not `own` are reported until the thread has
/// been let go: a report that was taken takes the signal with it if this process is killed before (`wait_task_stopped` in the kernel's
/// `exit.c`).
pub(crate) fn next_report(own: impl Fn(i32, SignalInfo) -> bool) -> Option<(i32, Report)> {
    const TRACED: libc::c_int = libc::__WALL | libc::__WNOTHREAD | libc::WNOHANG;
    loop {
        // SAFETY: a zeroed siginfo_t is a valid place for waitid(2) to write to, which leaves it zeroed where nothing is reported; `si_pid` and
        // `si_status` are those of reports of children.
        let (done, thread, status, code) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            // Stops of what is traced are reported without being asked for.
            let done = libc::waitid(libc::P_ALL, 0, &raw mut info, TRACED | libc::WEXITED | libc::WNOWAIT);
            (done, info.si_pid(), info.si_status(), info.si_code)
        };
        if done != 0 || thread == 0 {
            return None;
        }
        let is_signal = code == libc::CLD_TRAPPED && status & !0x7f == 0;
        if is_signal && signal_info(thread).is_ok_and(|info| !own(status, info)) {
            return Some((thread, Report::Signal(status)));
        }
        let mut status = 0;
        // SAFETY: the kernel writes one int to the address given.
        if unsafe { libc::waitpid(thread, &mut status, TRACED) } == thread {
            return Some((thread, Report::of(status)));
        }
        // It was killed meanwhile, which it reports next.
    }
}

impl Report {
    /// From the status of wait(2).
    fn of(status: i32) -> Self {
        if !libc::WIFSTOPPED(status) {
            Self::Ended(status)
        } else if status >> 16 != 0 {
            Self::Event(status >> 16, libc::WSTOPSIG(status))
        } else {
            Self::Signal(libc::WSTOPSIG(status))
        }
    }
}
