//! By what counts of code may be wrong where nobody knows which bursts they are of: those of a clock have costs that may be wrong.
//!
//! Code that bursts do not follow, beside bursts of other code (the kernel's, and code of 32 bits), is counted by samples of the clock, as if
//! each of its instructions took as long as one of the program does on average. How long they take is not known: all of the code may be slower
//! or faster, each function, and each part of it. In sums of recordings, what bursts counted is no longer told apart by where they started. So
//! the replicates with other costs have errors of code.

use std::collections::HashMap;

use crate::counting::{Code, ModuleCounts};
use crate::uncertainty::cost_errors::{deviates, of_name};
use crate::uncertainty::slices::mixed;
use crate::uncertainty::{COSTS, Sampled};

/// Standard deviations of the logarithms of what code is wrong by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Deviations {
    /// All of it together.
    all: f64,
    /// Each function besides.
    functions: f64,
    /// Each part of 256 bytes besides.
    parts: f64,
}

/// Of code that the clock counts beside bursts: together it is wrong by as much as a library is off the rest of its program. Of all three it
/// was measured by how much (docs/results/2026-11-29-counted-by-the-clock.md).
pub(crate) const CLOCKED: Deviations = Deviations { all: 0.5, functions: 0.6, parts: 0.5 };

/// Of sums of what bursts of a clock counted, which do not say where these started: with it, intervals of sums hold the truth about as often as
/// they say (docs/results/2026-11-30-sums.md).
pub(crate) const SUMMED: Deviations = Deviations { all: 0.0, functions: 0.1, parts: 0.2 };

/// Bytes of a part.
const PART: u64 = 256;
/// Bytes that are taken for a function where none is known.
const PAGE: u64 = 4096;

/// The errors of one module.
pub(crate) struct CodeErrors<'a> {
    counts: &'a ModuleCounts,
    deviations: Deviations,
    known: HashMap<(u64, u64), [f64; COSTS]>,
}

impl<'a> CodeErrors<'a> {
    pub fn new(counts: &'a ModuleCounts, deviations: Deviations) -> Self {
        CodeErrors { counts, deviations, known: HashMap::new() }
    }

    /// The count of a block, which has the errors of its function and part from now on.
    pub fn with_errors(&mut self, block: u32, mut sampled: Sampled) -> Sampled {
        let (function, part) = place(self.counts, block);
        let factors = self.known.entry((function, part)).or_insert_with(|| factors(self.deviations, function, part));
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

fn factors(of: Deviations, function: u64, part: u64) -> [f64; COSTS] {
    let [all, function, part] = [0, function, mixed(function) ^ part].map(|seed| deviates(mixed(seed)));
    std::array::from_fn(|at| (of.all * all[at] + of.functions * function[at] + of.parts * part[at]).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean of the product of the logarithms that many pairs of places have, for which `place` gives the number and the side.
    fn common(place: impl Fn(u64, u64) -> (u64, u64)) -> f64 {
        const PAIRS: u64 = 400;
        let of = |(function, part)| factors(CLOCKED, mixed(function), part).map(f64::ln);
        let product =
            |pair| of(place(pair, 0)).iter().zip(of(place(pair, 1))).map(|(one, other)| one * other).sum::<f64>();
        (1..=PAIRS).map(product).sum::<f64>() / (PAIRS as usize * COSTS) as f64
    }

    #[test]
    fn what_has_more_in_common_is_wrong_together() {
        let Deviations { all, functions, parts } = CLOCKED;
        let [all, function, part] = [all, functions, parts].map(|deviation| deviation * deviation);
        let others = common(|pair, side| (2 * pair + side, 0));
        let of_function = common(|pair, side| (pair, side));
        let same = common(|pair, _| (pair, 3));
        for (found, expected) in [(others, all), (of_function, all + function), (same, all + function + part)] {
            assert!((found / expected - 1.0).abs() < 0.15, "{found} {expected}");
        }
    }
}
