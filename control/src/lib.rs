//! A switch for the recordings of `hbbp`, in the hands of the program that is recorded.
//!
//! ```no_run
//! hbbp_control::mark("load");
//! // ... this is phase `load` of `hbbp mix --rows phase`
//! hbbp_control::mark("solve");
//! // ... and this `solve`
//! hbbp_control::stop();
//! // nothing of this is in the recording
//! hbbp_control::start();
//! ```
//!
//! Without a recording all calls do nothing, so they can stay in what is delivered: a look at the clock, and once in a second a look for
//! a recording. A process is recorded if it, one of its ancestors, or everything (`hbbp record -a`) is being recorded by the same user.
//! There is a C library that does the same, `c/hbbp.h` of this package.
//!
//! What a call says holds for the process that makes it, with all its threads, and for processes that it forks after that. A
//! process that executes another program has said nothing. `hbbp control` says the same for all processes of a recording; the latest
//! word counts.
//!
//! A call is one `write` of 128 bytes to a pipe and never waits. If the recorder does not read them fast enough, some 8,000 in half a
//! second, messages are lost, and the recording says how many.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![forbid(unsafe_code)]

mod connection;
mod message;
mod place;
mod state;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{RwLock, TryLockError};

pub use crate::connection::Connection;
pub use crate::message::{Message, Order, Scope};
pub use crate::place::{ENVIRONMENT, MESSAGES, Recordings, STATE, is_recorded, named_folder};
pub use crate::state::State;

/// The recording that this process is part of, if there is one.
static RECORDING: RwLock<Option<Connection>> = RwLock::new(None);
/// When to look again whether there is one, and whether it is still there, ns.
static NEXT_LOOK: AtomicU64 = AtomicU64::new(0);
/// Messages that did not fit.
static LOST: AtomicU32 = AtomicU32::new(0);
/// What this process said last of itself: 0 nothing, else twice the turns of the whole recording that had been seen by then, plus 2, plus 1
/// for on.
static OWN: AtomicU64 = AtomicU64::new(0);

/// How long it takes until a new recording is found, ns.
const LOOK_FOR: u64 = 1_000_000_000;
/// How long it takes until it is seen that a recording has ended, ns.
const LOOK_AFTER: u64 = 100_000_000;

/// This process is recorded from now on. It is from its beginning on unless `stop` was called or the recording began with `--off`.
pub fn start() {
    turn(true);
}

/// Nothing of this process is recorded from now on.
pub fn stop() {
    turn(false);
}

/// What this process does from now on is the phase of that name, of at most [`Message::MOST_NAME`] bytes; longer ones are cut. It lasts until
/// the next mark. An empty name ends the phase.
pub fn mark(name: &str) {
    with_recording(|recording| say(recording, Order::Mark, name));
}

/// Whether what this process does is being recorded: there is a recording, and it is not switched off.
pub fn is_recording() -> bool {
    let mut is = false;
    with_recording(|recording| {
        let own = OWN.load(Ordering::Relaxed);
        is = recording.state().is_some_and(|state| if own >> 1 == state.turns + 1 { own & 1 == 1 } else { state.on });
    });
    is
}

fn turn(on: bool) {
    with_recording(|recording| {
        let turns = recording.state().map_or(0, |state| state.turns);
        OWN.store((turns + 1) << 1 | u64::from(on), Ordering::Relaxed);
        say(recording, if on { Order::Start } else { Order::Stop }, "");
    });
}

fn say(recording: &Connection, order: Order, name: &str) {
    let message = Message::of_process(order, name);
    if !recording.send(&message) {
        LOST.fetch_add(message.lost + 1, Ordering::Relaxed);
    }
}

/// Does something with the recording, if there is one.
fn with_recording(action: impl FnOnce(&Connection)) {
    let now = message::now();
    if now >= NEXT_LOOK.load(Ordering::Relaxed) {
        look(now);
    }
    // A writer is at work for a moment, or was when this process was forked: nothing is waited for.
    match RECORDING.try_read() {
        Ok(recording) => drop(recording.as_ref().map(action)),
        Err(TryLockError::Poisoned(_) | TryLockError::WouldBlock) => drop(LOST.fetch_add(1, Ordering::Relaxed)),
    }
}

/// Looks for a recording, and whether the one that is known is still there.
fn look(now: u64) {
    // Others need not look meanwhile.
    NEXT_LOOK.store(now + LOOK_AFTER, Ordering::Relaxed);
    // A child that is forked while it is locked would find it so for ever: it is locked for moments only.
    let Ok(known) = RECORDING.try_read() else { return };
    let (mut is_there, before) = (
        known.as_ref().is_some_and(Connection::is_alive),
        known.as_ref().map(|known| (known.folder().to_owned(), known.identity())),
    );
    drop(known);
    if !is_there {
        let found = Connection::to_recorder(before.as_ref().map(|(folder, _)| folder.as_path()));
        let is_same = before.map(|(_, identity)| identity) == found.as_ref().map(Connection::identity);
        is_there = found.is_some();
        if let Ok(mut known) = RECORDING.try_write() {
            let before = std::mem::replace(&mut *known, found);
            drop(known);
            drop(before);
            if !is_same {
                OWN.store(0, Ordering::Relaxed);
                LOST.store(0, Ordering::Relaxed);
            }
        }
    }
    NEXT_LOOK.store(now + if is_there { LOOK_AFTER } else { LOOK_FOR }, Ordering::Relaxed);
}

/// Messages that were lost since it was asked last.
pub(crate) fn take_lost() -> u32 {
    LOST.swap(0, Ordering::Relaxed)
}
