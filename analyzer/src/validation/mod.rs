//! How good the counts of an analysis are, measured against exact ones.
//!
//! ```text
//! code_counts   both sides taken apart into instructions: exact, and estimated by each source
//! counts        the counts of one thing by every estimate
//! comparison    gathers the modules of both sides
//! left_out      code of one side that is not compared, and why
//! coverage      how many of the intervals hold the truth
//! metrics       HBBP's errors, profile overlap, noise
//! verdict       what it all comes to, on a fixed scale
//! worst         the blocks that contribute most to the error, and what can be seen of the reason
//! ```

mod code_counts;
mod comparison;
mod counts;
mod coverage;
mod left_out;
mod metrics;
mod report;
mod verdict;
mod worst;

pub use counts::Estimate;
pub use coverage::{Coverage, Coverages, LEAST_SHARE};
pub use left_out::{Side, Uncompared};
pub use metrics::{CodeQuality, Measure, Named, Quality};
pub use report::{CodeName, NothingInCommon, Validation, validate};
pub use verdict::{Grade, Verdict};
pub use worst::WorstBlock;
