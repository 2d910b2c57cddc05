//! How long the instructions of a mix took: cycles, where branch records have them, and time, where samples tell it.

use crate::Analysis;
use crate::CountedBlock;
use crate::annotate::TimeShare;
use crate::mix::{Mix, Sum};

/// Executed instructions whose cycles are known, and these cycles; samples of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timed {
    /// Executed instructions of blocks that a timed branch record shows.
    pub instructions: f64,
    /// The cycles that they took: each instruction of a stream is taken to have taken as many.
    pub cycles: f64,
    /// Samples of the clock or of cycles. Those of a block are shared out evenly among its instructions.
    pub samples: f64,
    /// Their periods.
    pub time: f64,
}

impl Timed {
    /// Executions of instructions that take so many cycles each, if that is known.
    pub(super) fn executed(instructions: f64, cycles_of_each: Option<f64>) -> Self {
        cycles_of_each.map_or(Timed::default(), |cycles| Timed {
            instructions,
            cycles: instructions * cycles,
            ..Timed::default()
        })
    }

    /// Adds others.
    pub fn add(&mut self, other: Timed) {
        self.instructions += other.instructions;
        self.cycles += other.cycles;
        self.samples += other.samples;
        self.time += other.time;
    }

    /// A part of the samples of a block.
    pub(super) fn part_of((samples, periods): (u64, u128), part: f64) -> Self {
        Timed { samples: samples as f64 * part, time: periods as f64 * part, ..Timed::default() }
    }

    /// The part of the time of all that this is; `None` where no time is known.
    pub fn share_of(&self, all: &Timed) -> Option<TimeShare> {
        (all.time > 0.0).then(|| TimeShare::of((self.samples, self.time), (all.samples, all.time)))
    }

    /// Instructions per cycle; `None` where they took no cycles, or none are known.
    pub fn ipc(&self) -> Option<f64> {
        (self.cycles > 0.0).then(|| self.instructions / self.cycles)
    }
}

impl Mix {
    /// The part of the time of a whole that a part of it took; `None` where it is not known, or was not asked for.
    pub fn time_within(&self, part: &Sum, whole: &Sum) -> Option<TimeShare> {
        part.timed.share_of(&whole.timed)
    }

    /// How many times as long an instruction of a sum took as one of all does; `None` where either share may be none.
    pub fn time_per_instruction(&self, sum: &Sum) -> Option<f64> {
        let share = if self.instructions > 0.0 { sum.count / self.instructions } else { 0.0 };
        self.time_within(sum, &self.all)?.per_instruction(share, self.uncertainty_of(sum).share)
    }
}

/// The cycles of each instruction of a block, on average, where branch records of an analysis that was made with cycles tell them.
pub(super) fn cycles_of_each(analysis: &Analysis, module: usize, block: &CountedBlock) -> Option<f64> {
    let of_block = analysis.paths.as_ref()?.cycles.get(&(module, block.start))?;
    (block.size.instructions > 0.0).then(|| of_block.cycles / block.size.instructions)
}
