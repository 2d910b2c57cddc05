//! Names that processes give to the code they make, as they write them to files: a perf map, or a jitdump.
//!
//! Both are read along the way, as far as they are written, and once more in the end. A name holds from a time on:
//!
//! ```text
//! jitdump   the time is in its record
//! perf map  A ------------------------ B             lines, in the order of the file
//! code         a a a a | b b b b ...                 B holds from when the code at its address was first seen rewritten, after A was read;
//!                                                    if it was not, from when the map was written
//! ```
//!
//! Times of files are coarse, and a burst that began before code was named may go on into it: a rewrite nearby is when the name begins.

mod jitdump;
mod perf_map;

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use addresses::Avma;
use rustix::time::{ClockId, clock_gettime};

use crate::sys::process::{age, each_mapping, namespace_id, proc_path};
use crate::tracer::made_code::known::KnownCode;
use crate::tracer::made_code::names::jitdump::JitDump;
use crate::tracer::made_code::names::perf_map::PerfMap;
use crate::tracer::shared::monotonic_time;

/// Bytes of all names that are kept.
pub(crate) const MOST_NAMES: usize = 64 << 20;
/// Names that are read along the way at a time.
const AT_ONCE: usize = 1 << 13;
/// How long a process without a jitdump is believed to have none, ns, at first: each time twice as long.
const DUMP_EXPECTED: u64 = 1_000_000_000;

/// How much earlier than its process a map may seem to be, ns.
const BEFORE_PROCESS: u64 = 1_000_000_000;
/// A tick of the slowest kernels' clocks, ns.
const TICK: u64 = 10_000_000;
/// How near a rewrite is to the time that a file says, ns: two ticks, and what a burst takes.
const NEAR: u64 = 20_000_000;

/// How much of the room for names is taken.
#[derive(Debug, Default)]
pub(crate) struct NamesRoom {
    taken: usize,
    /// Names for which there was none.
    pub(crate) left_out: u64,
}

/// The names of a process' code, as far as they were read.
#[derive(Debug, Default)]
pub(crate) struct Names {
    map: PerfMap,
    /// When the process began, ns; 0 if that is not known.
    began: u64,
    /// Where the jitdump is, when it was looked for, and how long that is believed.
    dump: Option<(PathBuf, JitDump)>,
    dump_looked_for: u64,
    dump_believed: u64,
    /// From when on, where, and where in `text`; as they were read.
    names: Vec<Name>,
    text: Vec<u8>,
    /// Names of the last reading whose times are those of files.
    fresh: Vec<usize>,
    /// Which names hold now, by first address, with the end of each.
    newest: BTreeMap<Avma, (Avma, usize)>,
}

#[derive(Clone, Debug)]
struct Name {
    since: u64,
    range: Range<Avma>,
    text: Range<usize>,
}

impl Names {
    /// Reads what is new, of the code that is `known`, at `now` (ns): all if the recording ends, or else some of it.
    ///
    /// Files of a process that runs are looked for where it sees them.
    pub(crate) fn read(&mut self, pid: u32, known: &mut KnownCode, room: &mut NamesRoom, now: u64, is_end: bool) {
        let most = if is_end { usize::MAX } else { AT_ONCE };
        for index in std::mem::take(&mut self.fresh) {
            let Some(name) = self.names.get_mut(index) else { continue };
            name.since = near(&known.rewritten(&name.range), name.since).unwrap_or(name.since);
        }
        let map = |pid| PathBuf::from(format!("/tmp/perf-{pid}.map"));
        let own = namespace_id(pid).map(map).and_then(|map| open(&seen_by(pid, &map)));
        if self.began == 0 {
            self.began = age(pid).map_or(0, |age| monotonic_time().saturating_sub(age));
        }
        // Files stay, and processes get the numbers of others.
        let is_own = |file: &File| when_written(file).saturating_add(BEFORE_PROCESS) >= self.began;
        if let Some(file) = own.or_else(|| open(&map(pid))).filter(is_own) {
            self.read_map(&file, most, is_end && has_ended(pid), known, room);
        }
        if self.dump.is_none() && (is_end || now >= self.dump_looked_for.saturating_add(self.dump_believed)) {
            self.dump = mapped_dump(pid).map(|path| (path, JitDump::default()));
            self.dump_looked_for = now;
            self.dump_believed = (2 * self.dump_believed).max(DUMP_EXPECTED);
        }
        if let Some((path, mut dump)) = self.dump.take() {
            if let Some(file) = open(&seen_by(pid, &path)).or_else(|| open(&path)) {
                dump.read(file, most, |since, range, name| {
                    let rewritten = known.rewritten(&range);
                    let since = match since.filter(|since| *since <= monotonic_time()) {
                        Some(since) => near(&rewritten, since).map_or(Since::File(since), Since::Code),
                        None => since_of_code(&rewritten, 0, now),
                    };
                    self.push(since, &range, name, room);
                    known.is_named(&range);
                });
            }
            self.dump = Some((path, dump));
        }
    }

    fn read_map(&mut self, file: &File, most: usize, is_all: bool, known: &mut KnownCode, room: &mut NamesRoom) {
        let mut read: Vec<(Range<Avma>, Vec<u8>)> = Vec::new();
        let is_appended = self.map.read(file, most, is_all, |range, name| read.push((range, name.to_vec())));
        let written = when_written(file);
        // Names that come after one, of code that begins at the same address.
        let mut later: HashMap<Avma, usize> = HashMap::new();
        let mut since = Vec::with_capacity(read.len());
        for (from_last, (range, _)) in read.iter().rev().enumerate() {
            let rewritten = known.rewritten(range);
            let later = later.entry(range.start).or_default();
            // The last line was written then, and its code is still to come if none was seen since: programs name code before they run it.
            if is_appended && from_last == 0 && rewritten.last().is_none_or(|last| last.saturating_add(NEAR) < written)
            {
                since.push(Since::File(written));
                continue;
            }
            since.push(since_of_code(&rewritten, *later, written));
            *later += 1;
        }
        for ((range, name), since) in read.iter().zip(since.into_iter().rev()) {
            self.push(since, range, name, room);
        }
        read.iter().for_each(|(range, _)| known.is_named(range));
    }

    fn push(&mut self, since: Since, range: &Range<Avma>, name: &[u8], room: &mut NamesRoom) {
        let is_known = self.newest.get(&range.start).is_some_and(|(end, index)| {
            *end == range.end && self.names.get(*index).is_some_and(|known| self.text[known.text.clone()] == *name)
        });
        if name.is_empty() || is_known {
            return;
        }
        let size = size_of::<Name>() + size_of::<(Avma, (Avma, usize))>() + name.len();
        if room.taken + size > MOST_NAMES {
            room.left_out += 1;
            return;
        }
        room.taken += size;
        let start = self.text.len();
        self.text.extend_from_slice(name);
        while let Some((overlapped, _)) =
            self.newest.range(..range.end).next_back().filter(|(_, (end, _))| *end > range.start)
        {
            let overlapped = *overlapped;
            self.newest.remove(&overlapped);
        }
        self.newest.insert(range.start, (range.end, self.names.len()));
        let since = match since {
            Since::File(since) => {
                self.fresh.push(self.names.len());
                since
            }
            Since::Code(since) => since,
        };
        self.names.push(Name { since, range: range.clone(), text: start..self.text.len() });
    }

    /// Names of code that is known, by the times from which on they hold (ns); of those of one time the last one at an address holds.
    pub(crate) fn of_code(&self, known: &KnownCode) -> Vec<(u64, Range<Avma>, &[u8])> {
        let names = self.names.iter().filter(|name| known.touches(&name.range));
        let mut names: Vec<_> =
            names.map(|name| (name.since, name.range.clone(), &self.text[name.text.clone()])).collect();
        names.sort_by_key(|(since, ..)| *since);
        names
    }
}

/// From when on a name holds, ns.
#[derive(Clone, Copy, Debug)]
enum Since {
    /// As a file says.
    File(u64),
    /// When its code was first seen.
    Code(u64),
}

/// From when on a name holds if `later` ones follow it, by when its code was rewritten; if that was not seen, from when it was `written` on.
fn since_of_code(rewritten: &[u64], later: usize, written: u64) -> Since {
    let from_last = rewritten.len().checked_sub(1 + later).and_then(|index| rewritten.get(index));
    from_last.or(rewritten.first()).copied().map_or(Since::File(written), Since::Code)
}

/// The last rewrite near a time.
fn near(rewritten: &[u64], time: u64) -> Option<u64> {
    rewritten.iter().copied().rfind(|rewritten| rewritten.abs_diff(time) <= NEAR)
}

/// When a file was written at the latest, on the clock of the samples: it keeps that of the calendar, at the tick before.
fn when_written(file: &File) -> u64 {
    let (now, calendar) = (monotonic_time(), clock_gettime(ClockId::Realtime));
    let ago = file.metadata().ok().and_then(|metadata| {
        let seconds = calendar.tv_sec.checked_sub(metadata.mtime())?;
        let ago = seconds.checked_mul(1_000_000_000)?.checked_add(calendar.tv_nsec - metadata.mtime_nsec())?;
        u64::try_from(ago).ok()
    });
    now.saturating_sub(ago.unwrap_or(0).saturating_sub(TICK))
}

fn has_ended(pid: u32) -> bool {
    each_mapping(pid).next().is_none()
}

/// The jitdump that a process has mapped, to be found: `jit-PID.dump`.
fn mapped_dump(pid: u32) -> Option<PathBuf> {
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

    /// What a process has of names, and of code at 0x1000 that was rewritten at these times.
    struct Process {
        map: tempfile::NamedTempFile,
        names: Names,
        known: KnownCode,
        room: NamesRoom,
    }

    fn process() -> Process {
        let mut known = KnownCode::default();
        known.put(Avma(0x1000), &[0; 64]);
        let map = tempfile::NamedTempFile::new().unwrap();
        Process { map, names: Names::default(), known, room: NamesRoom::default() }
    }

    impl Process {
        fn is_rewritten_at(&mut self, times: &[u64]) {
            times.iter().for_each(|time| self.known.put_at(*time, Avma(0x1000), &time.to_le_bytes()));
        }

        /// The map has these lines, too, written so many ns ago, and is read.
        fn append(&mut self, lines: &str, ago: u64) {
            use std::io::Write;
            self.map.as_file_mut().write_all(lines.as_bytes()).unwrap();
            let written = std::time::SystemTime::now() - std::time::Duration::from_nanos(ago);
            self.map.as_file().set_modified(written).unwrap();
            let file = self.map.reopen().unwrap();
            self.names.read_map(&file, usize::MAX, false, &mut self.known, &mut self.room);
        }

        fn named(&self) -> Vec<(u64, &str)> {
            let names = self.names.of_code(&self.known);
            names.into_iter().map(|(since, _, name)| (since, std::str::from_utf8(name).unwrap())).collect()
        }

        fn names_of_code(&self) -> Vec<&str> {
            self.named().into_iter().map(|(_, name)| name).collect()
        }
    }

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn names_of_code_that_is_not_known_are_left_out() {
        let mut process = process();
        process.append("1000 10 here\n9000 10 elsewhere\n", 0);
        assert_eq!(process.names_of_code(), ["here"]);
        process.known.put(Avma(0x9000), &[0x90]);
        assert_eq!(process.names_of_code(), ["here", "elsewhere"], "it was executed since");
    }

    #[test]
    fn a_name_holds_from_when_its_code_was_seen() {
        let (mut process, now) = (process(), monotonic_time());
        process.append("1000 10 a\n", 9 * SECOND);
        process.is_rewritten_at(&[now - 8 * SECOND]);
        process.append("1000 10 b\n", 8 * SECOND + NEAR / 2);
        process.is_rewritten_at(&[now - 7 * SECOND, now - 6 * SECOND]);
        process.append("1000 10 c\n1000 10 d\n9000 10 elsewhere\n", 5 * SECOND);
        let expected = [(now - 8 * SECOND, "b"), (now - 7 * SECOND, "c"), (now - 6 * SECOND, "d")];
        assert_eq!(process.named()[1..], expected);
    }

    #[test]
    fn a_name_of_the_same_code_holds_from_when_it_was_written() {
        let (mut process, now) = (process(), monotonic_time());
        process.append("1000 10 a\n", 9 * SECOND);
        process.is_rewritten_at(&[now - 8 * SECOND]);
        process.append("1000 10 b\n", 5 * SECOND);
        let (since, name) = process.named()[1];
        assert_eq!(name, "b");
        assert!(since.abs_diff(now - 5 * SECOND) < SECOND, "{since}");
    }

    /// The file's time is a coarse one, and its burst came after the map was read.
    #[test]
    fn a_rewrite_that_is_seen_later_is_when_the_name_began() {
        let (mut process, now) = (process(), monotonic_time());
        process.append("1000 10 a\n", 9 * SECOND);
        process.append("1000 10 b\n", 5 * SECOND);
        let (written, _) = process.named()[1];
        process.is_rewritten_at(&[written + NEAR / 2]);
        process.names.read(u32::MAX, &mut process.known, &mut process.room, now, false);
        assert_eq!(process.named()[1], (written + NEAR / 2, "b"));
    }

    #[test]
    fn a_map_of_another_process_of_that_number_is_none() {
        let (pid, path) = (std::process::id(), format!("/tmp/perf-{}.map", std::process::id()));
        let mut process = process();
        let mut read = |ago: u64| {
            std::fs::write(&path, "1000 10 a\n").unwrap();
            let written = std::time::SystemTime::now() - std::time::Duration::from_secs(ago);
            File::options().write(true).open(&path).unwrap().set_modified(written).unwrap();
            process.names.read(pid, &mut process.known, &mut process.room, 0, true);
            process.names.names.len()
        };
        let names = [read(3600), read(0)];
        std::fs::remove_file(&path).unwrap();
        assert_eq!(names, [0, 1]);
    }

    #[test]
    fn names_are_kept_once_and_again_where_another_one_was() {
        let mut process = process();
        let lines = ["1000 10 a\n", "1000 10 a\n", "1008 10 b\n", "1000 10 a\n"];
        (5..).zip(lines).for_each(|(seconds, lines)| process.append(lines, (9 - seconds) * SECOND));
        assert_eq!(process.names_of_code(), ["a", "b", "a"]);
    }

    #[test]
    fn names_that_find_no_room_are_counted() {
        let mut process = process();
        process.room.taken = MOST_NAMES - 150;
        process.append("1000 10 a\n1010 10 b\n1020 10 c\n", 0);
        assert!((1..3).contains(&process.room.left_out), "{:?}", process.room);
    }
}
