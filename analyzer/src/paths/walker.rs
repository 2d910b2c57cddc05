//! All bursts and stacks, walked and added up.

use std::collections::{BTreeMap, HashSet, VecDeque};

use crate::Analysis;
use crate::paths::activations::{Activations, Extent, Found};
use crate::paths::cycles::CycleSums;
use crate::paths::facts::BranchFacts;
use crate::paths::map::{CodeMap, LoopId};
use crate::paths::sums::{PathSum, Sum};
use crate::paths::trips::TripSums;
use crate::paths::{BranchEvent, NoDestination, PathQuery};
use crate::recording::Weight;
use crate::uncertainty::Slice;
use crate::walks::{BlockKey, Known, Streams, SuffixTree, TreeKey, WalkedStack, Walker};

/// Nodes of a tree of paths; each takes up to 900 bytes.
const MOST_NODES: usize = 1 << 16;
/// Blocks of a path.
const MOST_STEPS: u32 = 256;

/// A branch of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Step {
    /// The blocks of the branch and of where it went.
    pub ends: [BlockKey; 2],
    /// It was taken several times, one after the other.
    pub repeats: bool,
}

impl TreeKey for Step {
    fn bits(self) -> u64 {
        let [from, to] = self.ends.map(TreeKey::bits);
        from ^ to.rotate_left(31) ^ u64::from(self.repeats) << 63
    }
}

impl TreeKey for BlockKey {
    fn bits(self) -> u64 {
        u64::from(self.module.0) << 32 | u64::from(self.index)
    }
}

/// Where histories lead to, and how many branches they have.
#[derive(Debug, Default)]
pub struct Wanted {
    pub blocks: HashSet<BlockKey>,
    pub event: Option<BranchEvent>,
    pub branches: usize,
}

impl Wanted {
    /// What a query asks for, if it asks for a history. Threads read debug information.
    pub fn of(query: &PathQuery, analysis: &Analysis, threads: usize) -> Option<Result<Self, NoDestination>> {
        let (to, branches) = query.history.as_ref()?;
        let branches = (*branches).clamp(1, PathQuery::MOST_BRANCHES) as usize;
        Some(to.blocks(analysis, threads).map(|blocks| Wanted { blocks, event: to.event(), branches }))
    }
}

/// Walks bursts and stacks for what the order of their branches tells.
pub struct PathWalker<'a> {
    streams: Streams<'a>,
    map: &'a CodeMap,
    wanted: Option<&'a Wanted>,
    activations: Activations,
    /// The last branches, oldest first.
    recent: VecDeque<Step>,
    pub sums: PathSums,
}

/// What was found, added up.
pub struct PathSums {
    /// What is added up.
    has_trips: bool,
    has_paths: bool,
    has_cycles: bool,
    /// Of the stack that is walked.
    weight: Weight,
    slice: Slice,
    pub trips: BTreeMap<LoopId, TripSums>,
    /// Executions of paths, from their last block to their first.
    pub paths: SuffixTree<BlockKey, PathSum>,
    /// Instructions of paths whose begin or end was not seen.
    pub cut: Sum,
    /// Instructions of code that was not read: nobody knows its functions.
    pub unread: Sum,
    /// Instructions of all streams.
    pub instructions: Sum,
    /// Arrivals by the branches before them, from the last to the first.
    pub histories: SuffixTree<Step, Sum>,
    /// Arrivals before which too few branches are known.
    pub short: Sum,
    /// All arrivals.
    pub arrivals: Sum,
    pub cycles: CycleSums,
    pub facts: BranchFacts,
    /// Bursts, pieces of them, and stacks.
    pub walks: u64,
}

impl<'a> PathWalker<'a> {
    /// Nothing was walked yet.
    pub fn new(streams: Streams<'a>, map: &'a CodeMap, query: &PathQuery, wanted: Option<&'a Wanted>) -> Self {
        let sums = PathSums {
            has_trips: query.trips,
            has_paths: query.hot,
            has_cycles: query.cycles,
            weight: Weight::default(),
            slice: Slice::default(),
            trips: BTreeMap::new(),
            paths: SuffixTree::new(MOST_NODES, MOST_STEPS),
            cut: Sum::default(),
            unread: Sum::default(),
            instructions: Sum::default(),
            histories: SuffixTree::new(MOST_NODES, MOST_STEPS),
            short: Sum::default(),
            arrivals: Sum::default(),
            cycles: CycleSums::default(),
            facts: BranchFacts::default(),
            walks: 0,
        };
        PathWalker { streams, map, wanted, activations: Activations::default(), recent: VecDeque::new(), sums }
    }

    fn walk_branches(&mut self, stack: &WalkedStack<'_>) {
        let PathWalker { streams, map, wanted, activations, recent, sums } = self;
        let has_order = sums.has_trips || sums.has_paths;
        let mut found = (*map, sums);
        // Where one record has cycles, 0 cycles are that.
        let is_timed = stack.branches.iter().any(|branch| branch.flags.cycles() > 0);
        let mut at = stack.start;
        if let Some(function) = at.filter(|_| has_order).and_then(|start| streams.function_at(stack.space, start)) {
            activations.begin(function, &mut found);
        }
        let (mut all, mut last): (u64, _) = (0, None);
        for branch in stack.branches {
            found.1.facts.add(branch, is_timed);
            for stream in streams.get(stack.space, at, branch) {
                match &stream.parts {
                    Some(_) if at.is_none() && !has_order => {}
                    Some(_) if at.is_none() => {
                        activations.begin(stream.function, &mut found);
                        activations.come_from(stream.ends[0], map, &mut found);
                    }
                    Some(parts) => {
                        for part in parts {
                            if has_order {
                                activations.run_into(part.function, &mut found);
                            }
                            all = all.saturating_add(part.instructions);
                            let module = part.function.module();
                            for index in part.blocks.0..part.blocks.1 {
                                let key = BlockKey { module, index };
                                if has_order {
                                    activations.run(key, map, &mut found);
                                }
                                if wanted.is_some_and(|wanted| wanted.blocks.contains(&key)) {
                                    found.1.arrive(recent, wanted.map_or(0, |wanted| wanted.branches));
                                }
                            }
                        }
                        if is_timed && found.1.has_cycles {
                            let size = |key| u64::from(map.block(key).instructions);
                            found.1.cycles.add(parts, branch.flags.cycles(), size);
                        }
                    }
                    None => {
                        if has_order {
                            activations.begin(stream.function, &mut found);
                        }
                        recent.clear();
                    }
                }
                if has_order {
                    activations.go(&stream.transfer, stream.target, &mut found);
                }
                match (*wanted, stream.known) {
                    (None, _) => {}
                    // Which branches led back from the kernel's entry is not known.
                    (Some(wanted), Known::WayBack) if wanted.blocks.contains(&stream.ends[0]) => {
                        found.1.arrive(recent, wanted.branches);
                    }
                    (Some(_), Known::WayBack) => {}
                    (Some(wanted), known) => {
                        remember(recent, stream.ends, wanted.branches);
                        let is_event = wanted.event.is_some_and(|event| event.is_of(branch.flags));
                        if known == Known::Recorded && is_event {
                            found.1.arrive(recent, wanted.branches);
                        }
                    }
                }
                last = Some((stream.target.function, stream.ends[1]));
            }
            at = Some(branch.to);
        }
        // The newest branch may have gone around once more, or out.
        if let Some((_, block)) = last.filter(|(function, _)| activations.current() == Some(*function)) {
            activations.come_to(block, map, &mut found);
        }
        activations.cut_off(&mut found);
        recent.clear();
        found.1.instructions.plus(&Sum::times(stack.weight, stack.slice, all));
    }
}

/// Keeps so many branches; one that is taken again and again is one.
fn remember(recent: &mut VecDeque<Step>, ends: [BlockKey; 2], most: usize) {
    match recent.back_mut() {
        Some(last) if last.ends == ends => last.repeats = true,
        _ => recent.push_back(Step { ends, repeats: false }),
    }
    // One more says where the oldest of them was taken for the first time.
    if recent.len() > most + 1 {
        recent.pop_front();
    }
}

impl PathSums {
    /// Control came to what histories are wanted of.
    fn arrive(&mut self, recent: &VecDeque<Step>, branches: usize) {
        let once = Sum::once(self.weight, self.slice);
        self.arrivals.plus(&once);
        if recent.len() <= branches {
            self.short.plus(&once);
        } else {
            self.histories.add(recent.iter().rev().take(branches).copied(), &once);
        }
    }
}

impl Found for (&CodeMap, &mut PathSums) {
    fn trip(&mut self, id: LoopId, iterations: u32, from_entry: bool, to_exit: bool) {
        let sums = &mut *self.1;
        if !sums.has_trips {
            return;
        }
        let once = Sum::once(sums.weight, sums.slice);
        let of_loop = sums.trips.entry(id).or_default();
        match (from_entry, to_exit) {
            (true, true) => of_loop.add_whole(iterations, &once),
            (true, false) => of_loop.add_cut(iterations, &once),
            (false, _) => of_loop.without_entry.plus(&once),
        }
    }

    fn path(&mut self, blocks: &[BlockKey], extent: Extent) {
        let (map, sums) = (self.0, &mut *self.1);
        if !sums.has_paths {
            return;
        }
        let is_read = blocks.first().is_some_and(|first| map.is_read(*first));
        let instructions = blocks.iter().map(|key| u64::from(map.block(*key).instructions)).sum();
        let instructions = Sum::times(sums.weight, sums.slice, instructions);
        match extent {
            _ if !is_read => sums.unread.plus(&instructions),
            Extent::CutOff => sums.cut.plus(&instructions),
            Extent::Whole | Extent::Piece => {
                let executions = Sum::once(sums.weight, sums.slice);
                let once = PathSum { executions, instructions, pieces: u64::from(extent == Extent::Piece) };
                sums.paths.add(blocks.iter().rev().copied(), &once);
            }
        }
    }
}

impl Walker for PathWalker<'_> {
    fn walk(&mut self, stack: &WalkedStack<'_>) {
        (self.sums.weight, self.sums.slice) = (stack.weight, stack.slice);
        self.walk_branches(stack);
        self.sums.walks += 1;
    }

    fn merge(&mut self, other: Self) {
        let (sums, other) = (&mut self.sums, other.sums);
        for (id, trips) in &other.trips {
            sums.trips.entry(*id).or_default().merge(trips);
        }
        sums.paths.merge(&other.paths);
        sums.cut.plus(&other.cut);
        sums.unread.plus(&other.unread);
        sums.instructions.plus(&other.instructions);
        sums.histories.merge(&other.histories);
        sums.short.plus(&other.short);
        sums.arrivals.plus(&other.arrivals);
        sums.cycles.merge(other.cycles);
        sums.facts.merge(&other.facts);
        sums.walks += other.walks;
    }
}
