//! Whether a file is still what it was.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What changes when a file is written to, or another one takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    file: (u64, u64),
    size: u64,
    modified: (i64, i64),
    /// Who writes to a file can set when it was modified, and not this.
    changed: (i64, i64),
}

impl State {
    /// What is at a path now.
    pub(super) fn at(path: &Path) -> Option<Self> {
        Some(Self::of(&std::fs::metadata(path).ok()?))
    }

    pub(super) fn of(metadata: &Metadata) -> Self {
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        let changed = (metadata.ctime(), metadata.ctime_nsec());
        Self { file: (metadata.dev(), metadata.ino()), size: metadata.size(), modified, changed }
    }

    /// Whether the same file was, as far as is known, written to: not where another one has its place, or none.
    pub(super) fn was_written(&self, now: Option<Self>) -> bool {
        now.is_some_and(|now| now.file == self.file && now != *self)
    }
}
