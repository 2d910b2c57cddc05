//! What stands here without the cargo feature `simulated-pmu`: a simulation can be asked for, and is refused.

mod settings;

pub use settings::{PmuSettings, SimulatedCore, UnknownCore};

/// What the simulation did: nothing, for there is none.
#[derive(Clone, Debug)]
pub enum SimulationStatistics {}
