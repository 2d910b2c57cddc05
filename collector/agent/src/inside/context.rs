//! A context: what a burst needs of its own to run on a thread of the program.

use std::ffi::c_int;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use crate::inside::burst::Agent;
use crate::inside::follow::Hold;
use crate::inside::heap::Heap;
use crate::layout::{self, CONTEXT_COUNT};

/// The thread control block that fs points to while the agent runs (*ELF Handling For Thread-Local Storage*, variant II): its first word is
/// its own address, thread-local variables are below it.
#[repr(C)]
pub(crate) struct Tcb {
    pub(crate) this: u64,
    reserved: [u64; 15],
    /// The process that takes a burst here; 0: nobody.
    pub(crate) busy: AtomicU32,
    pub(crate) errno: c_int,
    /// The program's stack pointer and base of fs.
    pub(crate) stack_pointer: u64,
    pub(crate) fs_base: u64,
    pub(crate) index: u64,
    /// Not zero: the burst here is to go on when its thread comes out of a system call ([`super::follow`]).
    pub(crate) waits: AtomicU64,
    /// Not zero: the kernel is to say when the thread enters a system call.
    pub(crate) selector: AtomicU8,
    /// What that burst goes on from.
    pub(crate) hold: Option<Hold>,
    pub(crate) heap: Heap,
    /// What bursts are taken with; made when it is first needed.
    pub(crate) agent: Option<NonNull<Agent>>,
}

/// All contexts that bursts are taken in.
pub(crate) fn all() -> impl Iterator<Item = *mut Tcb> {
    // The first is that of preparing.
    (1..CONTEXT_COUNT).map(|context| layout::tcb(context) as *mut Tcb)
}

/// The context at hand. Only where the agent runs.
pub(crate) fn current() -> NonNull<Tcb> {
    let this: *mut Tcb;
    // SAFETY: fs points to a `Tcb`, whose first word is its address.
    unsafe { std::arch::asm!("mov {}, fs:[0]", out(reg) this, options(nostack, readonly, preserves_flags)) };
    // SAFETY: no context is at address 0.
    unsafe { NonNull::new_unchecked(this) }
}

/// The place of `errno`.
pub(crate) fn errno() -> *mut c_int {
    // SAFETY: the field of a context that is there.
    unsafe { &raw mut (*current().as_ptr()).errno }
}
