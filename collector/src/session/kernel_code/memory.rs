//! The bytes of the running kernel: from `/proc/kcore`, or where there is none by a program of BPF.

use std::cell::Cell;
use std::io;
use std::ops::Range;
use std::path::Path;

use super::PAGE;
use super::kcore::Kcore;
use crate::errno::Errno;
use crate::sys::KernelMemory;

/// What reads the kernel's memory, a page or less at once.
pub(crate) trait ReadsPages {
    /// Fills `bytes`, which are of one page, with those at an address.
    ///
    /// # Errors
    /// They cannot be read.
    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), Errno>;
}

impl ReadsPages for KernelMemory {
    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), Errno> {
        KernelMemory::read(self, at, bytes)
    }
}

/// What lets a program of BPF read the memory.
pub(crate) type ByBpf = fn() -> Result<Box<dyn ReadsPages>, Errno>;

/// The program of BPF.
///
/// # Errors
/// What `bpf` answered.
pub(crate) fn by_bpf() -> Result<Box<dyn ReadsPages>, Errno> {
    Ok(Box::new(KernelMemory::open()?))
}

pub(super) enum Memory {
    Kcore(Kcore),
    Pages(Pages),
}

/// Memory that is read page by page.
pub(super) struct Pages {
    reader: Box<dyn ReadsPages>,
    /// The last page that was looked for, and whether it is there.
    last: Cell<Option<(u64, bool)>>,
}

impl Memory {
    /// `proc/kcore` below `root`, or else what `by_bpf` gives.
    ///
    /// # Errors
    /// Why neither can be read.
    pub fn open(root: &Path, by_bpf: ByBpf) -> Result<Self, (io::Error, Errno)> {
        match Kcore::open(&root.join("proc/kcore")) {
            Ok(kcore) => Ok(Memory::Kcore(kcore)),
            Err(error) => match by_bpf() {
                Ok(reader) => Ok(Memory::Pages(Pages { reader, last: Cell::new(None) })),
                Err(errno) => Err((error, errno)),
            },
        }
    }

    /// Whether something is at the address. Neighbours cost little one after the other.
    pub fn has(&self, at: u64) -> bool {
        match self {
            Memory::Kcore(kcore) => kcore.has(at),
            Memory::Pages(pages) => pages.has(at),
        }
    }

    /// The bytes at these addresses that can be read, in pieces: where each begins.
    pub fn read(&self, range: &Range<u64>) -> Vec<(u64, Vec<u8>)> {
        match self {
            Memory::Kcore(kcore) => kcore.read(range).map(|bytes| (range.start, bytes)).into_iter().collect(),
            Memory::Pages(pages) => pages.read(range),
        }
    }
}

impl Pages {
    fn has(&self, at: u64) -> bool {
        let page = at - at % PAGE;
        if let Some((_, there)) = self.last.get().filter(|(last, _)| *last == page) {
            return there;
        }
        let there = self.reader.read(page, &mut [0]).is_ok();
        self.last.set(Some((page, there)));
        there
    }

    /// Pages that are not there part what is read.
    fn read(&self, range: &Range<u64>) -> Vec<(u64, Vec<u8>)> {
        let mut pieces: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let end = (at - at % PAGE).saturating_add(PAGE).min(range.end);
            let mut bytes = vec![0; (end - at) as usize];
            if self.reader.read(at, &mut bytes).is_ok() {
                match pieces.last_mut() {
                    Some((start, before)) if *start + before.len() as u64 == at => before.extend(bytes),
                    _ => pieces.push((at, bytes)),
                }
            }
            at = end;
        }
        pieces
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Each second page is there: its bytes are its number, and one more.
    pub(in super::super) struct SecondPages;

    impl ReadsPages for SecondPages {
        fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), Errno> {
            let page = at / PAGE;
            assert_eq!((at + bytes.len() as u64 - 1) / PAGE, page, "of one page");
            bytes.fill(page as u8 | 1);
            if page.is_multiple_of(2) { Ok(()) } else { Err(Errno(libc::EFAULT)) }
        }
    }

    #[test]
    fn pages_that_are_not_there_part_what_is_read() {
        let root = tempfile::tempdir().unwrap();
        let memory = Memory::open(root.path(), || Ok(Box::new(SecondPages))).unwrap();
        let read = |range: Range<u64>| {
            let pieces = memory.read(&range).into_iter();
            pieces.map(|(at, bytes)| (at, bytes.len() as u64, bytes[0])).collect::<Vec<_>>()
        };
        let at = |page: u64| page * PAGE;
        assert_eq!(read(at(2) + 8..at(2) + 16), [(at(2) + 8, 8, 3)]);
        assert_eq!(read(at(2) + 8..at(5)), [(at(2) + 8, PAGE - 8, 3), (at(4), PAGE, 5)]);
        assert_eq!(read(at(3) - 1..at(4) + 1), [(at(3) - 1, 1, 3), (at(4), 1, 5)]);
        assert_eq!(read(at(3)..at(4)), []);
        assert_eq!(
            [at(2), at(3) - 1, at(3), at(4) - 1, at(4)].map(|at| memory.has(at)),
            [true, true, false, false, true]
        );
    }
}
