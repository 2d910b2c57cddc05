//! How far counts can be from the truth, at 95 %.
//!
//! ```text
//! slices       a recording cut into 20 slices that each see the whole run
//! slice_sums   a sum, and what each slice has of it
//! replicates   what a sum would be without each slice, and with other costs of code
//! sampled      a count with its replicates, and how a recording makes them
//! blocks       the blocks of an analysis with their replicates
//! rows         rows of two recordings, compared by name
//! cost_errors  by what the costs of code may be wrong
//! code_errors  the same of code that bursts do not follow, and of sums of recordings
//! interval     from replicates to the width of an interval
//! ```
//!
//! All that a report prints is computed for each replicate, too, and what the replicates differ in is the uncertainty. See
//! docs/design/uncertainty.md.

mod blocks;
mod code_errors;
mod cost_errors;
mod interval;
mod replicates;
mod rows;
pub(crate) mod sampled;
mod slice_sums;
mod slices;

pub use blocks::SampledBlocks;
pub(crate) use code_errors::{CLOCKED, CodeErrors, Deviations, SUMMED};
pub(crate) use cost_errors::CostErrors;
pub use interval::Interval;
pub use replicates::{COSTS, Replicates};
pub use rows::{Counted, RowName, Rows, Side, change_error, width_of_many};
pub use sampled::{CountKind, Design, Sampled};
pub(crate) use sampled::{Resampling, made_up};
pub use slice_sums::SliceSums;
pub(crate) use slices::mixed;
pub use slices::{SLICES, Slice, SliceSet, Slicing};
