//! Addresses as recorded.

use std::fmt;

/// Actual virtual memory address: where something was in the running process or kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Avma(pub u64);

impl fmt::Display for Avma {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}
