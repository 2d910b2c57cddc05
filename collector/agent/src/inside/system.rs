//! System calls, without the C library.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU8, AtomicU32};

/// Makes a system call of up to five arguments; what comes back is the kernel's: a negative number is an error.
///
/// # Safety
/// As the system call says.
unsafe fn call<const COUNT: usize>(number: i64, arguments: [u64; COUNT]) -> i64 {
    let [first, second, third, fourth, fifth] = [0, 1, 2, 3, 4].map(|n| arguments.get(n).copied().unwrap_or(0));
    let result;
    // SAFETY: the caller's; `syscall` changes rcx and r11 beside rax.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") first, in("rsi") second, in("rdx") third, in("r10") fourth, in("r8") fifth,
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    result
}

/// The structure of `rt_sigaction`, which is not that of the C library.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Action {
    pub(crate) handler: u64,
    pub(crate) flags: u64,
    pub(crate) restorer: u64,
    pub(crate) mask: u64,
}

impl Action {
    /// Of all handlers of the agent's.
    pub(crate) const FLAGS: u64 = (libc::SA_SIGINFO | libc::SA_ONSTACK) as u64 | 0x0400_0000; // SA_RESTORER

    /// A handler of the agent's: on the alternate stack if there is one, with all signals blocked.
    pub(crate) fn of_agent(handler: u64, restorer: u64, more_flags: c_int) -> Self {
        Self { handler, flags: Self::FLAGS | more_flags as u64, restorer, mask: u64::MAX }
    }

    /// Whether a function is called, and not what the kernel does itself.
    pub(crate) fn is_function(&self) -> bool {
        self.handler != libc::SIG_DFL as u64 && self.handler != libc::SIG_IGN as u64
    }
}

/// Installs `new`; what was there before.
pub(crate) fn exchange_action(signal: c_int, new: &Action) -> Action {
    let mut old = Action::default();
    // SAFETY: the kernel reads one structure and writes one, of the size of a mask of 8 bytes.
    unsafe {
        call(libc::SYS_rt_sigaction, [signal as u64, &raw const *new as u64, &raw mut old as u64, 8]);
    }
    old
}

/// Chooses the signals that the thread blocks, until the handler returns.
pub(crate) fn set_mask(blocked: u64) {
    // SAFETY: the kernel reads one mask of 8 bytes.
    unsafe { call(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as u64, &raw const blocked as u64, 0, 8]) };
}

/// The action that is installed.
pub(crate) fn action(signal: c_int) -> Action {
    let mut action = Action::default();
    // SAFETY: the kernel writes one structure, of the size of a mask of 8 bytes.
    unsafe { call(libc::SYS_rt_sigaction, [signal as u64, 0, &raw mut action as u64, 8]) };
    action
}

/// Whether the calling thread has a shadow stack.
pub(crate) fn has_shadow_stack() -> bool {
    let pointer: u64;
    // SAFETY: changes nothing but the register, and not even that where there is none, or the CPU does not know the instruction.
    unsafe {
        std::arch::asm!("xor {0:e}, {0:e}", "rdsspq {0}", out(reg) pointer, options(nomem, nostack));
    }
    pointer != 0
}

/// Takes the thread's alternate signal stack away until the handler returns, which gives it back.
pub(crate) fn disable_alternate_stack() {
    let none = libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
    // SAFETY: the kernel reads one structure.
    unsafe { call(libc::SYS_sigaltstack, [&raw const none as u64, 0]) };
}

pub(crate) fn clock_gettime(clock: c_int, time: *mut libc::timespec) -> c_int {
    // SAFETY: the kernel checks the address.
    let result = unsafe { call(libc::SYS_clock_gettime, [clock as u64, time as u64]) };
    if result == 0 { 0 } else { -1 }
}

/// CPU time of the thread, ns.
pub(crate) fn thread_time() -> u64 {
    time_of(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The time that records have, ns.
pub(crate) fn monotonic_time() -> u64 {
    time_of(libc::CLOCK_MONOTONIC)
}

/// What a clock shows, ns.
pub(crate) fn time_of(clock: c_int) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    clock_gettime(clock, &raw mut time);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

pub(crate) fn process_id() -> u32 {
    // SAFETY: it has no arguments.
    unsafe { call(libc::SYS_getpid, []) as u32 }
}

pub(crate) fn thread_id() -> u32 {
    // SAFETY: it has no arguments.
    unsafe { call(libc::SYS_gettid, []) as u32 }
}

/// From now on a system call of the thread raises SIGSYS if it is not made within `code` and `selector` is not zero (the kernel's
/// syscall-user-dispatch.rst, Linux 5.11). Returns whether that works.
pub(crate) fn dispatch_system_calls(code: std::ops::Range<u64>, selector: &AtomicU8) -> bool {
    const ON: u64 = 1;
    set_dispatch([ON, code.start, code.end - code.start, &raw const *selector as u64])
}

/// System calls of the thread are what they were.
pub(crate) fn end_dispatch() {
    set_dispatch([0; 4]);
}

/// Whether the kernel can tell of system calls (since Linux 5.11).
pub(crate) fn can_dispatch() -> bool {
    set_dispatch([0; 4])
}

fn set_dispatch([mode, start, length, selector]: [u64; 4]) -> bool {
    const PR_SET_SYSCALL_USER_DISPATCH: u64 = 59;
    // SAFETY: the kernel only reads the byte of the selector, which lives as long as the image.
    unsafe { call(libc::SYS_prctl, [PR_SET_SYSCALL_USER_DISPATCH, mode, start, length, selector]) == 0 }
}

/// Takes a signal that waits for the thread, which has to block it.
pub(crate) fn take_waiting(signal: c_int, info: &mut libc::siginfo_t) -> bool {
    let (set, time) = (1_u64 << (signal - 1), libc::timespec { tv_sec: 0, tv_nsec: 0 });
    let arguments = [&raw const set as u64, &raw mut *info as u64, &raw const time as u64, 8];
    // SAFETY: the kernel reads a mask of 8 bytes and a time, and writes one structure.
    unsafe { call(libc::SYS_rt_sigtimedwait, arguments) == i64::from(signal) }
}

/// A timer whose signal carries `value`. That of a thread's clock signals this thread.
pub(crate) fn create_timer(clock: c_int, signal: c_int, value: u64) -> Option<u32> {
    let of_thread = clock == libc::CLOCK_THREAD_CPUTIME_ID;
    let notify = if of_thread { libc::SIGEV_SIGNAL | libc::SIGEV_THREAD_ID } else { libc::SIGEV_SIGNAL };
    // `struct sigevent` (asm-generic/siginfo.h): value, signal, how, thread.
    let mut event = [0_u64; 8];
    event[0] = value;
    event[1] = signal as u64 | (notify as u64) << 32;
    event[2] = u64::from(thread_id());
    let mut timer = 0_i32;
    // SAFETY: the kernel reads one structure and writes a number.
    let result =
        unsafe { call(libc::SYS_timer_create, [clock as u64, &raw const event as u64, &raw mut timer as u64]) };
    (result == 0).then_some(timer as u32)
}

/// Lets a timer send one signal after so many ns of its clock, 1 at least.
pub(crate) fn set_timer(timer: u32, after: u64) {
    const SECOND: u64 = 1_000_000_000;
    let after = after.max(1);
    // `struct itimerspec`: no interval, and the first time.
    let setting = [0, 0, after / SECOND, after % SECOND];
    // SAFETY: the kernel reads one structure.
    unsafe { call(libc::SYS_timer_settime, [u64::from(timer), 0, &raw const setting as u64, 0]) };
}

pub(crate) fn delete_timer(timer: u32) {
    // SAFETY: it takes a number.
    unsafe { call(libc::SYS_timer_delete, [u64::from(timer)]) };
}

/// Wakes all that wait for a word to change, in whatever process.
pub(crate) fn wake_all(word: &AtomicU32) {
    // SAFETY: the kernel looks up the word, and writes nothing.
    unsafe { call(libc::SYS_futex, [&raw const *word as u64, libc::FUTEX_WAKE as u64, i32::MAX as u64]) };
}

/// The beginning of what a link says whose path is at this address, and ends with a zero; whether it is as long as `name`.
pub(crate) fn read_link(path: u64, name: &mut [u8]) -> bool {
    // SAFETY: the kernel reads the path, and writes to `name` no more than it has room for.
    let length = unsafe { call(libc::SYS_readlink, [path, name.as_mut_ptr() as u64, name.len() as u64]) };
    length == name.len() as i64
}

/// Sleeps for some microseconds.
pub(crate) fn sleep(microseconds: i64) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: microseconds * 1000 };
    // SAFETY: the kernel reads one structure.
    unsafe { call(libc::SYS_nanosleep, [&raw const time as u64, 0]) };
}

/// Sends the calling thread a signal with what came with it before.
pub(crate) fn send_to_self(signal: c_int, info: *const libc::siginfo_t) {
    let (process, thread) = (process_id(), thread_id());
    // SAFETY: the kernel reads one structure, that of the signal.
    unsafe {
        call(libc::SYS_rt_tgsigqueueinfo, [u64::from(process), u64::from(thread), signal as u64, info as u64]);
    }
}
