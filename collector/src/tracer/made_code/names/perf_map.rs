//! A perf map, `/tmp/perf-PID.map`: a line for each function, with address, size and name.

use std::io::{BufRead, BufReader, Read};
use std::ops::Range;

use addresses::Avma;

/// Bytes of a map that are read,
const MOST: u64 = 256 << 20;
/// and bytes of a line: of a longer one the rest is a line of its own, which is none.
const MOST_LINE: u64 = 1 << 14;

/// Reads a map. Lines that are none are passed over.
pub(super) fn read(map: impl Read, mut each: impl FnMut(Range<Avma>, &[u8])) {
    let mut map = BufReader::new(map.take(MOST));
    let mut line = Vec::new();
    loop {
        line.clear();
        match map.by_ref().take(MOST_LINE).read_until(b'\n', &mut line) {
            Ok(1..) => {
                if let Some((range, name)) = parse(line.strip_suffix(b"\n").unwrap_or(&line)) {
                    each(range, name);
                }
            }
            _ => return,
        }
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
    use super::*;

    fn names(map: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
        let mut names = Vec::new();
        read(map, |range, name| names.push((range.start.0, range.end.0, name.to_vec())));
        names
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
}
