//! The recording side: from records to sums per process, epoch and address.

mod address_space;
mod aggregate;
mod event;
mod facts;
mod modules;
mod scan;
mod sources;
mod timeline;

pub use address_space::{AddressSpace, Mapping, ModuleId};
pub use aggregate::{Aggregate, Context, ContextId, Hop, IpHits, StackStatistics, Totals, Weight};
pub use event::{EventKind, StackUse, Vendor};
pub use facts::recorded_degradations;
pub use modules::{GUEST, KERNEL, Module, ModuleKind, ModuleTable, UNKNOWN};
pub use scan::{Granularity, RecordCounts, Scanned, scan};
pub use sources::{SourceEvents, Sources};
pub use timeline::{KERNEL_PID, Place, TaskEvent, Timeline};
