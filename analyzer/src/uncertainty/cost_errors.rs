//! By what the costs of code may be wrong.
//!
//! Bursts of a clock weigh the less, the more an instruction costs where they start (docs/design/cost-model.md). That is an estimate, and
//! more bursts do not make it better. So some replicates have other costs: bursts that execute the same code, and parts of 256 bytes
//! in which bursts start, are slower or faster than estimated by factors whose logarithms are normally distributed.

use crate::uncertainty::COSTS;
use crate::uncertainty::slices::mixed;

/// The standard deviation of the logarithm of what the costs of bursts are wrong by that execute the same code: they wait for the same memory, and
/// run beside the same instructions. With it, intervals hold the truth of recordings of programs with exact counts about as often as they say
/// (docs/design/uncertainty.md).
const OF_PASSAGES: f64 = 0.4;
/// That of what a part of a function is wrong by besides.
const OF_PARTS: f64 = 0.2;

/// By what the cost of a part of a function is wrong in each replicate. The same names give the same, in all recordings.
pub(crate) struct CostErrors {
    part: [f64; COSTS],
    /// What it adds to what bursts are wrong by that execute it.
    passage: [f64; COSTS],
}

impl CostErrors {
    /// Of a part of a function.
    pub fn of(function: &str, part: u64) -> Self {
        let part = mixed(of_name(function)) ^ part;
        CostErrors { part: deviates(part), passage: deviates(mixed(part)) }
    }

    /// By what bursts are wrong, if that part of what they execute is in each: with a variance of 1, and the more alike the more they execute
    /// the same code.
    pub fn of_passage<'a>(executed: impl Iterator<Item = (&'a CostErrors, f64)>) -> [f64; COSTS] {
        let (mut sums, mut squares) = ([0.0; COSTS], 0.0);
        for (errors, part) in executed {
            sums.iter_mut().zip(errors.passage).for_each(|(sum, error)| *sum += part * error);
            squares += part * part;
        }
        if squares > 0.0 { sums.map(|sum| sum / f64::sqrt(squares)) } else { sums }
    }

    /// What costs of the part are multiplied by, where its bursts are wrong by that.
    pub fn factors(&self, passage: &[f64; COSTS]) -> [f64; COSTS] {
        std::array::from_fn(|at| (OF_PASSAGES * passage[at] + OF_PARTS * self.part[at]).exp())
    }
}

/// A number for a name.
pub(super) fn of_name(name: &str) -> u64 {
    name.bytes().fold(0, |hash, byte| mixed(hash ^ u64::from(byte)))
}

/// Numbers with mean 0 and variance 1 that a seed says, about normally distributed.
pub(super) fn deviates(seed: u64) -> [f64; COSTS] {
    // The sum of twelve numbers from 0 to 1 has the variance 1.
    let sum = |at: usize| -> f64 {
        (0..12).map(|part| (mixed(seed ^ mixed((12 * at + part) as u64)) >> 11) as f64 / (1_u64 << 53) as f64).sum()
    };
    let sums: [f64; COSTS] = std::array::from_fn(sum);
    let mean = sums.iter().sum::<f64>() / COSTS as f64;
    let variance = sums.iter().map(|sum| (sum - mean) * (sum - mean)).sum::<f64>() / COSTS as f64;
    sums.map(|sum| (sum - mean) / variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(one: &[f64; COSTS], other: &[f64; COSTS]) -> f64 {
        one.iter().zip(other).map(|(one, other)| one * other).sum::<f64>() / COSTS as f64
    }

    fn mean(all: impl ExactSizeIterator<Item = f64>) -> f64 {
        let number = all.len() as f64;
        all.sum::<f64>() / number
    }

    #[test]
    fn errors_of_parts_have_nothing_in_common() {
        let of = |function: &str, part| CostErrors::of(function, part).factors(&[0.0; COSTS]).map(f64::ln);
        let names: Vec<String> = (0..200).map(|number| format!("f{number}")).collect();
        let variance = mean(names.iter().map(|name| product(&of(name, 3), &of(name, 3))));
        assert!((variance / OF_PARTS.powi(2) - 1.0).abs() < 0.1, "{variance}");
        let of_parts = mean(names.iter().map(|name| product(&of(name, 3), &of(name, 4))));
        let of_others = mean(names.windows(2).map(|pair| product(&of(&pair[0], 3), &of(&pair[1], 3))));
        assert!(of_parts.abs() < 0.005 && of_others.abs() < 0.005, "{of_parts} {of_others}");
    }

    #[test]
    fn bursts_that_execute_the_same_are_wrong_together() {
        let errors: Vec<[CostErrors; 3]> =
            (0..200).map(|number| [0, 1, 2].map(|part| CostErrors::of(&format!("f{number}"), part))).collect();
        let passage = |of: &[CostErrors; 3], parts: [f64; 3]| CostErrors::of_passage(of.iter().zip(parts));
        let common = |one, other| mean(errors.iter().map(|of| product(&passage(of, one), &passage(of, other))));
        for (one, other, expected) in [
            ([0.5, 0.3, 0.2], [0.5, 0.3, 0.2], 1.0),
            ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], 0.0),
            // 0.5 of the one and the root of a half of the other.
            ([1.0, 0.0, 0.0], [0.5, 0.5, 0.0], 0.5_f64.sqrt()),
        ] {
            assert!((common(one, other) - expected).abs() < 0.05, "{one:?} {other:?}: {}", common(one, other));
        }
        assert_eq!(CostErrors::of_passage(std::iter::empty()), [0.0; COSTS], "nothing is known of what they execute");
    }
}
