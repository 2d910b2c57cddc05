//! Where a file describes its restartable sequences (`rseq(2)`).

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use object::read::elf::{ElfFile64, FileHeader};
use object::{Endianness, Object, ObjectSection, ReadCache};

use crate::sys::process::{Mapping, proc_path};

/// File offset and size of the section that describes restartable sequences.
pub(crate) fn section_of_sequences(pid: i32, map: &Mapping) -> Option<(u64, usize)> {
    let path = proc_path(pid as u32).join(format!("map_files/{:x}-{:x}", map.start, map.end));
    let by_name = || File::open(Path::new(OsStr::from_bytes(&map.path)));
    let cache = ReadCache::new(File::open(path).or_else(|_| by_name()).ok()?);
    let elf = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
    elf.elf_header().is_class_64().then_some(())?;
    let section = elf.section_by_name_bytes(b"__rseq_cs")?;
    let (offset, size) = section.file_range()?;
    Some((offset, usize::try_from(size).ok()?))
}
