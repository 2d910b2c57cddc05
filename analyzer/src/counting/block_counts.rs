//! From sums to numbers of executions, and the choice between the sources.

use std::collections::BTreeMap;

use model::{Chooser, Features, Source};

use crate::counting::module_counts::BlockSums;
use crate::counting::{Code, GroupId, ModuleCounts};
use crate::recording::{EventKind, SourceEvents, Sources};

/// The counts of one block.
///
/// Example: 3 EBS samples of period 1,000 in a block of 10 instructions are 300 executions; 30 streams of stacks of 16 entries, one stack
/// every 100 branches, are 30 x 100 / 15 = 200 executions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockCount {
    /// Executions by EBS.
    pub ebs: f64,
    /// Executions by branch stacks.
    pub lbr: f64,
    /// Executions by the chosen source.
    pub count: f64,
    /// The chosen source.
    pub chosen: Source,
    /// HBBP's bias flag.
    pub bias: bool,
    /// EBS samples behind `ebs`.
    pub ebs_samples: u64,
    /// Streams behind `lbr`.
    pub lbr_streams: u64,
}

/// Factors that bring the sources to one unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountScale {
    /// For EBS counts.
    pub ebs: f64,
    /// For branch-stack counts.
    pub lbr: f64,
    /// The counts are numbers of executions; otherwise they are only proportional to something.
    pub executions: bool,
}

impl CountScale {
    /// Where both sources count executions they stand as they are. Where one does not, it is scaled so that both see the
    /// same number of instructions in the code that both can read.
    pub fn of(sources: &Sources, modules: &[ModuleCounts]) -> Self {
        let ebs_executes = sources.ebs.as_ref().map(|ebs| ebs.kind == EventKind::Instructions);
        let lbr_executes = sources.lbr.as_ref().map(|lbr| lbr.kind == EventKind::TakenBranches);
        let (Some(ebs_executes), Some(lbr_executes)) = (ebs_executes, lbr_executes) else {
            return CountScale { ebs: 1.0, lbr: 1.0, executions: ebs_executes.or(lbr_executes).unwrap_or(false) };
        };
        let (by_ebs, by_lbr) = instructions_by_source(modules);
        let ratio = |numerator: f64, denominator: f64| {
            if numerator > 0.0 && denominator > 0.0 { numerator / denominator } else { 1.0 }
        };
        match (ebs_executes, lbr_executes) {
            (true, true) => CountScale { ebs: 1.0, lbr: 1.0, executions: true },
            (true, false) => CountScale { ebs: 1.0, lbr: ratio(by_ebs, by_lbr), executions: true },
            (false, executions) => CountScale { ebs: ratio(by_lbr, by_ebs), lbr: 1.0, executions },
        }
    }

    /// How often a block of that size ran, by one of the sources.
    pub fn executions_by(&self, source: Source, sums: &BlockSums, size: BlockSize) -> f64 {
        match source {
            Source::Ebs => sums.ebs_periods as f64 / size.instructions.max(1.0) * self.ebs,
            Source::Lbr => sums.lbr_weight.to_f64() * self.lbr,
        }
    }
}

fn instructions_by_source(modules: &[ModuleCounts]) -> (f64, f64) {
    let (mut by_ebs, mut by_lbr) = (0.0, 0.0);
    for module in modules {
        if let Code::Read(code) = &module.code {
            for (_, block, sums) in &module.sums {
                let instructions = code.blocks.blocks()[*block as usize].instructions;
                by_ebs += sums.ebs_periods as f64;
                by_lbr += sums.lbr_weight.to_f64() * f64::from(instructions);
            }
        }
    }
    (by_ebs, by_lbr)
}

/// Length of a block, for turning samples into executions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockSize {
    /// Instructions; an estimate where the code could not be read.
    pub instructions: f64,
    /// Bytes.
    pub bytes: u64,
    /// The instructions were counted, not estimated.
    pub decoded: bool,
}

/// Decides for each block of one module.
pub struct Decider<'a> {
    /// The events at hand.
    pub sources: &'a Sources,
    /// Their common unit.
    pub scale: CountScale,
    /// Who decides where both sources can count the block.
    pub chooser: &'a dyn Chooser,
}

impl Decider<'_> {
    /// The rule of the model was made for two sources that both count executions. Where samples show time instead, the branch stacks
    /// are believed alone.
    pub fn uses_chooser(&self) -> bool {
        self.sources.lbr.is_some() && self.sources.ebs.as_ref().is_some_and(|ebs| ebs.kind == EventKind::Instructions)
    }

    /// The counts of a block with these sums, all groups together. `kernel`: the block is kernel code.
    pub fn decide(&self, sums: &BlockSums, size: BlockSize, bias: bool, kernel: bool) -> BlockCount {
        let ebs = self.scale.executions_by(Source::Ebs, sums, size);
        let lbr = self.scale.executions_by(Source::Lbr, sums, size);
        let can_count =
            |source: &Option<SourceEvents>| source.as_ref().is_some_and(|source| !kernel || source.covers_kernel);
        let chosen = match (can_count(&self.sources.ebs), can_count(&self.sources.lbr)) {
            (true, false) => Source::Ebs,
            (true, true) if self.uses_chooser() => self.chooser.choose(&Features {
                instructions: size.instructions.round() as u32,
                bytes: size.bytes,
                bias,
                ebs_samples: sums.ebs_samples,
                lbr_streams: sums.lbr_streams,
                ebs_count: ebs,
                lbr_count: lbr,
            }),
            _ => Source::Lbr,
        };
        BlockCount {
            ebs,
            lbr,
            count: if chosen == Source::Ebs { ebs } else { lbr },
            chosen,
            bias,
            ebs_samples: sums.ebs_samples,
            lbr_streams: sums.lbr_streams,
        }
    }
}

/// Adds up the groups of each block.
pub fn sums_by_block(sums: &[(GroupId, u32, BlockSums)]) -> BTreeMap<u32, BlockSums> {
    let mut by_block: BTreeMap<u32, BlockSums> = BTreeMap::new();
    for (_, block, more) in sums {
        by_block.entry(*block).or_default().add(more);
    }
    by_block
}
