//! Exact counts by instrumentation, to measure estimates against.
//!
//! ```text
//! callgrind, mix_file   what instrumentation wrote -> instructions counted by address
//! mix_words             what SDE calls instructions, for those who write such a file
//! stubs                 stubs of the procedure linkage table -> the object they are of
//! executions            instructions counted -> executions of blocks
//! exact                 all of that for the objects of a run -> Truth
//! reference             Truth -> executions of the blocks of an Analysis
//! annotated             functions of `hbbp annotate` -> document
//! document              Truth <-> JSON, as `hbbp blocks` prints its counts
//! ```

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod annotated;
mod callgrind;
mod document;
mod exact;
mod executions;
mod mix_file;
mod mix_words;
mod reference;
mod stubs;

pub use annotated::SCHEMA as ANNOTATED_SCHEMA;
pub use callgrind::{Callgrind, CallgrindError, CallgrindLineError, Object, UNKNOWN};
pub use document::{BlockList, DocumentError, ListedBlocks, SCHEMA};
pub(crate) use exact::executed;
pub use exact::{ExactCounter, ExactError, LeftOut, Truth, TruthBlock, TruthModule};
pub use executions::{ExactCounts, executions};
pub use mix_file::{MixFile, MixFileError, MixLineError};
pub use mix_words::{disassembly, iclass, isa_extension, sums};
pub use reference::{NotComparable, Reference, ReferenceModule};
pub(crate) use reference::{TruthIndex, instructions_of};
