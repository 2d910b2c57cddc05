//! A flow as what reports are made from: exact counts and merged recordings have mixes and annotated code, too.

use std::collections::HashMap;
use std::hash::Hash;

use model::Source;

use crate::address::{FileOffset, Svma};
use crate::analysis::{describe_unread_code, sampled_rows};
use crate::binaries::BinarySearch;
use crate::counting::{
    AnalysedModule, BlockCount, BlockSums, Code, CountScale, GroupBy, GroupId, Groups, LocatedIp, LocatedStream,
    ModuleCounts, ModuleHits, SlicedSums, count_module, mean_instruction_length,
};
use crate::flow::{AnalysedFlow, Flow, IpCount, ModuleFlow, RangeCount};
use crate::recording::{ModuleTable, Sources, StackStatistics, Weight};
use crate::uncertainty::{CountKind, Design, Resampling, SLICES, SUMMED, Slice, SliceSet, SliceSums};
use crate::{Analysis, CountedBlock, CountedModule, Origin, Summary};

impl Analysis {
    /// Of a flow: its blocks ran as often as it says. Nothing tells processes, threads and phases apart, and of the sources of its counts
    /// and how uncertain they are it says as much as its `origin` does. `notes`: what is weaker in it, in sentences.
    pub fn of_flow(
        mut flow: AnalysedFlow,
        origin: Origin,
        search: &BinarySearch,
        by: GroupBy,
        notes: Vec<String>,
    ) -> Analysis {
        let by_ranges = flow.counts_executions();
        let source = if by_ranges { Source::Lbr } else { Source::Ebs };
        let mut modules = ModuleTable::default();
        let (mut indexes, mut counted, mut misfits) = (HashMap::new(), Vec::new(), Vec::new());
        for (index, of) in flow.flow().modules.iter().enumerate().filter(|(index, _)| flow.has_counts(*index)) {
            // A flow may have a module twice: as read, and as not read.
            let id = modules.add(of.module.clone());
            indexes.insert(id, index);
            match flow.code(index, search) {
                Ok(code) => {
                    misfits.extend(flow.misfits(index, &code));
                    let counts = flow.block_counts(index, &code);
                    let ran: Vec<(usize, f64)> =
                        counts.into_iter().enumerate().filter(|(_, count)| *count > 0.0).collect();
                    let sums =
                        ran.iter().map(|(block, count)| (GroupId::default(), *block as u32, sums_of(source, *count)));
                    counted.push(ModuleCounts {
                        sums: sums.collect(),
                        sliced: sliced(flow.flow(), index, &code, &ran),
                        code: Code::Read(code),
                        ..ModuleCounts::new(id)
                    });
                }
                Err(why) => {
                    let why = flow.why_unread(index, why, search);
                    let hits = hits(flow.flow(), index);
                    let unread = count_module(id, &hits, Err(why), &StackStatistics::default());
                    counted.extend(unread.into_iter().map(without_streams));
                }
            }
        }
        flow.set_indexes(indexes);
        let executions = flow.flow().executions && by_ranges;
        let scale = CountScale { ebs: 1.0 / Weight::ONE, lbr: 1.0, executions, only: Some(source) };
        let bytes_per_instruction = mean_instruction_length(&counted);
        let resampling = Resampling::new(&counted, &scale, |_| {});
        let design = design(flow.flow(), origin, resampling.seen[usize::from(by_ranges)]);
        let counted: Vec<CountedModule> = counted
            .into_iter()
            .map(|mut counts| {
                let block = |(_, index, sums): &(GroupId, u32, BlockSums)| {
                    let (start, end) = counts.range_of(*index);
                    let size = counts.size_of(*index, bytes_per_instruction);
                    let count = scale.executions_by(source, sums, size);
                    let [ebs, lbr] = if by_ranges { [0.0, count] } else { [count, 0.0] };
                    let (bias, ebs_samples, lbr_streams) = (false, 0, 0);
                    let count = BlockCount { ebs, lbr, count, chosen: source, bias, ebs_samples, lbr_streams };
                    CountedBlock { index: *index, start, end, size, count }
                };
                let blocks: Vec<CountedBlock> = counts.sums.iter().map(block).collect();
                let errors = (by_ranges && !executions).then_some(SUMMED);
                let sampled = sampled_rows(&counts, &blocks, &resampling, errors);
                counts.sliced = Vec::new();
                CountedModule { counts, blocks, sampled }
            })
            .collect();
        let choice = match origin {
            Origin::Exact => "exact counts".to_owned(),
            _ if flow.flow().inputs == 1 => "counts of one input".to_owned(),
            _ => format!("merged counts of {} inputs", flow.flow().inputs),
        };
        let mut summary = Summary { choice, shortcomings: notes, ..Summary::default() };
        describe_unread_code(&mut summary, &counted, &modules);
        summary.shortcomings.extend(misfits);
        Analysis {
            origin,
            modules,
            counted,
            groups: Groups::unknown(by),
            sources: Sources::default(),
            scale,
            design,
            one_source: Some(source),
            summary,
            flow: Some(flow),
            calls: None,
            paths: None,
            is_kept: false,
        }
    }
}

/// What a block of a file that ran so often would have been seen as.
fn sums_of(source: Source, count: f64) -> BlockSums {
    let weight = Weight::of_executions(count);
    match source {
        Source::Lbr => BlockSums { lbr_weight: weight, ..BlockSums::default() },
        Source::Ebs => BlockSums { ebs_periods: weight.0, ..BlockSums::default() },
    }
}

/// How many streams were seen of a range, a flow does not say.
fn without_streams(mut counts: ModuleCounts) -> ModuleCounts {
    counts.sums.iter_mut().for_each(|(_, _, sums)| sums.lbr_streams = 0);
    counts
}

/// What the slices of a flow tell of its uncertainty, of which these have counts; without slices, what its `origin` does.
fn design(flow: &Flow, origin: Origin, slices: SliceSet) -> Design {
    // A burst has some 600 streams and a branch stack 32 at most: so there are no fewer of either.
    const STREAMS_OF_ONE: f64 = 1000.0;
    if flow.slices.is_empty() {
        return Design { kind: origin.kind_of_counts(), ..Design::default() };
    }
    let observations = flow.inputs.max((flow.seen / STREAMS_OF_ONE) as u64);
    Design { kind: CountKind::Sampled, slices, observations }
}

/// The modules of each slice, where there are any.
fn slices(flow: &Flow, index: usize) -> impl Iterator<Item = (Slice, &ModuleFlow)> {
    Slice::all().zip(&flow.slices).filter_map(move |(slice, modules)| Some((slice, modules.get(index)?)))
}

/// What the slices have of blocks of a module that ran so often, in this order.
fn sliced(flow: &Flow, index: usize, code: &AnalysedModule, ran: &[(usize, f64)]) -> Vec<SlicedSums> {
    let by_ranges = flow.range_total() > 0.0;
    let mut sums = vec![[0; SLICES]; ran.len()];
    for (slice, of) in slices(flow, index) {
        let counts = if by_ranges { code.executions(of) } else { code.sampled(of) };
        for (sums, (block, _)) in sums.iter_mut().zip(ran) {
            sums[slice.index()] = counts.get(*block).map_or(0, |count| SliceSums::units(Weight::of_executions(*count)));
        }
    }
    let one = |sums: &[u64; SLICES]| match SliceSums::of_array(sums) {
        lbr if by_ranges => SlicedSums { lbr, ..SlicedSums::default() },
        ebs => SlicedSums { ebs, ..SlicedSums::default() },
    };
    sums.iter().map(one).collect()
}

/// What a module whose code is not known was seen as: its addresses are taken for offsets in its file.
fn hits(flow: &Flow, index: usize) -> ModuleHits {
    let Some(of) = flow.modules.get(index) else { return ModuleHits::default() };
    let at = |address: Svma| FileOffset(address.0);
    let group = GroupId::default();
    if flow.range_total() > 0.0 {
        let slices = sums_by(flow, index, |of| of.ranges.iter().map(|range| ((range.first, range.last), range.count)));
        let stream = |range: &RangeCount| LocatedStream {
            group,
            burst: None,
            start: at(range.first),
            end: at(range.last),
            to_kernel: false,
            seen: 1,
            weight: Weight::of_executions(range.count),
            slices: slices.get(&(range.first, range.last)).cloned().unwrap_or_default(),
        };
        return ModuleHits { streams: of.ranges.iter().map(stream).collect(), ..ModuleHits::default() };
    }
    let slices = sums_by(flow, index, |of| of.samples.iter().map(|sample| (sample.at, sample.count)));
    let ip = |sample: &IpCount| LocatedIp {
        group,
        at: at(sample.at),
        samples: 0,
        periods: Weight::of_executions(sample.count).0,
        slices: slices.get(&sample.at).cloned().unwrap_or_default(),
    };
    ModuleHits { ips: of.samples.iter().map(ip).collect(), ..ModuleHits::default() }
}

/// What each slice has of the counts that `of` tells of a module, by what they are of.
fn sums_by<'a, K, C>(flow: &'a Flow, index: usize, of: impl Fn(&'a ModuleFlow) -> C) -> HashMap<K, SliceSums>
where
    K: Hash + Eq,
    C: Iterator<Item = (K, f64)>,
{
    let mut sums: HashMap<K, SliceSums> = HashMap::new();
    for (slice, modules) in slices(flow, index) {
        for (key, count) in of(modules) {
            sums.entry(key).or_default().add(&SliceSums::of_weight(slice, Weight::of_executions(count)));
        }
    }
    sums
}
