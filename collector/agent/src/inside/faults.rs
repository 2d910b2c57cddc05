//! Whose handlers SIGSEGV and SIGBUS have: the agent's while bursts run, the program's at any other time.
//!
//! A thread of the program that faults meanwhile waits until no burst runs. Then its fault happens again, and its own handler gets it, as if
//! the agent were not there.

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::inside::entry;
use crate::inside::system::{self, Action, exchange_action};

const SIGNALS: [c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];
/// Nothing but these two comes through while a burst runs.
pub(crate) const ALL_BUT_FAULTS: u64 = !(1 << (libc::SIGSEGV - 1) | 1 << (libc::SIGBUS - 1));
/// Turns until a burst is not taken because others have the handlers in hand.
const TURNS: u32 = 200;

/// The process that holds the lock; 0: nobody.
static LOCK: AtomicU32 = AtomicU32::new(0);
/// The process whose bursts are counted: others' were those of a parent.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// Bursts that run.
static RUNNING: AtomicU32 = AtomicU32::new(0);
/// Threads of the program that wait for their handlers: no burst begins.
static WAITING: AtomicU32 = AtomicU32::new(0);
/// The program's handlers, as [`Action`].
static PROGRAMS: [[AtomicU64; 4]; 2] = [const { [const { AtomicU64::new(0) }; 4] }; 2];

fn load(words: &[AtomicU64; 4]) -> Action {
    let [handler, flags, restorer, mask] = words.each_ref().map(|word| word.load(Relaxed));
    Action { handler, flags, restorer, mask }
}

fn store(words: &[AtomicU64; 4], action: Action) {
    let values = [action.handler, action.flags, action.restorer, action.mask];
    words.iter().zip(values).for_each(|(word, value)| word.store(value, Relaxed));
}

fn own() -> Action {
    Action::of_agent(entry::fault_handler as *const () as u64, entry::restorer as *const () as u64, 0)
}

fn lock(process: u32, turns: u32) -> bool {
    for turn in 0..turns {
        let holder = LOCK.load(Relaxed);
        // Held by another process: by the parent, when it forked.
        if holder != process && LOCK.compare_exchange(holder, process, Acquire, Relaxed).is_ok() {
            return true;
        }
        if turn % 16 == 15 {
            system::sleep(5);
        }
        std::hint::spin_loop();
    }
    false
}

fn unlock() {
    LOCK.store(0, Release);
}

/// A burst begins: from now on the handlers are the agent's. `false`: not now.
pub(crate) fn begin(process: u32) -> bool {
    if WAITING.load(Acquire) != 0 && PROCESS.load(Relaxed) == process || !lock(process, TURNS) {
        return false;
    }
    if PROCESS.load(Relaxed) != process {
        RUNNING.store(0, Relaxed);
        WAITING.store(0, Relaxed);
        PROCESS.store(process, Relaxed);
    }
    if RUNNING.fetch_add(1, AcqRel) == 0 {
        let own = own();
        for (signal, programs) in SIGNALS.into_iter().zip(&PROGRAMS) {
            let before = exchange_action(signal, &own);
            // The agent's, if the parent took a burst when it forked: the program's is known from then.
            if before.handler != own.handler {
                store(programs, before);
            }
        }
    }
    unlock();
    true
}

/// A burst has ended.
pub(crate) fn end(process: u32) {
    while !lock(process, TURNS) {}
    if RUNNING.fetch_sub(1, AcqRel) == 1 {
        give_back();
    }
    unlock();
}

fn give_back() {
    let own = own();
    for (signal, programs) in SIGNALS.into_iter().zip(&PROGRAMS) {
        let found = exchange_action(signal, &load(programs));
        // The program has installed another one meanwhile.
        if found.handler != own.handler {
            exchange_action(signal, &found);
        }
    }
}

/// A fault of the program while the handlers are the agent's. Nothing here uses thread-local storage: fs is the program's.
pub(crate) extern "C" fn of_the_program(signal: c_int, info: *mut c_void, _: *mut c_void) {
    let process = system::process_id();
    WAITING.fetch_add(1, AcqRel);
    while RUNNING.load(Acquire) != 0 && PROCESS.load(Relaxed) == process {
        system::sleep(50);
    }
    while !lock(process, TURNS) {}
    let nobody_runs = RUNNING.load(Acquire) == 0 || PROCESS.load(Relaxed) != process;
    if nobody_runs && system::action(signal).handler == own().handler {
        // Forked while a burst ran, or the program has installed what it found then: nobody else gives them back.
        give_back();
    }
    unlock();
    if PROCESS.load(Relaxed) == process {
        WAITING.fetch_sub(1, AcqRel);
    }
    // SAFETY: the kernel has written a siginfo_t there.
    let code = unsafe { (*info.cast::<libc::siginfo_t>()).si_code };
    // A fault happens again when this returns. A signal that somebody sent has to be sent again.
    if code <= 0 {
        system::send_to_self(signal, info.cast());
    }
}

/// Somebody has sent the agent's thread a signal of a fault during a burst, which is given up: the program gets it after that.
pub(crate) extern "C" fn sent_to_agent(signal: c_int, info: *mut c_void, _: *mut c_void) {
    system::set_mask(u64::MAX);
    system::send_to_self(signal, info.cast());
}
