//! How fast a thread runs the code it is in, where nothing counts instructions.
//!
//! ```text
//!       burst                      so much CPU time               registers again
//! --------|---------------------------------------------------------|--------------->
//!         |== path known ==|-- followed further, for its milestones --------|
//!                                            the milestone it is at: instructions executed
//! ```
//!
//! In a loop a burst is followed further than it is recorded, with a milestone at every branch: instructions so far, and a number for the
//! registers there. Then the thread goes on by itself for some microseconds and is stopped once more. Where its registers are those of one milestone,
//! it is known how many instructions it executed in that time. In code that is all over the place that is not done: what the tracer
//! leaves of the caches would be measured more than the code.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use lookahead::{Branch, Fuel, Milestone, Registers, run, run_course, state};

use crate::tracer::Clock;
use crate::tracer::address_space::AddressSpace;
use crate::tracer::engine::Engine;
use crate::tracer::thread::{Phase, Thread};
use crate::tracer::wish::TracerKind;

/// CPU time until the second stop, ns: between half of this and one and a half times.
const LAG: f64 = 30_000.0;
/// A stop that came so late says nothing: the thread waited in between.
const LATEST: Duration = Duration::from_micros(500);
/// CPU time between bursts, ns, above which paces are not measured: rare stops find and leave the caches cold, which is what would be measured.
const RAREST: f64 = 10_000_000.0;
/// Instructions to the next branch at most, at the second stop.
const NEAR: u64 = 256;
/// Instructions that a path is followed in all, first and at most.
const FIRST_GUESS: f64 = 60_000.0;
const FARTHEST: f64 = 400_000.0;
/// Of the instructions expected until the second stop, so many times as many are followed.
const RESERVE: f64 = 1.5;
/// A burst is in a loop if its branches lead to fewer places than this, of 1,024 that are told apart.
const FEW_PLACES: u32 = 48;
/// After so many measurements of a place only every so many bursts there are measured, and after so many failures none.
const ENOUGH: u8 = 8;
const RARELY: u8 = 8;
const HOPELESS: u8 = 4;
/// Places remembered at most.
const MOST_PLACES: usize = 1 << 16;

/// What was executed between the two stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    instructions: u64,
    /// CPU time; what the kernel needs for the end of the first stop and the beginning of the second is part of it.
    ran: Duration,
}

impl Pace {
    /// As `var2_w` and `var3_w` of `union perf_sample_weight` (linux/perf_event.h): instructions / 16 and time / 8 ns, at least 1, as much as
    /// fits.
    pub(super) fn weight(self) -> u64 {
        let fit = |number: u128| number.clamp(1, u128::from(u16::MAX)) as u64;
        fit(u128::from(self.instructions) / 16) << 32 | fit(self.ran.as_nanos() / 8) << 48
    }
}

/// The path that one thread is expected to take. The buffers are used again.
#[derive(Debug, Default)]
pub(super) struct Course {
    /// Whose; 0: nobody's.
    thread: i32,
    milestones: Vec<Milestone>,
    /// Branches behind the recorded burst, of no further use.
    branches: Vec<Branch>,
    /// How far it is to be followed.
    instructions: u64,
    /// Count of the thread's clock at the first stop.
    counted: u64,
}

impl Course {
    /// Where milestones are to be written to, if that is a thread whose pace is to be measured.
    pub(super) fn milestones_of(&mut self, thread: &Thread) -> Option<&mut Vec<Milestone>> {
        (self.thread == thread.id.tid).then_some(&mut self.milestones)
    }

    /// Instructions to the only milestone in that state.
    fn find(&self, state: u32) -> Option<u64> {
        let mut found = self.milestones.iter().filter(|milestone| milestone.state == state);
        let only = found.next()?;
        found.next().is_none().then_some(u64::from(only.instructions))
    }
}

/// What is known of the code where bursts start, by cache line.
#[derive(Debug, Default)]
pub(super) struct Loops {
    places: HashMap<u64, Loop>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Loop {
    /// Instructions per us of CPU time, as far as known; 0 if not.
    pace: f64,
    measured: u8,
    failed: u8,
    skipped: u8,
}

impl Loops {
    /// How far to follow a burst that starts there, if it is worth while.
    fn distance(&mut self, address: u64) -> Option<u64> {
        let place = self.places.get_mut(&(address >> 6)).filter(|place| place.failed < HOPELESS)?;
        if place.measured >= ENOUGH {
            place.skipped += 1;
            if place.skipped < RARELY {
                return None;
            }
            place.skipped = 0;
        }
        let expected = if place.pace > 0.0 { place.pace * LAG / 1000.0 * RESERVE * 1.5 } else { FIRST_GUESS };
        Some(expected.min(FARTHEST) as u64)
    }

    /// A burst that started there was in a loop, or was not.
    fn saw(&mut self, address: u64, is_loop: bool) {
        if !is_loop {
            self.places.remove(&(address >> 6));
        } else if self.places.len() < MOST_PLACES {
            self.places.entry(address >> 6).or_default();
        }
    }

    fn learn(&mut self, address: u64, pace: Option<Pace>, followed: u64) {
        let Some(place) = self.places.get_mut(&(address >> 6)) else { return };
        match pace {
            Some(pace) => {
                place.pace = pace.instructions as f64 / pace.ran.as_secs_f64() / 1e6;
                place.measured = place.measured.saturating_add(1);
                place.failed = 0;
            }
            None => {
                // It may have been farther than it was followed.
                place.failed += 1;
                place.pace = 2.0 * followed as f64 / (LAG / 1000.0 * RESERVE * 1.5);
            }
        }
    }
}

/// Whether these branches stay in few places.
fn is_loop(branches: &[Branch]) -> bool {
    let mut seen = [0_u64; 16];
    for branch in branches {
        let hash = branch.to.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
        seen[hash as usize / 64] |= 1 << (hash % 64);
    }
    !branches.is_empty() && seen.iter().map(|word| word.count_ones()).sum::<u32>() < FEW_PLACES
}

impl Engine {
    /// Decides whether the pace behind the first stop of a burst is to be measured.
    pub(super) fn plan_course(&mut self, thread: &Thread, registers: &Registers) {
        let possible = self.settings.kind == TracerKind::Lookahead && self.settings.clock == Clock::Time;
        let rare = self.governor.period() > RAREST;
        if !possible || rare || self.course.thread != 0 || thread.signal().is_none() {
            return;
        }
        let Some(process) = self.processes.get_mut(&thread.id.pid) else { return };
        if let Some(distance) = process.loops.distance(registers.rip) {
            self.course.thread = thread.id.tid;
            self.course.milestones.clear();
            self.course.instructions = distance;
            self.course.counted = thread.counted;
        }
    }

    /// The burst is complete, `registers` are those at its end: follows the path further, and lets the thread go for a while.
    /// Returns whether it does.
    pub(super) fn follow_course(&mut self, thread: &mut Thread, registers: &mut Registers) -> bool {
        let Some(process) = self.processes.get_mut(&thread.id.pid).filter(|_| self.course.thread == thread.id.tid)
        else {
            return false;
        };
        let before = thread.burst.instructions;
        let fuel = Fuel { instructions: self.course.instructions.saturating_sub(before), branches: u64::MAX };
        let AddressSpace { code, layout, .. } = &mut process.space;
        let mut memory = self.reader.memory(thread.id.pid, layout);
        let Course { branches, milestones, .. } = &mut self.course;
        branches.clear();
        let outcome = run_course(registers, &mut self.overlay, &mut memory, code, fuel, before, branches, milestones);
        self.course.instructions = before + outcome.instructions;
        self.facts.courses += 1;
        let lag = LAG * self.governor.jitter();
        if thread.arm_for_pace(lag as u64).is_err() {
            self.course.thread = 0;
            return false;
        }
        thread.phase = Phase::Timed(Instant::now());
        true
    }

    /// The second stop: where on its path is the thread?
    pub(super) fn timed(&mut self, thread: &mut Thread) {
        let ran = Duration::from_nanos(thread.counted.saturating_sub(self.course.counted));
        thread.burst.pace =
            self.executed(thread).map(|instructions| Pace { instructions, ran }).filter(|_| ran < LATEST);
        self.facts.paces += u64::from(thread.burst.pace.is_some());
        if let Some(process) = self.processes.get_mut(&thread.id.pid)
            && ran < LATEST
        {
            process.loops.learn(thread.burst.start().0, thread.burst.pace, self.course.instructions);
        }
        self.complete(thread, "instruction budget");
    }

    /// Instructions of the course that the thread has executed, if it is on it.
    fn executed(&mut self, thread: &mut Thread) -> Option<u64> {
        let mut registers = self.registers(thread)?;
        let process = self.processes.get_mut(&thread.id.pid)?;
        self.overlay.clear();
        self.reader.fetch(thread.id.pid, &[]);
        let AddressSpace { code, layout, .. } = &mut process.space;
        let mut memory = self.reader.memory(thread.id.pid, layout);
        let fuel = Fuel { instructions: NEAR, branches: 1 };
        self.course.branches.clear();
        let ahead = run(&mut registers, &mut self.overlay, &mut memory, code, fuel, &[], &mut self.course.branches);
        self.course.branches.first()?;
        self.course.find(state(&registers))?.checked_sub(ahead.instructions)
    }

    /// A burst is written: learns whether it was in a loop. The course is free for the next.
    pub(super) fn leave_course(&mut self, thread: &Thread) {
        if self.course.thread == thread.id.tid {
            self.course.thread = 0;
        }
        if let Some(process) = self.processes.get_mut(&thread.id.pid) {
            process.loops.saw(thread.burst.start().0, is_loop(&thread.burst.branches));
        }
    }
}

#[cfg(test)]
mod tests {
    use lookahead::BranchKind;
    use perfdata::Avma;

    use super::*;

    #[test]
    fn only_a_state_that_comes_once_tells_the_place() {
        let milestone = |instructions, state| Milestone { instructions, state };
        let course =
            Course { milestones: vec![milestone(10, 7), milestone(20, 8), milestone(30, 7)], ..Course::default() };
        assert_eq!((course.find(7), course.find(8), course.find(9)), (None, Some(20), None));
    }

    #[test]
    fn few_targets_are_a_loop() {
        let branches = |places: u64| -> Vec<Branch> {
            let to = |index: u64| Avma(0x40_1000 + index % places * 37);
            (0..1000).map(|index| Branch { from: Avma(0x40_2000), to: to(index), kind: BranchKind::Jump }).collect()
        };
        assert!(is_loop(&branches(1)) && is_loop(&branches(40)));
        assert!(!is_loop(&branches(400)) && !is_loop(&[]));
    }

    #[test]
    fn places_are_measured_while_it_helps() {
        const HERE: u64 = 0x40_1000;
        let mut loops = Loops::default();
        assert_eq!(loops.distance(HERE), None, "nothing is known of it");
        loops.saw(HERE, true);
        assert_eq!(loops.distance(HERE + 63), Some(FIRST_GUESS as u64));
        for failure in 0..HOPELESS {
            let distance = loops.distance(HERE).expect("not hopeless yet");
            assert!(distance >= (FIRST_GUESS as u64) << failure.min(2), "farther each time: {distance}");
            loops.learn(HERE, None, distance);
        }
        assert_eq!(loops.distance(HERE), None);

        let mut loops = Loops::default();
        loops.saw(HERE, true);
        let pace = Pace { instructions: 30_000, ran: Duration::from_micros(60) };
        for _ in 0..ENOUGH {
            assert!(loops.distance(HERE).is_some());
            loops.learn(HERE, Some(pace), 60_000);
        }
        let asked = 80;
        let measured = (0..asked).filter(|_| loops.distance(HERE).is_some()).count();
        assert_eq!(measured, asked / usize::from(RARELY));
        loops.saw(HERE, false);
        assert_eq!(loops.distance(HERE), None);
    }

    #[test]
    fn weights_hold_what_fits() {
        let weight = |instructions, us| Pace { instructions, ran: Duration::from_micros(us) }.weight();
        assert_eq!(weight(16_000, 80), 1000 << 32 | 10_000 << 48);
        assert_eq!(weight(3, 1_000_000), 1 << 32 | 0xffff << 48);
    }
}
