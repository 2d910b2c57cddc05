//! Bursts that timers of CPU time start: what programs and their recorder tell each other, in the memory of the slots.
//!
//! ```text
//! program                                    recorder
//! first signal: an entry, the bell    ->     reads names and mappings of the process: it may, or it may not
//! next signals: bursts, if it may     ->     period of all, whether a process is switched off
//! no bursts, and then no timer        <-     is over, or has not been seen for a while
//! ```
//!
//! A program could write here: what the recorder reads is believed as little as any other input.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Processes at a time; others have no bursts.
const MOST: usize = 2048;

/// What a process may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Not known yet: the recorder is to say.
    New,
    /// It takes bursts.
    Allowed,
    /// It is switched off: no bursts, but its timer goes on.
    Off,
    /// It takes none, and makes no system call for them any more.
    Barred,
    /// It has given up: the signals came to threads that do not compute.
    Asleep,
}

const FREE: u32 = 0;
const CLAIMED: u32 = 1;
const PARTS: [(u32, Part); 5] =
    [(2, Part::New), (3, Part::Allowed), (4, Part::Off), (5, Part::Barred), (6, Part::Asleep)];

impl Part {
    fn of(word: u32) -> Option<Self> {
        PARTS.iter().find(|(known, _)| *known == word).map(|(_, part)| *part)
    }

    fn word(self) -> u32 {
        PARTS.iter().find(|(_, part)| *part == self).map_or(FREE, |(word, _)| *word)
    }
}

#[repr(C)]
pub(crate) struct SharedTimers {
    /// What the signals carry, another number in each recording. 0: bursts are not started by timers.
    token: AtomicU64,
    /// The clock of the timers, as `timer_create` knows it.
    clock: AtomicU32,
    /// Not zero: timers are to go.
    over: AtomicU32,
    /// CPU time between two bursts of a process on average, ns.
    period: AtomicU64,
    /// When the recorder was there last, by `CLOCK_MONOTONIC`, ns.
    seen: AtomicU64,
    /// Counts processes that begin: the recorder waits for it (futex(2)).
    bell: AtomicU32,
    /// Signals of processes that may take bursts, and the CPU time that passed before them, ns.
    signals: AtomicU64,
    passed: AtomicU64,
    /// Signals that came when a thread came out of a system call.
    after_calls: AtomicU64,
    /// Processes that found no entry.
    no_entry: AtomicU32,
    processes: [SharedProcess; MOST],
}

#[repr(C)]
struct SharedProcess {
    part: AtomicU32,
    process: AtomicU32,
}

impl SharedTimers {
    pub(crate) fn token(&self) -> u64 {
        self.token.load(Relaxed)
    }

    pub(crate) fn clock(&self) -> i32 {
        self.clock.load(Relaxed) as i32
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Relaxed) != 0
    }

    pub(crate) fn period(&self) -> u64 {
        self.period.load(Relaxed)
    }

    pub(crate) fn seen(&self) -> u64 {
        self.seen.load(Relaxed)
    }

    /// An entry for a process that begins. The recorder is to be told.
    pub(crate) fn enter(&self, process: u32) -> Option<u32> {
        let free = |entry: &SharedProcess| {
            entry.part.load(Relaxed) == FREE && entry.part.compare_exchange(FREE, CLAIMED, Acquire, Relaxed).is_ok()
        };
        let Some(place) = self.processes.iter().position(free) else {
            self.no_entry.fetch_add(1, Relaxed);
            return None;
        };
        self.processes[place].process.store(process, Relaxed);
        self.processes[place].part.store(Part::New.word(), Release);
        Some(place as u32)
    }

    /// The bell rings: the word that is to be woken.
    pub(crate) fn ring(&self) -> &AtomicU32 {
        self.bell.fetch_add(1, Release);
        &self.bell
    }

    /// What a process may do that has this entry; `None` if the entry is not its own any more.
    pub(crate) fn part(&self, place: u32, process: u32) -> Option<Part> {
        let entry = self.processes.get(place as usize)?;
        let part = Part::of(entry.part.load(Acquire))?;
        (entry.process.load(Relaxed) == process).then_some(part)
    }

    /// The process gives up.
    pub(crate) fn fall_asleep(&self, place: u32) {
        if let Some(entry) = self.processes.get(place as usize) {
            let _ = entry.part.compare_exchange(Part::Allowed.word(), Part::Asleep.word(), AcqRel, Relaxed);
        }
    }

    /// A signal has come after so much CPU time, if that is known.
    pub(crate) fn count(&self, passed: Option<u64>) {
        if let Some(passed) = passed {
            self.signals.fetch_add(1, Relaxed);
            self.passed.fetch_add(passed, Relaxed);
        }
    }

    pub(crate) fn count_after_call(&self) {
        self.after_calls.fetch_add(1, Relaxed);
    }
}

/// The recorder's side.
#[derive(Clone, Copy)]
pub struct Timers<'a> {
    pub(crate) shared: &'a SharedTimers,
}

/// Signals of timers, since the recording began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// Those of which the CPU time before is known,
    pub count: u64,
    /// and that time, ns.
    pub passed: u64,
    /// Signals that came when a thread came out of a system call: no burst was taken.
    pub after_calls: u64,
    /// Processes that found no entry.
    pub no_entry: u64,
}

impl Timers<'_> {
    /// Timers of this clock are to carry `token`.
    pub(crate) fn begin(self, token: u64, clock: i32) {
        self.shared.clock.store(clock as u32, Relaxed);
        self.shared.token.store(token, Release);
    }

    /// From now on so much CPU time passes between two bursts of a process on average, ns.
    pub fn set_period(self, period: u64) {
        self.shared.period.store(period, Relaxed);
    }

    /// The recorder is there at this time.
    pub fn is_there(self, now: u64) {
        self.shared.seen.store(now, Relaxed);
    }

    /// No more bursts: processes delete their timers.
    pub fn end(self) {
        self.shared.over.store(1, Relaxed);
    }

    /// Counts processes that begin.
    pub fn bell(&self) -> &AtomicU32 {
        &self.shared.bell
    }

    /// The processes that have an entry: its place, the process, its part.
    pub fn entries(&self) -> impl Iterator<Item = (usize, u32, Part)> {
        self.shared.processes.iter().enumerate().filter_map(|(place, entry)| {
            let part = Part::of(entry.part.load(Acquire))?;
            Some((place, entry.process.load(Relaxed), part))
        })
    }

    /// From now on this is what the process may do that has an entry.
    pub fn set(self, place: usize, part: Part) {
        if let Some(entry) = self.shared.processes.get(place) {
            entry.part.store(part.word(), Release);
        }
    }

    /// The entry of a process that has ended.
    pub fn free(self, place: usize) {
        if let Some(entry) = self.shared.processes.get(place) {
            entry.process.store(0, Relaxed);
            entry.part.store(FREE, Release);
        }
    }

    /// Signals until now.
    pub fn signals(self) -> Signals {
        Signals {
            count: self.shared.signals.load(Relaxed),
            passed: self.shared.passed.load(Relaxed),
            after_calls: self.shared.after_calls.load(Relaxed),
            no_entry: u64::from(self.shared.no_entry.load(Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All of it is atomic, and zero in the beginning.
    fn shared() -> Box<SharedTimers> {
        // SAFETY: zeros are a value of it.
        unsafe { Box::new(std::mem::zeroed()) }
    }

    #[test]
    fn a_process_has_its_entry_until_it_is_freed() {
        let shared = shared();
        let timers = Timers { shared: &shared };
        let places: Vec<u32> = (1..=3).map(|process| shared.enter(process).unwrap()).collect();
        assert_eq!(places, [0, 1, 2]);
        timers.set(1, Part::Allowed);
        assert_eq!(
            (shared.part(1, 2), shared.part(1, 7), shared.part(0, 1)),
            (Some(Part::Allowed), None, Some(Part::New))
        );
        timers.free(1);
        assert_eq!(shared.part(1, 2), None);
        assert_eq!(shared.enter(9), Some(1), "the first that is free");
        assert_eq!(timers.entries().map(|(_, process, _)| process).collect::<Vec<_>>(), [1, 9, 3]);
        // Only one that takes bursts gives up.
        shared.fall_asleep(1);
        timers.set(2, Part::Allowed);
        shared.fall_asleep(2);
        assert_eq!((shared.part(1, 9), shared.part(2, 3)), (Some(Part::New), Some(Part::Asleep)));
    }

    #[test]
    fn where_there_is_no_room_it_is_counted() {
        let shared = shared();
        for process in 0..MOST as u32 {
            assert!(shared.enter(process).is_some());
        }
        assert_eq!(shared.enter(7), None);
        shared.count(Some(5));
        shared.count(None);
        shared.count_after_call();
        let expected = Signals { count: 1, passed: 5, after_calls: 1, no_entry: 1 };
        assert_eq!(Timers { shared: &shared }.signals(), expected);
    }
}
