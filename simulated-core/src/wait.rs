//! How long data takes that is not in the first level of the caches.

/// Cycles for which a line that comes from memory, or goes there past the caches, keeps others from coming.
pub const MEMORY_LINE: f64 = 12.0;

/// What the first use of a line in a burst costs beyond a use of the first level.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wait {
    /// Cycles until it is there.
    pub latency: f64,
    /// Cycles until the next can come.
    pub transfer: f64,
}

impl Wait {
    /// For two lines at a time.
    #[must_use]
    pub fn and(self, other: Wait) -> Wait {
        Wait { latency: self.latency.max(other.latency), transfer: self.transfer + other.transfer }
    }
}
