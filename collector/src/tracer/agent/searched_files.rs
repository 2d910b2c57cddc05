//! Files whose code was searched, and what was found: in this recording, or in earlier ones of which somebody has kept it.
//!
//! A file that is taken for another one could end a program: its agent's system calls would be filtered. A file is known by what the file system
//! says of it ([`FileIdentity`]) and by the mount through which it is seen. For longer than a recording, only what cannot come to look like
//! another file is kept (see [`is_told_apart`] and [`is_honest`]).

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use formats::file_identity::FileIdentity;
use rustix::fs::{FsWord, fstatfs};
use serde::{Deserialize, Serialize};

use crate::sys::{Seen, seen, seen_at};

/// What was found in the code of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchedFile {
    /// The file, in the state in which it was searched.
    pub file: FileIdentity,
    /// The mount through which it was seen: another file system may have the same number by now.
    pub mount: u64,
    /// Whether it makes filters of system calls (seccomp).
    pub makes_filters: bool,
}

/// Files that were searched for code that makes filters of system calls.
#[derive(Debug, Default)]
pub struct SearchedFiles {
    /// By earlier recordings.
    before: HashMap<Seen, bool>,
    /// By this one, or of use to it.
    now: Mutex<HashMap<Seen, Found>>,
}

#[derive(Clone, Copy, Debug)]
struct Found {
    makes_filters: bool,
    /// It may be known for longer than this recording.
    lasts: bool,
}

impl SearchedFiles {
    /// With what [`Self::worth_keeping`] returned before, since this machine was started and by the same build: numbers of mounts are given
    /// anew at each start, and another build may search for something else.
    pub fn with(kept: impl IntoIterator<Item = SearchedFile>) -> Self {
        let before = kept.into_iter().map(|kept| ((kept.file, Some(kept.mount)), kept.makes_filters)).collect();
        Self { before, now: Mutex::default() }
    }

    /// What later recordings may take for known: what was found, or was of use, if anything is new.
    pub fn worth_keeping(&self) -> Option<Vec<SearchedFile>> {
        let now = self.now();
        let is_new =
            |(seen, found): (&Seen, &Found)| found.lasts && self.before.get(seen) != Some(&found.makes_filters);
        let kept = |(&(file, mount), found): (&Seen, &Found)| {
            mount.filter(|_| found.lasts).map(|mount| SearchedFile { file, mount, makes_filters: found.makes_filters })
        };
        now.iter().any(is_new).then(|| now.iter().filter_map(kept).collect())
    }

    /// What is known of the file at a path, if anything is. It is not opened.
    pub(super) fn found(&self, path: &Path) -> Option<bool> {
        self.find(seen_at(path)?)
    }

    fn find(&self, seen: Seen) -> Option<bool> {
        if let Some(found) = self.now().get(&seen) {
            return Some(found.makes_filters);
        }
        let &makes_filters = self.before.get(&seen)?;
        self.now().insert(seen, Found { makes_filters, lasts: true });
        Some(makes_filters)
    }

    /// Searches a file that is not known; `None` where it cannot be read.
    pub(super) fn search(&self, file: &File, search: impl FnOnce(&File) -> Option<bool>) -> Option<bool> {
        self.search_at(SystemTime::now(), file, search)
    }

    fn search_at(&self, now: SystemTime, opened: &File, search: impl FnOnce(&File) -> Option<bool>) -> Option<bool> {
        let seen @ (state, mount) = seen(opened)?;
        if let Some(makes_filters) = self.find(seen) {
            return Some(makes_filters);
        }
        let is_honest = is_honest(opened);
        let makes_filters = search(opened)?;
        // Where mounts have no numbers, files of two images may look the same.
        if mount.is_some() || is_honest {
            let lasts = mount.is_some() && is_honest && has_name(opened) && is_told_apart(&state, now);
            self.now().insert(seen, Found { makes_filters, lasts });
        }
        Some(makes_filters)
    }

    fn now(&self) -> MutexGuard<'_, HashMap<Seen, Found>> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether any change of a file from now on makes it another one, on a file system that tells changes.
///
/// A page that was written to through a mapping tells no time when it is written to again, until the kernel has brought it to the disk, which it
/// does after half a minute, or as somebody has set it.
fn is_told_apart(state: &FileIdentity, now: SystemTime) -> bool {
    let is_settled = |settled| now.checked_sub(settled).is_some_and(|then| state.tells_changes_after(then));
    settled().is_some_and(is_settled)
}

/// Files without a name are what programs make for themselves while they run.
fn has_name(file: &File) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.nlink() > 0)
}

/// After so long, a page that was changed is on the disk; `None` where that may take for ever (`Documentation/admin-guide/sysctl/vm.rst`).
fn settled() -> Option<Duration> {
    static SETTLED: OnceLock<Option<Duration>> = OnceLock::new();
    *SETTLED.get_or_init(read_settled)
}

fn read_settled() -> Option<Duration> {
    let setting = |name: &str| {
        let text = std::fs::read_to_string(Path::new("/proc/sys/vm").join(name)).ok()?;
        Some(Duration::from_millis(10 * text.trim().parse::<u64>().ok()?))
    };
    let every = setting("dirty_writeback_centisecs").filter(|every| !every.is_zero())?;
    Some((2 * (every + setting("dirty_expire_centisecs")?)).max(Duration::from_secs(60)))
}

/// Whether a file is of a file system that sets the time of change by the clock of this machine whenever a file changes, and gives no inode to two
/// files at a time. Those that others serve (FUSE, networks) say what these want; layers (overlay) show other files under a number of a device that
/// the next container gets; files in memory (tmpfs) tell no time when they are written to through a mapping; images (squashfs, EROFS) have
/// the times that their makers gave them, and take turns on the same device.
fn is_honest(file: &File) -> bool {
    // ext2, ext3 and ext4; XFS; Btrfs; F2FS: linux/magic.h.
    const HONEST: [FsWord; 4] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010];
    fstatfs(file).is_ok_and(|fs| HONEST.contains(&fs.f_type))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    fn open(path: &Path) -> File {
        File::open(path).unwrap()
    }

    /// A moment at which files of a test have been as they are for long.
    fn later() -> SystemTime {
        SystemTime::now() + Duration::from_secs(3600)
    }

    /// A program of the test, and whether what is found in it may be kept where it is.
    fn program(folder: &tempfile::TempDir) -> (PathBuf, bool) {
        let path = folder.path().join("program");
        fs::write(&path, "one").unwrap();
        let is_kept = is_honest(&open(&path)) && seen(&open(&path)).unwrap().1.is_some();
        (path, is_kept)
    }

    /// What the next recording knows.
    fn next(searched: &SearchedFiles) -> SearchedFiles {
        SearchedFiles::with(searched.worth_keeping().unwrap_or_default())
    }

    fn searched_at(now: SystemTime, path: &Path, makes_filters: bool) -> SearchedFiles {
        let searched = SearchedFiles::default();
        let found = searched.search_at(now, &open(path), |_| Some(makes_filters));
        assert_eq!(found, Some(makes_filters));
        assert_eq!(searched.found(path), Some(makes_filters), "it is known in this recording at least");
        searched
    }

    #[test]
    fn what_was_found_is_known_to_the_next_recording_and_to_the_one_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let (program, is_kept) = program(&folder);
        for makes_filters in [false, true] {
            let first = searched_at(later(), &program, makes_filters);
            let second = next(&first);
            assert_eq!(second.found(&program), is_kept.then_some(makes_filters));
            assert_eq!(second.worth_keeping(), None, "nothing is new");
            let other = folder.path().join("other");
            fs::write(&other, "other").unwrap();
            second.search_at(later(), &open(&other), |_| Some(false)).unwrap();
            let third = next(&second);
            let known = [&program, &other].map(|path| third.found(path));
            assert_eq!(known, [makes_filters, false].map(|found| is_kept.then_some(found)));
        }
    }

    #[test]
    fn a_file_that_was_replaced_or_written_to_is_not_known() {
        let folder = tempfile::tempdir().unwrap();
        let (program, _) = program(&folder);
        let times = fs::metadata(&program).unwrap().modified().unwrap();
        let set_time = |path| File::options().write(true).open(path).unwrap().set_modified(times).unwrap();
        let searched = searched_at(later(), &program, false);
        // Another one of the same size and time, at the same path.
        let other = folder.path().join("other");
        fs::write(&other, "two").unwrap();
        set_time(&other);
        fs::rename(&other, &program).unwrap();
        assert_eq!(next(&searched).found(&program), None);
        assert_eq!(searched.found(&program), None, "in the same recording, too");
        let searched = searched_at(later(), &program, false);
        std::thread::sleep(Duration::from_millis(20));
        fs::write(&program, "six").unwrap();
        set_time(&program);
        assert_eq!(next(&searched).found(&program), None, "the inode is the same");
        assert_eq!(searched.found(&program), None);
    }

    #[test]
    fn what_may_change_unseen_is_known_in_one_recording_only() {
        let folder = tempfile::tempdir().unwrap();
        let (path, _) = program(&folder);
        for now in [SystemTime::now(), SystemTime::now() + Duration::from_secs(40), SystemTime::UNIX_EPOCH] {
            assert_eq!(searched_at(now, &path, false).worth_keeping(), None, "{now:?}");
        }
        // One without a name.
        let file = File::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let searched = SearchedFiles::default();
        assert_eq!(searched.search_at(later(), &file, |_| Some(false)), Some(false));
        assert_eq!(searched.worth_keeping(), None);
    }

    #[test]
    fn file_systems_that_may_say_anything_are_not_believed() {
        let is_honest = |path: &str| is_honest(&open(Path::new(path)));
        assert!(!is_honest("/proc") && !is_honest("/sys"));
        // It is in /proc, and of the root folder's file system.
        assert_eq!(is_honest("/proc/self/root"), is_honest("/"));
        // Files that a process shows there: their inodes are made when somebody looks.
        let status = File::open("/proc/self/status").unwrap();
        let searched = SearchedFiles::default();
        assert_eq!(searched.search_at(later(), &status, |_| Some(false)), Some(false));
        assert_eq!(searched.worth_keeping(), None);
    }

    /// The number of a device may be another file system's by now, on which a file has the same number and times.
    #[test]
    fn what_was_kept_is_not_taken_for_a_file_of_another_mount() {
        let folder = tempfile::tempdir().unwrap();
        let (program, is_kept) = program(&folder);
        let mut kept = searched_at(later(), &program, false).worth_keeping().unwrap_or_default();
        assert_eq!(kept.len(), usize::from(is_kept));
        kept.iter_mut().for_each(|kept| kept.mount += 1);
        let searched = SearchedFiles::with(kept.clone());
        assert_eq!(searched.found(&program), None, "all but its mount is the same");
        searched.search_at(later(), &open(&program), |_| Some(true)).unwrap();
        let anew = searched.worth_keeping().unwrap_or_default();
        assert!(anew.len() == kept.len() && anew.iter().all(|anew| anew.makes_filters), "{anew:?}");
    }

    /// A mount is one of this machine's, while it runs.
    #[test]
    fn files_of_a_mount_have_its_number() {
        let [own, version] = ["/proc/self/exe", "/proc/version"].map(|path| seen(&open(Path::new(path))).unwrap().1);
        // Before Linux 6.8 there is none.
        assert!(own.is_none() == version.is_none() && (own != version || own.is_none()), "{own:?} {version:?}");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_searched_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        fs::write(&path, "one").unwrap();
        let searched = SearchedFiles::default();
        assert_eq!(searched.search_at(later(), &open(&path), |_| None), None);
        assert_eq!((searched.found(&path), searched.worth_keeping()), (None, None));
    }
}
