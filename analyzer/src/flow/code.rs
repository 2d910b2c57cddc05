//! The code that flows ran through: how often each block ran, and what fell through from one to the next.

use crate::address::Svma;
use crate::binaries::Binary;
use crate::code::{Observed, Terminator};
use crate::counting::{AnalysedModule, Executions, IntervalSum};
use crate::flow::{Flow, IpCount, ModuleFlow, RangeCount};

/// Executions of the straight way from one block into the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FallThrough {
    /// The last instruction of the block.
    pub from: Svma,
    /// How the block ends.
    pub terminator: Terminator,
    /// The first instruction of the next one.
    pub to: Svma,
    /// How often control went this way.
    pub count: f64,
}

impl AnalysedModule {
    /// The code of a file, cut where flows show that blocks start and end. `parts`: the flows, and which module of each it is.
    pub fn of_flows(parts: &[(&Flow, usize)], binary: Binary) -> Self {
        let (mut ips, mut targets, mut sources) = (Vec::new(), Vec::new(), Vec::new());
        for &(flow, module) in parts {
            let of = &flow.modules[module];
            // Ranges of exact counts begin where blocks do; of bursts, some begin where the burst did.
            let firsts = if flow.seen > 0.0 { &mut ips } else { &mut targets };
            firsts.extend(of.ranges.iter().map(|range| range.first));
            ips.extend(of.samples.iter().map(|sample| sample.at));
            sources.extend(of.branches.iter().map(|branch| branch.from));
            let branches = flow.modules.iter().flat_map(|module| &module.branches);
            targets.extend(branches.filter(|branch| branch.to.module == module).map(|branch| branch.to.at));
        }
        AnalysedModule::new(binary, |_| Observed::new(ips, targets, sources))
    }

    /// The blocks of the ends of a range; `None` where the code has no straight line from one to the other, or no branch at its end.
    fn ends(&self, range: &RangeCount) -> Option<(usize, usize)> {
        let (first, last) = self.blocks.block_at(range.first).zip(self.blocks.block_at(range.last))?;
        let end = &self.blocks.blocks()[last];
        let ends_with_no_branch = end.last == range.last && end.terminator == Terminator::Observed;
        (self.breaks.is_straight(first, last) && !ends_with_no_branch).then_some((first, last))
    }

    /// How much of a module's ranges (or else of its samples) does not fit the code and is in no count, as a sentence.
    pub fn misfit(&self, of: &ModuleFlow, by_ranges: bool) -> Option<String> {
        let (strange, all): (f64, f64) = if by_ranges {
            let strange = of.ranges.iter().filter(|range| self.ends(range).is_none());
            (strange.map(|range| range.count).sum(), of.range_total())
        } else {
            let strange = of.samples.iter().filter(|sample| self.blocks.block_at(sample.at).is_none());
            (strange.map(|sample| sample.count).sum(), of.sample_total())
        };
        let part = 100.0 * strange / all;
        let path = &of.module.path;
        (strange > 0.0).then(|| {
            format!("{path}: {part:.2} % of what ran of it does not fit the file, which may be of another build: name the right one with --binary")
        })
    }

    /// Executions of each block along the ranges of a module: those that run through its last instruction.
    pub fn executions(&self, ranges: &[RangeCount]) -> Vec<f64> {
        self.sums(ranges, |last, range| if self.blocks.blocks()[last].last == range.last { last + 1 } else { last })
    }

    /// By block, executions of the ranges that begin in it or before and reach beyond: `end` says of the last block of a range up to which
    /// one, that not included.
    fn sums(&self, ranges: &[RangeCount], end: impl Fn(usize, &RangeCount) -> usize) -> Vec<f64> {
        let mut sum = IntervalSum::new(self.blocks.blocks().len());
        for range in ranges {
            let Some((first, last)) = self.ends(range) else { continue };
            let executions = Executions { count: range.count, intervals: 1 };
            self.breaks.for_each_piece(first, end(last, range), |first, end| sum.add(first, end, executions));
        }
        let mut counts = vec![0.0; self.blocks.blocks().len()];
        sum.drain(|first, end, sum| counts[first..end].fill(f64::max(sum.count, 0.0)));
        counts
    }

    /// What the samples of each block stand for.
    pub fn sampled(&self, samples: &[IpCount]) -> Vec<f64> {
        let mut sums = vec![0.0; self.blocks.blocks().len()];
        for sample in samples {
            if let Some(block) = self.blocks.block_at(sample.at) {
                sums[block] += sample.count;
            }
        }
        sums
    }

    /// How often control fell through from each block into the next along ranges of the module, by address.
    pub fn fall_throughs(&self, ranges: &[RangeCount]) -> Vec<FallThrough> {
        let blocks = self.blocks.blocks();
        let way = |(index, count): (usize, f64)| {
            let (block, next) = (&blocks[index], &blocks[self.blocks.following(index)?]);
            Some(FallThrough { from: block.last, terminator: block.terminator, to: next.start, count })
        };
        self.sums(ranges, |last, _| last)
            .into_iter()
            .enumerate()
            .filter(|(_, count)| *count > 0.0)
            .filter_map(way)
            .collect()
    }
}
