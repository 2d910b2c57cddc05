//! The recording side: from records to sums per process, epoch and address.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod address_space;
mod aggregate;
mod bursts;
mod by_threads;
mod cgroups;
mod container_notes;
mod context;
mod event;
mod kernel_code;
mod kernel_epochs;
mod known_functions;
mod made_code;
mod metadata;
mod modules;
mod never_empty;
mod pages;
mod paths;
mod phases;
mod programs;
mod scan;
mod sources;
mod subset;
mod timeline;

pub use address_space::{AddressSpace, Mapping, ModuleId};
pub(crate) use address_space::{KERNEL_HALF, KERNEL_MODULES};
pub(crate) use aggregate::followed;
pub use aggregate::{Aggregate, IpHits, StackStatistics, StreamHits, Totals, Weight};
pub(crate) use bursts::{BurstCounter, FirstPiece, FirstPieces, shown, weight_of};
pub use bursts::{BurstPiece, Cuts, Starts};
pub(crate) use by_threads::samples_by_threads;
pub use container_notes::notes;
pub use context::{Context, ContextId, granule};
pub use event::{EventKind, StackUse, Vendor};
pub use formats::made_code::KERNEL_PID;
pub(crate) use kernel_epochs::KernelEpochs;
pub use known_functions::{KnownFunction, KnownFunctions};
pub use made_code::MADE_CODE;
pub(crate) use made_code::MadeCodes;
pub use metadata::{BurstUnit, Tracer, burst_unit, is_simulated, metadata_of};
pub use modules::{
    GUEST, KERNEL, KernelPlace, LoadedAt, Module, ModuleKind, ModuleTable, RecordedCode, UNKNOWN, base_name,
};
pub(crate) use modules::{VSYSCALL, VSYSCALL_PAGE};
pub use paths::BurstPath;
pub(crate) use paths::PathSelection;
pub use phases::{PhaseId, Phases};
pub(crate) use scan::{EventUse, context_of, event_uses};
pub use scan::{Granularity, RecordCounts, Selection, Tasks, read_samples, read_tasks};
pub use sources::{CodeKind, SourceEvents, Sources};
pub use subset::Subset;
pub use timeline::{EpochId, TaskEvent, Timeline};
