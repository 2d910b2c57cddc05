//! The share of the time that bursts starting in one place stand for.
//!
//! There are more samples of the clock than bursts, and both are even in time: together they tell better where time goes. A cache line with n
//! bursts gets what both say of it; where the clock saw something but no burst started, the nearest bursts share it: those of the same 256 bytes, 1
//! KiB, function, or all.

use std::collections::BTreeMap;

use crate::counting::{FileOffset, Located, LocatedStart};
use crate::estimation::{Strata, Stratum};
use crate::recording::ModuleId;

const LINE: u32 = 6;
/// Wider places, as powers of two.
const WIDER: [u32; 2] = [8, 10];

/// Samples of the clock in one cache line.
pub(super) struct Samples {
    module: ModuleId,
    line: u64,
    number: f64,
}

/// The samples in the modules that count, by cache line.
pub(super) fn samples(located: &Located, counts: impl Fn(ModuleId) -> bool) -> Vec<Samples> {
    let mut lines: BTreeMap<(ModuleId, u64), u64> = BTreeMap::new();
    for (&module, hits) in located.modules.iter().filter(|(module, _)| counts(**module)) {
        for ip in &hits.ips {
            *lines.entry((module, ip.at.0 >> LINE)).or_default() += ip.samples;
        }
    }
    lines.into_iter().map(|((module, line), number)| Samples { module, line, number: number as f64 }).collect()
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
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
    let mut seen: BTreeMap<(ModuleId, u64), f64> = BTreeMap::new();
    for start in starts {
        *seen.entry((start.module, start.line.0 >> LINE)).or_default() += stands_for(start);
    }
    for line in samples {
        *seen.entry((line.module, line.line)).or_default() += line.number;
    }
    let all: f64 = seen.values().sum();

    let mut nearest: BTreeMap<Place, (f64, Vec<usize>)> = BTreeMap::new();
    for (index, start) in starts.iter().enumerate() {
        for place in places(start.module, start.line, strata) {
            let (number, members) = nearest.entry(place).or_default();
            *number += start.starts.bursts as f64;
            members.push(index);
        }
    }
    let mut shares = vec![0.0; starts.len()];
    for ((module, line), number) in seen {
        let share = number / all;
        let at = FileOffset(line << LINE);
        let found = places(module, at, strata).into_iter().enumerate().find_map(|(wider, place)| {
            let (number, members) = nearest.get(&place).filter(|(number, _)| *number > 0.0)?;
            Some((wider, *number, members))
        });
        let Some((wider, number, members)) = found else { continue };
        // In its own line a burst is worth one sample by itself, whatever the others say.
        let each = if wider == 0 { (share * bursts + 1.0) / (number + 1.0) / bursts } else { share / number };
        for &member in members {
            shares[member] += each * starts[member].starts.bursts as f64;
        }
    }
    let sum: f64 = shares.iter().sum();
    shares.iter().map(|share| share / sum).collect()
}

/// Where a line lies, the narrowest first.
fn places(module: ModuleId, at: FileOffset, strata: &Strata<'_>) -> [Place; 5] {
    let window = |bits: u32| Place::Window(module, bits, at.0 >> bits);
    [window(LINE), window(WIDER[0]), window(WIDER[1]), Place::Stratum(strata.of(module, at)), Place::Anywhere]
}
