//! What a block's instructions say of how well it can be counted.

use ::instructions::{Attributes, BranchKind, MemoryAccess, Packing};
use model::{BlockEnd, Features};

use crate::code::{Block, BlockMap, Image, Terminator, instructions};
use crate::counting::Code;

/// Numbers of instructions of a block by what they do; the part of [`Features`] that needs code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeFeatures {
    long_latency: u32,
    memory_reads: u32,
    memory_writes: u32,
    simd: u32,
    end: BlockEnd,
    casts_shadow: bool,
    shadowed: bool,
}

impl CodeFeatures {
    /// Of a block by its index; nothing is known of code that was not read. Decodes the block and the one before it.
    pub fn of(code: &Code, index: u32) -> Self {
        let Code::Read(code) = code else { return CodeFeatures::default() };
        let (image, index) = (&code.binary.image, index as usize);
        CodeFeatures {
            shadowed: block_before(&code.blocks, index).is_some_and(|before| has_long_latency(image, before)),
            ..Self::of_block(image, &code.blocks.blocks()[index])
        }
    }

    fn of_block(image: &Image, block: &Block) -> Self {
        let mut features = CodeFeatures { end: end(block.terminator), ..CodeFeatures::default() };
        for instruction in instructions(image, block) {
            let attributes = Attributes::of(&instruction);
            let (reads, writes) = match attributes.memory {
                MemoryAccess::None => (false, false),
                MemoryAccess::Read => (true, false),
                MemoryAccess::Write => (false, true),
                MemoryAccess::ReadWrite => (true, true),
            };
            features.memory_reads += u32::from(reads);
            features.memory_writes += u32::from(writes);
            features.simd += u32::from(attributes.packing != Packing::None);
            features.long_latency += u32::from(attributes.long_latency);
            if attributes.branch == BranchKind::None {
                features.casts_shadow = attributes.long_latency;
            }
        }
        features
    }

    /// Puts them into the features of the block.
    pub fn add_to(self, features: Features) -> Features {
        let CodeFeatures { long_latency, memory_reads, memory_writes, simd, end, casts_shadow, shadowed } = self;
        Features { long_latency, memory_reads, memory_writes, simd, end, casts_shadow, shadowed, ..features }
    }
}

/// The block from which control comes to this one without a branch.
fn block_before(blocks: &BlockMap, index: usize) -> Option<&Block> {
    let before = index.checked_sub(1)?;
    let falls_through = blocks.blocks()[before].terminator.can_fall_through();
    (falls_through && blocks.following(before) == Some(index)).then(|| &blocks.blocks()[before])
}

fn has_long_latency(image: &Image, block: &Block) -> bool {
    instructions(image, block).any(|instruction| Attributes::of(&instruction).long_latency)
}

fn end(terminator: Terminator) -> BlockEnd {
    match terminator {
        Terminator::FallThrough | Terminator::Observed | Terminator::Overlap | Terminator::Undecodable => {
            BlockEnd::FallThrough
        }
        Terminator::Conditional => BlockEnd::Conditional,
        Terminator::Jump => BlockEnd::Jump,
        Terminator::IndirectJump | Terminator::IndirectCall => BlockEnd::Indirect,
        Terminator::Call => BlockEnd::Call,
        Terminator::Return => BlockEnd::Return,
        Terminator::SystemCall | Terminator::Trap => BlockEnd::Kernel,
    }
}
