//! A module whose blocks are counted: a source is chosen for each, and every count has its replicates.

use std::borrow::Cow;
use std::sync::Arc;

use model::{Features, Source};
use serde::{Deserialize, Serialize};

use crate::address::Svma;
use crate::code::demangle;
use crate::counting::{
    BlockCount, BlockSize, Code, CodeFeatures, CountScale, Decider, GroupId, ModuleCounts, sums_by_block,
};
use crate::lines::{SourceIndex, joined};
use crate::recording::{KnownFunction, Module};
use crate::uncertainty::{CodeErrors, Deviations, Resampling, Sampled};

/// A module with its counted blocks.
#[derive(Debug)]
pub struct CountedModule {
    /// Its code, and the sums of what was counted in it, by group.
    pub counts: ModuleCounts,
    /// The blocks with any count, by address.
    pub blocks: Vec<CountedBlock>,
    /// What the executions of each of the sums of `counts` would be in the replicates, in the same order.
    pub sampled: Vec<Sampled>,
}

/// A block and its counts, all groups together.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CountedBlock {
    /// Index among the blocks of the module's code.
    pub index: u32,
    /// Address of the first instruction.
    pub start: Svma,
    /// After the last instruction.
    pub end: Svma,
    /// Its length in instructions and bytes.
    pub size: BlockSize,
    /// How often it ran.
    pub count: BlockCount,
}

/// The counts of a block in one group.
#[derive(Clone, Copy, Debug)]
pub struct GroupCount<'a> {
    /// Whose executions they are.
    pub group: GroupId,
    /// The block.
    pub block: &'a CountedBlock,
    /// How often it ran.
    pub count: f64,
    /// The samples or streams of the chosen source that this was made from.
    pub samples: u64,
    /// What the count would be in the replicates.
    pub sampled: &'a Sampled,
    /// Its samples, whatever the chosen source is, and the sum of their periods.
    pub ebs: (u64, u128),
}

pub(super) fn decide_blocks(
    counts: &ModuleCounts,
    decider: &Decider<'_>,
    module: &Module,
    bytes_per_instruction: f64,
) -> Vec<CountedBlock> {
    let kind = counts.code_kind(module);
    sums_by_block(&counts.sums)
        .into_iter()
        .map(|(index, sums)| {
            let (start, end) = counts.range_of(index);
            let size = counts.size_of(index, bytes_per_instruction);
            let bias = counts.biased.binary_search(&index).is_ok();
            let code = || CodeFeatures::of(&counts.code, index);
            CountedBlock { index, start, end, size, count: decider.decide(&sums, size, bias, kind, code) }
        })
        .collect()
}

/// The replicates of the executions of all sums, by the sources that were chosen. `errors`: by what their code is wrong besides.
pub(crate) fn sampled_rows(
    counts: &ModuleCounts,
    blocks: &[CountedBlock],
    resampling: &Resampling,
    errors: Option<Deviations>,
) -> Vec<Sampled> {
    let mut errors = errors.map(|deviations| CodeErrors::new(counts, deviations));
    let rows = counts.sums.iter().enumerate().map(|(row, (_, index, _))| {
        let block = blocks.binary_search_by_key(index, |block| block.index).ok().map(|at| &blocks[at]);
        block.map_or_else(Sampled::default, |block| {
            let sampled = resampling.executions(block.count.chosen, counts, row, block.size.instructions);
            match &mut errors {
                Some(errors) => errors.with_errors(*index, sampled),
                None => sampled,
            }
        })
    });
    rows.collect()
}

impl CountedModule {
    /// Instructions executed in the module.
    pub fn instructions(&self) -> f64 {
        self.blocks.iter().map(|block| block.count.count * block.size.instructions).sum()
    }

    /// The counts of every block in every group that has any, in the order of groups.
    pub fn group_counts<'a>(&'a self, scale: &'a CountScale) -> impl Iterator<Item = GroupCount<'a>> {
        let mut next = 0;
        self.counts.sums.iter().zip(&self.sampled).filter_map(move |((group, index, sums), sampled)| {
            // In a group, they are in the order of blocks.
            let is_next = self.blocks.get(next).is_some_and(|block| block.index == *index);
            let at = if is_next { next } else { self.blocks.binary_search_by_key(index, |block| block.index).ok()? };
            next = at + 1;
            let block = &self.blocks[at];
            let count = scale.executions_by(block.count.chosen, sums, block.size);
            let samples = match block.count.chosen {
                Source::Ebs => sums.ebs_samples,
                Source::Lbr => sums.lbr_streams,
            };
            let ebs = (sums.ebs_samples, sums.ebs_periods);
            Some(GroupCount { group: *group, block, count, samples, sampled, ebs })
        })
    }

    /// Of each of the blocks, what its executions would be in the replicates, all groups together.
    pub fn sampled_blocks(&self) -> Cow<'_, [Sampled]> {
        let of_sums = self.counts.sums.iter().map(|(_, index, _)| *index);
        // One group: they are in the order of blocks.
        if self.sampled.len() == self.blocks.len() && of_sums.eq(self.blocks.iter().map(|block| block.index)) {
            return Cow::Borrowed(&self.sampled);
        }
        let mut all = vec![Sampled::default(); self.blocks.len()];
        for ((_, index, _), sampled) in self.counts.sums.iter().zip(&self.sampled) {
            if let Ok(at) = self.blocks.binary_search_by_key(index, |block| block.index) {
                all[at].add(sampled, 1.0);
            }
        }
        Cow::Owned(all)
    }

    /// Whether its code was read; if not, addresses are file offsets (of the kernel and of what has no file, as recorded) and
    /// lengths estimates.
    pub fn is_read(&self) -> bool {
        matches!(self.counts.code, Code::Read(_))
    }

    /// What a chooser can see of a block of this module.
    pub fn features(&self, block: &CountedBlock) -> Features {
        block.count.features(block.size, CodeFeatures::of(&self.counts.code, block.index))
    }

    /// The number of the function that a block belongs to, in its module; that of no other where neither code nor name is known.
    pub fn function_id(&self, index: u32) -> u32 {
        match &self.counts.code {
            Code::Read(code) => code.blocks.blocks()[index as usize].function.0,
            Code::Unread { blocks, functions, .. } => {
                blocks.get(index as usize).and_then(|block| functions.at(block.start)).unwrap_or(u32::MAX)
            }
        }
    }

    /// The symbol of the function a block belongs to; `None` where neither code nor name is known.
    pub fn function_symbol(&self, index: u32) -> Option<Svma> {
        match &self.counts.code {
            Code::Read(code) => {
                let block = code.blocks.blocks().get(index as usize)?;
                Some(code.functions.get(block.function).symbol)
            }
            Code::Unread { .. } => Some(Svma(self.known_function(index)?.start.0)),
        }
    }

    /// The function of a block of code that was not read, where its name is known.
    pub(crate) fn known_function(&self, index: u32) -> Option<&KnownFunction> {
        match &self.counts.code {
            Code::Read(_) => None,
            Code::Unread { blocks, functions, .. } => functions.around(blocks.get(index as usize)?.start),
        }
    }

    /// The debug information of what ran of it, read by so many threads once for all who ask; `None` where the code was not read.
    pub(crate) fn source(&self, threads: usize) -> Option<Arc<SourceIndex>> {
        let Code::Read(code) = &self.counts.code else { return None };
        Some(code.source(joined(self.blocks.iter().map(|block| block.start..block.end)), threads))
    }

    /// Name of the function a block belongs to, demangled; `None` where neither code nor name is known.
    pub fn function_name(&self, index: u32) -> Option<String> {
        match &self.counts.code {
            Code::Read(code) => {
                let block = &code.blocks.blocks()[index as usize];
                Some(demangle(&code.functions.name(block.function)))
            }
            Code::Unread { .. } => Some(demangle(&self.known_function(index)?.name)),
        }
    }
}
