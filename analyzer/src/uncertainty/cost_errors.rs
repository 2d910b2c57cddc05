//! By what the costs of code may be wrong.
//!
//! Bursts of a clock weigh the less, the more an instruction costs where they start (docs/design/cost-model.md). That is an estimate, and
//! more bursts do not make it better. So some replicates have other costs: each function, and each part of 256 bytes in it, is slower or
//! faster than estimated by a factor whose logarithm is normally distributed.

use crate::uncertainty::COSTS;
use crate::uncertainty::slices::mixed;

/// The standard deviation of the logarithm of what the costs of functions are wrong by: with it, intervals hold the truth of recordings of
/// programs with exact counts about as often as they say (docs/design/uncertainty.md).
const DEVIATION: f64 = 0.3;
/// That of what a part of a function is wrong by, beyond its function.
const DEVIATION_OF_PARTS: f64 = 0.2;

/// What the costs of code are multiplied by in each replicate. The same names give the same factors, in all recordings.
pub(crate) struct CostErrors;

impl CostErrors {
    /// Of a part of a function.
    pub fn factors(function: &str, part: u64) -> [f64; COSTS] {
        let name = function.bytes().fold(0, |hash, byte| mixed(hash ^ u64::from(byte)));
        let (of_function, of_part) = (deviates(name), deviates(mixed(name) ^ part));
        std::array::from_fn(|at| (DEVIATION * of_function[at] + DEVIATION_OF_PARTS * of_part[at]).exp())
    }
}

/// Numbers with mean 0 and variance 1 that a seed says, about normally distributed.
fn deviates(seed: u64) -> [f64; COSTS] {
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

    #[test]
    fn errors_of_functions_have_nothing_in_common() {
        let of = |function: &str, part| CostErrors::factors(function, part).map(f64::ln);
        let product = |one: [f64; COSTS], other: [f64; COSTS]| -> f64 {
            one.iter().zip(other).map(|(one, other)| one * other).sum::<f64>() / COSTS as f64
        };
        let names: Vec<String> = (0..200).map(|number| format!("f{number}")).collect();
        let mean = |all: Vec<f64>| all.iter().sum::<f64>() / all.len() as f64;
        let variance = mean(names.iter().map(|name| product(of(name, 3), of(name, 3))).collect());
        assert!((variance / (DEVIATION.powi(2) + DEVIATION_OF_PARTS.powi(2)) - 1.0).abs() < 0.1, "{variance}");
        let of_parts = mean(names.iter().map(|name| product(of(name, 3), of(name, 4))).collect());
        assert!((of_parts / DEVIATION.powi(2) - 1.0).abs() < 0.2, "{of_parts}");
        let of_others = mean(names.windows(2).map(|pair| product(of(&pair[0], 3), of(&pair[1], 3))).collect());
        assert!(of_others.abs() < 0.02, "{of_others}");
    }
}
