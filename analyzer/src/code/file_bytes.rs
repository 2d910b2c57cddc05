//! A file's bytes, read where they are looked at.
//!
//! Programs with debug information are large (gigabytes) and what an analysis looks at is small. Memory maps would need
//! unsafe code and make a file that shrinks a crash; so pieces are read on first use, and stay.
//!
//! ```text
//! file     |-------|-------|-------|---
//! piece 0  [==========]                     a piece overlaps the next, so that
//! piece 1          [==========]             short ranges lie in one
//! long     ...........[==================]  longer ranges are kept as they were asked for
//! ```

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, OnceLock};

use object::ReadRef;

/// Distance of the pieces, in bytes.
const PIECE: u64 = 1 << 16;
/// How far a piece reaches into the next, in bytes: ranges up to this length lie in one piece.
const OVERLAP: u64 = 1 << 14;

/// The bytes of a file of fixed length. Parts that can no longer be read are absent.
#[derive(Debug)]
pub(super) struct FileBytes {
    length: u64,
    backing: Backing,
}

#[derive(Debug)]
enum Backing {
    Memory(Arc<[u8]>),
    File { file: File, pieces: Vec<OnceLock<Box<[u8]>>>, long: Long },
}

/// A list that grows at its end: what it holds can be borrowed while it grows.
#[derive(Debug, Default)]
struct Long(OnceLock<Box<LongRange>>);

#[derive(Debug)]
struct LongRange {
    start: u64,
    bytes: Box<[u8]>,
    next: Long,
}

/// From the first byte to the last.
struct Reader<'a> {
    bytes: &'a FileBytes,
    offset: u64,
}

impl io::Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.bytes.length.saturating_sub(self.offset);
        let size = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let buffer = buffer.get_mut(..size).unwrap_or_default();
        match &self.bytes.backing {
            Backing::Memory(bytes) => {
                let bytes = usize::try_from(self.offset).ok().and_then(|offset| bytes.get(offset..)?.get(..size));
                buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
            }
            Backing::File { file, .. } => file.read_exact_at(buffer, self.offset)?,
        }
        self.offset += size as u64;
        Ok(size)
    }
}

impl FileBytes {
    pub fn of_memory(bytes: Arc<[u8]>) -> Self {
        Self { length: bytes.len() as u64, backing: Backing::Memory(bytes) }
    }

    /// All of them, if they are of no file.
    pub fn in_memory(&self) -> Option<&[u8]> {
        match &self.backing {
            Backing::Memory(bytes) => Some(bytes),
            Backing::File { .. } => None,
        }
    }

    pub fn of_file(file: File, length: u64) -> Self {
        let pieces = (0..length.div_ceil(PIECE)).map(|_| OnceLock::new()).collect();
        Self { length, backing: Backing::File { file, pieces, long: Long::default() } }
    }

    /// Reads all bytes, one after the other, and keeps none.
    pub fn reader(&self) -> impl io::Read + '_ {
        Reader { bytes: self, offset: 0 }
    }

    /// The length of the file when it was opened, in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The bytes of a range, which stay in memory; for ranges that are looked at again and again.
    pub fn get(&self, offset: u64, size: u64) -> Option<&[u8]> {
        let range = self.range(offset, size)?;
        if range.is_empty() {
            return Some(&[]);
        }
        match &self.backing {
            Backing::Memory(bytes) => bytes.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?),
            Backing::File { file, pieces, long } => {
                let index = range.start / PIECE;
                let start = index * PIECE;
                if range.end > start + PIECE + OVERLAP {
                    return long.get(file, &range);
                }
                let end = (start + PIECE + OVERLAP).min(self.length);
                let piece = pieces.get(usize::try_from(index).ok()?)?;
                let piece = piece.get_or_init(|| read(file, &(start..end)).unwrap_or_default());
                piece.get((range.start - start) as usize..(range.end - start) as usize)
            }
        }
    }

    /// The bytes from `offset`, `size` of them or as many as the file has.
    pub fn get_up_to(&self, offset: u64, size: u64) -> &[u8] {
        self.get(offset, self.clip(offset, size)).unwrap_or_default()
    }

    /// The same, to be looked at once.
    pub fn copy_up_to(&self, offset: u64, size: u64) -> Cow<'_, [u8]> {
        let size = self.clip(offset, size);
        match &self.backing {
            Backing::Memory(_) => Cow::Borrowed(self.get(offset, size).unwrap_or_default()),
            Backing::File { file, .. } => {
                let bytes = self.range(offset, size).and_then(|range| read(file, &range).ok());
                Cow::Owned(bytes.unwrap_or_default().into_vec())
            }
        }
    }

    fn clip(&self, offset: u64, size: u64) -> u64 {
        size.min(self.length.saturating_sub(offset))
    }

    fn range(&self, offset: u64, size: u64) -> Option<Range<u64>> {
        let end = offset.checked_add(size)?;
        (end <= self.length).then_some(offset..end)
    }
}

impl Long {
    fn get(&self, file: &File, range: &Range<u64>) -> Option<&[u8]> {
        let mut list = self;
        loop {
            let known = list.0.get_or_init(|| {
                let bytes = read(file, range).unwrap_or_default();
                Box::new(LongRange { start: range.start, bytes, next: Self::default() })
            });
            if let Some(bytes) = known.slice(range) {
                return Some(bytes);
            }
            // What was just read is too short: the file has shrunk. Otherwise the range is another one.
            if known.start == range.start && known.bytes.is_empty() {
                return None;
            }
            list = &known.next;
        }
    }
}

impl LongRange {
    fn slice(&self, range: &Range<u64>) -> Option<&[u8]> {
        let start = usize::try_from(range.start.checked_sub(self.start)?).ok()?;
        let end = usize::try_from(range.end.checked_sub(self.start)?).ok()?;
        self.bytes.get(start..end)
    }
}

fn read(file: &File, range: &Range<u64>) -> io::Result<Box<[u8]>> {
    let size = usize::try_from(range.end - range.start).map_err(io::Error::other)?;
    let mut bytes = vec![0; size];
    file.read_exact_at(&mut bytes, range.start)?;
    Ok(bytes.into_boxed_slice())
}

impl<'data> ReadRef<'data> for &'data FileBytes {
    fn len(self) -> Result<u64, ()> {
        Ok(self.length)
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'data [u8], ()> {
        self.get(offset, size).ok_or(())
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'data [u8], ()> {
        let bytes = self.get(range.start, range.end.checked_sub(range.start).ok_or(())?).ok_or(())?;
        let end = bytes.iter().position(|&byte| byte == delimiter).ok_or(())?;
        bytes.get(..end).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file(bytes: &[u8]) -> FileBytes {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        FileBytes::of_file(file, bytes.len() as u64)
    }

    fn pattern(length: u64) -> Vec<u8> {
        (0..length).map(|index| (index % 251) as u8).collect()
    }

    #[test]
    fn every_range_is_what_the_file_has_there() {
        let bytes = pattern(3 * PIECE + 100);
        let lazy = file(&bytes);
        let edges =
            [0, 1, OVERLAP, PIECE - 1, PIECE, PIECE + OVERLAP, 2 * PIECE, 3 * PIECE, 3 * PIECE + 99, 3 * PIECE + 100];
        for start in edges {
            for end in edges.into_iter().filter(|&end| end >= start) {
                let expected = &bytes[start as usize..end as usize];
                for _ in 0..2 {
                    assert_eq!(lazy.get(start, end - start), Some(expected));
                }
                assert_eq!(lazy.copy_up_to(start, end - start), expected);
            }
        }
    }

    #[test]
    fn ranges_beyond_the_end_are_absent_or_cut() {
        for bytes in [file(&pattern(1000)), FileBytes::of_memory(pattern(1000).into())] {
            assert_eq!(bytes.get(999, 2), None);
            assert_eq!(bytes.get(u64::MAX, 2), None);
            assert_eq!(bytes.get(1000, 0), Some(&[][..]));
            assert_eq!(bytes.get_up_to(998, 100), [998 % 251, 999 % 251].map(|byte: u64| byte as u8));
            assert_eq!(bytes.get_up_to(5000, 100), [0_u8; 0]);
            assert_eq!(*bytes.copy_up_to(5000, u64::MAX), [0_u8; 0]);
        }
    }

    #[test]
    fn a_file_that_shrinks_loses_its_bytes_and_nothing_else() {
        let bytes = pattern(4 * PIECE);
        let lazy = file(&bytes);
        assert_eq!(lazy.get(10, 10), Some(&bytes[10..20]));
        let Backing::File { file, .. } = &lazy.backing else { unreachable!() };
        file.set_len(PIECE).unwrap();
        assert_eq!(lazy.get(20, 10), Some(&bytes[20..30]), "read before");
        assert_eq!(lazy.get(2 * PIECE, 10), None);
        assert_eq!(lazy.get(PIECE, 3 * PIECE), None);
        assert_eq!(lazy.get(PIECE, 3 * PIECE), None);
        assert_eq!(*lazy.copy_up_to(PIECE, 3 * PIECE), [0_u8; 0]);
    }
}
