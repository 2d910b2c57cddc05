//! The `NT_GNU_BUILD_ID` note.

use std::ops::Range;

use object::LittleEndian as LE;
use object::elf::{FileHeader64, NT_GNU_BUILD_ID, ProgramHeader64};
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader, SectionHeader};

/// Where in `bytes` the build-id lies. Note segments are asked first (they are what the kernel reads), then note
/// sections (all that a separate debug file has).
pub(super) fn build_id(
    header: &FileHeader64<LE>,
    program_headers: &[ProgramHeader64<LE>],
    bytes: &[u8],
) -> Option<Range<usize>> {
    let in_segments = program_headers.iter().filter_map(|segment| segment.notes(LE, bytes).ok().flatten());
    let sections = header.section_headers(LE, bytes).unwrap_or_default();
    let in_sections = sections.iter().filter_map(|section| section.notes(LE, bytes).ok().flatten());
    let id = in_segments.chain(in_sections).find_map(in_notes)?;
    let start = (id.as_ptr() as usize).checked_sub(bytes.as_ptr() as usize)?;
    Some(start..start + id.len())
}

fn in_notes<'data>(mut notes: NoteIterator<'data, FileHeader64<LE>>) -> Option<&'data [u8]> {
    while let Ok(Some(note)) = notes.next() {
        if note.name() == b"GNU" && note.n_type(LE) == NT_GNU_BUILD_ID && !note.desc().is_empty() {
            return Some(note.desc());
        }
    }
    None
}
