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
use crate::flow::{AnalysedFlow, Flow, IpCount, ModuleFlow, RangeCount, SliceFlow};
use crate::recording::{ModuleTable, Sources, StackStatistics, Weight};
use crate::uncertainty::{CountKind, Design, Resampling, SUMMED, SliceSet, SliceSums};
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
        let unit = unit(flow.flow(), by_ranges);
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
                        sliced: sliced(of, (by_ranges, unit), &code, &ran),
                        code: Code::Read(code),
                        ..ModuleCounts::new(id)
                    });
                }
                Err(why) => {
                    let why = flow.why_unread(index, why, search);
                    let unread = count_module(id, &hits(of, (by_ranges, unit)), Err(why), &StackStatistics::default());
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
                let errors = (by_ranges && !executions && design.kind == CountKind::Sampled).then_some(SUMMED);
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

/// How uncertain a flow is, by the slices that have counts of it; if none has, by its `origin`.
fn design(flow: &Flow, origin: Origin, slices: SliceSet) -> Design {
    // A burst has some 600 streams and a branch stack 32 at most: so there are no fewer of either.
    const STREAMS_OF_ONE: f64 = 1000.0;
    if slices.is_empty() {
        return Design { kind: origin.kind_of_counts(), ..Design::default() };
    }
    // Where that is not known, nothing is said of what nobody saw.
    let observations = if flow.seen > 0.0 { flow.inputs.max((flow.seen / STREAMS_OF_ONE) as u64) } else { u64::MAX };
    Design { kind: CountKind::Sampled, slices, observations }
}

/// So many units of the sums of slices are one execution, or what a sample stands for: only their parts matter, and no sum of units is beyond 64
/// bits.
fn unit(flow: &Flow, by_ranges: bool) -> f64 {
    const OF_ALL: f64 = (1_u64 << 48) as f64;
    OF_ALL / if by_ranges { flow.range_total() } else { flow.sample_total() }
}

/// A count in such units, one at least of what was seen.
fn units(count: f64, unit: f64) -> u64 {
    (count * unit).ceil() as u64
}

/// What the slices have of blocks of a module that ran so often, in this order.
fn sliced(
    of: &ModuleFlow,
    (by_ranges, unit): (bool, f64),
    code: &AnalysedModule,
    ran: &[(usize, f64)],
) -> Vec<SlicedSums> {
    let mut sums = vec![SlicedSums::default(); ran.len()];
    for SliceFlow { slice, ranges, samples } in &of.slices {
        let counts = if by_ranges { code.executions(ranges) } else { code.sampled(samples) };
        for (sums, (block, _)) in sums.iter_mut().zip(ran) {
            let count = counts.get(*block).copied().unwrap_or_default();
            let part = SliceSums::one(*slice, units(count, unit));
            if by_ranges { sums.lbr.add(&part) } else { sums.ebs.add(&part) }
        }
    }
    sums
}

/// What a module whose code is not known was seen as: its addresses are taken for offsets in its file.
fn hits(of: &ModuleFlow, (by_ranges, unit): (bool, f64)) -> ModuleHits {
    let at = |address: Svma| FileOffset(address.0);
    let group = GroupId::default();
    if by_ranges {
        let slices =
            by_slice(of, unit, |slice| slice.ranges.iter().map(|range| ((range.first, range.last), range.count)));
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
    let slices = by_slice(of, unit, |slice| slice.samples.iter().map(|sample| (sample.at, sample.count)));
    let ip = |sample: &IpCount| LocatedIp {
        group,
        at: at(sample.at),
        samples: 0,
        periods: Weight::of_executions(sample.count).0,
        slices: slices.get(&sample.at).cloned().unwrap_or_default(),
    };
    ModuleHits { ips: of.samples.iter().map(ip).collect(), ..ModuleHits::default() }
}

/// What each slice has of the counts that `counts` tells, by what they are of.
fn by_slice<'a, K, C>(of: &'a ModuleFlow, unit: f64, counts: impl Fn(&'a SliceFlow) -> C) -> HashMap<K, SliceSums>
where
    K: Hash + Eq,
    C: Iterator<Item = (K, f64)>,
{
    let mut sums: HashMap<K, SliceSums> = HashMap::new();
    for slice in &of.slices {
        for (key, count) in counts(slice) {
            sums.entry(key).or_default().add(&SliceSums::one(slice.slice, units(count, unit)));
        }
    }
    sums
}
