//! Samples added up: unique instruction pointers and unique streams, before any address is looked up.
//!
//! A stack of N branches (newest first in the record) is cut into streams, each with the taken branch at its end:
//!
//! ```text
//!   time --->      B[n-1]        B[n-2]            B[0]
//!              from | to ..... from | to ....... from | to
//!                   |-- stream --|  |-- stream ----|
//! stream (-,     B[n-1])
//! stream (B[n-1].to,          B[n-2])
//! stream (B[n-2].to,                             B[0])
//! ```
//!
//! The oldest branch has no stream before it: HBBP's entry\[0\], whose "target\[-1\]" is unknown. A burst (a stack that was
//! followed in software) says where it started, so there the oldest branch has one too:
//!
//! ```text
//!     ip             B[n-1]             B[0]
//!      |-- stream --| from | to ....... from | to
//! stream (ip,        B[n-1])
//! ```

use std::collections::{HashMap, HashSet};

use formats::burst_data::DataUses;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use perfdata::{Avma, Branch, BranchStack};
use serde::{Deserialize, Serialize};

use crate::recording::{BurstPath, BurstPiece, Context, ContextId, Cuts, Starts};
use crate::uncertainty::{Slice, SliceSums};

/// Fixed-point number of executions, in units of 2^-32, so that sums do not depend on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Weight(pub u128);

impl Weight {
    /// One execution.
    pub const ONE: f64 = 4_294_967_296.0;

    /// So many executions, to the nearest 2^-32.
    pub fn of_executions(count: f64) -> Self {
        Weight((count * Self::ONE).round() as u128)
    }

    /// What one stream of a stack with `streams` streams stands for when the stack was taken every `period` branches:
    /// HBBP's 1/(N-1), times the period.
    pub fn of_stream(period: u64, streams: u64) -> Self {
        Weight((u128::from(period) << 32) / u128::from(streams.max(1)))
    }

    /// What one stream in a burst of `instructions` stands for when the whole burst stands for `period`: that many executions
    /// where `period` counts instructions, or else as many as are proportional to it.
    pub fn of_burst_stream(period: u64, instructions: u64) -> Self {
        Weight((u128::from(period) << 32) / u128::from(instructions.max(1)))
    }

    /// As a floating-point number of executions.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / Self::ONE
    }

    /// So many times as much, to the nearest 2^-32.
    pub fn times(self, factor: f64) -> Weight {
        if factor == 1.0 { self } else { Weight((self.0 as f64 * factor).round() as u128) }
    }

    /// The sum; it sticks at the largest weight, which 2^63 samples of the largest period do not reach.
    pub fn plus(self, other: Weight) -> Weight {
        Weight(self.0.saturating_add(other.0))
    }
}

/// All samples of one context at one instruction pointer.
#[derive(Clone, Debug)]
pub struct IpHits {
    /// The context that it was seen in.
    pub context: ContextId,
    /// Address of the instruction.
    pub ip: Avma,
    /// How many samples have this address.
    pub samples: u64,
    /// Sum of their periods.
    pub periods: u128,
    /// The periods by slice.
    pub slices: SliceSums,
}

/// All executions of one stream, from a branch target straight to the next taken branch, in one context.
#[derive(Clone, Debug)]
pub struct StreamHits {
    /// The context that it was seen in.
    pub context: ContextId,
    /// Target of the branch before, or [`NO_START`]: half the size of an `Option`, and there are many streams.
    start: Avma,
    /// The branch instruction: the last of the stream.
    pub from: Avma,
    /// The instruction that the branch went to.
    pub to: Avma,
    /// How often it was seen.
    pub seen: u64,
    /// How many executions that stands for; zero without a `start`.
    pub weight: Weight,
    /// How often the branch was marked as mispredicted.
    pub mispredicted: u64,
    /// The weight by slice.
    pub slices: SliceSums,
}

/// The last byte of the address space is no branch target.
const NO_START: Avma = Avma(u64::MAX);

impl StreamHits {
    /// Target of the branch before; `None` where the branch was the oldest of its stack.
    pub fn start(&self) -> Option<Avma> {
        (self.start != NO_START).then_some(self.start)
    }
}

/// What was left out of the stacks or is odd about them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackStatistics {
    /// Stacks with at least one branch.
    pub stacks: u64,
    /// Stacks with no branch in them.
    pub empty: u64,
    /// Entries of all stacks, without those on a wrong path.
    pub branches: u64,
    /// Entries on a wrong speculative path (`PERF_BR_SPEC_WRONG_PATH`): not executed, left out.
    pub wrong_path: u64,
    /// Instructions of bursts, those after the newest branch included; 0 where nobody counted them.
    pub instructions: u64,
    /// Pieces of bursts that are said to have executed fewer instructions than branches: left out.
    pub impossible: u64,
    /// Entries that say how many cycles there were since the branch before.
    pub timed: u64,
}

impl StackStatistics {
    fn add(&mut self, other: &StackStatistics) {
        self.stacks += other.stacks;
        self.empty += other.empty;
        self.branches += other.branches;
        self.wrong_path += other.wrong_path;
        self.instructions = self.instructions.saturating_add(other.instructions);
        self.impossible += other.impossible;
        self.timed += other.timed;
    }
}

/// The sums. The same samples give the same sums, in whatever order and however divided among aggregates they were added.
#[derive(Debug, Default)]
pub struct Aggregate {
    contexts: Vec<Context>,
    context_ids: HashMap<Context, ContextId>,
    ips: HashTable<IpHits>,
    streams: HashTable<StreamHits>,
    starts: HashMap<ContextId, Starts>,
    cuts: HashMap<(ContextId, Avma), Cuts>,
    paths: Vec<BurstPath>,
    stacks: StackStatistics,
}

impl Aggregate {
    /// The id of a context, made if it is new.
    pub fn context(&mut self, context: Context) -> ContextId {
        let next = ContextId(self.contexts.len() as u32);
        let id = *self.context_ids.entry(context).or_insert(next);
        if id == next {
            self.contexts.push(context);
        }
        id
    }

    /// Adds samples at an instruction pointer.
    pub fn add_ip(&mut self, hits: IpHits) {
        let hash = fold(hits.context, hits.ip.0, 0, 0);
        let same = |other: &IpHits| other.ip == hits.ip && other.context == hits.context;
        let rehash = |other: &IpHits| fold(other.context, other.ip.0, 0, 0);
        match self.ips.entry(hash, same, rehash) {
            Entry::Occupied(mut sum) => {
                let sum = sum.get_mut();
                sum.samples += hits.samples;
                sum.periods = sum.periods.saturating_add(hits.periods);
                sum.slices.add(&hits.slices);
            }
            Entry::Vacant(free) => drop(free.insert(hits)),
        }
    }

    /// Adds the streams of one stack, each of weight `period` / (N - 1).
    #[inline]
    pub fn add_stack(&mut self, context: ContextId, slice: Slice, period: u64, stack: &BranchStack<'_>) {
        let branches = followed(stack).count() as u64;
        self.count_stack(stack, branches);
        let part = Part { context, slice, weight: Weight::of_stream(period, branches.saturating_sub(1)) };
        self.add_streams(part, NO_START, stack);
    }

    /// Adds the streams of a burst or a piece of one: of N branches N streams, each of weight `period` / `instructions`. What a burst
    /// executed after its newest branch is part of no stream and is not counted: where in a block it ended is not recorded.
    pub fn add_burst(&mut self, context: ContextId, piece: &BurstPiece<'_>) {
        let branches = followed(piece.stack).count() as u64;
        let instructions = piece.weight.instructions;
        if instructions < branches {
            self.stacks.impossible += 1;
            return;
        }
        self.starts.entry(context).or_default().add(piece);
        self.count_stack(piece.stack, branches);
        self.stacks.instructions = self.stacks.instructions.saturating_add(instructions);
        if let Some(cuts) = Cuts::of(piece)
            && let Some(from) = followed(piece.stack).next().map(|newest| newest.to).or(piece.start)
        {
            self.cuts.entry((context, from)).or_default().merge(&cuts);
        }
        let weight = Weight::of_burst_stream(piece.shown, instructions);
        let part = Part { context, slice: piece.slice, weight };
        self.add_streams(part, piece.start.unwrap_or(NO_START), piece.stack);
    }

    /// Keeps a burst in full, from its first piece, which is a sample of that time, ns.
    pub fn keep_path(&mut self, context: ContextId, time: u64, piece: &BurstPiece<'_>, uses: DataUses) {
        let Some(start) = piece.start else { return };
        let mut branches: Vec<(Avma, Avma)> = followed(piece.stack).map(|branch| (branch.from, branch.to)).collect();
        branches.reverse();
        self.paths.push(BurstPath { context, time, start, branches, uses });
    }

    #[inline]
    fn count_stack(&mut self, stack: &BranchStack<'_>, branches: u64) {
        let (mut set, mut timed) = (0, 0);
        for branch in stack.iter().filter(is_set) {
            set += 1;
            timed += u64::from(branch.flags.cycles() > 0);
        }
        self.stacks.wrong_path += set - branches;
        self.stacks.timed += timed;
        self.stacks.branches += branches;
        let stacks = if branches == 0 { &mut self.stacks.empty } else { &mut self.stacks.stacks };
        *stacks += 1;
    }

    /// `start`: where the stream to the oldest branch starts.
    #[inline]
    fn add_streams(&mut self, part: Part, start: Avma, stack: &BranchStack<'_>) {
        let mut newer: Option<Branch> = None;
        for branch in followed(stack) {
            if let Some(newer) = newer {
                self.add_stream_hits(stream_of(part, branch.to, &newer));
            }
            newer = Some(branch);
        }
        if let Some(oldest) = newer {
            let weight = if start == NO_START { Weight::default() } else { part.weight };
            self.add_stream_hits(stream_of(Part { weight, ..part }, start, &oldest));
        }
    }

    /// Adds one execution of a stream: where it starts, its branch, and where that goes.
    #[inline]
    pub(crate) fn add_executed(&mut self, context: ContextId, slice: Slice, [start, from, to]: [u64; 3]) {
        let branch = Branch { from: Avma(from), to: Avma(to), ..Branch::default() };
        let part = Part { context, slice, weight: Weight(1 << 32) };
        self.stacks.branches += 1;
        self.add_stream_hits(stream_of(part, Avma(start), &branch));
    }

    #[inline]
    fn add_stream_hits(&mut self, stream: StreamHits) {
        let same = |other: &StreamHits| {
            other.from == stream.from
                && other.start == stream.start
                && other.to == stream.to
                && other.context == stream.context
        };
        match self.streams.entry(hash_of_stream(&stream), same, hash_of_stream) {
            Entry::Occupied(mut sum) => {
                let sum = sum.get_mut();
                sum.seen += stream.seen;
                sum.weight = sum.weight.plus(stream.weight);
                sum.mispredicted += stream.mispredicted;
                sum.slices.add(&stream.slices);
            }
            Entry::Vacant(free) => drop(free.insert(stream)),
        }
    }

    /// Whether nothing was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.contexts.is_empty() && self.stacks == StackStatistics::default()
    }

    /// Adds everything of another aggregate.
    pub fn merge(&mut self, other: Aggregate) {
        let ids = NewIds(other.contexts.iter().map(|context| self.context(*context)).collect());
        for hits in other.ips {
            self.add_ip(IpHits { context: ids.of(hits.context), ..hits });
        }
        for stream in other.streams {
            self.add_stream_hits(StreamHits { context: ids.of(stream.context), ..stream });
        }
        for (context, starts) in other.starts {
            self.starts.entry(ids.of(context)).or_default().merge(starts);
        }
        for ((context, from), cuts) in other.cuts {
            self.cuts.entry((ids.of(context), from)).or_default().merge(&cuts);
        }
        let paths = other.paths.into_iter();
        self.paths.extend(paths.map(|path| BurstPath { context: ids.of(path.context), ..path }));
        self.stacks.add(&other.stacks);
    }

    /// The finished sums, everything sorted.
    pub fn finish(self) -> Totals {
        let mut sorted: Vec<(Context, ContextId)> = self.contexts.into_iter().zip((0..).map(ContextId)).collect();
        sorted.sort_unstable();
        let (contexts, old_ids): (Vec<Context>, Vec<ContextId>) = sorted.into_iter().unzip();
        let ids = NewIds::in_order(old_ids);
        let mut ips: Vec<IpHits> =
            self.ips.into_iter().map(|hits| IpHits { context: ids.of(hits.context), ..hits }).collect();
        ips.sort_unstable_by_key(|hits| (hits.context, hits.ip));
        let mut streams: Vec<StreamHits> =
            self.streams.into_iter().map(|stream| StreamHits { context: ids.of(stream.context), ..stream }).collect();
        streams.sort_unstable_by_key(|stream| (stream.context, stream.start, stream.from, stream.to));
        let mut starts: Vec<(ContextId, Starts)> =
            self.starts.into_iter().map(|(context, starts)| (ids.of(context), starts)).collect();
        starts.sort_unstable_by_key(|(context, _)| *context);
        let cuts = self.cuts.into_iter().map(|((context, from), cuts)| (ids.of(context), from, cuts));
        let mut cuts: Vec<(ContextId, Avma, Cuts)> = cuts.collect();
        cuts.sort_unstable_by_key(|(context, from, _)| (*context, *from));
        let paths = self.paths.into_iter();
        let mut paths: Vec<BurstPath> = paths.map(|path| BurstPath { context: ids.of(path.context), ..path }).collect();
        paths.sort_unstable();
        Totals { contexts, ips, streams, starts, cuts, paths, stacks: self.stacks }
    }
}

/// The ids that an aggregate's contexts get, by their ids of before.
struct NewIds(Vec<ContextId>);

impl NewIds {
    /// The first of these old ids becomes 0, the next one 1.
    fn in_order(old: Vec<ContextId>) -> Self {
        let mut pairs: Vec<(ContextId, ContextId)> = old.into_iter().zip((0..).map(ContextId)).collect();
        pairs.sort_unstable();
        NewIds(pairs.into_iter().map(|(_, new)| new).collect())
    }

    #[expect(clippy::indexing_slicing, reason = "an aggregate's ids are those of its contexts, and each has a new one")]
    fn of(&self, old: ContextId) -> ContextId {
        self.0[old.0 as usize]
    }
}

/// A finished [`Aggregate`]: unique addresses and streams, with what they add up to.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Sorted; a [`ContextId`] is an index into it.
    pub contexts: Vec<Context>,
    /// Sorted by context and address.
    pub ips: Vec<IpHits>,
    /// Sorted by context, start, from and to.
    pub streams: Vec<StreamHits>,
    /// Bursts by the context they are of, sorted.
    pub starts: Vec<(ContextId, Starts)>,
    /// Bursts that ended at system calls, by context and where their last taken branch went, sorted.
    pub cuts: Vec<(ContextId, Avma, Cuts)>,
    /// Some of the bursts in full, sorted by context and time.
    pub paths: Vec<BurstPath>,
    /// What the stacks held.
    pub stacks: StackStatistics,
}

impl Totals {
    /// How many blocks of processes were executed, at least: branches that were taken, in each process. It counts no further than to `most`.
    pub fn least_blocks_of_processes(&self, most: usize) -> usize {
        let mut taken: HashSet<(u32, u32, bool, Avma)> = HashSet::new();
        for stream in &self.streams {
            let Context { pid, place, guest, .. } = *self.context(stream.context);
            taken.insert((pid, place.incarnation, guest, stream.from));
            if taken.len() >= most {
                break;
            }
        }
        taken.len()
    }

    /// The context of this id.
    #[expect(clippy::indexing_slicing, reason = "only the aggregate that these totals are of makes their ids")]
    pub fn context(&self, id: ContextId) -> &Context {
        &self.contexts[id.0 as usize]
    }
}

/// `PERF_BR_SPEC_WRONG_PATH` of `enum perf_branch_entry` (include/uapi/linux/perf_event.h).
const SPEC_WRONG_PATH: u8 = 1;

/// The entries that hold a branch: the hardware leaves those empty that it has not filled yet.
#[inline]
fn is_set(branch: &Branch) -> bool {
    branch.from.0 != 0 || branch.to.0 != 0
}

/// The branches that were executed.
#[inline]
pub fn followed<'a>(stack: &BranchStack<'a>) -> impl Iterator<Item = Branch> + use<'a> {
    stack.iter().filter(|branch| is_set(branch) && branch.flags.spec() != SPEC_WRONG_PATH)
}

/// What the streams of a stack have in common.
#[derive(Clone, Copy)]
struct Part {
    context: ContextId,
    slice: Slice,
    /// Of each stream.
    weight: Weight,
}

#[inline]
fn stream_of(Part { context, slice, weight }: Part, start: Avma, branch: &Branch) -> StreamHits {
    StreamHits {
        context,
        start,
        from: branch.from,
        to: branch.to,
        seen: 1,
        weight,
        mispredicted: u64::from(branch.flags.mispredicted()),
        slices: SliceSums::of_weight(slice, weight),
    }
}

#[inline]
fn hash_of_stream(stream: &StreamHits) -> u64 {
    fold(stream.context, stream.start.0, stream.from.0, stream.to.0)
}

/// One folded multiplication of a place and a pair of addresses. Addresses differ in few low bits; the table wants all bits of the
/// hash to differ.
#[inline]
fn fold(context: ContextId, start: u64, from: u64, to: u64) -> u64 {
    const A: u64 = 0x9e37_79b9_7f4a_7c15;
    const B: u64 = 0xc2b2_ae3d_27d4_eb4f;
    let left = start ^ u64::from(context.0).rotate_left(40) ^ A;
    let right = from ^ to.rotate_left(32) ^ B;
    let product = u128::from(left) * u128::from(right);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use formats::burst_weight::BurstWeight;
    use perfdata::BranchFlags;

    use super::*;
    use crate::recording::EpochId;
    use crate::recording::PhaseId;

    const CONTEXT: Context = Context {
        event: 0,
        pid: 1,
        place: EpochId { incarnation: 0, epoch: 0, kernel: 0 },
        tid: 0,
        phase: PhaseId(0),
        guest: false,
        start: Avma(0),
        after_call: false,
    };

    fn stack(branches: &[(u64, u64, u64)]) -> Vec<u8> {
        let branch = |&(from, to, flags)| Branch { from: Avma(from), to: Avma(to), flags: BranchFlags(flags) };
        branches.iter().map(branch).flat_map(|branch| branch.to_bytes()).collect()
    }

    fn totals(stacks: &[&[(u64, u64, u64)]]) -> Totals {
        let mut aggregate = Aggregate::default();
        let context = aggregate.context(CONTEXT);
        for branches in stacks {
            aggregate.add_stack(context, Slice::default(), 300, &BranchStack::new(None, &stack(branches)));
        }
        aggregate.finish()
    }

    /// Of the same process in another epoch, or from another start of bursts, a block is the same; of another process it is not.
    #[test]
    fn blocks_of_processes_are_at_least_their_branches() {
        let later = EpochId { incarnation: 0, epoch: 1, kernel: 0 };
        let mut aggregate = Aggregate::default();
        for (pid, place) in [(1, CONTEXT.place), (1, later), (2, CONTEXT.place)] {
            let context = Context { pid, place, ..CONTEXT };
            for context in [context, context.starting_at(Avma(0x40), false)] {
                let id = aggregate.context(context);
                let branches = stack(&[(0x20, 0x30, 0), (0x10, 0x18, 0), (0x10, 0x14, 0)]);
                aggregate.add_stack(id, Slice::default(), 300, &BranchStack::new(None, &branches));
            }
        }
        let totals = aggregate.finish();
        assert_eq!(totals.least_blocks_of_processes(100), 4);
        assert_eq!(totals.least_blocks_of_processes(3), 3);
    }

    fn shown(totals: &Totals) -> Vec<(Option<u64>, u64, u64, u64, f64)> {
        let stream = |stream: &StreamHits| {
            (stream.start().map(|at| at.0), stream.from.0, stream.to.0, stream.seen, stream.weight.to_f64())
        };
        totals.streams.iter().map(stream).collect()
    }

    #[test]
    fn a_stack_of_n_branches_gives_n_minus_one_streams_of_that_weight() {
        let newest_first = [(30, 40, 2), (20, 25, 1), (10, 15, 2), (1, 5, 2)];
        let totals = totals(&[&newest_first, &newest_first]);
        assert_eq!(
            shown(&totals),
            [
                (Some(5), 10, 15, 2, 200.0),
                (Some(15), 20, 25, 2, 200.0),
                (Some(25), 30, 40, 2, 200.0),
                (None, 1, 5, 2, 0.0)
            ]
        );
        assert_eq!(totals.streams.iter().map(|stream| stream.mispredicted).sum::<u64>(), 2);
        assert_eq!(totals.stacks, StackStatistics { stacks: 2, branches: 8, ..StackStatistics::default() });
    }

    #[test]
    fn empty_entries_and_wrong_paths_are_no_branches() {
        const WRONG_PATH: u64 = 1 << 24;
        let totals = totals(&[&[(30, 40, 2), (7, 8, WRONG_PATH), (20, 25, 2), (0, 0, 0)], &[], &[(0, 0, 0)]]);
        assert_eq!(shown(&totals), [(Some(25), 30, 40, 1, 300.0), (None, 20, 25, 1, 0.0)]);
        let expected =
            StackStatistics { stacks: 1, empty: 2, branches: 2, wrong_path: 1, ..StackStatistics::default() };
        assert_eq!(totals.stacks, expected);
    }

    /// Start, instructions, period and branches.
    type Piece<'a> = (u64, u64, u64, &'a [(u64, u64, u64)]);

    fn totals_of_bursts(pieces: &[Piece<'_>]) -> Totals {
        let mut aggregate = Aggregate::default();
        let context = aggregate.context(CONTEXT);
        for &(start, instructions, period, branches) in pieces {
            let (start, entries) = (Some(Avma(start)), stack(branches));
            let stack = BranchStack::new(None, &entries);
            let (slice, stack) = (Slice::default(), &stack);
            let weight = BurstWeight { instructions, ..BurstWeight::default() };
            aggregate
                .add_burst(context, &BurstPiece { start, weight, period, shown: period, stack, first: true, slice });
        }
        aggregate.finish()
    }

    #[test]
    fn a_burst_of_n_branches_gives_n_streams_from_where_it_started() {
        let totals = totals_of_bursts(&[(2, 50, 400, &[(30, 40, 2), (20, 25, 2), (10, 15, 2)]), (2, 7, 56, &[])]);
        let streams = [(Some(2), 10, 15, 1, 8.0), (Some(15), 20, 25, 1, 8.0), (Some(25), 30, 40, 1, 8.0)];
        assert_eq!(shown(&totals), streams);
        let expected =
            StackStatistics { stacks: 1, empty: 1, branches: 3, instructions: 57, ..StackStatistics::default() };
        assert_eq!(totals.stacks, expected);
    }

    #[test]
    fn pieces_add_up_to_their_burst() {
        let whole = totals_of_bursts(&[(2, 50, 400, &[(30, 40, 2), (20, 25, 2), (10, 15, 2)])]);
        let pieces = totals_of_bursts(&[(2, 20, 160, &[(20, 25, 2), (10, 15, 2)]), (25, 30, 240, &[(30, 40, 2)])]);
        assert_eq!(shown(&whole), shown(&pieces));
        assert_eq!(whole.stacks.instructions, pieces.stacks.instructions);
    }

    #[test]
    fn absurd_bursts_count_nothing_or_next_to_nothing() {
        let branches = [(20, 25, 2), (10, 15, 2)];
        for instructions in [0, 1] {
            let totals = totals_of_bursts(&[(2, instructions, 400, &branches)]);
            assert!(totals.streams.is_empty());
            assert_eq!(totals.stacks, StackStatistics { impossible: 1, ..StackStatistics::default() });
        }
        let largest = [(2, 2, u64::MAX, &branches[..]), (2, u64::MAX, 1, &branches), (2, u64::MAX, 1, &branches)];
        let totals = totals_of_bursts(&largest);
        assert_eq!(totals.stacks.instructions, u64::MAX);
        assert_eq!(totals.streams[0].weight, Weight::of_burst_stream(u64::MAX, 2));
        // The address that stands for "none" is no start.
        let nowhere = totals_of_bursts(&[(u64::MAX, 2, 400, &branches)]);
        assert_eq!(shown(&nowhere), [(Some(15), 20, 25, 1, 200.0), (None, 10, 15, 1, 0.0)]);
    }

    #[test]
    fn weights_keep_five_digits_where_a_stream_is_a_thousandth() {
        for (period, instructions) in [(1, 1000), (97, 10_007), (4_000_037, 10_003), (1, 2)] {
            let exact = period as f64 / instructions as f64;
            let error = Weight::of_burst_stream(period, instructions).to_f64() / exact - 1.0;
            assert!(error.abs() < 1e-6, "{period} / {instructions}: {error}");
        }
    }

    #[test]
    fn sums_do_not_depend_on_how_they_were_divided() {
        let stacks: Vec<Vec<(u64, u64, u64)>> =
            (0..50).map(|i| (0..3 + i % 4).map(|j| (i * j % 7 + 1, j % 3 + 1, 2)).collect()).collect();
        let sum = |parts: usize| {
            let mut aggregates: Vec<Aggregate> = (0..parts).map(|_| Aggregate::default()).collect();
            for (index, branches) in stacks.iter().enumerate() {
                let aggregate = &mut aggregates[index % parts];
                let context = aggregate.context(Context { pid: index as u32 % 3, ..CONTEXT });
                let slice = Slice::all().nth(index % 3).unwrap();
                aggregate.add_stack(context, slice, 100_003, &BranchStack::new(None, &stack(branches)));
            }
            let merged = aggregates.into_iter().rev().reduce(|mut sum, more| {
                sum.merge(more);
                sum
            });
            let totals = merged.unwrap().finish();
            format!("{totals:?}")
        };
        assert_eq!(sum(1), sum(4));
        assert_eq!(sum(1), sum(7));
    }
}
