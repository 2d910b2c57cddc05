//! A recording in several files, one after the other.

use std::time::Duration;

/// When a file ends and the next one begins, and which are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rotation {
    /// After this time,
    pub every: Option<Duration>,
    /// or when a file has so many bytes of records.
    pub bytes: Option<u64>,
    /// Which of the finished files are kept.
    pub keep: Keep,
}

/// Which files of a series are kept: those that all of these leave. Nothing: all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// The newest so many.
    pub files: Option<usize>,
    /// The newest that have no more bytes than this together.
    pub bytes: Option<u64>,
    /// Those that are no older than this.
    pub age: Option<Duration>,
}

impl Rotation {
    /// The shortest time, and
    pub const SHORTEST: Duration = Duration::from_secs(1);
    /// the fewest bytes of records of a file.
    pub const SMALLEST: u64 = 64 << 10;
}
