//! The share of the time that bursts starting in one place stand for.
//!
//! There are more samples of the clock than bursts, and both are even in time: together they tell better where time goes. A cache line (of
//! one function) with n bursts gets what both say of it; where the clock saw something but no burst started, the nearest bursts share it:
//! those of the same 256 bytes, 1 KiB, function, or all.

use std::collections::BTreeMap;

use crate::address::FileOffset;
use crate::counting::{Located, LocatedStart, granule_of};
use crate::estimation::after_calls::follows_call;
use crate::estimation::strata::{Strata, Stratum};
use crate::recording::ModuleId;
use crate::uncertainty::SliceSums;

/// Places, as powers of two: a cache line, wider ones.
const LINE: u32 = 6;
const WIDER: [u32; 2] = [8, 10];

/// Samples of the clock in 16 bytes of code.
pub(super) struct Samples {
    module: ModuleId,
    at: FileOffset,
    /// How many there are.
    pub number: f64,
    /// Their periods by slice.
    pub slices: SliceSums,
}

/// The samples in the modules that count, without those [right after system calls](super::after_calls).
pub(super) fn samples(located: &Located, strata: &Strata<'_>, counts: impl Fn(ModuleId) -> bool) -> Vec<Samples> {
    let mut places: BTreeMap<(ModuleId, FileOffset), (u64, SliceSums)> = BTreeMap::new();
    for (&module, hits) in located.modules.iter().filter(|(module, _)| counts(**module)) {
        for ip in hits.ips.iter().filter(|ip| !follows_call(strata, module, ip.at)) {
            let (number, slices) = places.entry((module, granule_of(ip.at))).or_default();
            *number += ip.samples;
            slices.add(&ip.slices);
        }
    }
    let place = |((module, at), (number, slices)): ((ModuleId, FileOffset), (u64, SliceSums))| Samples {
        module,
        at,
        number: number as f64,
        slices,
    };
    places.into_iter().map(place).collect()
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Vicinity {
    /// The part of a cache line that is one function's.
    Line(ModuleId, u64, Stratum),
    Window(ModuleId, u32, u64),
    Stratum(Stratum),
    Anywhere,
}

/// How many bursts there are that start in a place, and what they stand for: the sum of their periods.
#[derive(Clone, Copy)]
pub(super) struct Bursts {
    pub number: f64,
    pub periods: f64,
    /// What their streams stand for.
    pub shown: f64,
}

/// What is near what.
pub(super) struct TimeShare {
    lines: Vec<Line>,
    /// The starts of each vicinity, in order.
    members: Vec<Vec<usize>>,
}

/// Places of start, and of samples, in one line.
struct Line {
    starts: Vec<usize>,
    samples: Vec<usize>,
    /// Those of its vicinities in which bursts start, the narrowest first: how wide they are, and their index.
    vicinities: Vec<(usize, usize)>,
}

impl TimeShare {
    pub fn new(starts: &[LocatedStart], samples: &[Samples], strata: &Strata<'_>) -> Self {
        let mut nearest: BTreeMap<Vicinity, usize> = BTreeMap::new();
        let mut members: Vec<Vec<usize>> = Vec::new();
        let near_starts: Vec<_> = starts.iter().map(|start| vicinities(start.module, start.at, strata)).collect();
        for (index, places) in near_starts.iter().enumerate() {
            for place in places {
                let id = *nearest.entry(*place).or_insert(members.len());
                if id == members.len() {
                    members.push(Vec::new());
                }
                members[id].push(index);
            }
        }
        let line_at = |places: &[Vicinity; 5]| {
            let wide = places.iter().enumerate().filter_map(|(wider, place)| Some((wider, *nearest.get(place)?)));
            Line { starts: Vec::new(), samples: Vec::new(), vicinities: wide.collect() }
        };
        let mut lines: BTreeMap<Vicinity, Line> = BTreeMap::new();
        for (index, places) in near_starts.iter().enumerate() {
            lines.entry(places[0]).or_insert_with(|| line_at(places)).starts.push(index);
        }
        for (index, sample) in samples.iter().enumerate() {
            let places = vicinities(sample.module, sample.at, strata);
            lines.entry(places[0]).or_insert_with(|| line_at(&places)).samples.push(index);
        }
        TimeShare { lines: lines.into_values().collect(), members }
    }

    /// By place of start, adding up to 1: of so many bursts at each, and so many samples at each of their places.
    pub fn shares(&self, starts: &[Bursts], samples: &[f64]) -> Vec<f64> {
        let bursts: f64 = starts.iter().map(|start| start.number).sum();
        let periods: f64 = starts.iter().map(|start| start.periods).sum();
        // What bursts stand for, in units of the mean.
        let stand_for = |start: &Bursts| if periods > 0.0 { start.periods / periods * bursts } else { start.number };
        let stand_for: Vec<f64> = starts.iter().map(stand_for).collect();
        let seen = |line: &Line| {
            let of_starts = line.starts.iter().map(|&start| stand_for[start]);
            of_starts.chain(line.samples.iter().map(|&sample| samples[sample])).fold(0.0, |sum, more| sum + more)
        };
        let seen: Vec<f64> = self.lines.iter().map(seen).collect();
        let all: f64 = seen.iter().sum();
        let near: Vec<(f64, f64)> = self
            .members
            .iter()
            .map(|members| {
                let number = members.iter().map(|&member| starts[member].number).sum();
                (number, members.iter().map(|&member| stand_for[member]).sum())
            })
            .collect();
        let mut shares = vec![0.0; starts.len()];
        for (line, number) in self.lines.iter().zip(seen) {
            let share = number / all;
            let found = line.vicinities.iter().find(|(_, place)| near[*place].0 > 0.0);
            let Some(&(wider, place)) = found else { continue };
            let (number, sum) = near[place];
            // In its own line a burst is worth one sample by itself, whatever the others say.
            let each = if wider == 0 { (share * bursts + 1.0) / (number + 1.0) / bursts } else { share / number };
            for &member in self.members[place].iter().filter(|_| sum > 0.0) {
                shares[member] += each * number * stand_for[member] / sum;
            }
        }
        let sum: f64 = shares.iter().sum();
        shares.iter().map(|share| share / sum).collect()
    }
}

/// Where code lies, the narrowest first.
fn vicinities(module: ModuleId, at: FileOffset, strata: &Strata<'_>) -> [Vicinity; 5] {
    let window = |bits: u32| Vicinity::Window(module, bits, at.0 >> bits);
    let stratum = strata.of(module, at);
    let line = Vicinity::Line(module, at.0 >> LINE, stratum);
    [line, window(WIDER[0]), window(WIDER[1]), Vicinity::Stratum(stratum), Vicinity::Anywhere]
}
