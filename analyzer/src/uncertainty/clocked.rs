//! By what counts of code may be wrong that bursts do not follow, beside bursts of other code: the kernel's, and code of 32 bits.
//!
//! Samples of the clock count it, as if each of its instructions took as long as one of the program does on average. How long they take is
//! not known: all of the code may be slower or faster, each function, and each part of it. So the replicates with other costs have that, too.

use std::collections::HashMap;

use crate::counting::{Code, ModuleCounts};
use crate::uncertainty::cost_errors::{deviates, of_name};
use crate::uncertainty::slices::mixed;
use crate::uncertainty::{COSTS, Sampled};

/// The standard deviation of the logarithm of what all such code is wrong by together, as far as a library is off the rest of its program.
/// Of all three it was measured by how much (docs/results/2026-11-29-counted-by-the-clock.md).
const OF_ALL: f64 = 0.5;
/// That of a function besides.
const OF_FUNCTIONS: f64 = 0.6;
/// That of a part of 256 bytes besides.
const OF_PARTS: f64 = 0.5;
/// Bytes of a part.
const PART: u64 = 256;
/// Bytes that are taken for a function where none is known.
const PAGE: u64 = 4096;

/// The errors of one module.
pub(crate) struct ClockedCode<'a> {
    counts: &'a ModuleCounts,
    known: HashMap<(u64, u64), [f64; COSTS]>,
}

impl<'a> ClockedCode<'a> {
    pub fn new(counts: &'a ModuleCounts) -> Self {
        ClockedCode { counts, known: HashMap::new() }
    }

    /// The count of a block, which has the errors of its function and part from now on.
    pub fn with_errors(&mut self, block: u32, mut sampled: Sampled) -> Sampled {
        let (function, part) = place(self.counts, block);
        let factors = self.known.entry((function, part)).or_insert_with(|| factors(function, part));
        sampled.replicates.with_costs_mut().iter_mut().zip(factors).for_each(|(count, factor)| *count *= *factor);
        sampled
    }
}

/// A number for the function that a block is of, the same for one of the same name, and which of its parts begins it.
fn place(counts: &ModuleCounts, index: u32) -> (u64, u64) {
    let at = counts.range_of(index).0.0;
    let without_name = || (mixed(at / PAGE), at % PAGE / PART);
    match &counts.code {
        Code::Read(code) => {
            let Some(block) = code.blocks.blocks().get(index as usize) else { return without_name() };
            let symbol = code.functions.get(block.function).symbol.0;
            (of_name(&code.functions.name(block.function)), at.saturating_sub(symbol) / PART)
        }
        Code::Unread { blocks, functions, .. } => {
            let known = blocks.get(index as usize).and_then(|block| functions.around(block.start));
            known.map_or_else(without_name, |known| (of_name(&known.name), (at - known.start.0) / PART))
        }
    }
}

fn factors(function: u64, part: u64) -> [f64; COSTS] {
    let [all, function, part] = [0, function, mixed(function) ^ part].map(|seed| deviates(mixed(seed)));
    std::array::from_fn(|at| (OF_ALL * all[at] + OF_FUNCTIONS * function[at] + OF_PARTS * part[at]).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean of the product of the logarithms that many pairs of places have, for which `place` gives the number and the side.
    fn common(place: impl Fn(u64, u64) -> (u64, u64)) -> f64 {
        const PAIRS: u64 = 400;
        let of = |(function, part)| factors(mixed(function), part).map(f64::ln);
        let product =
            |pair| of(place(pair, 0)).iter().zip(of(place(pair, 1))).map(|(one, other)| one * other).sum::<f64>();
        (1..=PAIRS).map(product).sum::<f64>() / (PAIRS as usize * COSTS) as f64
    }

    #[test]
    fn what_has_more_in_common_is_wrong_together() {
        let [all, function, part] = [OF_ALL, OF_FUNCTIONS, OF_PARTS].map(|deviation| deviation * deviation);
        let others = common(|pair, side| (2 * pair + side, 0));
        let of_function = common(|pair, side| (pair, side));
        let same = common(|pair, _| (pair, 3));
        for (found, expected) in [(others, all), (of_function, all + function), (same, all + function + part)] {
            assert!((found / expected - 1.0).abs() < 0.15, "{found} {expected}");
        }
    }
}
