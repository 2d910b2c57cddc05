//! Control groups (cgroups(7)): which there are, and which processes are in one of them.
//!
//! Perf events of a group are opened by its folder in the hierarchy that perf events know: the unified one, or that of the controller
//! `perf_event` where version 1 is mounted. A group is meant with all groups in it, as the kernel means it.

mod find;
mod hierarchy;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::sys::process::{contents, group_and_parent};

pub use self::find::ControlGroupError;

/// A control group, with all groups in it. Another one that is made in its place later is another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlGroup {
    folder: PathBuf,
    name: String,
    /// Inode and device of its folder.
    id: (u64, u64),
}

/// What is in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Members {
    /// Whole processes, ascending.
    Processes(Vec<u32>),
    /// Single threads, with their processes before them: the group is a threaded one.
    Threads(Vec<(u32, u32)>),
}

impl ControlGroup {
    /// The group that has this folder; `name`: its path in the hierarchy.
    fn of(folder: PathBuf, name: String) -> io::Result<Self> {
        let there = fs::metadata(&folder)?;
        Ok(Self { id: (there.ino(), there.dev()), folder, name })
    }

    /// A folder that passes for one.
    #[cfg(test)]
    pub(crate) fn of_test(folder: &Path) -> Self {
        Self::of(folder.to_owned(), "/test".to_owned()).unwrap()
    }

    /// Its path in the hierarchy, as far as that can be seen from here, such as `/system.slice/nginx.service`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folder, which `perf_event_open` takes.
    pub(crate) fn open(&self) -> io::Result<File> {
        File::open(&self.folder)
    }

    /// Whether it has not been removed.
    pub(crate) fn is_there(&self) -> bool {
        fs::metadata(&self.folder).is_ok_and(|there| (there.ino(), there.dev()) == self.id)
    }

    /// CPU time of all that has ever been in it, while it was there; `None` in version 1, where another hierarchy counts it.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        let text = String::from_utf8(contents(&self.folder.join("cpu.stat"))).ok()?;
        let microseconds = text.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
        microseconds.trim().parse().ok().map(Duration::from_micros)
    }

    /// Who is in it now. Processes of other PID namespaces, which have no number here, are left out.
    pub(crate) fn members(&self) -> Members {
        let is_threaded = contents(&self.folder.join("cgroup.type")).starts_with(b"threaded");
        // A group that becomes another meanwhile is no more, and its processes go first.
        let file = if is_threaded { "cgroup.threads" } else { "cgroup.procs" };
        let mut ids = BTreeSet::new();
        hierarchy::walk(&self.folder, |folder| ids.extend(numbers(&contents(&folder.join(file)))));
        if !is_threaded {
            return Members::Processes(ids.into_iter().collect());
        }
        let with_process = |thread| group_and_parent(thread).map(|(process, _)| (process, thread));
        Members::Threads(ids.into_iter().filter_map(with_process).collect())
    }

    /// The processes in it, ascending; of a threaded group, those that have threads in it.
    pub(crate) fn processes(&self) -> Vec<u32> {
        match self.members() {
            Members::Processes(processes) => processes,
            Members::Threads(threads) => {
                threads.into_iter().map(|(process, _)| process).collect::<BTreeSet<u32>>().into_iter().collect()
            }
        }
    }
}

/// The numbers in a file that has one a line; 0 stands for what is in another namespace.
fn numbers(text: &[u8]) -> impl Iterator<Item = u32> {
    let lines = text.split(|&byte| byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    lines.filter_map(|line| line.trim().parse().ok()).filter(|&number| number != 0)
}

/// Any group, to try whether the kernel opens events of groups: the one at the top of what can be seen.
pub(crate) fn topmost() -> io::Result<File> {
    let hierarchy = hierarchy::of_perf_events().ok_or(io::ErrorKind::NotFound)?;
    File::open(hierarchy.mount)
}

/// Whether a folder is that of a control group.
fn is_group(folder: &Path) -> bool {
    folder.join("cgroup.procs").exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(files: &[(&str, &str)]) -> (tempfile::TempDir, ControlGroup) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let group = ControlGroup::of(dir.path().to_owned(), "/x".to_owned()).unwrap();
        (dir, group)
    }

    #[test]
    fn all_that_is_in_a_group_and_in_those_in_it() {
        let (_dir, found) = group(&[
            ("cgroup.procs", "12\n7\n0\n"),
            ("cgroup.type", "domain\n"),
            ("a/cgroup.procs", "9\n"),
            ("a/b/cgroup.procs", "12\n100\n"),
        ]);
        assert_eq!(found.members(), Members::Processes(vec![7, 9, 12, 100]));
        assert_eq!(group(&[("cgroup.procs", "")]).1.processes(), [0; 0]);
    }

    #[test]
    fn cpu_time_of_a_group() {
        let check = |text: &str, expected: Option<u64>| {
            let (_dir, found) = group(&[("cpu.stat", text)]);
            assert_eq!(found.cpu_time(), expected.map(Duration::from_micros), "{text}");
        };
        check("usage_usec 1234567\nuser_usec 1000000\nsystem_usec 234567\n", Some(1_234_567));
        check("nr_periods 0\nusage_usec 7\n", Some(7));
        // Of version 1.
        check("nr_periods 0\nnr_throttled 0\nthrottled_time 0\n", None);
        check("usage_usec -1\n", None);
        assert_eq!(group(&[]).1.cpu_time(), None);
    }

    #[test]
    fn a_threaded_group_has_threads() {
        let own = std::process::id();
        let text = format!("{own}\n4294967295\n");
        let files = [("cgroup.threads", text.as_str()), ("cgroup.type", "threaded\n"), ("cgroup.procs", "1\n")];
        let (_dir, found) = group(&files);
        assert_eq!(found.members(), Members::Threads(vec![(own, own)]));
        assert_eq!(found.processes(), [own]);
    }

    #[test]
    fn a_group_made_in_the_place_of_another_is_another() {
        let (dir, group) = group(&[("cgroup.procs", "")]);
        assert!(group.is_there());
        let aside = tempfile::tempdir().unwrap();
        fs::rename(dir.path(), aside.path().join("old")).unwrap();
        assert!(!group.is_there());
        fs::create_dir(dir.path()).unwrap();
        assert!(!group.is_there());
    }
}
