//! A static basic block.

use instructions::BranchKind;
use serde::{Deserialize, Serialize};

use super::FunctionId;
use crate::address::Svma;

/// A static basic block: `[start, end)`.
///
/// It starts at a function's entry, at a branch target (stated by an instruction of a hit function, or observed), or
/// after a control transfer, and ends at the next one, calls and system calls included. Example: of
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
    /// What the last instruction does, or why there is no further one.
    pub terminator: Terminator,
    /// How sure it is that the block's first instruction is one.
    pub evidence: Evidence,
}

/// How a block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
    /// `syscall`, `sysenter`, `int n`, `vmcall`: control comes back after it, if it comes back.
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
    /// What runs next is [`BlockMap::following`](super::BlockMap::following), not the next block.
    Overlap,
    /// What follows is no instruction, or the end of the code.
    Undecodable,
}

impl Terminator {
    /// Whether control can go on to the next address without a branch being taken, as it does inside a stream.
    pub fn can_fall_through(self) -> bool {
        matches!(self, Self::FallThrough | Self::Conditional | Self::SystemCall | Self::Observed | Self::Overlap)
    }

    /// The kind of the jump, call or return that ends the block, if one does.
    pub fn branch(self) -> Option<BranchKind> {
        Some(match self {
            Self::Conditional => BranchKind::Conditional,
            Self::Jump => BranchKind::Jump,
            Self::IndirectJump => BranchKind::IndirectJump,
            Self::Call => BranchKind::Call,
            Self::IndirectCall => BranchKind::IndirectCall,
            Self::Return => BranchKind::Return,
            _ => return None,
        })
    }
}

/// How a block's first instruction was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Evidence {
    /// From the function's entry or an observed address along fall-throughs and direct jumps.
    Reached,
    /// By decoding, in a line, what lies between reached instructions. Tables in the code can look like instructions.
    Swept,
}

/// What was odd about the code of the hit functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
