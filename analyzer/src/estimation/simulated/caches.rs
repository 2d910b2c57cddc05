//! How long data takes that a burst uses for the first time.
//!
//! The second use of a line in a burst finds it in the first level. Where the first one finds it is told by the other bursts: those that
//! run the same code most are a *phase*. A line that every burst of the phase uses is used again after one burst; one that c of n
//! use, after n / c bursts, and what all of them brought meanwhile is what stands between. Lines that were seen once are seldom used as
//! often as that: how often is told by how many lines were seen twice (Good, Biometrika 40, 1953), by the instruction that used them, for one
//! looks a hash table up and another one its own stack. Sets are as large as populations of which animals were caught once and twice (Chao,
//! Scandinavian Journal of Statistics 11, 1984).

use std::collections::{BTreeMap, HashMap, HashSet};

use formats::burst_data::DataUse;
use simulated_core::{Level, MEMORY_LINE, Wait};

use crate::address::{Avma, FileOffset};
use crate::counting::LocatedPath;
use crate::recording::ModuleId;

/// Cycles for which a line that comes from the third level keeps others from coming; [`MEMORY_LINE`] is beyond that.
const THIRD_LINE: f64 = 4.0;
/// Cycles for a line of the second level that was fetched ahead.
const AHEAD: f64 = 2.0;
/// Streams of lines that a prefetcher follows.
const STREAMS: usize = 32;

/// The waits of one path, in the order of its instructions.
pub(super) type Waits = Vec<(u32, Wait)>;

/// Code of 1 KiB.
type CodeRegion = (ModuleId, u64);

/// A place in processes of one layout: those that a program forked, or that ran it again without address-space randomisation, have data at the
/// same addresses. No place: all of which too few bursts were seen.
type PhaseId = (Option<Avma>, Option<CodeRegion>);

/// Bursts of a phase at least: fewer do not tell how much data it uses.
const LEAST_BURSTS: u32 = 3;

/// A line that a burst has not used before.
pub(super) struct FirstUse {
    of: DataUse,
    /// A prefetcher has fetched it.
    ahead: bool,
}

/// The instruction that uses a line: any number.
pub(super) type Site = u32;

/// Lines that were seen in one burst and in two.
#[derive(Clone, Copy, Default)]
struct Caught {
    once: f64,
    twice: f64,
}

/// The bursts that run one place most.
#[derive(Default)]
struct Phase {
    bursts: f64,
    /// First uses of lines, of all its bursts.
    uses: f64,
    /// How many of its bursts used each line of data.
    lines: HashMap<u32, u32>,
    caught: Caught,
    by_site: BTreeMap<Site, Caught>,
    /// Lines of data that it uses in all, those included that no burst saw.
    size: f64,
}

/// Uses that are added to those of an instruction, such as are usual in the phase: few say little.
const PRIOR: f64 = 10.0;

/// The waits of every path on a machine with these caches; `uses` and `sites` are of each in the order of its instructions.
pub(super) fn waits(
    paths: &[LocatedPath],
    uses: &[Vec<FirstUse>],
    sites: &[Vec<Site>],
    levels: &[Level; 3],
) -> Vec<Waits> {
    let phase_ids = phases_of(paths);
    let mut phases: BTreeMap<PhaseId, Phase> = BTreeMap::new();
    for (id, uses) in phase_ids.iter().zip(uses) {
        let phase = phases.entry(*id).or_default();
        phase.bursts += 1.0;
        for used in uses {
            *phase.lines.entry(used.of.line).or_default() += 1;
            phase.uses += 1.0;
        }
    }
    for (id, (uses, sites)) in phase_ids.iter().zip(uses.iter().zip(sites)) {
        if let Some(phase) = phases.get_mut(id) {
            uses.iter().zip(sites).for_each(|(used, site)| phase.catch(used, *site));
        }
    }
    phases.values_mut().for_each(Phase::measure);
    let waits = |(id, (uses, sites)): (&PhaseId, (&Vec<FirstUse>, &Vec<Site>))| {
        let phase = &phases[id];
        uses.iter().zip(sites).map(|(used, site)| (used.of.instruction, phase.wait(used, *site, levels))).collect()
    };
    phase_ids.iter().zip(uses.iter().zip(sites)).map(waits).collect()
}

impl Phase {
    fn catch(&mut self, used: &FirstUse, site: Site) {
        let caught = self.by_site.entry(site).or_default();
        match self.lines[&used.of.line] {
            1 => caught.once += 1.0,
            2 => caught.twice += 0.5,
            _ => {}
        }
    }

    fn measure(&mut self) {
        for caught in self.by_site.values() {
            self.caught.once += caught.once;
            self.caught.twice += caught.twice;
        }
        let unseen = |caught: &Caught| {
            let pairs = caught.once * (caught.once - 1.0).max(0.0);
            (self.bursts - 1.0) / self.bursts * pairs / (2.0 * (caught.twice + 1.0))
        };
        let by_site: f64 = self.by_site.values().map(unseen).sum();
        self.size = self.lines.len() as f64 + by_site.max(unseen(&self.caught));
    }

    /// In how many bursts lines are used that were seen in one, of those that this instruction used: Good's (c + 1) f(c + 1) / f(c).
    fn bursts_of_lines_seen_once(&self, site: Site) -> f64 {
        let usual = (2.0 * self.caught.twice + 1.0) / (self.caught.once + 1.0);
        let of_site = self.by_site.get(&site).copied().unwrap_or_default();
        ((2.0 * of_site.twice + PRIOR * usual) / (of_site.once + PRIOR)).min(self.bursts)
    }

    fn wait(&self, used: &FirstUse, site: Site, levels: &[Level; 3]) -> Wait {
        let bursts = match self.lines[&used.of.line] {
            1 => self.bursts_of_lines_seen_once(site),
            bursts => f64::from(bursts),
        };
        let between = (self.uses / bursts).min(self.size);
        let absent = levels.map(|level| 1.0 - (level.lines / between.max(1.0)).min(1.0));
        let latency = match used.ahead {
            true => absent[0] * AHEAD,
            false => absent.iter().zip(levels).map(|(absent, level)| absent * level.beyond).sum(),
        };
        Wait { latency, transfer: absent[1] * THIRD_LINE + absent[2] * MEMORY_LINE }
    }
}

/// The phase of each path.
fn phases_of(paths: &[LocatedPath]) -> Vec<PhaseId> {
    let mut phases: Vec<PhaseId> = paths.iter().map(|path| (path.layout, most_run(path))).collect();
    let mut bursts: BTreeMap<PhaseId, u32> = BTreeMap::new();
    phases.iter().for_each(|phase| *bursts.entry(*phase).or_default() += 1);
    for phase in &mut phases {
        if bursts[phase] < LEAST_BURSTS {
            phase.1 = None;
        }
    }
    phases
}

/// The place in which most of its streams start.
fn most_run(path: &LocatedPath) -> Option<CodeRegion> {
    let mut streams: BTreeMap<CodeRegion, u64> = BTreeMap::new();
    for stream in path.streams.iter().flatten() {
        let FileOffset(start) = stream.start;
        *streams.entry((stream.module, start >> 10)).or_default() += 1;
    }
    streams.into_iter().max_by_key(|(_, times)| *times).map(|(place, _)| place)
}

impl FirstUse {
    /// Before it is known where the data is.
    pub fn without_wait(&self) -> (u32, Wait) {
        (self.of.instruction, Wait::default())
    }
}

/// Those that are the first indeed (the tracer's filter lets others through), and which lines a prefetcher has fetched: those next to one that was
/// used a short time before, or next but one.
pub(super) fn first_uses(uses: &[DataUse]) -> Vec<FirstUse> {
    let mut seen = HashSet::new();
    let is_fetched = |at: usize| {
        let of = uses[at];
        // The other line of one operand is no reason to fetch it before.
        let short_time_before = uses[at.saturating_sub(STREAMS)..at].iter();
        let mut others = short_time_before.filter(|before| before.instruction != of.instruction);
        others.any(|before| matches!(before.line.abs_diff(of.line), 1 | 2))
    };
    let first = uses.iter().enumerate().filter(|(_, used)| seen.insert(used.line));
    first.map(|(at, used)| FirstUse { of: *used, ahead: is_fetched(at) }).collect()
}

#[cfg(test)]
mod tests {
    use formats::burst_data::DataUses;
    use simulated_core::Microarchitecture;

    use super::*;
    use crate::counting::Stream;

    fn path(time: u64, lines: impl Iterator<Item = u32>) -> LocatedPath {
        path_of(0x1000, time, lines)
    }

    fn path_of(top: u64, time: u64, lines: impl Iterator<Item = u32>) -> LocatedPath {
        let stream = Stream { module: ModuleId(0), start: FileOffset(0x1000), end: FileOffset(0x1010) };
        let uses = lines.enumerate().map(|(at, line)| DataUse { instruction: at as u32, line }).collect();
        LocatedPath {
            layout: Some(Avma(top)),
            time,
            streams: vec![Some(stream)],
            uses: DataUses { first: uses, ..DataUses::default() },
        }
    }

    /// The waits where so many instructions use all lines in turns.
    fn waits_of(paths: &[LocatedPath], sites: u32) -> Vec<Waits> {
        let uses: Vec<Vec<FirstUse>> = paths.iter().map(|path| first_uses(&path.uses.first)).collect();
        let sites: Vec<Vec<Site>> =
            uses.iter().map(|uses| uses.iter().map(|used| used.of.instruction % sites).collect()).collect();
        waits(paths, &uses, &sites, &Microarchitecture::Zen5.core().levels)
    }

    fn mean(paths: &[LocatedPath]) -> f64 {
        let all: Vec<f64> = waits_of(paths, 1).iter().flatten().map(|(_, wait)| wait.latency).collect();
        all.iter().sum::<f64>() / all.len() as f64
    }

    /// Lines of a set of that size in an order without neighbours.
    fn random(size: u32, seed: u32, count: u32) -> impl Iterator<Item = u32> {
        let mixed = |number: u32| (number ^ number >> 15).wrapping_mul(0x2c1b_3c6d);
        (0..count).map(move |index| mixed(mixed(index + seed * count).rotate_left(13)) % size * 4)
    }

    #[test]
    fn what_every_burst_uses_is_near() {
        let paths: Vec<LocatedPath> = (0..20).map(|time| path(time, random(300, 0, 100))).collect();
        assert_eq!(mean(&paths), 0.0);
    }

    #[test]
    fn a_line_that_comes_again_in_a_burst_is_no_first_use() {
        let twice = |time: u32| random(300_000, time, 100).flat_map(|line| [line, line]);
        let paths: Vec<LocatedPath> = (0..20).map(|time| path(time.into(), twice(time))).collect();
        assert!(waits_of(&paths, 1).iter().all(|waits| (1..=100).contains(&waits.len())));
    }

    #[test]
    fn what_was_seen_of_few_bursts_is_taken_together() {
        // A burst each of places of their own, every one with new lines: one alone does not tell that they are of a large set.
        let at = |place: u64| {
            let start = FileOffset(place << 12);
            let streams = vec![Some(Stream { module: ModuleId(0), start, end: start })];
            LocatedPath { streams, ..path(place, random(4_000_000, place as u32, 300)) }
        };
        let paths: Vec<LocatedPath> = (0..40).map(at).collect();
        assert!(mean(&paths) > 200.0, "{}", mean(&paths));
    }

    #[test]
    fn layouts_have_data_of_their_own() {
        let lines = |top: u32| random(300, 0, 100).map(move |line| line + top * 1_000_000);
        let paths: Vec<LocatedPath> =
            (0..60).map(|time| path_of((time % 20).into(), time.into(), lines(time % 20))).collect();
        assert_eq!(mean(&paths), 0.0);
    }

    #[test]
    fn large_sets_take_long() {
        let of = |size| mean(&(0..100).map(|time| path(time, random(size, time as u32, 300))).collect::<Vec<_>>());
        let (second, third, memory) = (of(8_000), of(28_000), of(4_000_000));
        assert!((5.0..10.0).contains(&second), "{second}");
        assert!((10.0..60.0).contains(&third), "{third}");
        assert!(memory > 200.0, "{memory}");
    }

    #[test]
    fn instructions_have_sets_of_their_own() {
        // One uses a table of 16 MB, the other one 1,000 lines.
        let both = |time: u32| {
            let large = random(262_144, time, 60).map(|line| line + 1_000_000);
            large.zip(random(1_000, time, 60)).flat_map(|(large, small)| [large, small])
        };
        let paths: Vec<LocatedPath> = (0..200).map(|time| path(time.into(), both(time))).collect();
        let all: Vec<(u32, Wait)> = waits_of(&paths, 2).into_iter().flatten().collect();
        let mean = |site: u32| {
            let of_site: Vec<f64> = all.iter().filter(|(at, _)| at % 2 == site).map(|(_, wait)| wait.latency).collect();
            of_site.iter().sum::<f64>() / of_site.len() as f64
        };
        assert!(mean(0) > 350.0, "{}", mean(0));
        assert!(mean(1) < 60.0, "{}", mean(1));
    }

    #[test]
    fn lines_in_a_row_are_fetched_ahead() {
        let paths: Vec<LocatedPath> = (0..50).map(|time| path(time as u64, time * 5000..time * 5000 + 300)).collect();
        assert!(mean(&paths) < 8.0, "{}", mean(&paths));
        assert!(waits_of(&paths, 1).iter().flatten().all(|(_, wait)| wait.transfer > 0.0));
    }
}
