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
use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use addresses::Avma;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxFlags, openat, readlinkat, statx};
use rustix::time::{ClockId, clock_gettime};

use crate::sys::process::{age, each_mapping, namespace_id, proc_path};
use crate::sys::{Mounts, Server, open_regular};
use crate::tracer::made_code::known::KnownCode;
use crate::tracer::made_code::names::jitdump::{JitDump, Named};
use crate::tracer::made_code::names::perf_map::PerfMap;
use crate::tracer::shared::monotonic_time;

/// Bytes of all names that are kept.
pub(crate) const MOST_NAMES: usize = 64 << 20;
/// Lines or records that are read along the way at a time.
const AT_ONCE: usize = 1 << 13;
/// Addresses of rewritten code whose names are counted before they are read.
const MOST_REWRITTEN: usize = 1 << 17;
/// How long a process without a jitdump is believed to have none, ns, at first: each time twice as long.
const DUMP_EXPECTED: u64 = 1_000_000_000;

/// How much earlier than its process a map may seem to be, ns.
const BEFORE_PROCESS: u64 = 1_000_000_000;
/// A tick of the slowest kernels' clocks, ns.
const TICK: u64 = 10_000_000;
/// How near a rewrite is to the time that a file says, ns: two ticks, and what a burst takes.
const NEAR: u64 = 20_000_000;

/// Folders and links on the way to a file.
const MOST_PARTS: usize = 256;

/// How much of the room for names is taken.
#[derive(Debug, Default)]
pub(crate) struct NamesRoom {
    pub(super) taken: usize,
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
    /// The room that they take.
    size: usize,
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
    pub(crate) fn read(
        &mut self,
        pid: u32,
        known: &mut KnownCode,
        room: &mut NamesRoom,
        mounts: &Mounts,
        now: u64,
        is_end: bool,
    ) {
        let most = if is_end { usize::MAX } else { AT_ONCE };
        for index in std::mem::take(&mut self.fresh) {
            let Some(name) = self.names.get_mut(index) else { continue };
            name.since = near(&known.rewritten(&name.range), name.since).unwrap_or(name.since);
        }
        let open = |process: u32, path: &Path| {
            open(process, path, |device| may_wait(mounts.server(process as i32, device), is_end))
        };
        let here = std::process::id();
        let map = |pid| PathBuf::from(format!("/tmp/perf-{pid}.map"));
        let own = namespace_id(pid).and_then(|id| open(pid, &map(id)));
        if self.began == 0 {
            self.began = age(pid).map_or(0, |age| monotonic_time().saturating_sub(age));
        }
        // Files stay, and processes get the numbers of others.
        let is_own = |file: &File| when_written(file).saturating_add(BEFORE_PROCESS) >= self.began;
        if let Some(file) = own.or_else(|| open(here, &map(pid))).filter(is_own) {
            self.read_map(&file, most, is_end && has_ended(pid), known, room);
        }
        if self.dump.is_none() && (is_end || now >= self.dump_looked_for.saturating_add(self.dump_believed)) {
            self.dump = mapped_dump(pid).map(|path| (path, JitDump::default()));
            self.dump_looked_for = now;
            self.dump_believed = (2 * self.dump_believed).max(DUMP_EXPECTED);
        }
        if let Some((path, mut dump)) = self.dump.take() {
            if let Some(file) = open(pid, &path).or_else(|| open(here, &path)) {
                self.read_dump(&mut dump, file, most, known, room, now);
            }
            self.dump = Some((path, dump));
        }
    }

    fn read_dump(
        &mut self,
        dump: &mut JitDump,
        file: File,
        most: usize,
        known: &mut KnownCode,
        room: &mut NamesRoom,
        now: u64,
    ) {
        dump.read(file, most, |since, range, name| {
            let rewritten = known.rewritten(&range);
            let since = match since.filter(|since| *since <= monotonic_time()) {
                Some(since) => near(&rewritten, since).map_or(Since::File(since), Since::Code),
                None => since_of_code(&rewritten, 0, now),
            };
            known.is_named(&range);
            match name {
                Named::New(name) => self.push(since, &range, name, room),
                Named::Before(index) => {
                    let name = self.text.get(self.names.get(index)?.text.clone())?.to_vec();
                    self.push(since, &range, &name, room)
                }
            }
        });
    }

    /// Reads twice: which rewrite a name belongs to depends on how many names of its code come after it. A map may be long, so its lines are not
    /// kept meanwhile.
    fn read_map(&mut self, file: &File, most: usize, is_all: bool, known: &mut KnownCode, room: &mut NamesRoom) {
        let written = when_written(file);
        // By where rewritten code begins: how many names are still to be read of it, and where the longest of it ends.
        let mut to_come: HashMap<Avma, (usize, Avma)> = HashMap::new();
        let (mut count, mut last) = (0_usize, None);
        let is_appended = self.map.clone().read(file, most, is_all, |range, _| {
            let rewritten = known.rewritten(&range).last().copied();
            if rewritten.is_some() && (to_come.len() < MOST_REWRITTEN || to_come.contains_key(&range.start)) {
                let (names, end) = to_come.entry(range.start).or_insert((0, range.end));
                (*names, *end) = (*names + 1, range.end.max(*end));
            }
            count += 1;
            last = Some((range.start, rewritten));
        });
        // The last line was written then, and its code is still to come if none was seen since: programs name code before they run it.
        let is_early = |rewritten: Option<u64>| rewritten.is_none_or(|last| last.saturating_add(NEAR) < written);
        let early = last.filter(|(_, rewritten)| is_appended && is_early(*rewritten));
        if let Some((start, Some(_))) = early
            && let Some((names, _)) = to_come.get_mut(&start)
        {
            *names = names.saturating_sub(1);
        }
        let (mut map, mut read) = (std::mem::take(&mut self.map), 0_usize);
        map.read(file, most, is_all, |range, name| {
            read += 1;
            let since = if early.is_some() && read == count {
                Since::File(written)
            } else {
                let rewritten = known.rewritten(&range);
                let counted = to_come.get_mut(&range.start).filter(|_| !rewritten.is_empty());
                let later = counted.map_or(0, |(names, _)| {
                    *names = names.saturating_sub(1);
                    *names
                });
                since_of_code(&rewritten, later, written)
            };
            self.push(since, &range, name, room);
            if !to_come.contains_key(&range.start) {
                known.is_named(&range);
            }
        });
        self.map = map;
        to_come.into_iter().for_each(|(start, (_, end))| known.is_named(&(start..end)));
    }

    /// Keeps a name. Returns where in `names` it is, or was before; `None` if it found no room.
    fn push(&mut self, since: Since, range: &Range<Avma>, name: &[u8], room: &mut NamesRoom) -> Option<usize> {
        let newest = self.newest.get(&range.start).filter(|(end, _)| *end == range.end);
        let is_same = |known: &Name| self.text.get(known.text.clone()) == Some(name);
        if let Some((_, index)) = newest.filter(|(_, index)| self.names.get(*index).is_some_and(is_same)) {
            return Some(*index);
        }
        if name.is_empty() {
            return None;
        }
        let size = size_of::<Name>() + size_of::<(Avma, (Avma, usize))>() + name.len();
        if room.taken + size > MOST_NAMES {
            room.left_out += 1;
            return None;
        }
        room.taken += size;
        self.size += size;
        let (index, start) = (self.names.len(), self.text.len());
        self.text.extend_from_slice(name);
        while let Some((overlapped, _)) =
            self.newest.range(..range.end).next_back().filter(|(_, (end, _))| *end > range.start)
        {
            let overlapped = *overlapped;
            self.newest.remove(&overlapped);
        }
        self.newest.insert(range.start, (range.end, index));
        let since = match since {
            Since::File(since) => {
                self.fresh.push(index);
                since
            }
            Since::Code(since) => since,
        };
        self.names.push(Name { since, range: range.clone(), text: start..self.text.len() });
        Some(index)
    }

    /// Forgets them all, and gives back their room.
    pub(crate) fn forget(self, room: &mut NamesRoom) {
        room.taken = room.taken.saturating_sub(self.size);
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

/// Whether a file system may let those wait who ask it for a file. Another process could do that for ever, on purpose. Another machine may be
/// slow: files of mappings are read from there, too, but names of those can wait until the end.
fn may_wait(server: Option<Server>, is_end: bool) -> bool {
    match server {
        Some(Server::Process) => true,
        Some(Server::Machine) => !is_end,
        None => false,
    }
}

/// A file as a process sees it.
///
/// Everybody may write to `/tmp`: only a file of the recording user's or of root's is believed, but root records what others run, and
/// believes theirs. Nothing that is opened waits.
fn open(process: u32, path: &Path, may_wait: impl Fn((u32, u32)) -> bool) -> Option<File> {
    let there = find(process, path, may_wait)?;
    let own = rustix::process::geteuid();
    let is_trusted = |owner: u32| own.is_root() || owner == 0 || owner == own.as_raw();
    let there = format!("/proc/self/fd/{}", there.as_raw_fd());
    open_regular(Path::new(&there), |_, stat| is_trusted(stat.st_uid)).ok()
}

/// What is at a path as a process sees it; nothing is opened yet. Goes from folder to folder, for none is asked if its device `may_wait`. A link
/// is followed, within what the process sees, if it is not the last one.
fn find(process: u32, path: &Path, may_wait: impl Fn((u32, u32)) -> bool) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let ask = |there: OwnedFd| {
        let said = statx(&there, "", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE).ok()?;
        let kind = FileType::from_raw_mode(said.stx_mode.into());
        (!may_wait((said.stx_dev_major, said.stx_dev_minor))).then_some((there, kind == FileType::Symlink))
    };
    let (root, _) = ask(rustix::fs::open(proc_path(process).join("root"), flags, Mode::empty()).ok()?)?;
    let (mut there, mut rest) = (root.try_clone().ok()?, path.to_path_buf());
    for _ in 0..MOST_PARTS {
        let mut parts = rest.components();
        match parts.next() {
            None => return Some(there),
            Some(Component::RootDir) => there = root.try_clone().ok()?,
            Some(Component::CurDir) => {}
            Some(Component::Normal(part)) => {
                let (next, is_link) = ask(openat(&there, part, flags | OFlags::NOFOLLOW, Mode::empty()).ok()?)?;
                if is_link && parts.clone().next().is_some() {
                    let link = readlinkat(&next, "", Vec::new()).ok()?.into_bytes();
                    rest = PathBuf::from(std::ffi::OsString::from_vec(link)).join(parts.as_path());
                    continue;
                }
                there = next;
            }
            // It might lead out of what the process sees.
            Some(Component::ParentDir | Component::Prefix(_)) => return None,
        }
        rest = parts.as_path().to_path_buf();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_files_are_opened() {
        let opens = |path: &Path| open(std::process::id(), path, |_| false).is_some();
        for path in ["/tmp", "/dev/zero", "/nowhere/perf-1.map", "/proc/self/exe", "/proc/self/../version"] {
            assert!(!opens(Path::new(path)), "{path}");
        }
        assert!(opens(Path::new("/proc/self/status")), "a link on the way");
        let folder = tempfile::tempdir().unwrap();
        let [file, link, around] = ["file", "link", "around"].map(|name| folder.path().join(name));
        std::fs::write(&file, "it").unwrap();
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        std::os::unix::fs::symlink("around", &around).unwrap();
        assert!(opens(&file) && opens(&link.join("file")) && opens(&link.join("./link/file")));
        assert!(!opens(&link) && !opens(&around.join("file")));
    }

    /// A folder that may wait is the last thing that is looked at: what is in it would be looked for by who serves it.
    #[test]
    fn who_serves_files_is_not_asked_for_them() {
        use std::cell::RefCell;
        let device = |path: &str| {
            let device = std::fs::metadata(path).unwrap().dev();
            (rustix::fs::major(device), rustix::fs::minor(device))
        };
        let [root, proc] = ["/", "/proc"].map(device);
        for (waits, expected) in
            [(None, vec![root, proc, proc, proc]), (Some(proc), vec![root, proc]), (Some(root), vec![root])]
        {
            let asked = RefCell::new(Vec::new());
            let path = format!("/proc/{}/status", std::process::id());
            let file = open(std::process::id(), Path::new(&path), |device| {
                asked.borrow_mut().push(device);
                waits == Some(device)
            });
            assert_eq!((file.is_some(), asked.into_inner()), (waits.is_none(), expected));
        }
    }

    #[test]
    fn other_machines_are_asked_in_the_end() {
        let servers = [None, Some(Server::Machine), Some(Server::Process)];
        assert_eq!(servers.map(|server| may_wait(server, false)), [false, true, true]);
        assert_eq!(servers.map(|server| may_wait(server, true)), [false, false, true]);
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

    /// However many lines are between them.
    #[test]
    fn names_of_a_long_map_hold_from_when_their_code_was_seen() {
        let (mut process, now) = (process(), monotonic_time());
        process.is_rewritten_at(&[now - 8 * SECOND, now - 7 * SECOND, now - 6 * SECOND]);
        let others: String = (0..AT_ONCE).map(|at| format!("{:x} 1 other\n", 0x10_0000 + at)).collect();
        process.append(&format!("1000 10 a\n{others}1000 10 b\n{others}1000 10 c\n"), 5 * SECOND);
        let expected = [(now - 8 * SECOND, "a"), (now - 7 * SECOND, "b"), (now - 6 * SECOND, "c")];
        assert_eq!(process.named(), expected);
        assert_eq!(process.names.names.len(), AT_ONCE + 3);
        assert!(process.known.rewritten(&(Avma(0x1000)..Avma(0x1010))).is_empty(), "it is named");
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
        process.names.read(u32::MAX, &mut process.known, &mut process.room, &Mounts::default(), now, false);
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
            process.names.read(pid, &mut process.known, &mut process.room, &Mounts::default(), 0, true);
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
        let Process { names, mut room, .. } = process;
        names.forget(&mut room);
        assert_eq!(room.taken, MOST_NAMES - 150, "their room is there for others");
    }

    /// Their names are kept once, and what finds no room is not kept elsewhere.
    #[test]
    fn functions_of_a_dump_that_move_have_the_names_that_are_kept() {
        let mut process = process();
        let mut dump = JitDump::default();
        let file = || {
            let mut file = tempfile::tempfile().unwrap();
            std::io::Write::write_all(&mut file, &jitdump::tests::moving(0).concat()).unwrap();
            file
        };
        process.names.read_dump(&mut dump, file(), usize::MAX, &mut process.known, &mut process.room, 0);
        let names = |names: &Names| -> Vec<(u64, Vec<u8>)> {
            names.names.iter().map(|name| (name.range.start.0, names.text[name.text.clone()].to_vec())).collect()
        };
        let [first, second] = [b"first".to_vec(), b"second".to_vec()];
        assert_eq!(names(&process.names), [(0x1000, first.clone()), (0x2000, second), (0x3000, first)]);
        assert_eq!(process.names.size, process.room.taken);
        let (mut names, mut dump) = (Names::default(), JitDump::default());
        process.room.taken = MOST_NAMES;
        names.read_dump(&mut dump, file(), usize::MAX, &mut process.known, &mut process.room, 0);
        assert!(names.names.is_empty() && dump.has_no_functions());
        assert_eq!(process.room.left_out, 2);
    }
}
