//! The kernel's memory as the ELF file `/proc/kcore`: headers, and bytes at addresses.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::session::record_layout::word;

const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
/// `PT_LOAD`.
const LOAD: u64 = 1;

/// The file, open, and where which addresses are in it.
#[derive(Debug)]
pub(crate) struct Kcore {
    file: File,
    /// Addresses, and the offset of the first.
    segments: Vec<(Range<u64>, u64)>,
}

impl Kcore {
    /// Opens it, and reads its headers. Linux asks for `CAP_SYS_RAWIO`.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let mut header = [0; HEADER];
        file.read_exact_at(&mut header, 0)?;
        let invalid = || io::Error::new(io::ErrorKind::InvalidData, "no ELF file of 64 bits");
        if !header.starts_with(b"\x7fELF\x02\x01\x01") {
            return Err(invalid());
        }
        let half = |at: usize| header.get(at..at + 2).map(|half| usize::from(u16::from_le_bytes([half[0], half[1]])));
        let (Some(at), Some(PROGRAM_HEADER), Some(number)) = (word(&header, 32), half(54), half(56)) else {
            return Err(invalid());
        };
        let mut headers = vec![0; number * PROGRAM_HEADER];
        file.read_exact_at(&mut headers, at)?;
        // Type and flags, offset, address, physical address, size in the file.
        let segment = |header: &[u8]| {
            let (kind, offset, start, size) =
                (word(header, 0)?, word(header, 8)?, word(header, 16)?, word(header, 32)?);
            let ends = start.checked_add(size).zip(offset.checked_add(size));
            ends.filter(|_| kind as u32 == LOAD as u32).map(|(end, _)| (start..end, offset))
        };
        let segments = headers.chunks_exact(PROGRAM_HEADER).filter_map(segment).collect();
        Ok(Self { file, segments })
    }

    /// Whether something is at the address.
    pub fn has(&self, at: u64) -> bool {
        self.segments.iter().any(|(addresses, _)| addresses.contains(&at))
    }

    /// The bytes at these addresses, as far as one segment has them from the first on; `None` if they cannot be read.
    pub fn read(&self, range: &Range<u64>) -> Option<Vec<u8>> {
        let (addresses, offset) = self.segments.iter().find(|(addresses, _)| addresses.contains(&range.start))?;
        let size = range.end.min(addresses.end).checked_sub(range.start)?;
        let mut bytes = vec![0; usize::try_from(size).ok()?];
        self.file.read_exact_at(&mut bytes, offset + (range.start - addresses.start)).ok()?;
        Some(bytes)
    }
}

/// Such a file of these bytes.
#[cfg(test)]
pub(super) fn elf(parts: &[(u64, &[u8])]) -> Vec<u8> {
    let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
    elf.resize(16, 0);
    elf.extend([4_u16, 62].map(u16::to_le_bytes).as_flattened()); // a core file for x86-64
    elf.extend(1_u32.to_le_bytes());
    elf.extend([0_u64, HEADER as u64, 0].map(u64::to_le_bytes).as_flattened());
    elf.extend(0_u32.to_le_bytes());
    elf.extend(
        [HEADER as u16, PROGRAM_HEADER as u16, parts.len() as u16, 0, 0, 0].map(u16::to_le_bytes).as_flattened(),
    );
    let mut offset = (HEADER + PROGRAM_HEADER * parts.len()) as u64;
    for (start, bytes) in parts {
        let size = bytes.len() as u64;
        elf.extend([LOAD | 7 << 32, offset, *start, 0, size, size, 4096].map(u64::to_le_bytes).as_flattened());
        offset += size;
    }
    parts.iter().for_each(|(_, bytes)| elf.extend_from_slice(bytes));
    elf
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(bytes: &[u8]) -> io::Result<Kcore> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        Kcore::open(file.path())
    }

    #[test]
    fn bytes_are_found_by_address() {
        let kcore = open(&elf(&[(0x1000, b"abcd"), (u64::MAX - 4, b"wxyz")])).unwrap();
        assert_eq!(kcore.read(&(0x1001..0x1003)), Some(b"bc".to_vec()));
        assert_eq!(kcore.read(&(0x1002..0x9000)), Some(b"cd".to_vec()));
        assert_eq!(kcore.read(&(u64::MAX - 2..u64::MAX)), Some(b"yz".to_vec()));
        assert_eq!((kcore.read(&(0x1004..0x1005)), kcore.has(0xfff), kcore.has(0x1003)), (None, false, true));
    }

    #[test]
    fn damaged_headers_are_errors_or_say_nothing() {
        let whole = elf(&[(0x1000, b"abcd")]);
        for cut in 0..HEADER + PROGRAM_HEADER {
            assert!(open(&whole[..cut]).is_err(), "{cut}");
        }
        for at in 0..HEADER + PROGRAM_HEADER {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                if let Ok(kcore) = open(&damaged) {
                    let _ = (kcore.has(0x1001), kcore.read(&(0x1001..0x1003)));
                }
            }
        }
    }
}
