//! Which file, and in which state.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// A file and its state, as far as the file system tells it without a look at its bytes. It is another one after the file was replaced
/// or changed, even if size and time of modification are set back: nobody can set the time of change (`ctime`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds since 1970.
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileIdentity {
    /// What the file system says of a file: times in seconds and nanoseconds since 1970.
    pub fn new(device: u64, inode: u64, size: u64, modified: (i64, i64), changed: (i64, i64)) -> Self {
        Self { device, inode, size, modified, changed }
    }

    /// The same, as the standard library has it.
    pub fn of(metadata: &Metadata) -> Self {
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        let changed = (metadata.ctime(), metadata.ctime_nsec());
        Self::new(metadata.dev(), metadata.ino(), metadata.size(), modified, changed)
    }

    /// What the file system says of what is at a path; `None` if it says nothing.
    pub fn at(path: &Path) -> Option<Self> {
        Some(Self::of(&path.metadata().ok()?))
    }

    /// Whether it is the same file, in whatever state.
    pub fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Length of the file, in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether any change after `time` makes it another one. Clocks of file systems are coarse, up to two seconds: what changed shortly
    /// before, or after, may change again and look the same.
    pub fn tells_changes_after(&self, time: SystemTime) -> bool {
        const COARSEST: Duration = Duration::from_secs(2);
        let Ok(time) = time.duration_since(SystemTime::UNIX_EPOCH) else { return false };
        let changed = u64::try_from(self.changed.0).map_or(Duration::ZERO, Duration::from_secs);
        changed + COARSEST < time
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_is_replaced_or_changed_is_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let [file, other] = ["file", "other"].map(|name| folder.path().join(name));
        let identity = || FileIdentity::of(&fs::metadata(&file).unwrap());
        fs::write(&file, "one").unwrap();
        let (first, times) = (identity(), fs::metadata(&file).unwrap().modified().unwrap());
        assert_eq!(first, identity());
        fs::write(&other, "two").unwrap();
        let set_time = |file| fs::File::options().write(true).open(file).unwrap().set_modified(times).unwrap();
        set_time(&other);
        fs::rename(&other, &file).unwrap();
        let second = identity();
        assert_ne!(first, second);
        std::thread::sleep(Duration::from_millis(20));
        fs::write(&file, "six").unwrap();
        set_time(&file);
        assert_ne!(second, identity(), "size, time and inode are the same");
    }

    #[test]
    fn what_changed_a_moment_ago_may_change_unseen() {
        let identity = FileIdentity::of(&tempfile::tempfile().unwrap().metadata().unwrap());
        let now = SystemTime::now();
        assert!(!identity.tells_changes_after(now));
        assert!(!identity.tells_changes_after(now - Duration::from_secs(60)), "the clock was set back");
        assert!(identity.tells_changes_after(now + Duration::from_secs(60)));
    }
}
