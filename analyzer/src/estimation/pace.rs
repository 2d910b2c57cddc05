//! How fast loops ran, where the tracer could measure it.
//!
//! The CPU time of a measurement has a part of the kernel's in it, for stopping and letting go a thread, that is the same for all. It is found from the
//! measurements themselves: it is what makes those of the same place agree best.

use crate::counting::LocatedStart;
use crate::recording::Pace;

/// Share of the time that must be covered for paces to be used.
pub(super) const ENOUGH: f64 = 0.5;
/// Measurements that a place needs,
const LEAST: usize = 3;
/// and how far apart the middle half of them may be, as a ratio.
const SPREAD: f64 = 2.0;
/// What the kernel needs, ns: the least and the most that is tried, and in which steps.
const KERNEL: std::ops::RangeInclusive<u64> = 0..=60;
const STEP: u64 = 1000;
/// CPU time of the program at least for a measurement to be used, ns.
const SHORTEST: u64 = 8_000;

/// Measured paces.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Paces {
    /// By place of start: instructions per ns.
    by_start: Vec<Option<f64>>,
}

impl Paces {
    pub(super) fn of(starts: &[LocatedStart]) -> Self {
        let kernel = kernel_time(starts);
        Paces { by_start: starts.iter().map(|start| agreed(&rates(&start.starts.paces, kernel))).collect() }
    }

    /// The pace where bursts of that place start, if it was measured.
    pub(super) fn at(&self, start: usize) -> Option<f64> {
        self.by_start[start]
    }

    /// Places that were measured.
    pub(super) fn places(&self) -> usize {
        self.by_start.iter().flatten().count()
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

fn rates(paces: &[Pace], kernel: u64) -> Vec<f64> {
    let mut rates: Vec<f64> = paces
        .iter()
        .filter(|pace| pace.nanoseconds >= kernel + SHORTEST)
        .map(|pace| pace.instructions as f64 / (pace.nanoseconds - kernel) as f64)
        .collect();
    rates.sort_unstable_by(f64::total_cmp);
    rates
}

/// The median, if most agree with it.
fn agreed(rates: &[f64]) -> Option<f64> {
    if rates.len() < LEAST {
        return None;
    }
    let quantile = |part: usize| rates[(rates.len() - 1) * part / 4];
    (quantile(3) <= SPREAD * quantile(1)).then(|| quantile(2))
}

/// The time, ns, that makes measurements of the same place differ least, in the mean of the logarithms.
fn kernel_time(starts: &[LocatedStart]) -> u64 {
    let difference = |kernel: u64| {
        let (mut sum, mut number) = (0.0, 0_u32);
        for start in starts {
            let rates = rates(&start.starts.paces, kernel);
            if rates.len() >= LEAST {
                let middle = rates[rates.len() / 2];
                sum += rates.iter().map(|rate| (rate / middle).ln().abs()).sum::<f64>();
                number += rates.len() as u32;
            }
        }
        if number > 0 { sum / f64::from(number) } else { 0.0 }
    };
    let candidates = KERNEL.map(|step| step * STEP);
    candidates.min_by(|a, b| difference(*a).total_cmp(&difference(*b))).unwrap_or(0)
}
