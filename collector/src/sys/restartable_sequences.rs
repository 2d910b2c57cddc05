//! Where a file describes its restartable sequences (`rseq(2)`).

use object::read::elf::{ElfFile64, FileHeader};
use object::{Endianness, Object, ObjectSection, ReadCache};

use crate::sys::process::{Mapping, open_mapped};

/// File offset and size of the section that describes restartable sequences.
pub(crate) fn section_of_sequences(pid: i32, map: &Mapping) -> Option<(u64, usize)> {
    let cache = ReadCache::new(open_mapped(pid, map)?);
    let elf = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
    elf.elf_header().is_class_64().then_some(())?;
    let section = elf.section_by_name_bytes(b"__rseq_cs")?;
    let (offset, size) = section.file_range()?;
    Some((offset, usize::try_from(size).ok()?))
}
