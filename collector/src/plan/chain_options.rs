//! What all fallback chains of a plan are made with.

use crate::plan::Options;
use crate::plan::event_spec::Levels;

/// What all fallback chains of a plan share.
pub(crate) struct ChainOptions<'a> {
    pub(crate) options: &'a Options,
    pub(crate) levels: Levels,
    /// Levels of the branches, where the filter does not name any. The same for all events: the hardware has one filter.
    pub(crate) branch_levels: Levels,
    /// The kernel's limit of samples a second.
    pub(crate) rate_limit: Option<u64>,
}
