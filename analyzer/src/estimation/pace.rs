//! How fast code ran, where the tracer could measure it.
//!
//! The CPU time of a measurement has a part of the kernel's in it, for letting a thread go and stopping it, that is about the same for all. It
//! is found from the measurements themselves: it is what makes those of the same function agree best.

use std::collections::BTreeMap;

use crate::counting::LocatedStart;
use crate::estimation::Stratum;
use crate::recording::Pace;

/// Share of the time that must be covered for paces to be used.
pub(super) const ENOUGH: f64 = 0.5;
/// Bursts per second of CPU time from which on paces are used. At 20 they made errors larger (hmmsearch 7.5 to 26.6 %), at 300 smaller.
pub(super) const BURSTS_PER_SECOND: f64 = 100.0;
/// What the kernel needs, ns: the most that is tried, in which steps, and what it is taken to be where too little was measured.
const MOST: u64 = 60_000;
const STEP: u64 = 1_000;
const USUAL: u64 = 38_000;
/// Measurements of one function that are compared with each other, and how many of those there must be in all.
const COMPARABLE: usize = 4;
const COMPARED: usize = 40;
/// CPU time of the program at least for a measurement to be used, ns.
const SHORTEST: u64 = 8_000;

/// Measured paces.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Paces {
    /// By place of start: instructions per ns.
    by_start: Vec<Option<f64>>,
    /// Functions that were measured.
    pub functions: usize,
}

impl Paces {
    /// `strata`: those of the starts. All that starts in one function shares its pace.
    pub(super) fn of(starts: &[LocatedStart], strata: &[Stratum]) -> Self {
        let mut measured: BTreeMap<Stratum, Vec<Pace>> = BTreeMap::new();
        for (start, stratum) in starts.iter().zip(strata) {
            measured.entry(*stratum).or_default().extend(&start.starts.paces);
        }
        let kernel = kernel_time(&measured);
        let rates: BTreeMap<Stratum, f64> =
            measured.iter().filter_map(|(stratum, paces)| Some((*stratum, rate(paces, kernel)?))).collect();
        let by_start = strata.iter().map(|stratum| rates.get(stratum).copied()).collect();
        Paces { by_start, functions: rates.len() }
    }

    /// The pace where bursts of that place start, if it was measured.
    pub(super) fn at(&self, start: usize) -> Option<f64> {
        self.by_start[start]
    }

    /// Puts what was measured in the place of what was estimated; `rates` is relative, and brought to the same scale.
    pub(super) fn applied_to(&self, rates: &[f64], shares: &[f64]) -> Vec<f64> {
        let (mut measured, mut estimated) = (0.0, 0.0);
        for ((pace, rate), share) in self.by_start.iter().zip(rates).zip(shares) {
            if let Some(pace) = pace {
                measured += share * pace;
                estimated += share * rate;
            }
        }
        let scale = if estimated > 0.0 { measured / estimated } else { 1.0 };
        self.by_start.iter().zip(rates).map(|(pace, rate)| pace.unwrap_or(rate * scale)).collect()
    }
}

fn is_usable(pace: &&Pace, kernel: u64) -> bool {
    pace.instructions > 0 && pace.nanoseconds >= kernel + SHORTEST
}

/// All instructions over all time.
fn rate(paces: &[Pace], kernel: u64) -> Option<f64> {
    let usable = || paces.iter().filter(|pace| is_usable(pace, kernel));
    let instructions: u64 = usable().map(|pace| pace.instructions).sum();
    let nanoseconds: u64 = usable().map(|pace| pace.nanoseconds - kernel).sum();
    (instructions > 0).then(|| instructions as f64 / nanoseconds as f64)
}

/// The time, ns, that makes measurements of the same function differ least: the mean distance of logarithms from their median.
fn kernel_time(measured: &BTreeMap<Stratum, Vec<Pace>>) -> u64 {
    // The same measurements for all candidates.
    let long = |pace: &&Pace| is_usable(pace, MOST);
    let comparable: Vec<Vec<&Pace>> = measured.values().map(|paces| paces.iter().filter(long).collect()).collect();
    let comparable: Vec<&Vec<&Pace>> = comparable.iter().filter(|paces| paces.len() >= COMPARABLE).collect();
    let number: usize = comparable.iter().map(|paces| paces.len()).sum();
    if number < COMPARED {
        return USUAL;
    }
    let difference = |kernel: u64| -> f64 {
        let of_function = |paces: &&Vec<&Pace>| -> f64 {
            let mut logarithms: Vec<f64> =
                paces.iter().map(|pace| (pace.instructions as f64 / (pace.nanoseconds - kernel) as f64).ln()).collect();
            logarithms.sort_unstable_by(f64::total_cmp);
            let median = logarithms[logarithms.len() / 2];
            logarithms.iter().map(|logarithm| (logarithm - median).abs()).sum()
        };
        comparable.iter().map(of_function).sum()
    };
    let candidates = (0..=MOST / STEP).map(|step| (step * STEP, difference(step * STEP)));
    candidates.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(USUAL, |(kernel, _)| kernel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::FileOffset;
    use crate::recording::{ModuleId, Starts};

    const KERNEL: u64 = 25_000;

    /// Measurements of code of these instructions per us, all of different lengths.
    fn start(line: u64, per_us: u64) -> LocatedStart {
        let pace = |us: u64| Pace { instructions: us * per_us, nanoseconds: us * 1000 + KERNEL };
        let paces: Vec<Pace> = (20..45).map(|us| pace(2 * us)).collect();
        let starts = Starts { bursts: 25, periods: 25, paces };
        LocatedStart { module: ModuleId(0), line: FileOffset(line << 6), starts }
    }

    #[test]
    fn what_the_kernel_needs_is_found_and_taken_off() {
        let starts = [start(0, 100), start(1, 3000), start(2, 0)];
        let strata: Vec<Stratum> = (0..3).map(|function| Stratum::Function(ModuleId(0), function)).collect();
        let paces = Paces::of(&starts, &strata);
        assert_eq!((paces.at(0), paces.at(1), paces.at(2)), (Some(0.1), Some(3.0), None));
        // What was not measured goes on in proportion.
        assert_eq!(paces.applied_to(&[1.0, 1.0, 2.0], &[0.5, 0.5, 0.0]), [0.1, 3.0, 3.1]);
    }
}
