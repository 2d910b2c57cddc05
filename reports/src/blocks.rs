//! Rows of blocks.

use analyzer::mix::Mix;
use analyzer::uncertainty::{Interval, SampledBlocks};
use analyzer::{Analysis, CountedBlock, CountedModule};
use serde::Serialize;

/// A block with what is around it.
pub struct Row<'a> {
    /// Place of its module in the analysis.
    pub module_index: usize,
    /// Its module.
    pub module: &'a CountedModule,
    /// The block.
    pub block: &'a CountedBlock,
    /// How uncertain its count is.
    pub count: Interval,
    /// How uncertain its share of all instructions is.
    pub share: Interval,
    /// Executed instructions in it that pass the filters: all without any.
    pub passing: f64,
}

/// A block as documents and data frames have it.
#[derive(Serialize)]
pub struct BlockRow {
    /// Place of its module in the list of modules.
    pub module: usize,
    /// Address of its first instruction, as in the module's file.
    pub start: u64,
    /// After its last instruction.
    pub end: u64,
    /// Instructions in it.
    pub instructions: u64,
    /// Whether they were decoded; else their number is an estimate.
    pub decoded: bool,
    /// The function's name; `None` where the code was not read.
    pub function: Option<String>,
    /// Executions by event-based samples.
    pub ebs: f64,
    /// Executions by branch stacks.
    pub lbr: f64,
    /// Executions by the chosen source.
    pub count: f64,
    /// `ebs` or `lbr`.
    pub chosen: &'static str,
    /// Whether its branch stacks are suspicious.
    pub bias: bool,
    /// Event-based samples in it.
    pub ebs_samples: u64,
    /// Streams through it.
    pub lbr_streams: u64,
    /// Half the width of the interval of `count` (95 %); `None`: not known.
    pub count_error: Option<f64>,
    /// The same of its share of all instructions, 0 to 1.
    pub share_error: Option<f64>,
    /// Whether it was seen in too little of the recording for these to be trusted.
    pub rests_on_little: bool,
}

impl Row<'_> {
    /// Instructions executed in the block.
    pub fn executed(&self) -> f64 {
        self.block.count.count * self.block.size.instructions
    }

    /// As documents and data frames have it.
    pub fn described(&self) -> BlockRow {
        let counts = &self.block.count;
        BlockRow {
            module: self.module_index,
            start: self.block.start.0,
            end: self.block.end.0,
            instructions: self.block.size.instructions as u64,
            decoded: self.block.size.decoded,
            function: self.module.function_name(self.block.index),
            ebs: counts.ebs,
            lbr: counts.lbr,
            count: counts.count,
            chosen: counts.chosen.as_str(),
            bias: counts.bias,
            ebs_samples: counts.ebs_samples,
            lbr_streams: counts.lbr_streams,
            count_error: self.count.half_width,
            share_error: self.share.half_width,
            rests_on_little: self.share.rests_on_little,
        }
    }
}

/// All blocks, by module and address.
pub fn all_rows(analysis: &Analysis) -> Vec<Row<'_>> {
    let sampled = SampledBlocks::of(analysis);
    let mut rows = Vec::new();
    for (module_index, module) in analysis.counted.iter().enumerate() {
        rows.extend(sampled.of_module(module_index).map(|(block, replicates)| {
            let [count, share] = sampled.intervals(block, replicates);
            let passing = block.count.count * block.size.instructions;
            Row { module_index, module, block, count, share, passing }
        }));
    }
    rows
}

/// Keeps the rows with the most executed instructions that pass; in order of size, or of module and address. Returns how many went, and
/// the instructions in them.
pub fn keep_largest(rows: &mut Vec<Row<'_>>, top: usize, by_size: bool) -> (usize, f64) {
    let executed = Row::executed;
    let place = |row: &Row<'_>| (row.module_index, row.block.start);
    rows.sort_by(|a, b| b.passing.total_cmp(&a.passing).then_with(|| place(a).cmp(&place(b))));
    let kept = top.min(rows.len());
    let left_out = rows[kept..].iter().map(executed).sum();
    let dropped = rows.len() - kept;
    rows.truncate(kept);
    if !by_size {
        rows.sort_by_key(place);
    }
    (dropped, left_out)
}

/// Keeps the blocks that have instructions which pass filters: those of a mix by blocks.
pub fn keep_passing(rows: &mut Vec<Row<'_>>, mix: &Mix) {
    for row in &mut *rows {
        row.passing = mix.by_block.get(&(row.module_index, row.block.index)).copied().unwrap_or(0.0);
    }
    rows.retain(|row| row.passing > 0.0);
}
