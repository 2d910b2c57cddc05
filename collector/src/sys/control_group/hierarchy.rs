//! Where control groups are mounted.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::sys::process::contents;

/// A hierarchy of groups, as far as it is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hierarchy {
    /// Where.
    pub(super) mount: PathBuf,
    /// Which group is mounted there, by its path in the hierarchy: `/`, or what a container sees of it.
    pub(super) root: PathBuf,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Version 2, which perf events know unless a hierarchy of version 1 has them.
    Unified,
    /// Version 1, of the controller `perf_event`, perhaps with others.
    PerfEvents,
    /// Version 1, of other controllers.
    Other,
}

/// All that are mounted.
pub(super) fn all() -> Vec<Hierarchy> {
    of_text(&contents(Path::new("/proc/self/mountinfo")))
}

/// The one that perf events know.
pub(super) fn of_perf_events() -> Option<Hierarchy> {
    best(all())
}

fn best(all: Vec<Hierarchy>) -> Option<Hierarchy> {
    let of = |kind: Kind| all.iter().find(|hierarchy| hierarchy.kind == kind);
    of(Kind::PerfEvents).or_else(|| of(Kind::Unified)).cloned()
}

/// Those in the text of `/proc/PID/mountinfo`.
pub(super) fn of_text(mountinfo: &[u8]) -> Vec<Hierarchy> {
    mountinfo.split(|&byte| byte == b'\n').filter_map(hierarchy).collect()
}

impl Hierarchy {
    /// Whether both are mounts of one hierarchy; there is one unified one.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        self.kind == other.kind && self.kind != Kind::Other
    }
}

/// A line of `/proc/PID/mountinfo` (proc_pid_mountinfo(5)), if it is of control groups.
/// `36 35 0:30 / /sys/fs/cgroup rw shared:1 - cgroup2 cgroup2 rw`
fn hierarchy(line: &[u8]) -> Option<Hierarchy> {
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let dash = fields.iter().position(|field| *field == b"-")?;
    let kind = match *fields.get(dash + 1)? {
        b"cgroup2" => Kind::Unified,
        b"cgroup" => {
            let mut options = fields.get(dash + 3)?.split(|&byte| byte == b',');
            if options.any(|option| option == b"perf_event") { Kind::PerfEvents } else { Kind::Other }
        }
        _ => return None,
    };
    Some(Hierarchy { root: unescaped(fields.get(3)?), mount: unescaped(fields.get(4)?), kind })
}

/// Spaces and the like are in octal there: `\040`.
fn unescaped(field: &[u8]) -> PathBuf {
    let (mut path, mut rest) = (Vec::new(), field);
    while let [first, after @ ..] = rest {
        let code = after.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                path.push(byte);
                rest = &after[3..];
            }
            None => {
                path.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(OsString::from_vec(path))
}

/// Calls `see` with a folder and all folders in it.
pub(super) fn walk(folder: &Path, mut see: impl FnMut(&Path)) {
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        see(&folder);
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        open.extend(
            entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(mountinfo: &str) -> Option<(String, String)> {
        let found = best(of_text(mountinfo.as_bytes()))?;
        Some((found.mount.to_str()?.to_owned(), found.root.to_str()?.to_owned()))
    }

    #[test]
    fn the_hierarchy_that_perf_events_know() {
        let check = |mountinfo: &str, expected: Option<(&str, &str)>| {
            let expected = expected.map(|(mount, root)| (mount.to_owned(), root.to_owned()));
            assert_eq!(place(mountinfo), expected, "{mountinfo}");
        };
        let unified = "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        check(unified, Some(("/sys/fs/cgroup", "/")));
        let hybrid = "31 25 0:27 / /sys/fs/cgroup/unified rw - cgroup2 none rw\n\
                      32 25 0:28 / /sys/fs/cgroup/cpu rw - cgroup none rw,cpu\n";
        check(hybrid, Some(("/sys/fs/cgroup/unified", "/")));
        // Then the unified one has no perf events.
        let first =
            format!("{hybrid}33 25 0:29 / /sys/fs/cgroup/perf_event rw master:7 - cgroup cgroup rw,perf_event\n");
        check(&first, Some(("/sys/fs/cgroup/perf_event", "/")));
        let container = "40 2 0:29 /docker/0123 /sys/fs/cgroup/a\\040b ro - cgroup cgroup rw,cpu,perf_event\n";
        check(container, Some(("/sys/fs/cgroup/a b", "/docker/0123")));
        check("32 25 0:28 / /sys/fs/cgroup/cpu rw - cgroup none rw,cpu\n", None);
        check("36 35 0:50 / /mnt rw - ext4 cgroup2 rw\n\nno line\n36 35 0:50 / /mnt rw - cgroup", None);
    }

    #[test]
    fn octal_codes() {
        for (field, path) in [("a\\040b", "a b"), ("\\", "\\"), ("a\\04", "a\\04"), ("a\\999", "a\\999"), ("", "")] {
            assert_eq!(unescaped(field.as_bytes()), Path::new(path));
        }
    }
}
