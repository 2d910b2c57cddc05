//! What one instruction is.

use super::category::Category;
use super::kinds::{BranchKind, Element, Encoding, MemoryAccess, Packing, Width};

/// The attributes of an instruction, for pivots and filters.
///
/// All but `lock` and `rep` depend only on the opcode and on whether it has an operand in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attributes {
    /// The mnemonic in lower case, in Intel's spelling: `mov`, `jne`, `vaddps`.
    pub mnemonic: &'static str,
    /// What it is for.
    pub category: Category,
    /// The instruction set extension that added it: `base`, `x87`, `sse2`, `avx512f`; see [`super::isa_names`].
    pub isa: &'static str,
    /// How it is encoded.
    pub encoding: Encoding,
    /// Whether it works on one element or on all elements of its vector operands.
    pub packing: Packing,
    /// The type of the elements: of conversions, the source's.
    pub element: Element,
    /// Bits of the widest vector operand if packed, of the element if scalar, of the first operand otherwise.
    pub width: Width,
    /// What it does to memory, with the stack if it uses that (`push`, `call`, `ret`). Addresses that are only computed or
    /// prefetched (`lea`, `nop`, `prefetch`) are no access.
    pub memory: MemoryAccess,
    /// Whether it accesses the stack without naming it: `push`, `pop`, `call`, `ret`, `enter`, `leave`.
    pub stack: bool,
    /// What it does to the flow of control.
    pub branch: BranchKind,
    /// A `lock` prefix, or `xchg` with memory, which locks without one.
    pub lock: bool,
    /// A string instruction with a `rep` prefix.
    pub rep: bool,
    /// Division, remainder, square root, x87 transcendentals and decimal conversions, `cpuid`, random numbers: tens of
    /// cycles or more, on every processor.
    pub long_latency: bool,
}
