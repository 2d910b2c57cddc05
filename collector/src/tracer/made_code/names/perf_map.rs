//! A perf map, `/tmp/perf-PID.map`: a line for each function, with address, size and name.
//!
//! Programs append to it while they run, or write it anew: it is read from where reading ended, or from its beginning.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};

use addresses::Avma;

/// Bytes of a map that are read,
const MOST: u64 = 256 << 20;
/// and bytes of a line: of a longer one the rest is a line of its own, which is none.
const MOST_LINE: u64 = 1 << 14;

/// How far a map was read.
#[derive(Clone, Debug, Default)]
pub(super) struct PerfMap {
    read: u64,
    /// The last line that was read: where it is another one now, the map was written anew.
    last_line: Vec<u8>,
    /// Device, inode, and when it was written, of what was read.
    file: (u64, u64),
    written: (i64, i64),
}

impl PerfMap {
    /// Reads what is new, up to `most` lines. A line without its end is read if `is_all`: the program has ended. Lines that are none are passed
    /// over. Returns whether the program has appended to what was read before, and nothing is left to be read.
    pub(super) fn read(
        &mut self,
        map: &File,
        most: usize,
        is_all: bool,
        mut each: impl FnMut(Range<Avma>, &[u8]),
    ) -> bool {
        let Ok(metadata) = map.metadata() else { return false };
        let (file, written) = ((metadata.dev(), metadata.ino()), (metadata.mtime(), metadata.mtime_nsec()));
        let is_as_long = metadata.size() == self.read;
        if is_as_long && (file, written) == (self.file, self.written) {
            return false;
        }
        if is_as_long || file != self.file || !self.is_continued(map) {
            (self.read, self.last_line) = (0, Vec::new());
        }
        let is_appended = self.read > 0;
        (self.file, self.written) = (file, written);
        let mut lines = BufReader::new(map);
        if lines.seek(SeekFrom::Start(self.read)).is_err() {
            return false;
        }
        let mut line = Vec::new();
        for _ in 0..most {
            if self.read >= MOST {
                break;
            }
            line.clear();
            let length = match lines.by_ref().take(MOST_LINE).read_until(b'\n', &mut line) {
                Ok(length @ 1..) => length as u64,
                _ => return is_appended,
            };
            if !line.ends_with(b"\n") && length < MOST_LINE && !is_all {
                return is_appended;
            }
            self.read += length;
            if let Some((range, name)) = parse(line.strip_suffix(b"\n").unwrap_or(&line)) {
                each(range, name);
            }
            std::mem::swap(&mut self.last_line, &mut line);
        }
        false
    }

    /// Whether what was read is there still, as far as its last line tells.
    fn is_continued(&self, map: &File) -> bool {
        let mut line = vec![0; self.last_line.len()];
        let at = self.read.saturating_sub(line.len() as u64);
        map.read_exact_at(&mut line, at).is_ok() && line == self.last_line
    }
}

/// `7f2a10 1c0 JS:*fib file.js:1`: both numbers are hexadecimal, with `0x` or without.
fn parse(line: &[u8]) -> Option<(Range<Avma>, &[u8])> {
    let mut fields = line.splitn(3, |&byte| byte == b' ');
    let mut number = || {
        let field = std::str::from_utf8(fields.next()?).ok()?;
        u64::from_str_radix(field.strip_prefix("0x").unwrap_or(field), 16).ok()
    };
    let (start, size) = (number()?, number()?);
    let name = fields.next()?.trim_ascii();
    let end = start.checked_add(size)?;
    (size > 0 && !name.is_empty()).then_some((Avma(start)..Avma(end), name))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// What is read of a map now.
    fn more(state: &mut PerfMap, map: &File, is_all: bool) -> Vec<(u64, u64, Vec<u8>)> {
        let mut names = Vec::new();
        state.read(map, usize::MAX, is_all, |range, name| names.push((range.start.0, range.end.0, name.to_vec())));
        names
    }

    fn names(map: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(map).unwrap();
        more(&mut PerfMap::default(), &file, true)
    }

    #[test]
    fn lines_that_are_none_are_passed_over() {
        let map =
            b"1000 20 JS:*fib file.js:1 (really)\n0x1020 0x10 with prefixes\n1030 0 empty\nffffffffffffffff 10 wraps\n\
                    zzz 10 no number\n1000\n1000 10 \n\xff\xff 1 x\n\n1030 8 last";
        let expected = [
            (0x1000, 0x1020, b"JS:*fib file.js:1 (really)".to_vec()),
            (0x1020, 0x1030, b"with prefixes".to_vec()),
            (0x1030, 0x1038, b"last".to_vec()),
        ];
        assert_eq!(names(map), expected);
    }

    #[test]
    fn a_line_has_no_end_of_memory() {
        let map = [b"1000 20 ".to_vec(), vec![b'x'; 1 << 20], b"\n2000 8 after\n".to_vec()].concat();
        let names = names(&map);
        assert_eq!((names.len(), names[0].2.len()), (2, (1 << 14) - 8));
        assert_eq!(names[1], (0x2000, 0x2008, b"after".to_vec()));
    }

    #[test]
    fn what_is_appended_is_read_once_and_a_new_map_from_its_beginning() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (map, mut state) = (file.reopen().unwrap(), PerfMap::default());
        let append = |text: &str| {
            std::fs::OpenOptions::new().append(true).open(file.path()).unwrap().write_all(text.as_bytes()).unwrap();
        };
        let mut read = |is_all| {
            let names = more(&mut state, &map, is_all);
            names.into_iter().map(|(.., name)| String::from_utf8(name).unwrap()).collect::<Vec<_>>()
        };
        append("1000 8 one\n2000 8 tw");
        assert_eq!(read(false), ["one"], "the second is not written to its end");
        append("o\n");
        assert_eq!((read(false), read(false)), (vec!["two".into()], vec![]));
        std::fs::write(file.path(), "1000 8 another\n2000 8 other\n3000 8 more\n").unwrap();
        assert_eq!(read(false), ["another", "other", "more"]);
        append("4000 8 cut");
        assert_eq!((read(false), read(true)), (vec![], vec!["cut".into()]));
    }

    #[test]
    fn some_lines_are_read_at_a_time() {
        let mut file = tempfile::tempfile().unwrap();
        (1..=5).for_each(|at| writeln!(file, "{at}000 8 name").unwrap());
        writeln!(file, "none\nnone\nnone\n6000 8 name").unwrap();
        let mut state = PerfMap::default();
        let mut read = || {
            let mut names = 0;
            state.read(&file, 2, false, |_, _| names += 1);
            names
        };
        assert_eq!([read(), read(), read(), read(), read(), read()], [2, 2, 1, 0, 1, 0]);
    }
}
