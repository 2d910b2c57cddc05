//! Static basic blocks.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::block::{Block, BlockStatistics};
use super::cut::{Cut, cut};
use super::kept_blocks::{KeptBlocks, ReadBlocks};
use super::trace::trace;
use super::{FunctionTable, Image, Observed};
use crate::address::Svma;

/// The blocks of those functions of an image that a recording hit: sorted and disjoint.
///
/// Every observed target and every observed source that decodes is the start, or the last instruction, of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockMap {
    blocks: Vec<Block>,
    /// For blocks that overlap the next one: where they go on, by index.
    resumptions: Vec<(usize, Svma)>,
    statistics: BlockStatistics,
}

impl BlockMap {
    /// Finds the blocks of all functions that hold an observed address, and of those they run into.
    ///
    /// Instructions are found along the flow of control from functions' entries and observed addresses; what lies between
    /// is decoded in a line. Time and memory grow with the size of the hit functions.
    pub fn build(image: &Image, functions: &FunctionTable, observed: &Observed) -> Self {
        let mut trace = trace(image, functions, observed);
        let Cut { blocks, resumptions, mut statistics } = cut(&mut trace.hit);
        statistics.observed_outside = trace.outside;
        Self { blocks, resumptions, statistics }
    }

    /// Whether these can be blocks of that image: each is in the function that it says. One that was built is so.
    pub(crate) fn is_of(&self, functions: &FunctionTable) -> bool {
        self.blocks.iter().all(|block| {
            let function = functions.try_get(block.function);
            function.is_some_and(|function| function.start <= block.start && block.end <= function.end)
        })
    }

    /// The blocks, by address.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The index of the block that holds an address.
    pub fn block_at(&self, address: Svma) -> Option<usize> {
        let index = self.blocks.partition_point(|block| block.start <= address).checked_sub(1)?;
        (address < self.blocks.get(index)?.end).then_some(index)
    }

    /// The index of the block that runs after block `index` when its last instruction is not taken for a branch: as a
    /// rule the next one; `None` if there is no block at the address after the last instruction.
    pub fn following(&self, index: usize) -> Option<usize> {
        let block = self.blocks.get(index)?;
        let overlapping = self.resumptions.binary_search_by_key(&index, |&(index, _)| index);
        match overlapping.ok().and_then(|found| self.resumptions.get(found)) {
            Some(&(_, address)) => {
                self.block_at(address).filter(|&next| self.blocks.get(next).is_some_and(|next| next.start == address))
            }
            None => self.blocks.get(index + 1).filter(|next| next.start == block.end).map(|_| index + 1),
        }
    }

    /// Bytes of the hit functions that are no instructions.
    pub fn undecodable_bytes(&self) -> u64 {
        self.statistics.undecodable_bytes
    }

    /// What was odd about the code.
    pub fn statistics(&self) -> BlockStatistics {
        self.statistics
    }
}

impl Serialize for BlockMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (KeptBlocks(&self.blocks), &self.resumptions, self.statistics).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for BlockMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (ReadBlocks(blocks), resumptions, statistics) = Deserialize::deserialize(deserializer)?;
        Ok(BlockMap { blocks, resumptions, statistics })
    }
}
