//! Cycles of blocks, where branch records have them.

use std::collections::HashMap;

use crate::walks::{BlockKey, Part};

/// Most cycles that a branch record can hold: that many or more.
const FULL: u16 = u16::MAX;
/// Cycles are in units of 2^-16.
const UNIT: u32 = 16;

/// The cycles that a block took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BlockCycles {
    /// Its executions whose cycles are known.
    pub timed: u64,
    /// Cycles of one execution, on average.
    pub cycles: f64,
    /// Instructions per cycle; `None` where it took none.
    pub ipc: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    timed: u64,
    cycles: u128,
}

/// The cycles of all blocks.
#[derive(Debug, Default)]
pub struct CycleSums {
    blocks: HashMap<BlockKey, Sum>,
    /// Streams that took more than a branch record can say: left out.
    pub too_long: u64,
}

impl CycleSums {
    /// Adds a stream that took so many cycles, from the branch before it to the one at its end. Nothing says which of its instructions took
    /// them: each is taken to have taken as many. `size` says how many instructions a block has.
    pub fn add(&mut self, parts: &[Part], cycles: u16, size: impl Fn(BlockKey) -> u64) {
        if cycles == FULL {
            self.too_long += 1;
            return;
        }
        let all: u64 = parts.iter().map(|part| part.instructions).sum();
        let blocks = parts.iter().flat_map(|part| {
            let module = part.function.module();
            (part.blocks.0..part.blocks.1).map(move |index| BlockKey { module, index })
        });
        for block in blocks {
            let cycles = (u128::from(cycles) << UNIT) * u128::from(size(block)) / u128::from(all.max(1));
            let sum = self.blocks.entry(block).or_default();
            *sum = Sum { timed: sum.timed + 1, cycles: sum.cycles.saturating_add(cycles) };
        }
    }

    /// Adds those of another.
    pub fn merge(&mut self, other: Self) {
        for (block, more) in other.blocks {
            let sum = self.blocks.entry(block).or_default();
            *sum = Sum { timed: sum.timed + more.timed, cycles: sum.cycles.saturating_add(more.cycles) };
        }
        self.too_long += other.too_long;
    }

    /// What follows for each block. `size` says how many instructions it has.
    pub fn finish(&self, size: impl Fn(BlockKey) -> u64) -> impl Iterator<Item = (BlockKey, BlockCycles)> {
        self.blocks.iter().filter(|(_, sum)| sum.timed > 0).map(move |(block, sum)| {
            let cycles = sum.cycles as f64 / f64::from(1 << UNIT) / sum.timed as f64;
            let ipc = (sum.cycles > 0).then(|| size(*block) as f64 / cycles);
            (*block, BlockCycles { timed: sum.timed, cycles, ipc })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::ModuleId;
    use crate::walks::FunctionKey;

    #[test]
    fn cycles_are_shared_by_instructions_and_none_is_a_number() {
        let mut sums = CycleSums::default();
        let part = |blocks: (u32, u32), instructions| Part {
            function: FunctionKey::unread(ModuleId(0)),
            blocks,
            instructions,
        };
        // Block 0 has 3 instructions, and block 1 has 1.
        let size = |key: BlockKey| if key.index == 0 { 3 } else { 1 };
        sums.add(&[part((0, 2), 4)], 8, size);
        sums.add(&[part((0, 1), 3)], 0, size);
        sums.add(&[part((2, 3), 1)], 0, size);
        sums.add(&[part((0, 2), 4)], u16::MAX, size);
        let mut found: Vec<_> = sums.finish(size).map(|(key, of)| (key.index, of.timed, of.cycles, of.ipc)).collect();
        found.sort_by_key(|of| of.0);
        assert_eq!(found, [(0, 2, 3.0, Some(1.0)), (1, 1, 2.0, Some(0.5)), (2, 1, 0.0, None)]);
        assert_eq!(sums.too_long, 1);
    }
}
