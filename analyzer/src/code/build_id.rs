//! The `NT_GNU_BUILD_ID` note.

use object::LittleEndian as LE;
use object::elf::{NT_GNU_BUILD_ID, PT_NOTE, SHT_NOTE};
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader, SectionHeader};

use super::file_bytes::FileBytes;
use crate::build_id::BuildId;

/// Longest list of notes that is looked through, in bytes, and most lists: a damaged file can state the whole of itself as notes,
/// many times. Lists with a build-id have some hundred bytes.
const LONGEST: u64 = 1 << 14;
const MOST: usize = 64;

/// The build-id. Note segments are asked first (they are what the kernel reads), then note
/// sections (all that a separate debug file has).
pub(super) fn build_id<Elf: FileHeader<Endian = LE>>(
    header: &Elf,
    program_headers: &[Elf::ProgramHeader],
    bytes: &FileBytes,
) -> Option<BuildId> {
    let segments = program_headers
        .iter()
        .filter(|segment| segment.p_filesz(LE).into() <= LONGEST && segment.p_type(LE) == PT_NOTE)
        .take(MOST);
    let in_segments = segments.filter_map(|segment| segment.notes(LE, bytes).ok().flatten());
    let sections = header.section_headers(LE, bytes).unwrap_or_default();
    let sections =
        sections.iter().filter(|section| section.sh_size(LE).into() <= LONGEST && section.sh_type(LE) == SHT_NOTE);
    let in_sections = sections.take(MOST).filter_map(|section| section.notes(LE, bytes).ok().flatten());
    in_segments.chain(in_sections).find_map(in_notes)
}

fn in_notes(mut notes: NoteIterator<'_, impl FileHeader<Endian = LE>>) -> Option<BuildId> {
    while let Ok(Some(note)) = notes.next() {
        if note.name() == b"GNU"
            && note.n_type(LE) == NT_GNU_BUILD_ID
            && let Some(id) = BuildId::new(note.desc())
        {
            return Some(id);
        }
    }
    None
}
