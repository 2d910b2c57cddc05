//! The share of the time that bursts starting in one place stand for.
//!
//! There are more samples of the clock than bursts, and both are even in time: together they tell better where time goes. A cache line (of
//! one function) with n bursts gets what both say of it; where the clock saw something but no burst started, the nearest bursts share it:
//! those of the same 256 bytes, 1 KiB, function, or all.

use std::collections::BTreeMap;

use crate::address::FileOffset;
use crate::counting::{Located, LocatedStart};
use crate::estimation::strata::{Strata, Stratum};
use crate::recording::ModuleId;

/// Places, as powers of two: 16 bytes, in which no two functions are as a rule, a cache line, wider ones.
const FINEST: u32 = 4;
const LINE: u32 = 6;
const WIDER: [u32; 2] = [8, 10];

/// Samples of the clock in 16 bytes of code.
pub(super) struct Samples {
    module: ModuleId,
    at: FileOffset,
    number: f64,
}

/// The samples in the modules that count.
pub(super) fn samples(located: &Located, counts: impl Fn(ModuleId) -> bool) -> Vec<Samples> {
    let mut places: BTreeMap<(ModuleId, FileOffset), u64> = BTreeMap::new();
    for (&module, hits) in located.modules.iter().filter(|(module, _)| counts(**module)) {
        for ip in &hits.ips {
            *places.entry((module, FileOffset(ip.at.0 >> FINEST << FINEST))).or_default() += ip.samples;
        }
    }
    places.into_iter().map(|((module, at), number)| Samples { module, at, number: number as f64 }).collect()
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Vicinity {
    /// The part of a cache line that is one function's.
    Line(ModuleId, u64, Stratum),
    Window(ModuleId, u32, u64),
    Stratum(Stratum),
    Anywhere,
}

/// By place of start, adding up to 1.
pub(super) fn shares(starts: &[LocatedStart], samples: &[Samples], strata: &Strata<'_>) -> Vec<f64> {
    let bursts: f64 = starts.iter().map(|start| start.starts.bursts as f64).sum();
    let periods: f64 = starts.iter().map(|start| start.starts.periods as f64).sum();
    // What bursts stand for, in units of the mean.
    let stands_for = |start: &LocatedStart| {
        if periods > 0.0 { start.starts.periods as f64 / periods * bursts } else { start.starts.bursts as f64 }
    };
    // By line: any place in it, and what was seen.
    let mut seen: BTreeMap<Vicinity, ((ModuleId, FileOffset), f64)> = BTreeMap::new();
    let starts_seen = starts.iter().map(|start| (start.module, start.at, stands_for(start)));
    let samples_seen = samples.iter().map(|sample| (sample.module, sample.at, sample.number));
    for (module, at, number) in starts_seen.chain(samples_seen) {
        let [line, ..] = vicinities(module, at, strata);
        seen.entry(line).or_insert(((module, at), 0.0)).1 += number;
    }
    let all: f64 = seen.values().map(|(_, number)| number).sum();

    let mut nearest: BTreeMap<Vicinity, (f64, Vec<usize>)> = BTreeMap::new();
    for (index, start) in starts.iter().enumerate() {
        for place in vicinities(start.module, start.at, strata) {
            let (number, members) = nearest.entry(place).or_default();
            *number += start.starts.bursts as f64;
            members.push(index);
        }
    }
    let mut shares = vec![0.0; starts.len()];
    for ((module, at), number) in seen.into_values() {
        let share = number / all;
        let found = vicinities(module, at, strata).into_iter().enumerate().find_map(|(wider, place)| {
            let (number, members) = nearest.get(&place).filter(|(number, _)| *number > 0.0)?;
            Some((wider, *number, members))
        });
        let Some((wider, number, members)) = found else { continue };
        // In its own line a burst is worth one sample by itself, whatever the others say.
        let each = if wider == 0 { (share * bursts + 1.0) / (number + 1.0) / bursts } else { share / number };
        let sum: f64 = members.iter().map(|&member| stands_for(&starts[member])).sum();
        for &member in members.iter().filter(|_| sum > 0.0) {
            shares[member] += each * number * stands_for(&starts[member]) / sum;
        }
    }
    let sum: f64 = shares.iter().sum();
    shares.iter().map(|share| share / sum).collect()
}

/// Where code lies, the narrowest first.
fn vicinities(module: ModuleId, at: FileOffset, strata: &Strata<'_>) -> [Vicinity; 5] {
    let window = |bits: u32| Vicinity::Window(module, bits, at.0 >> bits);
    let stratum = strata.of(module, at);
    let line = Vicinity::Line(module, at.0 >> LINE, stratum);
    [line, window(WIDER[0]), window(WIDER[1]), Vicinity::Stratum(stratum), Vicinity::Anywhere]
}
