//! What can be chosen of the simulated PMU.

use std::str::FromStr;

/// What can be chosen of the simulated PMU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PmuSettings {
    /// Whose events it has.
    pub core: SimulatedCore,
    /// Entries of a branch stack: 16 up to Broadwell, 32 from Skylake on.
    pub depth: usize,
    /// The share of branches, 0 to 1, that tend to be found in the oldest entry.
    pub bias: f64,
    /// Chooses those branches, and how the dice fall.
    pub seed: u64,
}

impl Default for PmuSettings {
    /// The Ivy Bridge of the paper, without biased branches: HBBP found them in "a number of basic blocks in a number of workloads" and
    /// does not say how many there are, and in the recording of a Westmere, the one at hand, none of 77 is (`benches/stack-positions`).
    fn default() -> Self {
        Self { core: SimulatedCore::IvyBridge, depth: 16, bias: 0.0, seed: 1 }
    }
}

/// The core whose events are simulated. How long its instructions take is the same for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimulatedCore {
    /// That of the paper: instructions by `PREC_DIST`, taken branches by a precise event.
    IvyBridge,
    /// Instructions by a precise event without `PREC_DIST`, taken branches by interrupts.
    Westmere,
}

impl SimulatedCore {
    /// All cores that can be simulated.
    pub const ALL: [Self; 2] = [Self::IvyBridge, Self::Westmere];

    /// The name on the command line and in recordings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::IvyBridge => "ivy-bridge",
            Self::Westmere => "westmere",
        }
    }
}

/// A text that names no core.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no core called {0:?} is simulated; there are {known}", known = SimulatedCore::ALL.map(SimulatedCore::as_str).join(", "))]
pub struct UnknownCore(pub String);

impl FromStr for SimulatedCore {
    type Err = UnknownCore;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|core| core.as_str() == name);
        found.ok_or_else(|| UnknownCore(name.to_owned()))
    }
}
