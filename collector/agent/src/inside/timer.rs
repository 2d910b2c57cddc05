//! The timer of a process: what its signals lead to, and when the next one comes.
//!
//! A timer is set for one signal at a time: a program that takes the signal for itself gets one, and no more. The kernel notices that a
//! timer of CPU time is due in its tick, while the thread computes, and sends the signal when it goes back to the thread's own code. So no system
//! call is interrupted; a thread that was in one at the tick comes out of it with the signal, and takes no burst.
//!
//! Nothing here uses thread-local storage: it runs before there is a context.

use std::ffi::c_int;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use lookahead::returned_to;

use crate::inside::frame::Frame;
use crate::inside::system;
use crate::loader;
use crate::slots::Shared;
use crate::timers::{Part, SharedTimers};

/// asm-generic/siginfo.h: a timer; somebody who called `sigqueue`.
const SI_TIMER: c_int = -2;
const SI_QUEUE: c_int = -1;
/// Where the value is that comes with a signal of either.
const VALUE: usize = 24;
/// The next tick.
const SOON: u64 = 1;
/// A recorder that was not seen for so long may be gone, ns.
const SILENCE: u64 = 2_000_000_000;
/// One that is only stopped may come back: it is looked for again after so much CPU time, ns.
const LOOK: u64 = 1_000_000_000;
/// A signal that comes to a thread which slept weighs so much, and any other takes one off. The thread that computes blocks the signal then, and
/// the kernel has sent it to another: four in a row, or one of ten again and again, are too many.
const WEIGHT_ASLEEP: u32 = 16;
const MOST_ASLEEP: u32 = 4 * WEIGHT_ASLEEP;
/// Bytes of `syscall`.
const LENGTH: u64 = 2;

/// The process whose timer is here: a child of fork has what its parent had, and no timer.
static PROCESS: AtomicU32 = AtomicU32::new(0);
static TIMER: AtomicU32 = AtomicU32::new(0);
static ENTRY: AtomicU32 = AtomicU32::new(0);
/// What the clock showed when the timer was set for a burst; 0: it was not yet.
static SET_AT: AtomicU64 = AtomicU64::new(0);
static RANDOM: AtomicU64 = AtomicU64::new(0);
static ASLEEP: AtomicU32 = AtomicU32::new(0);

/// What a signal leads to that no event has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Led {
    /// It is not a timer's.
    Elsewhere,
    /// Nothing is to be done.
    Nowhere,
    /// A burst.
    Burst,
}

/// Takes in a signal of the clock's number, which came where `frame` says, and sets the timer for the next one.
pub(crate) fn signalled(info: *const libc::siginfo_t, frame: &Frame) -> Led {
    let timers = &Shared::inside().timers;
    // SAFETY: the kernel has written it; the value has 8 bytes.
    let (code, value) = unsafe { ((*info).si_code, info.cast::<u8>().add(VALUE).cast::<u64>().read_unaligned()) };
    if !matches!(code, SI_TIMER | SI_QUEUE) || value != timers.token() || value == 0 {
        return Led::Elsewhere;
    }
    let known = PROCESS.load(Relaxed);
    let part = timers.part(ENTRY.load(Relaxed), known);
    // The process filters its system calls, perhaps: none is made.
    if code == SI_TIMER && known != 0 && part == Some(Part::Barred) {
        return Led::Nowhere;
    }
    let process = system::process_id();
    if process != known {
        begin(timers, process);
        return Led::Nowhere;
    }
    if code == SI_QUEUE {
        return Led::Nowhere;
    }
    if timers.is_over() || part.is_none() {
        system::delete_timer(TIMER.load(Relaxed));
        return Led::Nowhere;
    }
    if system::monotonic_time() > timers.seen().saturating_add(SILENCE) {
        if recorder_is_gone() {
            system::delete_timer(TIMER.load(Relaxed));
        } else {
            set(LOOK);
        }
        return Led::Nowhere;
    }
    match part {
        Some(Part::Allowed) => due(timers, frame),
        Some(Part::Off) => {
            SET_AT.store(0, Relaxed);
            set(next(timers));
            Led::Nowhere
        }
        _ => {
            set(SOON);
            Led::Nowhere
        }
    }
}

/// The recorder does not know the process yet: it is told, and says soon what it may do.
fn begin(timers: &SharedTimers, process: u32) {
    let timer = match loader::preloaded() {
        (owner, timer) if owner == process => timer,
        _ => match system::create_timer(timers.clock(), Shared::inside().signal(), timers.token()) {
            Some(timer) => timer,
            None => return,
        },
    };
    let Some(entry) = timers.enter(process) else { return system::delete_timer(timer) };
    TIMER.store(timer, Relaxed);
    ENTRY.store(entry, Relaxed);
    SET_AT.store(0, Relaxed);
    ASLEEP.store(0, Relaxed);
    RANDOM.store(system::monotonic_time() ^ u64::from(process) << 40, Relaxed);
    PROCESS.store(process, Relaxed);
    set(SOON);
    system::wake_all(timers.ring());
}

/// It is time for a burst.
fn due(timers: &SharedTimers, frame: &Frame) -> Led {
    let now = system::time_of(timers.clock());
    let before = SET_AT.swap(now, Relaxed);
    timers.count((before != 0).then(|| now.saturating_sub(before)));
    let answer = after_system_call(frame);
    let asleep = ASLEEP.load(Relaxed);
    if answer == Some(Answer::Interrupted) {
        let asleep = asleep + WEIGHT_ASLEEP;
        ASLEEP.store(asleep, Relaxed);
        if asleep >= MOST_ASLEEP {
            timers.fall_asleep(ENTRY.load(Relaxed));
            system::delete_timer(TIMER.load(Relaxed));
            return Led::Nowhere;
        }
    } else {
        ASLEEP.store(asleep.saturating_sub(1), Relaxed);
    }
    set(next(timers));
    if answer.is_none() {
        return Led::Burst;
    }
    timers.count_after_call();
    Led::Nowhere
}

fn set(nanoseconds: u64) {
    system::set_timer(TIMER.load(Relaxed), nanoseconds);
}

/// CPU time until the next burst: half to one and a half of the period, by chance.
fn next(timers: &SharedTimers) -> u64 {
    // Xorshift (Marsaglia 2003).
    let mut random = RANDOM.load(Relaxed).max(1);
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    RANDOM.store(random, Relaxed);
    let period = timers.period();
    period / 2 + ((u128::from(period) * u128::from(random)) >> 64) as u64
}

/// What a system call answered that a thread has just come out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// A signal has interrupted it, or it is about to be made again: the thread slept.
    Interrupted,
    Other,
}

/// Whether the thread has just come out of a system call, or goes back into one.
fn after_system_call(frame: &Frame) -> Option<Answer> {
    let [_, _, _, r11, ..] = frame.r8_to_r15;
    let after = returned_to(frame.rcx, r11, frame.rflags)?;
    let is_again = after == frame.rip.wrapping_add(LENGTH);
    let was_interrupted = is_again || frame.rax as i64 == -i64::from(libc::EINTR);
    (after == frame.rip || is_again).then_some(if was_interrupted { Answer::Interrupted } else { Answer::Other })
}

/// Whether nobody has the memory open any more that this process shares with its recorder.
fn recorder_is_gone() -> bool {
    const NAME: &[u8] = b"/memfd:hbbp-agent";
    let mut name = [0; NAME.len()];
    !(system::read_link(loader::RECORDER, &mut name) && name == NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(rip: u64, rcx: u64, r11: u64, rax: i64) -> Option<Answer> {
        // SAFETY: numbers and addresses that nobody follows.
        let mut frame: Frame = unsafe { std::mem::zeroed() };
        (frame.rip, frame.rcx, frame.rax, frame.rflags) = (rip, rcx, rax as u64, 0x10246);
        frame.r8_to_r15[3] = r11;
        after_system_call(&frame)
    }

    #[test]
    fn what_follows_a_system_call_is_told_from_other_code() {
        assert_eq!(answer(0x1002, 0x1002, 0x246, 7), Some(Answer::Other));
        assert_eq!(answer(0x1002, 0x1002, 0x246, -4), Some(Answer::Interrupted));
        assert_eq!(answer(0x1000, 0x1002, 0x246, 7), Some(Answer::Interrupted), "made again");
        assert_eq!(answer(0x1006, 0x1002, 0x246, 7), None);
        assert_eq!(answer(0x1002, 0x1002, 0x202, 7), None, "other flags");
    }
}
