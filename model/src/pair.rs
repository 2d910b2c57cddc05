//! Kinds of source pairs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What the two sources of a recording are. A rule that was learnt from one pair says nothing of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SourcePair {
    /// Samples of executed instructions, and branch stacks of the hardware: those of HBBP.
    Hardware,
    /// Samples of a clock, and bursts of branches that were followed in software.
    Software,
    /// Samples and branch stacks that a simulation of the hardware made from a whole execution.
    Simulated,
}

impl SourcePair {
    /// All kinds that there are.
    pub const ALL: [Self; 3] = [Self::Hardware, Self::Software, Self::Simulated];

    /// The name used in files and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hardware => "hardware",
            Self::Software => "software",
            Self::Simulated => "simulated",
        }
    }
}

impl fmt::Display for SourcePair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text that names no kind of sources.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no kind of sources is called {0:?}; there are {known}", known = SourcePair::ALL.map(SourcePair::as_str).join(", "))]
pub struct UnknownPair(pub String);

impl FromStr for SourcePair {
    type Err = UnknownPair;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|pair| pair.as_str() == name);
        found.ok_or_else(|| UnknownPair(name.to_owned()))
    }
}
