//! Threads and processes that are simulated.

use addresses::Avma;

use crate::simulation::pmu::{CodeTable, ThreadPmu};
use crate::tracer::burst::ThreadId;
use crate::tracer::burst::address_space::AddressSpace;
use crate::tracer::burst::working_set::WorkingSet;

/// A thread of the program, with the PMU that is simulated for it.
pub(super) struct Thread {
    pub(super) id: ThreadId,
    pub(super) pmu: ThreadPmu,
    pub(super) working_set: WorkingSet,
    /// The instruction it was let execute itself.
    pub(super) stepping: Option<Avma>,
    /// What that may change of the address space.
    pub(super) maps: bool,
    /// It may have sent itself a signal, or unblocked one.
    pub(super) signals: bool,
}

/// A process of the program, and what is known of its code.
pub(super) struct Process {
    pub(super) space: AddressSpace,
    pub(super) code: CodeTable,
    pub(super) threads: usize,
}
