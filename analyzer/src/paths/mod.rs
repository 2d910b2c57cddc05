//! What the order of branches tells: how often loops went around, which paths were taken, how long blocks took.
//!
//! ```text
//! loops of all functions, instructions of all blocks                      map
//! burst or stack -> activations of functions: their loops, their paths    activations
//!   exits of loops, ends of bursts -> trips of each loop                  trips
//!   blocks between back edges -> paths; branches before a place -> history   trees, kept by walker
//!   cycles between branches -> cycles of blocks                           cycles
//! all of it, by name                                                      found
//! ```

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod activations;
mod cycles;
mod destination;
mod facts;
mod found;
mod map;
mod sums;
mod trips;
mod walker;

pub use cycles::BlockCycles;
pub use destination::{BranchEvent, Destination, NoDestination};
pub use facts::BranchFacts;
pub use found::{BranchPaths, FoundHistory, FoundPath, FoundStep, Frequency, History, HotPaths};
pub(crate) use map::CodeMap;
pub use trips::{LoopTrips, TripBucket};
pub(crate) use walker::{PathWalker, Wanted};

/// What to look for in the order of branches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathQuery {
    /// How often loops went around.
    pub trips: bool,
    /// How many cycles blocks took, if any branch record has cycles.
    pub cycles: bool,
    /// The paths within functions.
    pub hot: bool,
    /// The branches that lead to a place, or to what happens to a branch, and how many of them.
    pub history: Option<(Destination, u32)>,
}

impl PathQuery {
    /// Branches of a history, at most.
    pub const MOST_BRANCHES: u32 = 64;
}
