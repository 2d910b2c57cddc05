//! The blocks of an analysis with their replicates.

use std::borrow::Cow;

use crate::uncertainty::{Interval, Sampled};
use crate::{Analysis, CountedBlock, CountedModule};

/// The replicates of all blocks, and of all executed instructions.
pub struct SampledBlocks<'a> {
    analysis: &'a Analysis,
    /// By module and block, in the order of [`CountedModule::blocks`].
    blocks: Vec<Cow<'a, [Sampled]>>,
    whole: Sampled,
    instructions: f64,
}

impl<'a> SampledBlocks<'a> {
    /// Adds up the replicates of an analysis.
    pub fn of(analysis: &'a Analysis) -> Self {
        let blocks: Vec<Cow<'_, [Sampled]>> = analysis.counted.iter().map(CountedModule::sampled_blocks).collect();
        let mut whole = Sampled::default();
        for (module, sampled) in analysis.counted.iter().zip(&blocks) {
            module
                .blocks
                .iter()
                .zip(&**sampled)
                .for_each(|(block, sampled)| whole.add(sampled, block.size.instructions));
        }
        SampledBlocks { analysis, blocks, whole, instructions: analysis.instructions() }
    }

    /// The blocks of a module, by its index in [`Analysis::counted`].
    pub fn of_module(&self, index: usize) -> impl Iterator<Item = (&'a CountedBlock, &Sampled)> {
        let module: Option<&'a CountedModule> = self.analysis.counted.get(index);
        module
            .into_iter()
            .flat_map(|module| &module.blocks)
            .zip(self.blocks.get(index).into_iter().flat_map(|sampled| &**sampled))
    }

    /// A block of a module that has counts, by its index in the module's code.
    pub fn block(&self, module: usize, index: u32) -> Option<(&'a CountedBlock, &Sampled)> {
        let blocks: &'a [CountedBlock] = &self.analysis.counted.get(module)?.blocks;
        let at = blocks.binary_search_by_key(&index, |block| block.index).ok()?;
        Some((blocks.get(at)?, self.blocks.get(module)?.get(at)?))
    }

    /// How uncertain the count of a block is, and its share of all executed instructions.
    pub fn intervals(&self, block: &CountedBlock, sampled: &Sampled) -> [Interval; 2] {
        let mut executed = Sampled::default();
        executed.add(sampled, block.size.instructions);
        let count = self.analysis.design.interval(block.count.count, sampled);
        [count, self.share((block.count.count * block.size.instructions, &executed))]
    }

    /// How uncertain the share is that the blocks of a module which are of no function with a name have of all executed instructions, by its
    /// index in [`Analysis::counted`].
    pub fn share_without_name(&self, index: usize) -> Interval {
        let (mut executed, mut sum) = (0.0, Sampled::default());
        let has_no_name = |block: &CountedBlock| {
            self.analysis.counted.get(index).is_some_and(|module| module.function_symbol(block.index).is_none())
        };
        for (block, sampled) in self.of_module(index).filter(|(block, _)| has_no_name(block)) {
            executed += block.count.count * block.size.instructions;
            sum.add(sampled, block.size.instructions);
        }
        self.share((executed, &sum))
    }

    /// How uncertain the share is that so many executed instructions have of all.
    pub fn share(&self, executed: (f64, &Sampled)) -> Interval {
        self.analysis.design.share(executed, (self.instructions, &self.whole))
    }
}
