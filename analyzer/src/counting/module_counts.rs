//! From what was seen of one module to sums per basic block.
//!
//! EBS samples fall into the block that contains them. A stream is mapped to the blocks it covers; a block counts as covered
//! when its *last* instruction was executed in the stream:
//!
//! ```text
//! blocks   |  A  |   B   | C |      D      |
//! stream      ^start (a target) ... ^end (a taken branch, last instruction of C)
//!          +1 at B,                -1 after C      (sums over a difference array)
//! ```
//!
//! A stream cut in two by an interrupt covers the interrupted block once: in its second half.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::address::{FileOffset, Svma};
use crate::binaries::{Binary, NoCode};
use crate::code::{BlockMap, Image, Observed, Terminator};
use crate::counting::interval_sum::{Amount, IntervalSum};
use crate::counting::straight_line::Broken;
use crate::counting::unreadable::{UnreadBlock, unread_blocks};
use crate::counting::{AnalysedModule, BrokenStreams, GroupId, LocatedIp, LocatedStream, ModuleHits, StartId};
use crate::recording::{CodeKind, KnownFunctions, Module, ModuleId, StackStatistics, Weight};
use crate::uncertainty::{Replicates, SLICES, Sampled, SliceSums};

/// The code of a module, as far as it can be known.
#[derive(Debug)]
pub enum Code {
    /// Its file was read.
    Read(Arc<AnalysedModule>),
    /// Nothing but addresses is known.
    Unread {
        /// Why, in one sentence.
        why: String,
        /// Blocks as far as the recording shows them.
        blocks: Vec<UnreadBlock>,
        /// The functions that they are of, as far as names are known.
        functions: Arc<KnownFunctions>,
    },
}

/// Sums of one block in one group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockSums {
    /// EBS samples whose instruction pointer is in the block.
    pub ebs_samples: u64,
    /// Sum of their periods.
    pub ebs_periods: u128,
    /// Streams that cover the block.
    pub lbr_streams: u64,
    /// How many executions they stand for.
    pub lbr_weight: Weight,
}

impl BlockSums {
    /// Adds other sums of the same block.
    pub fn add(&mut self, other: &BlockSums) {
        self.ebs_samples += other.ebs_samples;
        self.ebs_periods = self.ebs_periods.saturating_add(other.ebs_periods);
        self.lbr_streams += other.lbr_streams;
        self.lbr_weight = self.lbr_weight.plus(other.lbr_weight);
    }
}

/// What each slice of the recording has of the sums of one block in one group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlicedSums {
    /// The periods of its EBS samples.
    pub ebs: SliceSums,
    /// The weight of its streams, where they are not of bursts.
    pub lbr: SliceSums,
    /// The weight of its streams where they are of bursts, as they are [weighted](ModuleCounts::weigh_bursts).
    pub bursts: Option<Box<Sampled>>,
}

/// Sums of the streams of bursts that start in one place, of one block in one group.
#[derive(Clone, Debug)]
pub struct StartSums {
    /// Where the bursts start.
    pub start: StartId,
    /// Whose they are.
    pub group: GroupId,
    /// Index of the block.
    pub block: u32,
    /// The sums.
    pub sums: BlockSums,
    /// The weight of the streams by slice.
    pub slices: SliceSums,
}

/// What was counted in one module.
#[derive(Debug)]
pub struct ModuleCounts {
    /// The module that was counted.
    pub module: ModuleId,
    /// Its blocks, or why there are none.
    pub code: Code,
    /// Sums by group and block index, sorted; blocks without any are absent.
    pub sums: Vec<(GroupId, u32, BlockSums)>,
    /// What the slices have of each of the `sums`, in the same order; complete when bursts are [weighted](Self::weigh_bursts).
    pub sliced: Vec<SlicedSums>,
    /// Sums of streams of bursts, kept apart by where the bursts started until they are [weighted](Self::weigh_bursts).
    pub by_start: Vec<StartSums>,
    /// Blocks (by index, sorted) whose branch sits in entry\[0\] far more often than its share.
    pub biased: Vec<u32>,
    /// Streams that do not fit the code.
    pub broken: BrokenStreams,
    /// Recorded branches (executions, not addresses) whose source is no branch instruction in the file, and all of them: tells a
    /// wrong binary.
    pub strange_branches: (u64, u64),
}

/// Counts one module. `file` is its binary or the reason why there is none; `stacks` are those of the whole recording. Samples at
/// addresses that are no code of the file are counted as of unread code of the module, after what was read.
pub fn count_module(
    module: ModuleId,
    hits: &ModuleHits,
    file: Result<Binary, NoCode>,
    stacks: &StackStatistics,
) -> Vec<ModuleCounts> {
    match file {
        Ok(binary) => {
            let (counts, outside) = count_read(module, hits, binary, stacks);
            let why = "these addresses are no code of the file";
            let rest = (!outside.ips.is_empty()).then(|| count_unread(module, &outside, why.into(), stacks));
            [Some(counts), rest].into_iter().flatten().collect()
        }
        Err(why) => vec![count_unread(module, hits, why.to_string(), stacks)],
    }
}

fn count_read(
    module: ModuleId,
    hits: &ModuleHits,
    binary: Binary,
    stacks: &StackStatistics,
) -> (ModuleCounts, ModuleHits) {
    let analysed = AnalysedModule::new(binary, |image| {
        let svmas = |offsets: &mut dyn Iterator<Item = FileOffset>| {
            offsets.filter_map(|offset| image.svma_of_file_offset(offset.0)).collect::<Vec<_>>()
        };
        Observed::new(
            svmas(&mut hits.ips.iter().map(|ip| ip.at).chain(hits.resumed.iter().copied())),
            svmas(&mut hits.targets.iter().copied()),
            svmas(&mut hits.branches.iter().map(|branch| branch.from)),
        )
    });
    let (image, blocks, lines) = (&analysed.binary.image, &analysed.blocks, analysed.lines());

    let mut outside = ModuleHits::default();
    let mut counts = ModuleCounts::new(module);
    let mut tally = Tally::new(blocks.blocks().len());
    for_each_group(&hits.ips, &hits.streams, |group, ips, streams| {
        for ip in ips {
            match block_of(image, blocks, ip.at) {
                Some(block) => tally.add_samples(block, ip),
                None => outside.ips.push(ip.clone()),
            }
        }
        for streams in streams.chunk_by(|one, other| one.burst == other.burst) {
            for stream in streams {
                match lines.for_each_piece(stream, |first, end| tally.add_stream(first, end, stream)) {
                    Ok(()) => {}
                    Err(Broken::ThroughBranch) => counts.broken.through_branch += stream.seen,
                    Err(Broken::Undecodable) => counts.broken.undecodable += stream.seen,
                }
            }
            tally.drain_streams(group, streams[0].burst, &mut counts);
        }
        tally.drain_samples(group, &mut counts);
    });
    counts.tidy();
    for branch in &hits.branches {
        counts.strange_branches.1 += branch.seen;
        match block_of(image, blocks, branch.from) {
            Some(block) if ends_with_branch(blocks, block, image, branch.from) => {
                if is_biased(branch.seen, branch.oldest, stacks) {
                    counts.biased.push(block as u32);
                }
            }
            _ => counts.strange_branches.0 += branch.seen,
        }
    }
    // Branches are sorted by file offset, which is not always the order of addresses.
    counts.biased.sort_unstable();
    counts.code = Code::Read(Arc::new(analysed));
    (counts, outside)
}

/// The last block that starts at a place or before it: the one around it, if it was hit.
fn unread_block_of(blocks: &[UnreadBlock], at: FileOffset) -> Option<usize> {
    blocks.partition_point(|block| block.start <= at).checked_sub(1)
}

fn count_unread(module: ModuleId, hits: &ModuleHits, why: String, stacks: &StackStatistics) -> ModuleCounts {
    let mut counts = ModuleCounts::new(module);
    let blocks = unread_blocks(hits);
    let index_of = |at: FileOffset| unread_block_of(&blocks, at);
    let mut tally = Tally::new(blocks.len());
    for_each_group(&hits.ips, &hits.streams, |group, ips, streams| {
        for ip in ips {
            if let Some(block) = index_of(ip.at) {
                tally.add_samples(block, ip);
            }
        }
        for streams in streams.chunk_by(|one, other| one.burst == other.burst) {
            for stream in streams {
                if let (Some(first), Some(last)) = (index_of(stream.start), index_of(stream.end)) {
                    tally.add_stream(first, last + 1, stream);
                }
            }
            tally.drain_streams(group, streams[0].burst, &mut counts);
        }
        tally.drain_samples(group, &mut counts);
    });
    counts.tidy();
    for branch in &hits.branches {
        if is_biased(branch.seen, branch.oldest, stacks)
            && let Some(block) = index_of(branch.from)
        {
            counts.biased.push(block as u32);
        }
    }
    counts.biased.dedup();
    counts.code = Code::Unread { why, blocks, functions: Arc::default() };
    counts
}

/// Length of a block, for turning samples into executions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockSize {
    /// Instructions; an estimate where the code could not be read.
    pub instructions: f64,
    /// Bytes from the first instruction to after the last.
    pub bytes: u64,
    /// The instructions were counted, not estimated.
    pub decoded: bool,
}

impl ModuleCounts {
    /// What kind of code it is, of this module.
    pub fn code_kind(&self, module: &Module) -> CodeKind {
        match &self.code {
            Code::Read(code) if !module.kind.is_kernel() => CodeKind::User(code.binary.image.bitness()),
            _ => module.kind_of_unread_code(),
        }
    }

    /// Names the functions of code that was not read.
    #[must_use]
    pub fn with_names(mut self, known: impl FnOnce() -> KnownFunctions) -> Self {
        if let Code::Unread { functions, .. } = &mut self.code {
            *functions = Arc::new(known());
        }
        self
    }

    /// Event-based samples in it.
    pub fn ebs_samples(&self) -> u64 {
        self.sums.iter().map(|(_, _, sums)| sums.ebs_samples).sum()
    }

    /// Where a block lies: first instruction, and after the last. Of code that was not read these are file offsets.
    pub fn range_of(&self, index: u32) -> (Svma, Svma) {
        match &self.code {
            Code::Read(code) => {
                let block = &code.blocks.blocks()[index as usize];
                (block.start, block.end)
            }
            Code::Unread { blocks, .. } => {
                let block = &blocks[index as usize];
                (Svma(block.start.0), Svma(block.end.0))
            }
        }
    }

    /// The block around a place.
    pub fn block_at(&self, at: FileOffset) -> Option<u32> {
        let index = match &self.code {
            Code::Read(code) => block_of(&code.binary.image, &code.blocks, at),
            Code::Unread { blocks, .. } => unread_block_of(blocks, at).filter(|&index| at < blocks[index].end),
        };
        index.map(|index| index as u32)
    }

    /// How long a block is.
    pub fn size_of(&self, index: u32, bytes_per_instruction: f64) -> BlockSize {
        match &self.code {
            Code::Read(code) => {
                let block = &code.blocks.blocks()[index as usize];
                let bytes = block.end.0 - block.start.0;
                BlockSize { instructions: f64::from(block.instructions), bytes, decoded: true }
            }
            Code::Unread { blocks, .. } => {
                let block = &blocks[index as usize];
                let instructions = block.estimated_instructions(bytes_per_instruction);
                BlockSize { instructions, bytes: block.bytes(), decoded: false }
            }
        }
    }

    /// Adds the streams of bursts to the sums, each multiplied by the weight of the place where its burst started, and by what that
    /// weighs in the replicates.
    pub fn weigh_bursts<'a>(&mut self, weight_of: impl Fn(StartId) -> (f64, &'a Replicates)) {
        let by_start = std::mem::take(&mut self.by_start);
        self.add_rows_of(&by_start);
        for StartSums { start, group, block, sums, slices } in &by_start {
            let Some(row) = self.row_of(*group, *block) else { continue };
            let (weight_of_start, weights) = weight_of(*start);
            let lbr_weight = sums.lbr_weight.times(weight_of_start);
            self.sums[row].2.add(&BlockSums { lbr_weight, ..*sums });
            let bursts = self.sliced[row].bursts.get_or_insert_default();
            let weight = sums.lbr_weight.to_f64();
            bursts.replicates.add(weights, weight);
            slices.for_each_part(|slice, part| {
                *bursts.replicates.without_mut(slice) -= part * weight * weights.without(slice);
            });
            bursts.seen = bursts.seen.or(slices.slices());
        }
    }

    /// Where the sums of a block in a group are.
    fn row_of(&self, group: GroupId, block: u32) -> Option<usize> {
        self.sums.binary_search_by_key(&(group, block), |(group, block, _)| (*group, *block)).ok()
    }

    /// Makes rows for the blocks of bursts that have none: one for each block, and not for each of the thousands of bursts that are of it.
    fn add_rows_of(&mut self, by_start: &[StartSums]) {
        let mut blocks: Vec<(GroupId, u32)> = by_start.iter().map(|of| (of.group, of.block)).collect();
        blocks.sort_unstable();
        blocks.dedup();
        self.sums.extend(blocks.into_iter().map(|(group, block)| (group, block, BlockSums::default())));
        self.sliced.resize_with(self.sums.len(), SlicedSums::default);
        self.tidy();
    }

    /// Sorts the sums and adds up those of the same block.
    fn tidy(&mut self) {
        let sums = std::mem::take(&mut self.sums);
        let mut rows: Vec<_> = sums.into_iter().zip(std::mem::take(&mut self.sliced)).collect();
        rows.sort_by_key(|((group, block, _), _)| (*group, *block));
        rows.dedup_by(|(next, next_sliced), (kept, kept_sliced)| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            if same {
                kept.2.add(&next.2);
                kept_sliced.ebs.add(&next_sliced.ebs);
                kept_sliced.lbr.add(&next_sliced.lbr);
            }
            same
        });
        (self.sums, self.sliced) = rows.into_iter().unzip();
    }

    /// Nothing of a module whose code is not known.
    pub(crate) fn new(module: ModuleId) -> Self {
        ModuleCounts {
            module,
            code: Code::Unread { why: String::new(), blocks: Vec::new(), functions: Arc::default() },
            sums: Vec::new(),
            sliced: Vec::new(),
            by_start: Vec::new(),
            biased: Vec::new(),
            broken: BrokenStreams::default(),
            strange_branches: (0, 0),
        }
    }
}

/// Calls `visit` with the samples and streams of each group in turn. Both are sorted by group.
fn for_each_group(
    ips: &[LocatedIp],
    streams: &[LocatedStream],
    mut visit: impl FnMut(GroupId, &[LocatedIp], &[LocatedStream]),
) {
    let (mut ips, mut streams) = (ips, streams);
    loop {
        let next = [ips.first().map(|ip| ip.group), streams.first().map(|stream| stream.group)];
        let Some(group) = next.into_iter().flatten().min() else { return };
        let (these_ips, other_ips) = ips.split_at(ips.partition_point(|ip| ip.group == group));
        let (these_streams, other_streams) = streams.split_at(streams.partition_point(|stream| stream.group == group));
        visit(group, these_ips, these_streams);
        (ips, streams) = (other_ips, other_streams);
    }
}

fn block_of(image: &Image, blocks: &BlockMap, at: FileOffset) -> Option<usize> {
    blocks.block_at(image.svma_of_file_offset(at.0)?)
}

fn ends_with_branch(blocks: &BlockMap, block: usize, image: &Image, from: FileOffset) -> bool {
    let block = &blocks.blocks()[block];
    let is_branch = !matches!(block.terminator, Terminator::FallThrough | Terminator::Observed | Terminator::Overlap);
    is_branch && Some(block.last) == image.svma_of_file_offset(from.0)
}

/// HBBP section III.C calls a branch biased that occurs "a disproportionate number of times" in entry\[0\]. Here: more than twice
/// its share of all entries, and by more than five standard deviations of a branch without bias.
fn is_biased(seen: u64, oldest: u64, stacks: &StackStatistics) -> bool {
    const TIMES_ITS_SHARE: f64 = 2.0;
    const DEVIATIONS: f64 = 5.0;
    if stacks.branches == 0 {
        return false;
    }
    let share = seen as f64 / stacks.branches as f64;
    let expected = share * stacks.stacks as f64;
    let deviation = (expected * (1.0 - share.min(1.0))).sqrt();
    let oldest = oldest as f64;
    oldest > TIMES_ITS_SHARE * expected && oldest - expected > DEVIATIONS * deviation
}

/// Sums per block of one group at a time; reused from group to group, touching only what the group touched.
struct Tally {
    samples: Vec<(u64, u128, SliceSums)>,
    touched: Vec<u32>,
    streams: IntervalSum<StreamSum>,
}

/// How often streams were seen, and how many executions they stand for. Differences may wrap around: a sum over them is never negative.
#[derive(Clone, Copy, Default)]
struct StreamSum {
    seen: u64,
    weight: u128,
    /// Of the weight, by slice.
    slices: [u64; SLICES],
}

impl Amount for StreamSum {
    fn plus(self, other: Self) -> Self {
        StreamSum {
            seen: self.seen.wrapping_add(other.seen),
            weight: self.weight.wrapping_add(other.weight),
            slices: std::array::from_fn(|slice| self.slices[slice].wrapping_add(other.slices[slice])),
        }
    }

    fn minus(self, other: Self) -> Self {
        StreamSum {
            seen: self.seen.wrapping_sub(other.seen),
            weight: self.weight.wrapping_sub(other.weight),
            slices: std::array::from_fn(|slice| self.slices[slice].wrapping_sub(other.slices[slice])),
        }
    }
}

impl Tally {
    fn new(blocks: usize) -> Self {
        Tally {
            samples: vec![(0, 0, SliceSums::default()); blocks],
            touched: Vec::new(),
            streams: IntervalSum::new(blocks),
        }
    }

    fn add_samples(&mut self, block: usize, ip: &LocatedIp) {
        let (samples, periods, slices) = &mut self.samples[block];
        *samples += ip.samples;
        *periods = periods.saturating_add(ip.periods);
        slices.add(&ip.slices);
        self.touched.push(block as u32);
    }

    fn add_stream(&mut self, first: usize, end: usize, stream: &LocatedStream) {
        let mut slices = [0; SLICES];
        stream.slices.add_to(&mut slices);
        self.streams.add(first, end, StreamSum { seen: stream.seen, weight: stream.weight.0, slices });
    }

    fn drain_samples(&mut self, group: GroupId, counts: &mut ModuleCounts) {
        self.touched.sort_unstable();
        self.touched.dedup();
        for block in self.touched.drain(..) {
            let (ebs_samples, ebs_periods, ebs) = std::mem::take(&mut self.samples[block as usize]);
            counts.sums.push((group, block, BlockSums { ebs_samples, ebs_periods, ..BlockSums::default() }));
            counts.sliced.push(SlicedSums { ebs, ..SlicedSums::default() });
        }
    }

    fn drain_streams(&mut self, group: GroupId, burst: Option<StartId>, counts: &mut ModuleCounts) {
        self.streams.drain(|first, end, StreamSum { seen, weight, slices }| {
            if seen > 0 {
                let sums = BlockSums { lbr_streams: seen, lbr_weight: Weight(weight), ..BlockSums::default() };
                let slices = SliceSums::of_array(&slices);
                for block in first as u32..end as u32 {
                    let slices = slices.clone();
                    match burst {
                        None => {
                            counts.sums.push((group, block, sums));
                            counts.sliced.push(SlicedSums { lbr: slices, ..SlicedSums::default() });
                        }
                        Some(start) => counts.by_start.push(StartSums { start, group, block, sums, slices }),
                    }
                }
            }
        });
    }
}
