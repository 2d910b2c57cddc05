//! What the simulated PMU says of itself.

use std::collections::BTreeMap;

use crate::tolerant::{objects, tolerant_objects};

tolerant_objects! {
    /// The `simulation` object of a recording's metadata. While the simulation runs, only its settings are known.
    pub struct SimulationMetadata {
        /// Whose events are simulated: `ivy-bridge` or `westmere`.
        pub core: Option<String>,
        /// Entries of a branch stack.
        pub depth: Option<u64>,
        /// Share of the branches that tend to be in the oldest entry, 0 to 1.
        pub bias: Option<f64>,
        /// Random seed: it chooses those branches and the delays of samples.
        pub seed: Option<u64>,
        /// Instructions executed, all of them.
        pub instructions: Option<u64>,
        /// Taken branches among them.
        pub taken_branches: Option<u64>,
        /// Instructions that the threads executed themselves, one at a time.
        pub stepped: Option<u64>,
        /// Why they did, how often.
        pub steps: Option<BTreeMap<String, u64>>,
        /// Times memory and registers were written back.
        pub slices: Option<u64>,
        /// Signals the program got.
        pub signals: Option<u64>,
        /// Threads that were simulated.
        pub threads: Option<u64>,
        /// Processes that were simulated.
        pub processes: Option<u64>,
        /// Overflows that made no sample because one of the same event was due.
        pub merged: Option<u64>,
        /// Samples there was no room for.
        pub lost: Option<u64>,
        /// Samples that could not be written, which is a bug.
        pub unwritable: Option<u64>,
        /// Threads that went on without being simulated, by reason.
        pub not_followed: Option<BTreeMap<String, u64>>,
        /// What went wrong, in sentences.
        pub failures: Option<Vec<String>>,
    }
}

objects! { SimulationMetadata }
