//! What an instruction costs, by function, as far as clock and bursts tell together.
//!
//! Let F be the share of time in which bursts start in a function, k the cost of an instruction there on a [simulated
//! core](super::simulated), and k c its true cost. Then p, proportional to F / (k c), is the share of instructions that the function
//! executes. The bursts say the same in another way: of the instructions executed by bursts that start in function h, the share P(h, g) is
//! in function g. Over all, p = p P must hold: a function in which the clock sees much more than the bursts that come by is one whose
//! instructions are slow. The costs are those that make
//!
//! ```text
//! min(bursts / 10, 30)  x  KL(p || p P)  +  sum of (ln c)^2 / (2 x 0.15^2)
//! ```
//!
//! least. Loops of one function may be wrong by different factors, so that what its windows of 256 bytes execute is told apart, and c is the product of a
//! factor of the function and one of the window, which is smaller as a rule. Parts of a program that share no function cannot be compared in this way.

use crate::counting::LocatedStart;
use crate::estimation::descent::least;
use crate::estimation::passages::{Passages, numbered};
use crate::estimation::strata::Window;

/// Bursts per unit of evidence: those of one phase are alike.
const BURSTS_PER_EVIDENCE: f64 = 10.0;
/// The most that all bursts are worth: p = p P is not quite true (starts are even in time and not in instructions, and code that no burst
/// starts in is left out), and more bursts do not make it truer. On training programs at 30 % 10 to 100 do equally well, and no limit worse.
const MOST_EVIDENCE: f64 = 30.0;
/// The standard deviation of the logarithm of what the simulated costs are wrong by: from 0.05 to 0.15 do about equally well on training
/// programs with many bursts, 0.3 worse.
const DEVIATION: f64 = 0.15;
/// That of a window of a function from what its function is wrong by: 0.05 does about as well on training programs, and so do windows of 512 bytes and
/// of 1 KiB.
const DEVIATION_OF_WINDOWS: f64 = 0.1;
/// Added to shares, which can be 0: it keeps their logarithms finite.
const LEAST_SHARE: f64 = 1e-7;

/// The cost of an instruction where bursts start, by place of start, in units of the usual cost: as `simulated`, and corrected. `of_start`: the
/// windows of the starts.
pub(super) fn costs(starts: &[LocatedStart], of_start: &[Window], simulated: &[f64], passages: &Passages) -> Vec<f64> {
    let functions = numbered(passages.windows.keys().map(|(stratum, _)| *stratum));
    let function_of: Vec<usize> = passages.windows.keys().map(|(stratum, _)| functions[stratum]).collect();
    let bursts: u64 = starts.iter().map(|start| start.starts.bursts).sum();
    let problem = Balance { passages, function_of, evidence: evidence(bursts) };
    let start = vec![0.0; passages.windows.len() + functions.len()];
    let logarithms = least(start, |at, slope| problem.at(at, slope));
    let correction = |window: &Window| problem.logarithm(&logarithms, passages.windows[window]).exp();
    of_start.iter().zip(simulated).map(|(window, cost)| cost * correction(window)).collect()
}

/// What so many bursts are worth.
fn evidence(bursts: u64) -> f64 {
    (bursts as f64 / BURSTS_PER_EVIDENCE).min(MOST_EVIDENCE)
}

/// The function to be made least.
struct Balance<'a> {
    passages: &'a Passages,
    /// The function that each window is in.
    function_of: Vec<usize>,
    evidence: f64,
}

impl Balance<'_> {
    /// The logarithm of a window's correction: its own, and that of its function, which come after those of all windows.
    fn logarithm(&self, logarithms: &[f64], window: usize) -> f64 {
        logarithms[window] + logarithms[self.passages.shares.len() + self.function_of[window]]
    }

    /// Its value at these logarithms of costs; writes its gradient to `slope`.
    fn at(&self, logarithms: &[f64], slope: &mut [f64]) -> f64 {
        let cost = |window: usize| self.logarithm(logarithms, window).exp();
        let mut share: Vec<f64> =
            self.passages.shares.iter().enumerate().map(|(window, share)| share / cost(window)).collect();
        let all: f64 = share.iter().sum();
        share.iter_mut().for_each(|share| *share /= all);
        let mut passed = vec![0.0; share.len()];
        for (row, share) in self.passages.rows.iter().zip(&share) {
            for (to, part) in row {
                if let Some(to) = to {
                    passed[*to] += share * part;
                }
            }
        }
        let ratio = |at: usize| (share[at] + LEAST_SHARE) / (passed[at] + LEAST_SHARE);
        let divergence: f64 = (0..share.len()).map(|at| share[at] * ratio(at).ln()).sum();
        // By the shares, and from there by the logarithms: dp(i)/du(j) = -p(i) (i == j) + p(i) p(j).
        let by_share: Vec<f64> = (0..share.len())
            .map(|from| {
                let onward: f64 = self.passages.rows[from]
                    .iter()
                    .filter_map(|(to, part)| to.map(|to| part * share[to] / (passed[to] + LEAST_SHARE)))
                    .sum();
                ratio(from).ln() + share[from] / (share[from] + LEAST_SHARE) - onward
            })
            .collect();
        let mean: f64 = share.iter().zip(&by_share).map(|(share, slope)| share * slope).sum();
        let mut penalty = 0.0;
        for (at, log) in logarithms.iter().enumerate() {
            let deviation = if at < share.len() { DEVIATION_OF_WINDOWS } else { DEVIATION };
            penalty += log * log / (2.0 * deviation * deviation);
            slope[at] = log / (deviation * deviation);
        }
        for (window, function) in self.function_of.iter().enumerate() {
            let by_logarithm = -self.evidence * share[window] * (by_share[window] - mean);
            slope[window] += by_logarithm;
            slope[share.len() + function] += by_logarithm;
        }
        self.evidence * divergence + penalty
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn passages(shares: &[f64], rows: &[&[f64]]) -> Passages {
        let row = |row: &&[f64]| row.iter().enumerate().map(|(to, part)| (Some(to), *part)).collect();
        Passages { windows: BTreeMap::new(), shares: shares.to_vec(), rows: rows.iter().map(row).collect() }
    }

    fn balance(passages: &Passages, bursts: f64) -> Balance<'_> {
        let function_of = (0..passages.shares.len()).collect();
        Balance { passages, function_of, evidence: bursts / BURSTS_PER_EVIDENCE }
    }

    fn shares(balance: &Balance<'_>) -> Vec<f64> {
        let functions = balance.function_of.iter().max().map_or(0, |last| last + 1);
        let logarithms = least(vec![0.0; balance.passages.shares.len() + functions], |at, slope| balance.at(at, slope));
        let cost = |window: usize| balance.logarithm(&logarithms, window).exp();
        let shares: Vec<f64> =
            balance.passages.shares.iter().enumerate().map(|(window, share)| share / cost(window)).collect();
        let all: f64 = shares.iter().sum();
        shares.iter().map(|share| share / all).collect()
    }

    #[test]
    fn a_function_that_waits_for_memory_counts_less() {
        // The clock sees the first nine times as often; every burst is half in each.
        let found = shares(&balance(&passages(&[0.9, 0.1], &[&[0.5, 0.5], &[0.5, 0.5]]), 100_000.0));
        assert!((found[0] - 0.5).abs() < 0.03, "{found:?}");
    }

    #[test]
    fn parts_that_share_no_function_are_left_as_they_are() {
        let found = shares(&balance(&passages(&[0.9, 0.1], &[&[1.0, 0.0], &[0.0, 1.0]]), 10_000.0));
        assert!((found[0] - 0.9).abs() < 1e-3, "{found:?}");
    }

    #[test]
    fn a_shared_function_tells_how_fast_two_parts_are() {
        // The third is used by both parts; of the first it is all that does not wait. Half of the instructions of each part are in it.
        let rows: [&[f64]; 3] = [&[0.5, 0.0, 0.5], &[0.0, 0.5, 0.5], &[0.25, 0.25, 0.5]];
        let found = shares(&balance(&passages(&[0.8, 0.08, 0.12], &rows), 10_000.0));
        assert!(found[0] < 0.5 && (found[2] - 0.5).abs() < 0.1, "{found:?}");
    }

    #[test]
    fn windows_of_one_function_are_told_apart() {
        // Two windows of one function take turns in every burst, as often each; the clock sees the first three times as often.
        let rows: [&[f64]; 2] = [&[0.5, 0.5], &[0.5, 0.5]];
        let passages = passages(&[0.75, 0.25], &rows);
        let windows = Balance { function_of: vec![0, 0], ..balance(&passages, 100_000.0) };
        let found = shares(&windows);
        assert!((found[0] - 0.5).abs() < 0.03, "{found:?}");
    }

    #[test]
    fn the_gradient_is_that_of_the_value() {
        let rows: [&[f64]; 3] = [&[0.6, 0.1, 0.3], &[0.2, 0.5, 0.2], &[0.25, 0.25, 0.5]];
        let passages = passages(&[0.5, 0.3, 0.2], &rows);
        let balance = Balance { function_of: vec![0, 1, 0], ..balance(&passages, 100.0) };
        let at = [0.7, -0.2, 0.05, 0.1, -0.3];
        let mut slope = [0.0; 5];
        balance.at(&at, &mut slope);
        for index in 0..5 {
            let (mut above, mut below, step) = (at, at, 1e-6);
            above[index] += step;
            below[index] -= step;
            let mut ignored = [0.0; 5];
            let expected = (balance.at(&above, &mut ignored) - balance.at(&below, &mut ignored)) / (2.0 * step);
            assert!((slope[index] - expected).abs() < 1e-4, "{index}: {} {expected}", slope[index]);
        }
    }
}
