//! A jitdump, `jit-PID.dump` (`tools/perf/Documentation/jitdump-specification.txt`): code as it was made, with names. Only those are read.

use std::collections::HashMap;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::ops::Range;

use addresses::Avma;

const MAGIC: u32 = 0x4a69_5444;
const HEADER: usize = 40;
/// Flag of the header: times are not those of `CLOCK_MONOTONIC`, but of the CPU's own counter.
const ARCH_TIMESTAMP: u64 = 1;
/// Identifier, size and time.
const PREFIX: usize = 16;
const LOAD: u32 = 0;
const MOVE: u32 = 1;
/// What both have before the name: process, thread, addresses, size, index.
const LOADED: usize = 40;
const MOVED: usize = 48;
/// Bytes of a dump, most of which are code and passed over: records that begin after them are not read.
const MOST: u64 = 1 << 30;
/// Bytes of a name.
const MOST_NAME: usize = 4096;
/// Functions that are kept in case they are moved.
const MOST_FUNCTIONS: usize = 1 << 17;

/// How far a dump was read.
#[derive(Debug, Default)]
pub(super) struct JitDump {
    /// Where the next record begins; 0: the header was not read.
    read: u64,
    has_times: bool,
    /// Where the reader keeps their names, by the index that a function has for itself.
    functions: HashMap<u64, usize>,
    /// What follows is no record.
    is_damaged: bool,
}

/// What a function is called.
#[derive(Clone, Copy, Debug)]
pub(super) enum Named<'a> {
    New(&'a [u8]),
    /// As the name that the reader keeps there.
    Before(usize),
}

impl JitDump {
    /// Reads the whole records that are new, up to `most`. `each` is told since when a name holds (`CLOCK_MONOTONIC`, ns), if the dump says so,
    /// and says where it keeps it.
    pub(super) fn read(
        &mut self,
        dump: impl Read + Seek,
        most: usize,
        mut each: impl FnMut(Option<u64>, Range<Avma>, Named<'_>) -> Option<usize>,
    ) {
        let mut dump = BufReader::new(dump);
        let Ok(length) = dump.seek(SeekFrom::End(0)) else { return };
        if length < self.read {
            // Another one of that name.
            *self = Self::default();
        }
        if self.read == 0 && self.read_header(&mut dump, length).is_none() {
            return;
        }
        if dump.seek(SeekFrom::Start(self.read)).is_err() {
            return;
        }
        for _ in 0..most {
            if self.is_damaged || self.read >= MOST || self.read_record(&mut dump, length, &mut each).is_none() {
                return;
            }
        }
    }

    #[cfg(test)]
    pub(super) fn has_no_functions(&self) -> bool {
        self.functions.is_empty()
    }

    fn read_header<R: Read + Seek>(&mut self, dump: &mut BufReader<R>, length: u64) -> Option<()> {
        dump.seek(SeekFrom::Start(0)).ok()?;
        let header: [u8; HEADER] = next(dump)?;
        let size = u64::from(half(&header, 8));
        self.is_damaged = half(&header, 0) != MAGIC || size < HEADER as u64;
        self.has_times = word(&header, 32) & ARCH_TIMESTAMP == 0;
        (!self.is_damaged && size <= length).then(|| self.read = size)
    }

    /// `None` at a record that is not there to its end yet.
    fn read_record<R: Read + Seek>(
        &mut self,
        dump: &mut BufReader<R>,
        length: u64,
        each: &mut impl FnMut(Option<u64>, Range<Avma>, Named<'_>) -> Option<usize>,
    ) -> Option<()> {
        let left = length.checked_sub(self.read)?;
        if left < PREFIX as u64 {
            return None;
        }
        let prefix: [u8; PREFIX] = next(dump)?;
        let (kind, size, time) = (half(&prefix, 0), u64::from(half(&prefix, 4)), word(&prefix, 8));
        let least = match kind {
            LOAD => PREFIX + LOADED,
            MOVE => PREFIX + MOVED,
            _ => PREFIX,
        };
        self.is_damaged = size < least as u64;
        if self.is_damaged || size > left {
            return None;
        }
        let since = (self.has_times && time > 0).then_some(time);
        let mut rest = size - least as u64;
        match kind {
            LOAD => {
                let fields: [u8; LOADED] = next(dump)?;
                let mut name = vec![0; rest.min(MOST_NAME as u64) as usize];
                dump.read_exact(&mut name).ok()?;
                rest -= name.len() as u64;
                let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
                name.truncate(end);
                let (at, size, index) = (word(&fields, 16), word(&fields, 24), word(&fields, 32));
                // What it was called before is another function.
                self.functions.remove(&index);
                let kept = range(at, size).and_then(|range| each(since, range, Named::New(&name)));
                if let Some(kept) = kept.filter(|_| self.functions.len() < MOST_FUNCTIONS) {
                    self.functions.insert(index, kept);
                }
            }
            MOVE => {
                let fields: [u8; MOVED] = next(dump)?;
                let (at, size, index) = (word(&fields, 24), word(&fields, 32), word(&fields, 40));
                if let (Some(range), Some(kept)) = (range(at, size), self.functions.get(&index)) {
                    each(since, range, Named::Before(*kept));
                }
            }
            _ => {}
        }
        dump.seek_relative(i64::try_from(rest).ok()?).ok()?;
        self.read += size;
        Some(())
    }
}

fn next<const N: usize>(dump: &mut impl Read) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    dump.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

fn range(start: u64, size: u64) -> Option<Range<Avma>> {
    Some(Avma(start)..Avma(start.checked_add(size).filter(|_| size > 0)?))
}

fn half(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |half| u32::from_le_bytes(*half))
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Cursor;

    use super::*;

    /// A record of a time, with a process and a thread before `words`.
    fn record(kind: u32, time: u64, words: &[u64], rest: &[u8]) -> Vec<u8> {
        let size = (PREFIX + 8 + 8 * words.len() + rest.len()) as u32;
        let mut record = [kind.to_le_bytes(), size.to_le_bytes()].concat();
        record.extend(time.to_le_bytes());
        record.extend([0; 8]);
        record.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        record.extend(rest);
        record
    }

    fn header(size: u32, flags: u64) -> Vec<u8> {
        let mut header = [MAGIC.to_le_bytes(), 1_u32.to_le_bytes(), size.to_le_bytes()].concat();
        header.resize(HEADER - 8, 0);
        header.extend(flags.to_le_bytes());
        header.resize(size as usize, 0);
        header
    }

    type Name = (Option<u64>, u64, u64, String);

    /// What is read of a dump now; names are kept in `kept`.
    fn more(state: &mut JitDump, kept: &mut Vec<String>, dump: impl Read + Seek, most: usize) -> Vec<Name> {
        let mut names = Vec::new();
        state.read(dump, most, |since, range, name| {
            let name = match name {
                Named::New(name) => String::from_utf8_lossy(name).into_owned(),
                Named::Before(index) => kept[index].clone(),
            };
            kept.push(name.clone());
            names.push((since, range.start.0, range.end.0, name));
            Some(kept.len() - 1)
        });
        names
    }

    fn names(dump: &[u8]) -> Vec<Name> {
        more(&mut JitDump::default(), &mut Vec::new(), Cursor::new(dump), usize::MAX)
    }

    pub(in crate::tracer::made_code::names) fn moving(flags: u64) -> [Vec<u8>; 6] {
        [
            header(48, flags),
            record(LOAD, 10, &[0x1000, 0x1000, 4, 7], b"first\0\x90\x90\x90\xc3"),
            record(99, 20, &[1, 2], b"of a later version"),
            record(LOAD, 30, &[0x2000, 0x2000, 1, 8], b"second\0\xc3"),
            record(MOVE, 40, &[0x3000, 0x1000, 0x3000, 4, 7], b""),
            record(MOVE, 50, &[0x4000, 0x1000, 0x4000, 4, 99], b""),
        ]
    }

    fn moved() -> [Name; 3] {
        [
            (Some(10), 0x1000, 0x1004, "first".into()),
            (Some(30), 0x2000, 0x2001, "second".into()),
            (Some(40), 0x3000, 0x3004, "first".into()),
        ]
    }

    #[test]
    fn functions_have_their_names_where_they_are_and_where_they_go() {
        assert_eq!(names(&moving(0).concat()), moved());
        let without_times = moved().map(|(_, start, end, name)| (None, start, end, name));
        assert_eq!(names(&moving(ARCH_TIMESTAMP).concat()), without_times);
    }

    #[test]
    fn what_is_appended_is_read_once() {
        let whole = moving(0).concat();
        let (mut state, mut kept, mut read) = (JitDump::default(), Vec::new(), Vec::new());
        let mut more = |state: &mut JitDump, dump: &[u8], most| more(state, &mut kept, Cursor::new(dump), most);
        (0..=whole.len()).for_each(|length| read.extend(more(&mut state, &whole[..length], usize::MAX)));
        assert_eq!(read, moved());
        let mut state = JitDump::default();
        let read: Vec<_> = (0..5).map(|_| more(&mut state, &whole, 2).len()).collect();
        assert_eq!(read, [1, 2, 0, 0, 0], "two records at a time");
        assert_eq!(more(&mut state, &moving(0)[..2].concat(), usize::MAX), moved()[..1], "another dump of that name");
    }

    #[test]
    fn a_function_whose_name_is_not_kept_has_none_where_it_goes() {
        let second = record(LOAD, 20, &[0x2000, 0x2000, 1, 7], b"second\0\xc3");
        let [header, first, .., moves, _] = moving(0);
        let dump = [header, first, second, moves].concat();
        let mut names = Vec::new();
        JitDump::default().read(Cursor::new(dump), usize::MAX, |_, range, name| {
            names.push(range.start.0);
            matches!(name, Named::New(b"first")).then_some(0)
        });
        assert_eq!(names, [0x1000, 0x2000], "nor that of the function before it");
    }

    #[test]
    fn a_dump_has_an_end() {
        use std::os::unix::fs::FileExt;
        let file = tempfile::tempfile().unwrap();
        let [_, first, ..] = moving(0);
        file.write_all_at(&header(40, 0), 0).unwrap();
        let last = MOST - 1;
        file.write_all_at(&first, last).unwrap();
        file.write_all_at(&first, last + first.len() as u64).unwrap();
        let mut state = JitDump { read: last, has_times: true, ..JitDump::default() };
        let names: Vec<_> = (0..2).flat_map(|_| more(&mut state, &mut Vec::new(), &file, usize::MAX)).collect();
        assert_eq!(names, moved()[..1]);
    }

    #[test]
    fn what_is_cut_off_or_absurd_ends_it() {
        let whole = [header(40, 0), record(LOAD, 1, &[0x1000, 0x1000, 4, 7], b"first\0\x90\x90\x90\xc3")].concat();
        for length in 0..whole.len() {
            assert!(names(&whole[..length]).is_empty());
        }
        for at in (0..whole.len() - 3).step_by(4) {
            for word in [0, 1, 15, u32::MAX] {
                let mut other = whole.clone();
                other[at..at + 4].copy_from_slice(&u32::to_le_bytes(word));
                assert!(names(&other).len() <= 1);
            }
        }
        assert_eq!(names(b"not a jitdump at all, but long enough for a header"), []);
        assert_eq!(names(&[header(40, 0), record(LOAD, 1, &[1, u64::MAX, 4, 7], b"wraps\0")].concat()), []);
    }
}
