//! Where everything is in a program that has the agent: the same addresses in every process, so that pointers stay what they are.
//!
//! ```text
//! BASE      code and constants | data of the executable
//! CONTEXTS  16 times: thread-local storage, stack, heap
//! STUBS     16 times: executable memory for single instructions
//! COPIES    16 times: executable memory for the copy of a path, when bursts are checked
//! SLOTS     shared with the recorder
//! SCRATCH   a page for what system calls are given while the image is mapped
//! ```

use std::ops::Range;

/// Far from where Linux puts programs, libraries, heaps and stacks, and below the end of 47 bits.
pub(crate) const BASE: u64 = 0x3b6f_0000_0000;
/// One for preparing, the others for as many bursts at a time.
pub(crate) const CONTEXT_COUNT: u64 = 16;
pub(crate) const CONTEXTS: u64 = BASE + 0x1000_0000;
/// Bytes of a context: a power of two.
pub(crate) const CONTEXT_BYTES: u64 = 16 << 20;
/// From the start of a context to its thread control block; thread-local variables end there.
pub(crate) const TCB_OFFSET: u64 = 0x1_0000;
/// From the thread control block to where the stack begins, downwards,
pub(crate) const STACK_TOP: u64 = 0x8_0000 - TCB_OFFSET;
/// and to the heap.
pub(crate) const HEAP: u64 = 0x8_0000 - TCB_OFFSET;
/// Bytes of the heap.
pub(crate) const HEAP_BYTES: u64 = CONTEXT_BYTES - 0x8_0000;
pub(crate) const STUBS: u64 = CONTEXTS + CONTEXT_COUNT * CONTEXT_BYTES;
pub(crate) const STUBS_BYTES: u64 = lookahead::StubMemory::BYTES as u64;
pub(crate) const COPIES: u64 = STUBS + CONTEXT_COUNT * STUBS_BYTES;
/// Bytes for a copy: twelve to thirty are what an instruction takes.
pub(crate) const COPY_BYTES: u64 = 1 << 20;
pub(crate) const SLOTS: u64 = COPIES + CONTEXT_COUNT * COPY_BYTES;
/// For the strings and structures of the system calls that map the image.
pub(crate) const SCRATCH: u64 = SLOTS + 0x800_0000;
/// All of it.
pub const REGION: Range<u64> = BASE..SCRATCH + 0x1000;

/// The thread control block of a context.
pub(crate) const fn tcb(context: u64) -> u64 {
    CONTEXTS + context * CONTEXT_BYTES + TCB_OFFSET
}

const _: () = assert!(CONTEXT_BYTES.is_power_of_two() && REGION.end < 1 << 46);
