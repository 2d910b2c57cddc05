//! The recording side: from records to sums per process, epoch and address.

mod address_space;
mod aggregate;
mod bursts;
mod event;
mod metadata;
mod modules;
mod part;
mod paths;
mod scan;
mod sources;
mod timeline;

pub use address_space::{AddressSpace, Mapping, ModuleId};
pub use aggregate::{Aggregate, BurstPiece, Context, ContextId, Hop, IpHits, StackStatistics, Totals, Weight};
pub use bursts::Starts;
pub(crate) use bursts::{BurstCounter, FirstPiece, FirstPieces, instructions_of};
pub use event::{EventKind, StackUse, Vendor};
pub use metadata::{BurstEvent, BurstUnit, MadeEvents, Metadata, Tracer};
pub use modules::{GUEST, KERNEL, Module, ModuleKind, ModuleTable, UNKNOWN};
pub use part::Part;
pub(crate) use paths::PathSelection;
pub use paths::{BurstPath, DataUse, DataUses, Forwarded};
pub use scan::{Granularity, RecordCounts, Selection, Tasks, read_samples, read_tasks};
pub use sources::{SourceEvents, Sources};
pub use timeline::{KERNEL_PID, Place, TaskEvent, Timeline};
