//! Streams that cannot be what the program did.

use serde::{Deserialize, Serialize};

/// Streams that were counted here and used for nothing, by what is wrong with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenStreams {
    /// Its end is before its start.
    pub backwards: u64,
    /// Its start and end lie in different modules, or in different mappings of one.
    pub crosses_module: u64,
    /// It runs through an instruction that always leaves the straight line.
    pub through_branch: u64,
    /// Its code could be read but not decoded, or its ends are not at instruction boundaries.
    pub undecodable: u64,
}

impl BrokenStreams {
    /// How many streams broke, for whatever reason.
    pub fn total(&self) -> u64 {
        self.backwards + self.crosses_module + self.through_branch + self.undecodable
    }

    /// Adds other broken streams, reason by reason.
    pub fn add(&mut self, other: &BrokenStreams) {
        self.backwards += other.backwards;
        self.crosses_module += other.crosses_module;
        self.through_branch += other.through_branch;
        self.undecodable += other.undecodable;
    }
}
