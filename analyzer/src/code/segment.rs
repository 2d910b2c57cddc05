//! Load segments: where parts of the file lie in memory.

use object::LittleEndian as LE;
use object::elf::{PF_X, PT_LOAD};
use object::read::elf::ProgramHeader;

use super::ImageError;
use crate::address::Svma;

/// The file-backed part of a `PT_LOAD` program header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// `p_vaddr`: the address that the file states for its first byte.
    pub start: Svma,
    /// `p_offset`: where its bytes begin in the file.
    pub file_offset: u64,
    /// `p_filesz` in bytes, cut at the end of the file. `start + size` and `file_offset + size` do not overflow.
    pub size: u64,
    /// `PF_X` is set: code in it can run.
    pub executable: bool,
}

impl Segment {
    /// The address after the last file-backed byte.
    pub fn end(&self) -> Svma {
        Svma(self.start.0 + self.size)
    }

    pub(super) fn offset_of(&self, address: Svma) -> Option<u64> {
        let distance = address.0.checked_sub(self.start.0)?;
        (distance < self.size).then(|| self.file_offset + distance)
    }

    pub(super) fn address_of(&self, offset: u64) -> Option<Svma> {
        let distance = offset.checked_sub(self.file_offset)?;
        (distance < self.size).then(|| Svma(self.start.0 + distance))
    }
}

/// The load segments that have bytes in the file, by address; executable ones are disjoint. What had to be cut or
/// left out is said in `notes`.
pub(super) fn load_segments(
    headers: &[impl ProgramHeader<Endian = LE>],
    file_size: u64,
    notes: &mut Vec<String>,
) -> Result<Vec<Segment>, ImageError> {
    let mut segments = Vec::new();
    for header in headers.iter().filter(|header| header.p_type(LE) == PT_LOAD) {
        let start: u64 = header.p_vaddr(LE).into();
        let file_offset: u64 = header.p_offset(LE).into();
        let stated: u64 = header.p_filesz(LE).into();
        let executable = header.p_flags(LE).contains(PF_X);
        let size = stated.min(file_size.saturating_sub(file_offset)).min(u64::MAX - start);
        if size < stated {
            notes.push(format!(
                "load segment at file offset {file_offset:#x} states {stated} bytes, {size} are in the file"
            ));
        }
        if size > 0 {
            segments.push(Segment { start: Svma(start), file_offset, size, executable });
        }
    }
    segments.sort_by_key(|segment| (segment.start, segment.file_offset, segment.size));
    let mut executable_end = Svma(0);
    segments.retain(|segment| {
        let overlaps = segment.executable && segment.start < executable_end;
        if overlaps {
            notes.push(format!("executable segment at {} overlaps the one before it and is left out", segment.start));
        } else if segment.executable {
            executable_end = segment.end();
        }
        !overlaps
    });
    // Honest files map each byte of code once. Without this rule a small file could state terabytes of code.
    let executable: u64 = segments.iter().filter(|s| s.executable).fold(0, |sum, s| sum.saturating_add(s.size));
    if executable > file_size.saturating_mul(2) {
        return Err(ImageError::ProgramHeaders(format!(
            "{executable} bytes of executable segments in a file of {file_size} bytes"
        )));
    }
    Ok(segments)
}
