//! Registers as a stub finds them.

use crate::registers::VectorState;

/// Bytes of the buffer that stands for a stub's memory operand; the largest is that of `fxsave`.
pub(crate) const SCRATCH: usize = 512;

/// What a stub loads from and stores to; the layout is part of the contract with the code that `stub` writes.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct Context {
    /// The general registers, then 0, the bases of fs and gs, and unused places, so that an index cut to 5 bits is always inside.
    pub(crate) registers: [u64; 32],
    pub(crate) scratch: [u8; SCRATCH],
    pub(crate) vector: VectorState,
    /// `rflags` before and after the instruction.
    pub(crate) flags: u64,
    /// The interpreter's own `mxcsr` while a stub runs.
    pub(crate) host_mxcsr: u32,
}

impl Default for Context {
    fn default() -> Self {
        Self { registers: [0; 32], scratch: [0; SCRATCH], vector: VectorState::default(), flags: 0, host_mxcsr: 0x1f80 }
    }
}
