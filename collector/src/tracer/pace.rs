//! How fast a thread runs the loop it is in, where nothing counts instructions.
//!
//! ```text
//!        look                            stop for the burst
//! --------|-----------------------------------|======== burst: path known ========
//!    registers r1                        registers, path:  A ... A ... A ... A      A: the next branch target after the look
//!         |<------ CPU time: known ------>|                r   r+s  r+2s  r+3s      a register that goes up evenly
//!
//! turns between = (r - r1) / s,  instructions per turn = distance of two A on the path
//! ```
//!
//! A thread is stopped once more, for its registers only, shortly before a burst. If the code it is about to execute comes again in the
//! burst, and a register goes up or down by the same step every time, its value tells how many turns were done between the two
//! stops, and the burst how many instructions a turn has.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use lookahead::{Fuel, Registers, run};
use perfdata::Avma;

use crate::tracer::Clock;
use crate::tracer::engine::Engine;
use crate::tracer::thread::Thread;
use crate::tracer::wish::TracerKind;

/// CPU time between the two stops, ns, is this plus up to twice as much.
const LAG: f64 = 25_000.0;
/// A stop that came so late says nothing: the thread was elsewhere in between.
const LATEST: Duration = Duration::from_micros(500);
/// Times the landmark is looked at in a burst, and how often at least it has to come.
const MOST_VISITS: usize = 32;
const LEAST_VISITS: usize = 4;
/// Instructions to the landmark at most.
const NEAR: u64 = 256;
/// More instructions per ns than any processor executes.
const FASTEST: f64 = 32.0;

/// A thread's state at the first of two stops.
#[derive(Debug)]
pub(super) struct Look {
    registers: Registers,
    /// Count of its clock, ns of CPU time.
    counted: u64,
}

/// What was executed between the two stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    instructions: u64,
    /// CPU time; what the kernel needs for the end of the first stop and the beginning of the second is part of it.
    ran: Duration,
}

impl Pace {
    /// As the second and third weight of a sample: instructions / 16 and time / 8 ns, at least 1, as much as fits.
    pub(super) fn weights(self) -> (u16, u16) {
        let fit = |number: u128| number.clamp(1, u128::from(u16::MAX)) as u16;
        (fit(u128::from(self.instructions) / 16), fit(self.ran.as_nanos() / 8))
    }
}

/// The landmark, and what was seen of it.
#[derive(Debug)]
pub(super) struct Landmark {
    address: Range<Avma>,
    /// Where the thread was looked at.
    looked_at: u64,
    /// General registers when it came after the look, and instructions until then.
    first: [u64; 16],
    instructions: u64,
    ran: Duration,
    visits: Vec<Visit>,
}

#[derive(Debug)]
struct Visit {
    /// Instructions of the burst before it.
    instructions: u64,
    general: [u64; 16],
}

impl Landmark {
    /// What ends a run of the interpreter for a visit.
    pub(super) fn address(&self) -> &[Range<Avma>] {
        if self.visits.len() < MOST_VISITS { std::slice::from_ref(&self.address) } else { &[] }
    }

    pub(super) fn visit(&mut self, registers: &Registers, instructions: u64) {
        self.visits.push(Visit { instructions, general: registers.general });
    }

    fn pace(&self) -> Option<Pace> {
        let [first, .., last] = self.visits.as_slice() else { return None };
        if self.visits.len() < LEAST_VISITS {
            return None;
        }
        let mut turns = (0..16).filter_map(|register| self.turns_by(register));
        let all = turns.next()?;
        if turns.any(|other| other != all) {
            return None;
        }
        let per_turn = (last.instructions - first.instructions) as f64 / (self.visits.len() - 1) as f64;
        let executed = self.instructions as f64 + all as f64 * per_turn - first.instructions as f64;
        let possible = executed > 0.0 && executed < self.ran.as_nanos() as f64 * FASTEST;
        possible.then_some(Pace { instructions: executed as u64, ran: self.ran })
    }

    /// How many turns a register says were done between look and burst, if it goes on evenly.
    fn turns_by(&self, register: usize) -> Option<i64> {
        let step = |from: &Visit, to: &Visit| to.general[register].wrapping_sub(from.general[register]) as i64;
        let mut steps = self.visits.windows(2).map(|pair| step(&pair[0], &pair[1]));
        let each = steps.next().filter(|&each| each != 0)?;
        if steps.any(|other| other != each) {
            return None;
        }
        let in_all = self.visits.first()?.general[register].wrapping_sub(self.first[register]) as i64;
        (in_all.checked_rem(each)? == 0).then_some(in_all.checked_div(each)?).filter(|&turns| turns > 0)
    }
}

/// Where looks were to no avail lately, by cache line of code: the next ones are left out.
#[derive(Debug, Default)]
pub(super) struct Avail {
    lines: HashMap<u64, u8>,
}

/// Failures until looks are left out, and how many then.
const PATIENCE: u8 = 3;
const LEFT_OUT: u8 = 12;
/// Lines remembered at most.
const MOST_LINES: usize = 4096;

impl Avail {
    /// Whether to look at a thread that stands there.
    fn is_promising(&mut self, address: u64) -> bool {
        let Some(failures) = self.lines.get_mut(&(address >> 6)) else { return true };
        if *failures >= PATIENCE {
            *failures = if *failures >= PATIENCE + LEFT_OUT { PATIENCE - 1 } else { *failures + 1 };
        }
        *failures < PATIENCE
    }

    fn learn(&mut self, address: u64, helped: bool) {
        if helped {
            self.lines.remove(&(address >> 6));
        } else if self.lines.len() < MOST_LINES || self.lines.contains_key(&(address >> 6)) {
            let failures = self.lines.entry(address >> 6).or_default();
            *failures = failures.saturating_add(1).min(PATIENCE);
        }
    }
}

impl Engine {
    /// The first of two stops, if it is worth one: the thread goes on for some microseconds. Returns whether it does.
    pub(super) fn look(&mut self, thread: &mut Thread, registers: &Registers) -> bool {
        let useful = self.settings.kind == TracerKind::Lookahead && self.settings.clock == Clock::Time;
        if !useful || thread.signal().is_none() {
            return false;
        }
        let Some(process) = self.processes.get_mut(&thread.id.pid) else { return false };
        if !process.avail.is_promising(registers.rip) {
            return false;
        }
        let lag = LAG * 2.0 * self.governor.jitter();
        self.facts.looks += 1;
        let look = Look { registers: registers.clone(), counted: thread.counted };
        thread.arm_after_look(look, lag as u64).is_ok()
    }

    /// The second: finds the landmark that the thread came to after the look.
    pub(super) fn landmark(&mut self, thread: &mut Thread, look: Look) -> Option<Landmark> {
        let ran = Duration::from_nanos(thread.counted.saturating_sub(look.counted));
        if ran > LATEST {
            return None;
        }
        let process = self.processes.get_mut(&thread.id.pid)?;
        let mut registers = look.registers;
        let looked_at = registers.rip;
        self.reader.fetch(thread.id.pid, &[]);
        let mut memory = self.reader.memory(thread.id.pid, &process.space.layout);
        let fuel = Fuel { instructions: NEAR, branches: 1 };
        let mut branches = Vec::new();
        self.overlay.clear();
        let outcome =
            run(&mut registers, &mut self.overlay, &mut memory, &mut process.space.code, fuel, &[], &mut branches);
        let Some(branch) = branches.first() else {
            process.avail.learn(looked_at, false);
            return None;
        };
        Some(Landmark {
            address: branch.to..Avma(branch.to.0.wrapping_add(1)),
            looked_at,
            first: registers.general,
            instructions: outcome.instructions,
            ran,
            visits: Vec::with_capacity(MOST_VISITS),
        })
    }

    /// What the burst says of the time before it.
    pub(super) fn learn_pace(&mut self, thread: &mut Thread, landmark: &Landmark) {
        let pace = landmark.pace();
        self.facts.paces += u64::from(pace.is_some());
        if let Some(process) = self.processes.get_mut(&thread.id.pid) {
            process.avail.learn(landmark.looked_at, pace.is_some());
        }
        thread.burst.pace = pace;
    }
}
