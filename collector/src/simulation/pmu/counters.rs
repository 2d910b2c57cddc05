//! The two counters of a thread, and how late their samples are.

use lookahead::BranchKind;
use perfdata::{Avma, Branch, BranchFlags};

use crate::simulation::pmu::last_branches::{LastBranches, mixed};
use crate::simulation::pmu::model::{ARMING, HOLDING, INTERRUPT, WIDTH};
use crate::simulation::pmu::{Capture, PmuSample, SampledBy, SampledEvents, Sampling};
use crate::simulation::settings::PmuSettings;

/// Counts down from its period.
#[derive(Debug)]
struct Counter {
    period: u64,
    capture: Capture,
    left: u64,
    overflows: u64,
    /// When a sample is due, slots.
    due: u64,
}

const NOTHING_DUE: u64 = u64::MAX;

impl Counter {
    fn new(Sampling { period, capture }: Sampling) -> Self {
        let period = period.max(1);
        Self { period, capture, left: period, overflows: 0, due: NOTHING_DUE }
    }

    fn counted(&self) -> u64 {
        self.overflows * self.period + (self.period - self.left)
    }

    /// One more. Returns whether that is an overflow.
    #[inline]
    fn count(&mut self) -> bool {
        self.left -= 1;
        self.left == 0
    }

    /// It has overflowed at `now`. Returns whether a sample was due already: this overflow makes none.
    #[cold]
    fn overflow(&mut self, now: u64, dice: &mut u64) -> bool {
        self.left = self.period;
        self.overflows += 1;
        if self.due != NOTHING_DUE {
            return true;
        }
        self.due = match self.capture {
            Capture::Interrupt => {
                *dice = mixed(*dice);
                let slots = (INTERRUPT.end() - INTERRUPT.start()) * WIDTH + 1;
                now + INTERRUPT.start() * WIDTH + *dice % slots
            }
            Capture::Precise => now + ARMING * WIDTH,
            Capture::Distributed => (now / WIDTH + 1) * WIDTH,
        };
        false
    }

    /// What retires at `now`, and is one of its events where it is precise, makes the sample.
    #[inline]
    fn is_due(&self, now: u64) -> bool {
        now >= self.due
    }
}

/// What a stack that is about to stand still waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// It is not known yet.
    Open,
    /// It waits for nothing more.
    No,
    /// It takes so many branches more.
    For(usize),
}

#[derive(Debug)]
pub(super) struct Counters {
    instructions: Counter,
    branches: Counter,
    merged: u64,
    stack: LastBranches,
    /// The instruction counter's sample is that of the next instruction.
    armed: bool,
    held: Held,
    dice: u64,
    /// When the last branch was taken, slots.
    last_taken: u64,
    /// Address of the last instruction that retired.
    ip: Avma,
}

impl Counters {
    pub(super) fn new(settings: PmuSettings, events: SampledEvents) -> Self {
        Self {
            instructions: Counter::new(events.instructions),
            branches: Counter::new(events.taken_branches),
            merged: 0,
            stack: LastBranches::new(settings.depth, settings.bias, settings.seed),
            armed: false,
            held: Held::Open,
            dice: settings.seed,
            last_taken: 0,
            ip: Avma(0),
        }
    }

    pub(super) fn instructions(&self) -> u64 {
        self.instructions.counted()
    }

    pub(super) fn taken_branches(&self) -> u64 {
        self.branches.counted()
    }

    pub(super) fn merged(&self) -> u64 {
        self.merged
    }

    /// The stack is empty again, as it is when a thread comes back to a CPU.
    pub(super) fn forget_branches(&mut self) {
        self.stack.clear();
        self.held = Held::Open;
    }

    /// The instruction at `ip` is the next to retire.
    #[inline]
    pub(super) fn before(&mut self, ip: Avma, samples: &mut Vec<PmuSample>) {
        if self.armed {
            // A precise record holds the state behind the instruction that made it.
            self.armed = false;
            self.instructions.due = NOTHING_DUE;
            self.sample(SampledBy::Instructions, ip, samples);
        }
        self.ip = ip;
    }

    /// It has retired at `now` (slots), and has gone elsewhere if it was a branch that was `taken`: from, to, kind, mispredicted.
    #[inline]
    pub(super) fn retired(
        &mut self,
        now: u64,
        taken: Option<(Avma, Avma, BranchKind, bool)>,
        samples: &mut Vec<PmuSample>,
    ) {
        // The instruction that overflows the counter is never the one that is sampled.
        self.armed = self.instructions.is_due(now);
        if self.instructions.count() {
            self.merged += u64::from(self.instructions.overflow(now, &mut self.dice));
        }
        let by_interrupt = self.branches.capture == Capture::Interrupt;
        if by_interrupt && self.branches.is_due(now) {
            self.freeze(samples);
        }
        if let Some((from, to, kind, mispredicted)) = taken {
            let prediction = if mispredicted { BranchFlags::MISPREDICTED } else { BranchFlags::PREDICTED };
            // Of a counter of whole cycles: their sums lose nothing.
            let cycles = u16::try_from((now / WIDTH).saturating_sub(self.last_taken / WIDTH)).unwrap_or(u16::MAX);
            let flags = prediction.with_cycles(cycles).with_kind(perfdata::BranchKind(kind as u8));
            self.last_taken = now;
            self.stack.push(Branch { from, to, flags });
            if let Held::For(branches) = self.held {
                self.held = if branches > 1 { Held::For(branches - 1) } else { Held::No };
            }
            // The branch that makes the sample is the newest of the stack.
            if !by_interrupt && self.branches.is_due(now) {
                self.freeze(samples);
            }
            if self.branches.count() {
                self.merged += u64::from(self.branches.overflow(now, &mut self.dice));
            }
        }
    }

    /// The stack stands still now, unless a branch holds it.
    #[cold]
    fn freeze(&mut self, samples: &mut Vec<PmuSample>) {
        if self.held == Held::Open {
            self.dice = mixed(self.dice);
            let holds = ((self.dice >> 11) as f64) < HOLDING * (1_u64 << 53) as f64;
            self.held = match self.stack.until_oldest() {
                Some(branches) if holds && branches > 0 => Held::For(branches),
                _ => Held::No,
            };
        }
        if self.held == Held::No {
            self.held = Held::Open;
            self.branches.due = NOTHING_DUE;
            self.sample(SampledBy::TakenBranches, self.ip, samples);
        }
    }

    fn sample(&self, event: SampledBy, ip: Avma, samples: &mut Vec<PmuSample>) {
        samples.push(PmuSample { event, ip, branches: self.stack.newest_first() });
    }
}
