//! The finished result.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::Analysis;
use crate::address::Svma;
use crate::annotate::{Place, Places};
use crate::counting::Code;
use crate::paths::map::CodeMap;
use crate::paths::sums::Sum;
use crate::paths::walker::{PathSums, Step, Wanted};
use crate::paths::{BlockCycles, BranchFacts, LoopTrips, NoDestination, PathQuery};
use crate::uncertainty::{Design, Interval, Replicates, Sampled};
use crate::walks::{BlockKey, TreeSum};

/// What the order of branches tells.
#[derive(Debug, Default)]
pub struct BranchPaths {
    /// Of the loops that were seen running, by index of the module in [`Analysis::counted`] and first instruction of the header.
    pub trips: BTreeMap<(usize, Svma), LoopTrips>,
    /// By index of the module in [`Analysis::counted`] and first instruction of the block.
    pub cycles: BTreeMap<(usize, Svma), BlockCycles>,
    /// Streams whose cycles do not fit into a branch record: left out.
    pub too_long: u64,
    /// Paths within functions, if they were asked for.
    pub hot: Option<HotPaths>,
    /// Branches that lead to a place, if they were asked for.
    pub history: Option<Result<History, NoDestination>>,
    /// What the records say of branches.
    pub facts: BranchFacts,
    /// Bursts, pieces of them, or stacks that were walked.
    pub walks: u64,
}

/// The paths that were executed within functions.
#[derive(Debug, Default)]
pub struct HotPaths {
    /// Those with the most instructions first.
    pub paths: Vec<FoundPath>,
    /// Instructions executed along all branch records.
    pub instructions: f64,
    /// The share of these in paths whose begin or end was not seen: the burst or stack begins or ends within them. 0 to 1.
    pub cut: f64,
    /// How uncertain that is.
    pub cut_interval: Interval,
    /// The share of instructions in code that was not read, and of no path; 0 to 1.
    pub unread: f64,
    /// The share of instructions in paths that are told apart by their last blocks only, for want of room; 0 to 1.
    pub merged: f64,
    /// Blocks of a path that there was room for.
    pub depth: u32,
}

/// How often a path was executed.
#[derive(Clone, Copy, Debug)]
pub struct Frequency {
    /// Executions, in the unit of all counts.
    pub executions: f64,
    /// How uncertain that is.
    pub executions_interval: Interval,
    /// What share that is of all paths, 0 to 1.
    pub share: f64,
    /// How uncertain that is.
    pub share_interval: Interval,
    /// How often it was seen.
    pub seen: u64,
}

/// A path within a function: it begins where the function does or at the header of a loop, and ends at a back edge or where the function does.
#[derive(Clone, Debug)]
pub struct FoundPath {
    /// The path of its module.
    pub module: Arc<str>,
    /// Its function, demangled; `None` where the code was not read.
    pub function: Option<Arc<str>>,
    /// Its blocks, in the order of their execution.
    pub blocks: Vec<Place>,
    /// Blocks before these were left out for want of room.
    pub is_cut: bool,
    /// It was one of the pieces in which a path of more than 256 blocks is told.
    pub is_piece: bool,
    /// How many instructions these blocks have.
    pub instructions: u64,
    /// How often it was executed; its share is that of its instructions in all that were executed along branch records.
    pub frequency: Frequency,
}

/// The branches that lead to a place, or to what happens to the last of them.
#[derive(Debug, Default)]
pub struct History {
    /// The first instructions of the blocks that the place is in; none of what happens to branches.
    pub places: Vec<Place>,
    /// The most frequent first.
    pub paths: Vec<FoundHistory>,
    /// Branches of each.
    pub branches: u32,
    /// Branches that there was room for; what came before them was left out.
    pub depth: u32,
    /// How often control came there, along branch records.
    pub arrivals: f64,
    /// How often that was seen.
    pub seen: u64,
    /// The share of the arrivals before which fewer branches are known, 0 to 1: none of the paths has them.
    pub short: f64,
}

/// The branches before an arrival.
#[derive(Clone, Debug)]
pub struct FoundHistory {
    /// The newest last.
    pub steps: Vec<FoundStep>,
    /// How often control came this way; its share is that of all arrivals before which so many branches are known.
    pub frequency: Frequency,
}

/// A branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundStep {
    /// The branch instruction.
    pub from: Place,
    /// Where it went.
    pub to: Place,
    /// It was taken several times, one after the other.
    pub repeats: bool,
}

impl BranchPaths {
    /// The trips of the loop with that header; the module is an index in [`Analysis::counted`].
    pub fn trips_of(&self, module: usize, header: Svma) -> Option<&LoopTrips> {
        self.trips.get(&(module, header))
    }

    /// The cycles of the block that starts there.
    pub fn cycles_of(&self, module: usize, start: Svma) -> Option<&BlockCycles> {
        self.cycles.get(&(module, start))
    }

    /// Names what was found.
    pub(crate) fn of(
        sums: &PathSums,
        query: &PathQuery,
        analysis: &Analysis,
        map: &CodeMap,
        wanted: Option<Result<Wanted, NoDestination>>,
    ) -> Self {
        let trips = sums.trips.iter().filter(|_| query.trips).filter_map(|(id, trips)| {
            Some((start_of(analysis, map, map.get(*id)?.header)?, trips.finish(&analysis.design)))
        });
        let size = |key| u64::from(map.block(key).instructions);
        let cycles = sums.cycles.finish(size);
        let naming = Naming { analysis, map, places: Places::of(analysis), made_up: sums.instructions.made_up() };
        BranchPaths {
            trips: trips.collect(),
            cycles: cycles.filter_map(|(key, of)| Some((start_of(analysis, map, key)?, of))).collect(),
            too_long: sums.cycles.too_long,
            hot: query.hot.then(|| naming.hot_paths(sums)),
            history: wanted.map(|wanted| wanted.map(|wanted| naming.history(sums, &wanted))),
            facts: sums.facts.clone(),
            walks: sums.walks,
        }
    }
}

/// The index of the module of a block, and its first instruction.
fn start_of(analysis: &Analysis, map: &CodeMap, key: BlockKey) -> Option<(usize, Svma)> {
    let counted = map.counted(key)?;
    Some((counted, analysis.counted.get(counted)?.counts.range_of(key.index).0))
}

/// How uncertain a share is: not more than it can be wrong.
fn share_interval(design: &Design, part: (f64, &Sampled), whole: (f64, &Sampled)) -> Interval {
    at_most_all(design.share(part, whole))
}

/// A share is between 0 and 1.
pub(super) fn at_most_all(interval: Interval) -> Interval {
    let capped = |width: Option<f64>| width.map(|width| width.min(1.0));
    Interval { half_width: capped(interval.half_width), by_chance: capped(interval.by_chance), ..interval }
}

struct Naming<'a> {
    analysis: &'a Analysis,
    map: &'a CodeMap,
    places: Places<'a>,
    /// What makes up for slices that are left out.
    made_up: Replicates,
}

impl Naming<'_> {
    fn hot_paths(&self, sums: &PathSums) -> HotPaths {
        let design = &self.analysis.design;
        let (all, all_sampled) = sums.instructions.sampled();
        let whole = (all, &all_sampled);
        let share_of = |part: f64| if all > 0.0 { part / all } else { 0.0 };
        let mut found = HotPaths { depth: sums.paths.depth(), ..HotPaths::default() };
        let mut sequences: Vec<_> = sums.paths.sequences().collect();
        sequences.sort_unstable_by(|one, other| one.keys.cmp(&other.keys));
        for sequence in sequences {
            let instructions: u64 = sequence.keys.iter().map(|key| u64::from(self.map.block(*key).instructions)).sum();
            let frequency = self.frequency(&sequence.sum.executions, &sequence.sum.instructions, whole);
            let is_cut = !sequence.cut.is_nothing();
            if is_cut {
                found.merged += frequency.share;
            }
            let blocks: Vec<Place> = sequence.keys.iter().rev().filter_map(|key| self.start(*key)).collect();
            let Some(first) = blocks.first() else { continue };
            found.paths.push(FoundPath {
                module: first.module.clone(),
                function: first.function.clone(),
                blocks,
                is_cut,
                is_piece: sequence.sum.pieces > 0,
                instructions,
                frequency,
            });
        }
        // Equal ones stay in the order of their blocks.
        found.paths.sort_by(|one, other| other.frequency.share.total_cmp(&one.frequency.share));
        let (cut, cut_sampled) = sums.cut.sampled();
        found.cut = share_of(cut);
        found.unread = share_of(sums.unread.sampled().0);
        found.cut_interval = share_interval(design, (cut, &cut_sampled), whole);
        found.instructions = self.executions(&sums.instructions).0;
        found
    }

    fn history(&self, sums: &PathSums, wanted: &Wanted) -> History {
        let mut sequences: Vec<_> = sums.histories.sequences().collect();
        sequences.sort_unstable_by(|one, other| one.keys.cmp(&other.keys));
        let mut all = Sum::default();
        sequences.iter().for_each(|sequence| all.plus(&sequence.sum));
        let (whole, whole_sampled) = all.sampled();
        let found = sequences.into_iter().map(|sequence| FoundHistory {
            steps: sequence.keys.iter().rev().filter_map(|step| self.step(*step)).collect(),
            frequency: self.frequency(&sequence.sum, &sequence.sum, (whole, &whole_sampled)),
        });
        let mut paths: Vec<FoundHistory> = found.collect();
        paths.sort_by(|one, other| other.frequency.share.total_cmp(&one.frequency.share));
        let (arrivals, _) = sums.arrivals.sampled();
        let mut places: Vec<BlockKey> = wanted.blocks.iter().copied().collect();
        places.sort_unstable();
        History {
            places: places.into_iter().filter_map(|key| self.start(key)).collect(),
            paths,
            branches: wanted.branches as u32,
            depth: sums.histories.depth(),
            arrivals: self.executions(&sums.arrivals).0,
            seen: sums.arrivals.seen,
            short: if arrivals > 0.0 { sums.short.sampled().0 / arrivals } else { 0.0 },
        }
    }

    /// Of executions, which are that part of the whole.
    fn frequency(&self, executions: &Sum, part: &Sum, whole: (f64, &Sampled)) -> Frequency {
        let design = &self.analysis.design;
        let (part, part_sampled) = part.sampled();
        let share_interval = share_interval(design, (part, &part_sampled), whole);
        let share = if whole.0 > 0.0 { part / whole.0 } else { 0.0 };
        let seen = executions.seen;
        let (executions, sampled) = self.executions(executions);
        let executions_interval = design.interval(executions, &sampled);
        Frequency { executions, executions_interval, share, share_interval, seen }
    }

    /// In the unit of all counts.
    fn executions(&self, sum: &Sum) -> (f64, Sampled) {
        let scale = self.analysis.scale.lbr;
        let (weight, Sampled { replicates, seen }) = sum.sampled();
        let replicates = replicates.zip(&self.made_up, |weight, factor| weight * factor * scale);
        (weight * scale, Sampled { replicates, seen })
    }

    fn step(&self, Step { ends: [from, to], repeats }: Step) -> Option<FoundStep> {
        let from = self.place(from, true)?;
        Some(FoundStep { from, to: self.place(to, false)?, repeats })
    }

    fn start(&self, key: BlockKey) -> Option<Place> {
        self.place(key, false)
    }

    /// The first instruction of a block, or the last.
    fn place(&self, key: BlockKey, last: bool) -> Option<Place> {
        let Some(counted) = self.map.counted(key).filter(|_| key.index != BlockKey::NOWHERE) else {
            let path = self.analysis.modules.get(key.module).path.as_str().into();
            return Some(Place { module: path, address: Svma(0), function: None, offset: 0 });
        };
        let counts = &self.analysis.counted.get(counted)?.counts;
        let at = match &counts.code {
            Code::Read(code) => {
                let block = code.blocks.blocks().get(key.index as usize)?;
                if last { block.last } else { block.start }
            }
            Code::Unread { blocks, .. } => {
                let block = blocks.get(key.index as usize)?;
                // Its last byte: how long the last instruction is, is not known.
                Svma(if last { block.end.0.saturating_sub(1) } else { block.start.0 })
            }
        };
        Some(self.places.in_module(counted, at))
    }
}
