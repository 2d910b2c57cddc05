//! From addresses in processes to offsets in modules.

use std::collections::{BTreeMap, HashMap};

use formats::burst_data::DataUses;

use crate::address::{Avma, FileOffset};

use crate::counting::spots::{Spots, View, is_kernel};
use crate::counting::{BrokenStreams, GroupId, Groups};
use crate::recording::{
    AddressSpace, BurstPath, Context, ContextId, Cuts, IpHits, ModuleId, ModuleTable, Sources, Starts, Timeline,
    Totals, Weight, granule,
};
use crate::uncertainty::SliceSums;

/// EBS samples at one instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocatedIp {
    /// The group that it was seen in.
    pub group: GroupId,
    /// Offset of the instruction.
    pub at: FileOffset,
    /// How many samples they are.
    pub samples: u64,
    /// Sum of their periods.
    pub periods: u128,
    /// The periods by slice.
    pub slices: SliceSums,
}

/// A place in the code where bursts started: an index into [`Located::starts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StartId(pub u32);

/// 16 bytes of code where bursts started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocatedStart {
    /// The module that has them.
    pub module: ModuleId,
    /// The first of the 16 bytes.
    pub at: FileOffset,
    /// They start right after a system call.
    pub after_call: bool,
    /// How many bursts started there, and what they stand for.
    pub starts: Starts,
}

/// The first of the 16 bytes of code that are a [`LocatedStart`].
pub fn granule_of(at: FileOffset) -> FileOffset {
    FileOffset(granule(at.0))
}

/// Bursts of one place that ended at a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocatedCut {
    /// Where they started.
    pub start: StartId,
    /// The code from which they went straight on to the call: its module,
    pub module: ModuleId,
    /// and its first instruction.
    pub from: FileOffset,
    /// What they stand for.
    pub sums: Cuts,
}

/// Code without a taken branch, but for its last instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The module that has the code.
    pub module: ModuleId,
    /// Its first instruction: a branch target, or where a burst started.
    pub start: FileOffset,
    /// Last instruction: a taken branch.
    pub end: FileOffset,
}

/// What a burst executed, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocatedPath {
    /// The layout of the process ([`AddressSpace::top`]): lines of data have a meaning within one.
    pub layout: Option<Avma>,
    /// When the burst began, ns on the recording's clock.
    pub time: u64,
    /// From branch to branch; `None` where no code is known.
    pub streams: Vec<Option<Stream>>,
    /// The lines of data it used.
    pub uses: DataUses,
}

/// Executions of one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocatedStream {
    /// The group that it was seen in.
    pub group: GroupId,
    /// Where the bursts started it was seen in; `None` of stacks that are no bursts.
    pub burst: Option<StartId>,
    /// First instruction: a branch target, or where a burst started.
    pub start: FileOffset,
    /// Last instruction: a taken branch, or with `to_kernel` the instruction that was interrupted.
    pub end: FileOffset,
    /// The branch at its end went from user code into the kernel: a system call, or an interrupt or fault, which no instruction
    /// of the program made.
    pub to_kernel: bool,
    /// How often it was seen.
    pub seen: u64,
    /// How many executions that stands for.
    pub weight: Weight,
    /// The weight by slice.
    pub slices: SliceSums,
}

/// How often a branch instruction was seen in the stacks. Ways from user code into the kernel are not branches of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocatedBranch {
    /// The branch instruction's first byte.
    pub from: FileOffset,
    /// How often it was the source of an entry, wherever in its stack.
    pub seen: u64,
    /// As the oldest entry of its stack, HBBP's entry\[0\].
    pub oldest: u64,
}

/// Executions of one taken branch. Returns from the kernel are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenBranch {
    /// Where the bursts started it was seen in; `None` of stacks that are no bursts.
    pub burst: Option<StartId>,
    /// The branch instruction's first byte.
    pub from: FileOffset,
    /// The module it went to.
    pub to_module: ModuleId,
    /// The instruction it went to, in `to_module`.
    pub to: FileOffset,
    /// It went from user code into the kernel: a system call, or an interrupt or fault.
    pub to_kernel: bool,
    /// How many executions that stands for.
    pub weight: Weight,
    /// How many of them were mispredicted.
    pub mispredicted: Weight,
}

/// What is kept of the branches: each has what those before it have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// What blocks are counted from.
    #[default]
    Blocks,
    /// Where each branch went as well.
    Branches,
    /// And which function called which, in what context.
    Calls,
}

/// What was seen of one module, by file offset.
#[derive(Clone, Debug, Default)]
pub struct ModuleHits {
    /// Sorted by group and place; unique.
    pub ips: Vec<LocatedIp>,
    /// Sorted by group, burst, start and end; unique.
    pub streams: Vec<LocatedStream>,
    /// Sorted by place; unique.
    pub branches: Vec<LocatedBranch>,
    /// Sorted by burst and both ends, unique; only with [`Detail::Branches`]. The oldest branch of a stack, HBBP's entry\[0\], is of no
    /// stream and not among them.
    pub taken: Vec<TakenBranch>,
    /// Where branches of programs led; sorted, unique.
    pub targets: Vec<FileOffset>,
    /// Where the kernel came back to and where bursts started: instruction starts, but only of blocks by chance. Sorted, unique.
    pub resumed: Vec<FileOffset>,
}

/// Everything located, and what could not be.
#[derive(Clone, Debug, Default)]
pub struct Located {
    /// What was located in each module.
    pub modules: BTreeMap<ModuleId, ModuleHits>,
    /// The places where bursts started: a [`StartId`] is an index.
    pub starts: Vec<LocatedStart>,
    /// The place where the bursts of each context start.
    pub start_of_context: Vec<(ContextId, StartId)>,
    /// Bursts that ended at system calls; a place of start and of code is there once for each context.
    pub cuts: Vec<LocatedCut>,
    /// Some of the bursts in full, by time.
    pub paths: Vec<LocatedPath>,
    /// Streams that fell apart on the way.
    pub broken: BrokenStreams,
    /// How many executions they stand for, by where their bursts started.
    pub broken_weight: BTreeMap<Option<StartId>, Weight>,
    /// All streams, broken ones included.
    pub streams: u64,
    /// EBS samples whose address no mapping explains.
    pub unmapped_samples: u64,
    /// Branch ends whose address no mapping explains.
    pub unmapped_branches: u64,
}

/// Looks up every unique address once.
pub fn locate(
    totals: &Totals,
    timeline: &Timeline,
    modules: &mut ModuleTable,
    sources: &Sources,
    groups: &Groups,
    detail: Detail,
) -> Located {
    let mut locator = Locator {
        located: Located::default(),
        spots: Spots::new(timeline, modules),
        groups,
        detail,
        start_ids: HashMap::new(),
    };

    let mut by_process: BTreeMap<(u32, u32), BTreeMap<u32, Vec<ContextId>>> = BTreeMap::new();
    for (index, context) in totals.contexts.iter().enumerate() {
        let process = by_process.entry((context.pid, context.place.incarnation)).or_default();
        process.entry(context.place.epoch).or_default().push(ContextId(index as u32));
    }
    for ((pid, incarnation), epochs) in by_process {
        timeline.for_each_epoch(pid, incarnation, |epoch, space| {
            for &id in epochs.get(&epoch).into_iter().flatten() {
                locator.locate_context(id, totals, space, sources);
            }
        });
    }
    for hits in locator.located.modules.values_mut() {
        hits.tidy();
    }
    // Those of the same time stay in the order of their contexts.
    locator.located.paths.sort_by_key(|path| path.time);
    locator.located.paths.truncate(BurstPath::MOST);
    locator.located
}

struct Locator<'a> {
    located: Located,
    spots: Spots,
    groups: &'a Groups,
    detail: Detail,
    start_ids: HashMap<(ModuleId, FileOffset, bool), StartId>,
}

impl Locator<'_> {
    fn locate_context(&mut self, id: ContextId, totals: &Totals, space: &AddressSpace, sources: &Sources) {
        let context = *totals.context(id);
        let view = View::new(space, context.place.kernel, context.guest);
        let group = self.groups.of(id);
        let serves = |source: &Option<crate::recording::SourceEvents>| {
            source.as_ref().is_some_and(|source| source.events.contains(&(context.event as usize)))
        };
        if serves(&sources.ebs) {
            let first = totals.ips.partition_point(|hits| hits.context < id);
            for hits in totals.ips[first..].iter().take_while(|hits| hits.context == id) {
                let spot = self.spots.of(hits.ip, &view);
                if spot.module == self.spots.unknown() {
                    self.located.unmapped_samples += hits.samples;
                }
                let IpHits { samples, periods, .. } = *hits;
                let ip = LocatedIp { group, at: spot.offset, samples, periods, slices: hits.slices.clone() };
                self.hits(spot.module).ips.push(ip);
            }
        }
        if serves(&sources.lbr) {
            let burst = self.start_of(id, &context, totals, &view);
            let first = totals.cuts.partition_point(|(context, ..)| *context < id);
            for (_, from, sums) in totals.cuts[first..].iter().take_while(|(context, ..)| *context == id) {
                let from = self.spots.of(*from, &view);
                self.located.cuts.extend(burst.map(|start| LocatedCut {
                    start,
                    module: from.module,
                    from: from.offset,
                    sums: *sums,
                }));
            }
            let first = totals.paths.partition_point(|path| path.context < id);
            for path in totals.paths[first..].iter().take_while(|path| path.context == id) {
                let path = self.path(path, space, &view);
                self.located.paths.push(path);
            }
            let first = totals.streams.partition_point(|stream| stream.context < id);
            for stream in totals.streams[first..].iter().take_while(|stream| stream.context == id) {
                let from = self.spots.of(stream.from, &view);
                let to = self.spots.of(stream.to, &view);
                for spot in [from, to] {
                    if spot.module == self.spots.unknown() {
                        self.located.unmapped_branches += stream.seen;
                    }
                }
                let to_kernel = !is_kernel(stream.from) && is_kernel(stream.to);
                if !to_kernel {
                    let oldest = if stream.start().is_none() { stream.seen } else { 0 };
                    self.hits(from.module).branches.push(LocatedBranch {
                        from: from.offset,
                        seen: stream.seen,
                        oldest,
                    });
                }
                let from_kernel = is_kernel(stream.from) && !is_kernel(stream.to);
                if from_kernel {
                    self.hits(to.module).resumed.push(to.offset);
                } else {
                    self.hits(to.module).targets.push(to.offset);
                }
                let Some(start) = stream.start() else { continue };
                self.located.streams += stream.seen;
                if self.detail >= Detail::Branches && !from_kernel {
                    let mispredicted = stream.weight.times(stream.mispredicted as f64 / stream.seen as f64);
                    let taken = TakenBranch {
                        burst,
                        from: from.offset,
                        to_module: to.module,
                        to: to.offset,
                        to_kernel,
                        weight: stream.weight,
                        mispredicted,
                    };
                    self.hits(from.module).taken.push(taken);
                }
                let (first, last) = self.spots.of_stream(start, (stream.from, from), &view);
                if start > stream.from {
                    self.located.broken.backwards += stream.seen;
                    self.add_broken(burst, stream.weight);
                } else if (first.module, first.base) != (last.module, last.base) {
                    self.located.broken.crosses_module += stream.seen;
                    self.add_broken(burst, stream.weight);
                } else {
                    let (start, end) = (first.offset, last.offset);
                    if sources.lbr.as_ref().is_some_and(|lbr| lbr.has_bursts) {
                        self.hits(last.module).resumed.push(start); // A burst starts anywhere.
                    }
                    let (seen, weight) = (stream.seen, stream.weight);
                    let slices = stream.slices.clone();
                    let located = LocatedStream { group, burst, start, end, to_kernel, seen, weight, slices };
                    self.hits(last.module).streams.push(located);
                }
            }
        }
    }

    /// The place where the bursts of this context start.
    fn start_of(&mut self, of: ContextId, context: &Context, totals: &Totals, view: &View<'_>) -> Option<StartId> {
        let at = totals.starts.binary_search_by_key(&of, |(context, _)| *context).ok()?;
        let starts = &totals.starts[at].1;
        let spot = self.spots.of(context.start, view);
        let all = &mut self.located.starts;
        let next = StartId(all.len() as u32);
        let id = *self.start_ids.entry((spot.module, spot.offset, context.after_call)).or_insert(next);
        if id == next {
            let after_call = context.after_call;
            all.push(LocatedStart { module: spot.module, at: spot.offset, after_call, starts: Starts::default() });
        }
        all[id.0 as usize].starts.merge(starts.clone());
        self.located.start_of_context.push((of, id));
        Some(id)
    }

    fn path(&self, path: &BurstPath, space: &AddressSpace, view: &View<'_>) -> LocatedPath {
        let starts = std::iter::once(path.start).chain(path.branches.iter().map(|(_, to)| *to));
        let stream = |(start, end): (Avma, Avma)| {
            let (first, last) = self.spots.of_stream(start, (end, self.spots.of(end, view)), view);
            let is_one = start <= end && (first.module, first.base) == (last.module, last.base);
            is_one.then_some(Stream { module: first.module, start: first.offset, end: last.offset })
        };
        let streams = starts.zip(path.branches.iter().map(|(from, _)| *from)).map(stream).collect();
        LocatedPath { layout: space.top(), time: path.time, streams, uses: path.uses.clone() }
    }

    fn add_broken(&mut self, burst: Option<StartId>, weight: Weight) {
        let sum = self.located.broken_weight.entry(burst).or_default();
        *sum = sum.plus(weight);
    }

    fn hits(&mut self, module: ModuleId) -> &mut ModuleHits {
        self.located.modules.entry(module).or_default()
    }
}

impl ModuleHits {
    /// Sorts everything and adds up what became equal (the same module in several processes).
    fn tidy(&mut self) {
        self.ips.sort_unstable_by_key(|ip| (ip.group, ip.at));
        self.ips.dedup_by(|ip, kept| {
            let same = (ip.group, ip.at) == (kept.group, kept.at);
            if same {
                kept.samples += ip.samples;
                kept.periods = kept.periods.saturating_add(ip.periods);
                kept.slices.add(&ip.slices);
            }
            same
        });
        self.streams
            .sort_unstable_by_key(|stream| (stream.group, stream.burst, stream.start, stream.end, stream.to_kernel));
        self.streams.dedup_by(|stream, kept| {
            let same = (stream.group, stream.burst, stream.start, stream.end, stream.to_kernel)
                == (kept.group, kept.burst, kept.start, kept.end, kept.to_kernel);
            if same {
                kept.seen += stream.seen;
                kept.weight = kept.weight.plus(stream.weight);
                kept.slices.add(&stream.slices);
            }
            same
        });
        self.branches.sort_unstable_by_key(|branch| branch.from);
        self.branches.dedup_by(|branch, kept| {
            let same = branch.from == kept.from;
            if same {
                kept.seen += branch.seen;
                kept.oldest += branch.oldest;
            }
            same
        });
        let ends = |taken: &TakenBranch| (taken.burst, taken.from, taken.to_module, taken.to, taken.to_kernel);
        self.taken.sort_unstable_by_key(ends);
        self.taken.dedup_by(|taken, kept| {
            let same = ends(taken) == ends(kept);
            if same {
                kept.weight = kept.weight.plus(taken.weight);
                kept.mispredicted = kept.mispredicted.plus(taken.mispredicted);
            }
            same
        });
        for offsets in [&mut self.targets, &mut self.resumed] {
            offsets.sort_unstable();
            offsets.dedup();
        }
    }
}
