//! Registers as stubs and compiled blocks find them.

use crate::registers::VectorState;

/// Bytes of the buffer that stands for a stub's memory operand; the largest is that of `fxsave`.
pub(crate) const SCRATCH: usize = 512;

/// Taken branches that compiled blocks keep until the burst's loop takes them.
pub(crate) const BRANCHES: usize = 64;

/// What compiled blocks look at besides registers; all of it is set before one of them is called. It is so short, and lies where it does, that
/// they reach all of it with a byte.
#[derive(Clone, Default)]
#[repr(C, align(64))]
pub(crate) struct Hot {
    /// Where the tables of lines begin.
    pub(crate) tables: u64,
    /// What is above the line in them.
    pub(crate) tag: u64,
    /// Where it is kept what was stored shortly before.
    pub(crate) stored: u64,
    /// Where the blocks are that may follow,
    pub(crate) targets: u64,
    /// and by their number, in which burst they were compared with memory.
    pub(crate) seen: u64,
    /// Where the next taken branch is written.
    pub(crate) next_branch: u64,
    /// Where the path goes on.
    pub(crate) target: u64,
    /// Behind the call that says so, if no block was known to follow.
    pub(crate) site: u64,
    /// The function that executes an operation of the interpreter's, and its first argument.
    pub(crate) step: u64,
    pub(crate) frame: u64,
    /// Where a branch leads that may have led to the same state before, unless this register has another value.
    pub(crate) spin_target: u64,
    pub(crate) witness_value: u64,
    pub(crate) witness: u32,
    /// The burst at hand.
    pub(crate) burst: u32,
    /// Instructions that may still be executed after this block;
    pub(crate) left: u32,
    /// without these, the path's number of the instruction after the block.
    pub(crate) end: u32,
    /// Taken branches before the burst's loop must look at one.
    pub(crate) until: u32,
    pub(crate) not_taken: u32,
    /// The block at hand.
    pub(crate) current: u32,
    /// The status flags, as `lahf` and `seto al` leave them in `ax`.
    pub(crate) status: u16,
    /// Memory was changed.
    pub(crate) changed: u8,
}

/// What stubs and blocks load from and store to; the layout is part of the contract with the code that `stub` and `compiled` write.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct Context {
    pub(crate) hot: Hot,
    /// The general registers, then 0, the bases of fs and gs, and unused places, so that an index cut to 5 bits is always inside.
    pub(crate) registers: [u64; 32],
    /// The operand in memory of a stub, which may have to be aligned.
    pub(crate) scratch: [u8; SCRATCH],
    pub(crate) vector: VectorState,
    /// `rflags` before and after the instruction.
    pub(crate) flags: u64,
    /// The interpreter's own `mxcsr` while a stub runs.
    pub(crate) host_mxcsr: u32,
    /// Taken branches: address, target, kind.
    pub(crate) branches: [[u64; 3]; BRANCHES],
}

const _: () = assert!(size_of::<Hot>() <= 128 && std::mem::offset_of!(Context, scratch).is_multiple_of(64));

impl Default for Context {
    fn default() -> Self {
        Self {
            hot: Hot::default(),
            registers: [0; 32],
            scratch: [0; SCRATCH],
            vector: VectorState::default(),
            flags: 0,
            host_mxcsr: 0x1f80,
            branches: [[0; 3]; BRANCHES],
        }
    }
}

impl Context {
    /// Where a general register is.
    pub(crate) const fn register(number: usize) -> usize {
        std::mem::offset_of!(Self, registers) + 8 * number
    }

    /// How many taken branches compiled blocks have written down.
    pub(crate) fn taken(&self) -> usize {
        (self.hot.next_branch as usize).wrapping_sub(self.branches.as_ptr() as usize) / size_of::<[u64; 3]>()
    }

    /// Writes one more down.
    pub(crate) fn take(&mut self, branch: [u64; 3]) {
        let taken = self.taken();
        if let Some(place) = self.branches.get_mut(taken) {
            *place = branch;
            self.hot.next_branch += size_of::<[u64; 3]>() as u64;
        }
    }
}
