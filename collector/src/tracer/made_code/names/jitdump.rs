//! A jitdump, `jit-PID.dump` (`tools/perf/Documentation/jitdump-specification.txt`): code as it was made, with names. Only those are read.

use std::collections::HashMap;
use std::io::{BufReader, Read, Seek};
use std::ops::Range;

use addresses::Avma;

const MAGIC: u32 = 0x4a69_5444;
const HEADER: usize = 40;
/// Identifier, size and time.
const PREFIX: usize = 16;
const LOAD: u32 = 0;
const MOVE: u32 = 1;
/// What both have before the name: process, thread, addresses, size, index.
const LOADED: usize = 40;
const MOVED: usize = 48;
/// Bytes of a name.
const MOST_NAME: usize = 4096;
/// Functions that are kept in case they are moved.
const MOST_FUNCTIONS: usize = 1 << 17;

/// Reads a dump, up to what is no record.
pub(super) fn read(dump: impl Read + Seek, each: impl FnMut(Range<Avma>, &[u8])) {
    let _ = read_records(&mut BufReader::new(dump), each);
}

fn read_records<R: Read + Seek>(dump: &mut BufReader<R>, mut each: impl FnMut(Range<Avma>, &[u8])) -> Option<()> {
    let header: [u8; HEADER] = next(dump)?;
    let (magic, size) = (half(&header, 0), half(&header, 8));
    if magic != MAGIC {
        return None;
    }
    skip(dump, u64::from(size).checked_sub(HEADER as u64)?)?;
    // By the index that a function has for itself.
    let mut functions: HashMap<u64, Vec<u8>> = HashMap::new();
    loop {
        let prefix: [u8; PREFIX] = next(dump)?;
        let (kind, size) = (half(&prefix, 0), half(&prefix, 4));
        let mut rest = u64::from(size).checked_sub(PREFIX as u64)?;
        match kind {
            LOAD => {
                let fields: [u8; LOADED] = next(dump)?;
                rest = rest.checked_sub(LOADED as u64)?;
                let mut name = vec![0; rest.min(MOST_NAME as u64) as usize];
                dump.read_exact(&mut name).ok()?;
                rest -= name.len() as u64;
                let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
                name.truncate(end);
                let (at, size, index) = (word(&fields, 16), word(&fields, 24), word(&fields, 32));
                if let Some(range) = range(at, size) {
                    each(range, &name);
                }
                if functions.len() < MOST_FUNCTIONS || functions.contains_key(&index) {
                    functions.insert(index, name);
                }
            }
            MOVE => {
                let fields: [u8; MOVED] = next(dump)?;
                rest = rest.checked_sub(MOVED as u64)?;
                let (at, size, index) = (word(&fields, 24), word(&fields, 32), word(&fields, 40));
                if let (Some(range), Some(name)) = (range(at, size), functions.get(&index)) {
                    each(range, name);
                }
            }
            _ => {}
        }
        skip(dump, rest)?;
    }
}

fn next<const N: usize>(dump: &mut impl Read) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    dump.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

fn skip<R: Read + Seek>(dump: &mut BufReader<R>, bytes: u64) -> Option<()> {
    dump.seek_relative(i64::try_from(bytes).ok()?).ok()
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
mod tests {
    use std::io::Cursor;

    use super::*;

    fn record(kind: u32, words: &[u64], rest: &[u8]) -> Vec<u8> {
        let size = (PREFIX + 8 + 8 * words.len() + rest.len()) as u32;
        let mut record = [kind.to_le_bytes(), size.to_le_bytes()].concat();
        record.extend([0; 8 + 8]);
        record.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        record.extend(rest);
        record
    }

    fn header(size: u32) -> Vec<u8> {
        let mut header = [MAGIC.to_le_bytes(), 1_u32.to_le_bytes(), size.to_le_bytes()].concat();
        header.resize(size as usize, 0);
        header
    }

    fn names(dump: Vec<u8>) -> Vec<(u64, u64, String)> {
        let mut names = Vec::new();
        read(Cursor::new(dump), |range, name| {
            names.push((range.start.0, range.end.0, String::from_utf8_lossy(name).into_owned()));
        });
        names
    }

    #[test]
    fn functions_have_their_names_where_they_are_and_where_they_go() {
        let dump = [
            header(48),
            record(LOAD, &[0x1000, 0x1000, 4, 7], b"first\0\x90\x90\x90\xc3"),
            record(99, &[1, 2], b"of a later version"),
            record(LOAD, &[0x2000, 0x2000, 1, 8], b"second\0\xc3"),
            record(MOVE, &[0x3000, 0x1000, 0x3000, 4, 7], b""),
            record(MOVE, &[0x4000, 0x1000, 0x4000, 4, 99], b""),
        ];
        let expected =
            [(0x1000, 0x1004, "first".into()), (0x2000, 0x2001, "second".into()), (0x3000, 0x3004, "first".into())];
        assert_eq!(names(dump.concat()), expected);
    }

    #[test]
    fn what_is_cut_off_or_absurd_ends_it() {
        let whole = [header(40), record(LOAD, &[0x1000, 0x1000, 4, 7], b"first\0\x90\x90\x90\xc3")].concat();
        for length in 0..whole.len() {
            assert!(names(whole[..length].to_vec()).is_empty() || length > 40 + PREFIX + LOADED);
        }
        for at in (0..whole.len() - 3).step_by(4) {
            for word in [0, 1, 15, u32::MAX] {
                let mut other = whole.clone();
                other[at..at + 4].copy_from_slice(&u32::to_le_bytes(word));
                assert!(names(other).len() <= 1);
            }
        }
        assert_eq!(names(b"not a jitdump at all, but long enough for a header".to_vec()), []);
        assert_eq!(names([header(40), record(LOAD, &[1, u64::MAX, 4, 7], b"wraps\0")].concat()), []);
    }
}
