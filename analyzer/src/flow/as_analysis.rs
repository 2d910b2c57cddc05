//! A flow as what reports are made from: exact counts and merged recordings have mixes and annotated code, too.

use std::collections::HashMap;

use model::Source;

use crate::address::{FileOffset, Svma};
use crate::analysis::describe_unread_code;
use crate::binaries::BinarySearch;
use crate::counting::{
    BlockCount, BlockSums, Code, CountScale, GroupBy, GroupId, Groups, LocatedIp, LocatedStream, ModuleCounts,
    ModuleHits, count_module, mean_instruction_length,
};
use crate::flow::{AnalysedFlow, IpCount, ModuleFlow, RangeCount};
use crate::recording::{ModuleTable, Sources, StackStatistics, Weight};
use crate::uncertainty::{Design, Sampled, SliceSums};
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
                    let sums = counts.iter().enumerate().filter(|(_, count)| **count > 0.0);
                    let sums = sums.map(|(block, count)| (GroupId::default(), block as u32, sums_of(source, *count)));
                    counted.push(ModuleCounts {
                        sums: sums.collect(),
                        code: Code::Read(code),
                        ..ModuleCounts::new(id)
                    });
                }
                Err(why) => {
                    let why = flow.why_unread(index, why, search);
                    let unread = count_module(id, &hits(of, by_ranges), Err(why), &StackStatistics::default());
                    counted.extend(unread.into_iter().map(without_streams));
                }
            }
        }
        flow.set_indexes(indexes);
        let executions = flow.flow().executions && by_ranges;
        let scale = CountScale { ebs: 1.0 / Weight::ONE, lbr: 1.0, executions, only: Some(source) };
        let bytes_per_instruction = mean_instruction_length(&counted);
        let counted: Vec<CountedModule> = counted
            .into_iter()
            .map(|counts| {
                let block = |(_, index, sums): &(GroupId, u32, BlockSums)| {
                    let (start, end) = counts.range_of(*index);
                    let size = counts.size_of(*index, bytes_per_instruction);
                    let count = scale.executions_by(source, sums, size);
                    let [ebs, lbr] = if by_ranges { [0.0, count] } else { [count, 0.0] };
                    let (bias, ebs_samples, lbr_streams) = (false, 0, 0);
                    let count = BlockCount { ebs, lbr, count, chosen: source, bias, ebs_samples, lbr_streams };
                    CountedBlock { index: *index, start, end, size, count }
                };
                let blocks = counts.sums.iter().map(block).collect();
                let sampled = vec![Sampled::default(); counts.sums.len()];
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
        let design = Design { kind: origin.kind_of_counts(), ..Design::default() };
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

/// What a module whose code is not known was seen as: its addresses are taken for offsets in its file.
fn hits(of: &ModuleFlow, by_ranges: bool) -> ModuleHits {
    let at = |address: Svma| FileOffset(address.0);
    let (group, slices) = (GroupId::default(), SliceSums::default());
    if by_ranges {
        let stream = |range: &RangeCount| LocatedStream {
            group,
            burst: None,
            start: at(range.first),
            end: at(range.last),
            to_kernel: false,
            seen: 1,
            weight: Weight::of_executions(range.count),
            slices: slices.clone(),
        };
        return ModuleHits { streams: of.ranges.iter().map(stream).collect(), ..ModuleHits::default() };
    }
    let ip = |sample: &IpCount| LocatedIp {
        group,
        at: at(sample.at),
        samples: 0,
        periods: Weight::of_executions(sample.count).0,
        slices: slices.clone(),
    };
    ModuleHits { ips: of.samples.iter().map(ip).collect(), ..ModuleHits::default() }
}
