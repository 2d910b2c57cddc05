//! Names that processes give to the code they make, as they leave them in files: a perf map, or a jitdump.

mod jitdump;
mod perf_map;

use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use addresses::Avma;

use crate::sys::process::{each_mapping, namespace_id, proc_path};
use crate::tracer::made_code::known::KnownCode;

/// Bytes of names that are kept of a process.
const MOST_NAMES: usize = 16 << 20;

/// Names of code that the recording has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    places: Vec<(Range<Avma>, Range<usize>)>,
    text: Vec<u8>,
}

impl Names {
    /// What a process calls its code, as far as it is known; none if there are no files. `dump`: its jitdump, if it has mapped one.
    ///
    /// Files of a process that runs are looked for where it sees them.
    pub(crate) fn of(pid: u32, dump: Option<&Path>, known: &KnownCode) -> Self {
        let mut names = Self::default();
        let map = |pid| PathBuf::from(format!("/tmp/perf-{pid}.map"));
        let own = namespace_id(pid).map(map).and_then(|map| open(&seen_by(pid, &map)));
        if let Some(file) = own.or_else(|| open(&map(pid))) {
            perf_map::read(file, |range, name| names.push(range, name, known));
        }
        if let Some(file) = dump.and_then(|dump| open(&seen_by(pid, dump)).or_else(|| open(dump))) {
            jitdump::read(file, |range, name| names.push(range, name, known));
        }
        names
    }

    fn push(&mut self, range: Range<Avma>, name: &[u8], known: &KnownCode) {
        if !name.is_empty() && known.touches(range.start, range.end) && self.text.len() + name.len() <= MOST_NAMES {
            let start = self.text.len();
            self.text.extend_from_slice(name);
            self.places.push((range, start..self.text.len()));
        }
    }

    /// Addresses in the process, and names, in the order of the files: the last one at an address holds.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Range<Avma>, &[u8])> {
        self.places.iter().map(|(range, name)| (range.clone(), &self.text[name.clone()]))
    }
}

/// The jitdump that a process has mapped, to be found: `jit-PID.dump`.
pub(crate) fn mapped_dump(pid: u32) -> Option<PathBuf> {
    let is_dump = |path: &Path| {
        let name = path.file_name().map(OsStrExt::as_bytes).unwrap_or_default();
        let number = name.strip_prefix(b"jit-").and_then(|rest| rest.strip_suffix(b".dump"));
        number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
    };
    let mut paths = each_mapping(pid).map(|map| PathBuf::from(std::ffi::OsStr::from_bytes(&map.path)));
    paths.find(|path| is_dump(path))
}

/// A path as a process sees it.
fn seen_by(pid: u32, path: &Path) -> PathBuf {
    proc_path(pid).join("root").join(path.strip_prefix("/").unwrap_or(path))
}

/// Everybody may write to `/tmp`: only a file of the recording user's or of root's is believed, but root records what others run, and
/// believes theirs. Nothing that is opened waits.
fn open(path: &Path) -> Option<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    let own = rustix::process::geteuid();
    let is_trusted = own.is_root() || metadata.uid() == 0 || metadata.uid() == own.as_raw();
    (metadata.is_file() && is_trusted).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_files_are_opened() {
        for path in ["/tmp", "/dev/zero", "/nowhere/perf-1.map"] {
            assert!(open(Path::new(path)).is_none(), "{path}");
        }
        assert!(open(Path::new("/proc/self/exe")).is_none(), "a link");
    }

    #[test]
    fn names_of_code_that_is_not_known_are_left_out() {
        let mut known = KnownCode::default();
        known.put(Avma(0x1000), &[0x90; 64]);
        let mut names = Names::default();
        for (start, name) in [(0x1000, &b"here"[..]), (0x9000, b"elsewhere"), (0x1010, b"")] {
            names.push(Avma(start)..Avma(start + 16), name, &known);
        }
        assert_eq!(names.iter().collect::<Vec<_>>(), [(Avma(0x1000)..Avma(0x1010), &b"here"[..])]);
    }
}
