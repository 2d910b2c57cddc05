//! From sums to numbers of executions, and the choice between the sources.

use std::collections::BTreeMap;

use model::{Features, Rule, Source};
use serde::{Deserialize, Serialize};

use crate::counting::{BlockSize, BlockSums, CodeFeatures, CountScale, GroupId};
use crate::recording::{CodeKind, SourceEvents, Sources};

/// The counts of one block.
///
/// Example: 3 EBS samples of period 1,000 in a block of 10 instructions are 300 executions; 30 streams of stacks of 16 entries, one stack
/// every 100 branches, are 30 x 100 / 15 = 200 executions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockCount {
    /// Executions by event-based samples, in the unit of [`CountScale`].
    pub ebs: f64,
    /// Executions by branch stacks.
    pub lbr: f64,
    /// Executions by the chosen source.
    pub count: f64,
    /// The source that `count` is of.
    pub chosen: Source,
    /// HBBP's bias flag: the block's branch is the oldest entry of stacks far more often than its share.
    pub bias: bool,
    /// EBS samples that `ebs` was made from.
    pub ebs_samples: u64,
    /// Streams that `lbr` was made from.
    pub lbr_streams: u64,
}

/// Decides for each block of one module.
pub struct Decider<'a> {
    /// The events at hand.
    pub sources: &'a Sources,
    /// What brings the counts of both to one unit.
    pub scale: CountScale,
    /// What decides where both sources can count the block: the rule for this pair of sources. Without one, branch stacks do.
    pub rule: Option<&'a Rule>,
}

impl Decider<'_> {
    /// The source of all counts of code that both sources see; `None` where it is chosen block by block, or there is none.
    pub fn one_source(&self) -> Option<Source> {
        match (&self.sources.ebs, &self.sources.lbr, self.rule) {
            _ if self.scale.only.is_some() => self.scale.only,
            (None, None, _) | (Some(_), Some(_), Some(Rule::Ask(_))) => None,
            (Some(_), None, _) => Some(Source::Ebs),
            (Some(_), Some(_), Some(Rule::One { source, .. })) => Some(*source),
            (_, Some(_), _) => Some(Source::Lbr),
        }
    }

    /// The counts of a block with these sums, all groups together. `features` is asked for what its instructions say where that makes a
    /// difference.
    pub fn decide(
        &self,
        sums: &BlockSums,
        size: BlockSize,
        bias: bool,
        code: CodeKind,
        features: impl FnOnce() -> CodeFeatures,
    ) -> BlockCount {
        let ebs = self.scale.executions_by(Source::Ebs, sums, size);
        let lbr = self.scale.executions_by(Source::Lbr, sums, size);
        let can_count = |source: &Option<SourceEvents>, name: Source| {
            source.as_ref().is_some_and(|events| events.sees(code)) && self.scale.only.is_none_or(|only| only == name)
        };
        let counted = BlockCount {
            ebs,
            lbr,
            count: lbr,
            chosen: Source::Lbr,
            bias,
            ebs_samples: sums.ebs_samples,
            lbr_streams: sums.lbr_streams,
        };
        let by_ebs = match (can_count(&self.sources.ebs, Source::Ebs), can_count(&self.sources.lbr, Source::Lbr)) {
            (true, false) => true,
            (true, true) => self.rule.is_some_and(|rule| {
                let features = if rule.needs_code() { features() } else { CodeFeatures::default() };
                rule.choose(&counted.features(size, features)) == Source::Ebs
            }),
            (false, true) => false,
            (false, false) => self.sources.lbr.is_none(),
        };
        if by_ebs { BlockCount { count: ebs, chosen: Source::Ebs, ..counted } } else { counted }
    }
}

impl BlockCount {
    /// What a chooser sees of the block.
    pub fn features(&self, size: BlockSize, code: CodeFeatures) -> Features {
        code.add_to(Features {
            instructions: size.instructions.round() as u32,
            bytes: size.bytes,
            bias: self.bias,
            ebs_samples: self.ebs_samples,
            lbr_streams: self.lbr_streams,
            ebs_count: self.ebs,
            lbr_count: self.lbr,
            ..Features::default()
        })
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
