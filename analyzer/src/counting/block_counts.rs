//! From sums to numbers of executions, and the choice between the sources.

use std::collections::BTreeMap;

use model::{Chooser, Features, Source};

use crate::counting::{BlockSize, BlockSums, CountScale, GroupId};
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
        self.scale.only.is_none()
            && self.sources.lbr.is_some()
            && self.sources.ebs.as_ref().is_some_and(|ebs| ebs.kind == EventKind::Instructions)
    }

    /// The counts of a block with these sums, all groups together. `kernel`: the block is kernel code.
    pub fn decide(&self, sums: &BlockSums, size: BlockSize, bias: bool, kernel: bool) -> BlockCount {
        let ebs = self.scale.executions_by(Source::Ebs, sums, size);
        let lbr = self.scale.executions_by(Source::Lbr, sums, size);
        let can_count = |source: &Option<SourceEvents>, name: Source| {
            let sees = |events: &SourceEvents| if kernel { events.covers_kernel } else { events.covers_user };
            source.as_ref().is_some_and(sees) && self.scale.only.is_none_or(|only| only == name)
        };
        let chosen = match (can_count(&self.sources.ebs, Source::Ebs), can_count(&self.sources.lbr, Source::Lbr)) {
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
            (_, true) => Source::Lbr,
            (false, false) => {
                if self.sources.lbr.is_some() {
                    Source::Lbr
                } else {
                    Source::Ebs
                }
            }
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
