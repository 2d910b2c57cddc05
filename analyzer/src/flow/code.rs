//! The code that flows ran through: functions, blocks, how often each ran, and what fell through from one to the next.

use crate::address::Svma;
use crate::binaries::Binary;
use crate::code::{BlockMap, FunctionTable, Observed, Terminator};
use crate::counting::LineBreaks;
use crate::flow::{Flow, ModuleFlow, RangeCount};

/// The code of one module of a flow, or of several flows.
#[derive(Debug)]
pub struct FlowCode {
    /// Its functions.
    pub functions: FunctionTable,
    /// The blocks of those that ran.
    pub blocks: BlockMap,
    breaks: LineBreaks,
}

/// Executions of the straight way from one block into the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FallThrough {
    /// The last instruction of the block.
    pub from: Svma,
    /// How the block ends.
    pub terminator: Terminator,
    /// The first instruction of the next one.
    pub to: Svma,
    /// How often.
    pub count: f64,
}

impl FlowCode {
    /// Cuts the code of a file where flows show that blocks start and end. `parts`: the flows, and which module of each it is.
    pub fn of(parts: &[(&Flow, usize)], binary: &Binary) -> Self {
        let (mut ips, mut targets, mut sources) = (Vec::new(), Vec::new(), Vec::new());
        for &(flow, module) in parts {
            let of = &flow.modules[module];
            ips.extend(of.ranges.iter().map(|range| range.first));
            ips.extend(of.samples.iter().map(|sample| sample.at));
            sources.extend(of.branches.iter().map(|branch| branch.from));
            let branches = flow.modules.iter().flat_map(|module| &module.branches);
            targets.extend(branches.filter(|branch| branch.to.module == module).map(|branch| branch.to.at));
        }
        let functions = binary.functions();
        let blocks = BlockMap::build(&binary.image, &functions, &Observed::new(ips, targets, sources));
        let breaks = LineBreaks::of(&blocks);
        FlowCode { functions, blocks, breaks }
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
    pub fn executions(&self, of: &ModuleFlow) -> Vec<f64> {
        let mut sum = RangeSum::new(self.blocks.blocks().len());
        for range in &of.ranges {
            let Some((first, last)) = self.ends(range) else { continue };
            let is_whole = self.blocks.blocks()[last].last == range.last;
            let end = if is_whole { last + 1 } else { last };
            self.breaks.for_each_piece(first, end, |first, end| sum.add(first, end, range.count));
        }
        sum.finish()
    }

    /// What the samples of each block stand for.
    pub fn sampled(&self, of: &ModuleFlow) -> Vec<f64> {
        let mut sums = vec![0.0; self.blocks.blocks().len()];
        for sample in &of.samples {
            if let Some(block) = self.blocks.block_at(sample.at) {
                sums[block] += sample.count;
            }
        }
        sums
    }

    /// How often control fell through from each block into the next along the ranges of a module, by address.
    pub fn fall_throughs(&self, of: &ModuleFlow) -> Vec<FallThrough> {
        let blocks = self.blocks.blocks();
        let mut sum = RangeSum::new(blocks.len());
        for range in &of.ranges {
            if let Some((first, last)) = self.ends(range) {
                self.breaks.for_each_piece(first, last, |first, end| sum.add(first, end, range.count));
            }
        }
        let way = |(index, count): (usize, f64)| {
            let (block, next) = (&blocks[index], &blocks[self.blocks.following(index)?]);
            Some(FallThrough { from: block.last, terminator: block.terminator, to: next.start, count })
        };
        sum.finish().into_iter().enumerate().filter(|(_, count)| *count > 0.0).filter_map(way).collect()
    }
}

/// Sums by block of what is the same for runs of blocks: one addition per end of a run, however long.
struct RangeSum {
    /// What is added to the running sum at a block, and how many runs: where there are none the sum is nothing, whatever rounding
    /// has left of it.
    steps: Vec<(f64, i64)>,
}

impl RangeSum {
    fn new(blocks: usize) -> Self {
        RangeSum { steps: vec![(0.0, 0); blocks + 1] }
    }

    /// Adds to the blocks `[first, end)`.
    fn add(&mut self, first: usize, end: usize, count: f64) {
        if first < end {
            self.steps[first].0 += count;
            self.steps[first].1 += 1;
            self.steps[end].0 -= count;
            self.steps[end].1 -= 1;
        }
    }

    fn finish(self) -> Vec<f64> {
        let (mut sum, mut runs) = (0.0, 0);
        let mut next = |(count, more): (f64, i64)| {
            (sum, runs) = (sum + count, runs + more);
            if runs == 0 {
                sum = 0.0;
            }
            f64::max(sum, 0.0)
        };
        let blocks = self.steps.len() - 1;
        self.steps.into_iter().take(blocks).map(&mut next).collect()
    }
}
