//! Static basic blocks.

use super::cut::{Cut, cut};
use super::trace::trace;
use super::{FunctionId, FunctionTable, Image, Observed};
use crate::address::Svma;

/// A static basic block: `[start, end)`.
///
/// It starts at a function's entry, at a branch target (stated by an instruction of a hit function, or observed), or
/// behind a control transfer, and ends at the next one, calls and system calls included. Example: of
/// `test; je L; call f; L: ret` the blocks are `test je`, `call`, `ret`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The address of the first instruction.
    pub start: Svma,
    /// The address after the last instruction (before that with [`Terminator::Overlap`], and where a transfer is
    /// overlapped by the next block).
    pub end: Svma,
    /// The address of the last instruction.
    pub last: Svma,
    /// How many instructions start in the block; at least 1.
    pub instructions: u32,
    /// The function that holds it.
    pub function: FunctionId,
    /// How it ends.
    pub terminator: Terminator,
    /// How sure it is that the block's first instruction is one.
    pub evidence: Evidence,
}

/// How a block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Terminator {
    /// The next instruction starts a block: something branches there.
    FallThrough,
    /// A conditional branch, `loop`, `jrcxz`, `xbegin` or `xabort`.
    Conditional,
    /// An unconditional jump to a stated target.
    Jump,
    /// An unconditional jump to a computed target.
    IndirectJump,
    /// A call of a stated target.
    Call,
    /// A call of a computed target.
    IndirectCall,
    /// `ret`, `iret`, `sysret`.
    Return,
    /// `syscall`, `sysenter`, `int n`, `vmcall`: control comes back behind it, if it comes back.
    SystemCall,
    /// `int3`, `ud2`, `hlt`.
    Trap,
    /// A taken branch was observed to leave from the last instruction, which is no branch in the file: code that was patched
    /// while it ran, a fault, or a file that is not the one that ran.
    Observed,
    /// The next block starts inside the last instruction. Code jumps over a prefix that way:
    /// ```text
    /// a:  lock cmpxchg %ecx, (%rdi)      blocks: [a, a+1) 1 instruction, Overlap, goes on at b
    /// a+1:     cmpxchg %ecx, (%rdi)              [a+1, b) 1 instruction
    /// b:  ..                                     [b, ..)
    /// ```
    /// What runs next is [`BlockMap::following`], not the next block.
    Overlap,
    /// What follows is no instruction, or the end of the code.
    Undecodable,
}

impl Terminator {
    /// Whether control can go on to the next address without a branch being taken, as it does inside a stream.
    pub fn can_fall_through(self) -> bool {
        matches!(self, Self::FallThrough | Self::Conditional | Self::SystemCall | Self::Observed | Self::Overlap)
    }
}

/// How a block's first instruction was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Evidence {
    /// From the function's entry or an observed address along fall-throughs and direct jumps.
    Reached,
    /// By decoding, in a line, what lies between reached instructions. Tables in the code can look like instructions.
    Swept,
}

/// What was odd about the code of the hit functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockStatistics {
    /// How many functions were hit.
    pub functions: u64,
    /// Their bytes that are no instructions.
    pub undecodable_bytes: u64,
    /// Instructions that the next block starts inside of.
    pub overlapping_instructions: u64,
    /// Observed sources that are no branch in the file: see [`Terminator::Observed`].
    pub sources_without_branch: u64,
    /// Observed addresses in the hit functions where no instruction can be decoded.
    pub observed_undecodable: u64,
    /// Observed addresses outside of the image's code.
    pub observed_outside: u64,
}

/// The blocks of those functions of an image that a recording hit: sorted and disjoint.
///
/// Every observed target and every observed source that decodes is the start, or the last instruction, of a block.
#[derive(Clone, Debug, Default)]
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

    /// The blocks, by address.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The index of the block that holds an address.
    pub fn block_at(&self, address: Svma) -> Option<usize> {
        let index = self.blocks.partition_point(|block| block.start <= address).checked_sub(1)?;
        (address < self.blocks[index].end).then_some(index)
    }

    /// The index of the block that runs after block `index` when its last instruction is not taken for a branch: as a
    /// rule the next one; `None` if there is no block at the address after the last instruction.
    pub fn following(&self, index: usize) -> Option<usize> {
        let block = self.blocks.get(index)?;
        let overlapping = self.resumptions.binary_search_by_key(&index, |&(index, _)| index);
        match overlapping {
            Ok(found) => {
                let address = self.resumptions[found].1;
                self.block_at(address).filter(|&next| self.blocks[next].start == address)
            }
            Err(_) => self.blocks.get(index + 1).filter(|next| next.start == block.end).map(|_| index + 1),
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
