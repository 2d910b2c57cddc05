//! Registers as a stub finds them.

use crate::registers::VectorState;

/// Bytes of the buffer that stands for a stub's memory operand; the largest is that of `fxsave`.
pub(crate) const SCRATCH: usize = 512;

/// What compiled blocks look at besides registers; all of it is set before one of them is called.
#[derive(Clone)]
#[repr(C)]
pub(crate) struct ForBlocks {
    /// Where the tables of lines begin.
    pub(crate) tables: u64,
    /// What is above the line in them.
    pub(crate) tag: u64,
    /// Where it is kept what was stored shortly before.
    pub(crate) stored: u64,
    /// Where the blocks are that may follow.
    pub(crate) targets: u64,
    /// Where the next taken branch is written.
    pub(crate) next_branch: u64,
    /// Where the path goes on.
    pub(crate) target: u64,
    /// The function that executes an operation of the interpreter's, and its first argument.
    pub(crate) step: u64,
    pub(crate) frame: u64,
    /// Where a branch leads that may have led to the same state before, unless this register has another value.
    pub(crate) spin_target: u64,
    pub(crate) witness: u64,
    pub(crate) witness_value: u64,
    /// The burst in which blocks must have been compared with memory.
    pub(crate) burst: u32,
    /// Instructions that may still be executed after this block,
    pub(crate) left: u32,
    /// and taken branches before the burst's loop must look at one.
    pub(crate) until: u32,
    pub(crate) not_taken: u32,
    /// Instructions of the path that were executed before the block.
    pub(crate) executed: u32,
    /// The operation at which the path ends, if it does.
    pub(crate) stopped_at: u32,
    /// The status flags, as `lahf` and `seto al` leave them in `ax`.
    pub(crate) status: u16,
    /// Memory was changed.
    pub(crate) changed: u8,
    /// Taken branches: address, target, kind.
    pub(crate) branches: [[u64; 3]; BRANCHES],
}

impl ForBlocks {
    /// Writes a taken branch down.
    pub(crate) fn take(&mut self, branch: [u64; 3]) {
        let used = (self.next_branch as usize).wrapping_sub(self.branches.as_ptr() as usize) / size_of::<[u64; 3]>();
        if let Some(place) = self.branches.get_mut(used) {
            *place = branch;
            self.next_branch += size_of::<[u64; 3]>() as u64;
        }
    }

    /// Taken branches that are written down.
    pub(crate) fn taken(&self) -> &[[u64; 3]] {
        let used = (self.next_branch as usize).wrapping_sub(self.branches.as_ptr() as usize) / size_of::<[u64; 3]>();
        self.branches.get(..used).unwrap_or_default()
    }
}

/// Taken branches that blocks keep until the burst's loop takes them.
pub(crate) const BRANCHES: usize = 64;

impl Default for ForBlocks {
    fn default() -> Self {
        Self {
            tables: 0,
            tag: 0,
            stored: 0,
            targets: 0,
            next_branch: 0,
            target: 0,
            step: 0,
            frame: 0,
            spin_target: 0,
            witness: 0,
            witness_value: 0,
            burst: 0,
            left: 0,
            until: 0,
            not_taken: 0,
            executed: 0,
            stopped_at: 0,
            status: 0,
            changed: 0,
            branches: [[0; 3]; BRANCHES],
        }
    }
}

/// What a stub loads from and stores to; the layout is part of the contract with the code that `stub` writes.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct Context {
    /// The general registers, then 0, the bases of fs and gs, and unused places, so that an index cut to 5 bits is always inside.
    pub(crate) registers: [u64; 32],
    /// The operand in memory of a stub, which may have to be aligned.
    pub(crate) scratch: [u8; SCRATCH],
    pub(crate) vector: VectorState,
    /// `rflags` before and after the instruction.
    pub(crate) flags: u64,
    /// The interpreter's own `mxcsr` while a stub runs.
    pub(crate) host_mxcsr: u32,
    pub(crate) blocks: ForBlocks,
}

const _: () = assert!(std::mem::offset_of!(Context, scratch).is_multiple_of(64));

impl Default for Context {
    fn default() -> Self {
        Self {
            registers: [0; 32],
            blocks: ForBlocks::default(),
            scratch: [0; SCRATCH],
            vector: VectorState::default(),
            flags: 0,
            host_mxcsr: 0x1f80,
        }
    }
}
