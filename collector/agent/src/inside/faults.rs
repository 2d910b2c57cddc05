//! Whose handlers the signals of faults have: the agent's while bursts run, the program's at any other time.
//!
//! A fault of the program meanwhile is passed on to its own handler.

use std::ffi::{c_int, c_void};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::inside::frame::Frame;
use crate::inside::programs::{SharedAction, no_action};
use crate::inside::system::{self, Action, exchange_action};
use crate::inside::{check, entry, follow, programs};

const SIGNALS: [c_int; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];
/// Nothing but these comes through while a burst runs.
pub(crate) const ALL_BUT_FAULTS: u64 =
    !(bit(libc::SIGSEGV) | bit(libc::SIGBUS) | bit(libc::SIGFPE) | bit(libc::SIGILL));
/// What probes need.
pub(crate) const OF_PROBES: u64 = bit(libc::SIGSEGV) | bit(libc::SIGBUS);
/// Turns until a burst is not taken because others have the handlers in hand.
const TURNS: u32 = 200;

/// A signal in a mask.
pub(crate) const fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

/// The process that holds the lock; 0: nobody.
static LOCK: AtomicU32 = AtomicU32::new(0);
/// The process whose bursts are counted: others' were those of a parent.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// Bursts that run.
static RUNNING: AtomicU32 = AtomicU32::new(0);
/// The program's handlers, as [`Action`].
static PROGRAMS: [SharedAction; SIGNALS.len()] = [const { no_action() }; SIGNALS.len()];

/// The signals, the agent's handler, and the program's actions.
pub(crate) fn handlers() -> [(c_int, u64, &'static SharedAction); SIGNALS.len()] {
    std::array::from_fn(|place| (SIGNALS[place], own().handler, &PROGRAMS[place]))
}

fn own() -> Action {
    Action::of_agent(entry::fault_handler as *const () as u64, entry::restorer as *const () as u64, 0)
}

/// The same, on the stack that the program's handler would be called on.
fn own_for(programs: &Action) -> Action {
    let own = own();
    let elsewhere = programs.is_function() && programs.flags & libc::SA_ONSTACK as u64 == 0;
    Action { flags: if elsewhere { own.flags & !(libc::SA_ONSTACK as u64) } else { own.flags }, ..own }
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
    if !lock(process, TURNS) {
        return false;
    }
    if PROCESS.load(Relaxed) != process {
        RUNNING.store(0, Relaxed);
        PROCESS.store(process, Relaxed);
    }
    if RUNNING.fetch_add(1, AcqRel) == 0 {
        for (signal, programs) in SIGNALS.into_iter().zip(&PROGRAMS) {
            let own = own_for(&programs::load(programs));
            let before = exchange_action(signal, &own);
            // The agent's, if the parent took a burst when it forked: the program's is known from then.
            if before.handler != own.handler {
                programs::store(programs, before);
                let other = own_for(&before);
                if other != own {
                    exchange_action(signal, &other);
                }
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
        let found = exchange_action(signal, &programs::load(programs));
        // The program has installed another one meanwhile.
        if found.handler != own.handler {
            exchange_action(signal, &found);
        }
    }
}

/// A fault of the program while the handlers are the agent's. Returns the program's handler, if that is to be called. Nothing here uses
/// thread-local storage: fs is the program's.
pub(crate) extern "C" fn of_the_program(signal: c_int, info: *const libc::siginfo_t, frame: &mut Frame) -> u64 {
    if check::faulted(signal, info, frame) {
        return 0;
    }
    follow::interrupted(frame);
    let process = system::process_id();
    // A burst that begins just now has written down the program's handlers when it lets the lock go.
    while !lock(process, TURNS) {}
    let nobody_runs = PROCESS.load(Relaxed) != process || RUNNING.load(Acquire) == 0;
    if nobody_runs && system::action(signal).handler == own().handler {
        // Forked while a burst ran, or the program has installed what it found then: nobody else gives them back.
        give_back();
    }
    unlock();
    let place = SIGNALS.iter().position(|known| *known == signal).unwrap_or(0);
    programs::pass_on(signal, info, frame, &PROGRAMS[place])
}

/// Somebody has sent the agent's thread a signal of a fault during a burst, which is given up: the program gets it after that.
pub(crate) extern "C" fn sent_to_agent(signal: c_int, info: *const libc::siginfo_t, _: *mut c_void) {
    system::set_mask(u64::MAX);
    system::send_to_self(signal, info);
}
