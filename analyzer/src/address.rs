//! The address spaces of the analysis.
//!
//! [`Avma`] (re-exported from `perfdata`) is an address in a running process; [`Svma`] is an address as
//! stated in an ELF file. They never mix: the only way from one to the other is through a mapping.

use std::fmt;

pub use perfdata::Avma;
use serde::{Deserialize, Serialize};

/// Stated virtual memory address: what the ELF file's headers and symbols say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Svma(pub u64);

impl fmt::Display for Svma {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}
