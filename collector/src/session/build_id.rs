//! Build ids of the files that code ran from, read when the recording ends.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{Read, Seek};

use formats::mapped_files::id_of_bytes;
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader, SectionHeader};
use object::{Endianness, FileKind, Object, ReadCache, ReadRef, elf};
use perfdata::{BuildId, BuildIdEntry};

use crate::session::vdso::vdso;

/// `misc` of an entry: kernel, user.
const KERNEL: u16 = 1;
const USER: u16 = 2;

/// The ids of the mapped files, by path, the kernel's first. `mapped`: the id of each path, if all mappings of it have the same.
pub(crate) fn build_ids(mapped: &HashMap<Vec<u8>, Option<Vec<u8>>>, with_kernel: bool) -> Vec<BuildIdEntry> {
    let entry = |misc: u16, path: &[u8], mut build_id: Vec<u8>| {
        // `mold --build-id=sha256` makes 32 bytes.
        build_id.truncate(BuildId::MOST);
        BuildIdEntry { misc, pid: -1, build_id, path: path.to_vec() }
    };
    let mut entries = Vec::new();
    if with_kernel {
        let notes = fs::read("/sys/kernel/notes").ok().and_then(|notes| note_build_id(&notes));
        entries.extend(notes.map(|id| entry(KERNEL, b"[kernel.kallsyms]", id)));
        entries.extend(module_ids().into_iter().map(|(name, id)| entry(KERNEL, name.as_bytes(), id)));
    }
    let mut paths: Vec<_> = mapped.iter().collect();
    paths.sort_by_key(|(path, _)| *path);
    for (path, id) in paths {
        let id = if path == b"[vdso]" { vdso_build_id() } else { id.clone() };
        entries.extend(id.map(|id| entry(USER, path, id)));
    }
    entries
}

/// The id of an ELF file: its build id, or one of its bytes.
pub(crate) fn id_of_file(file: &File) -> Option<Vec<u8>> {
    /// Bytes at the beginning of a file: in most, headers and notes are there.
    const HEAD: usize = 4096;
    /// Bytes of a file without a build id that is read.
    const MOST: u64 = 1 << 30;
    let (mut begin, mut head) = (file, Vec::with_capacity(HEAD));
    begin.rewind().ok()?;
    begin.take(HEAD as u64).read_to_end(&mut head).ok()?;
    let build_id = match FileKind::parse(&*head).ok()? {
        FileKind::Elf32 => build_id::<elf::FileHeader32<Endianness>>(&head, file),
        FileKind::Elf64 => build_id::<elf::FileHeader64<Endianness>>(&head, file),
        _ => return None,
    };
    if let Some(id) = build_id.filter(|id| id.iter().any(|byte| *byte != 0)) {
        return Some(id);
    }
    let (length, mut file) = (file.metadata().ok()?.len(), file);
    file.rewind().ok()?;
    if length <= MOST { Some(id_of_bytes(file).ok()?.to_vec()) } else { None }
}

/// The build id of a file, from its first bytes if it is there.
fn build_id<Elf: FileHeader<Endian = Endianness>>(head: &[u8], file: &File) -> Option<Vec<u8>> {
    elf_build_id::<Elf, _>(head).or_else(|| elf_build_id::<Elf, _>(&ReadCache::new(file)))
}

/// From the notes alone: to parse the file as a whole would be to read its symbols.
fn elf_build_id<'data, Elf: FileHeader<Endian = Endianness>, R: ReadRef<'data>>(data: R) -> Option<Vec<u8>> {
    let header = Elf::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let id = |mut notes: NoteIterator<'data, Elf>| {
        while let Ok(Some(note)) = notes.next() {
            if note.name() == elf::ELF_NOTE_GNU && note.n_type(endian) == elf::NT_GNU_BUILD_ID {
                return Some(note.desc().to_vec());
            }
        }
        None
    };
    let segments = header.program_headers(endian, data).unwrap_or_default();
    let of_segments = segments.iter().find_map(|segment| id(segment.notes(endian, data).ok()??));
    of_segments.or_else(|| {
        let sections = header.section_headers(endian, data).ok()?;
        sections.iter().find_map(|section| id(section.notes(endian, data).ok()??))
    })
}

/// The vDSO is the same in all processes: this one's will do.
fn vdso_build_id() -> Option<Vec<u8>> {
    let id = object::File::parse(vdso()?).ok()?.build_id().ok()??.to_vec();
    Some(id)
}

/// Those of the modules that were loaded: `/sys/module` has what is built in, too.
fn module_ids() -> Vec<(String, Vec<u8>)> {
    let list = fs::read_to_string("/proc/modules").unwrap_or_default();
    let id = |module: &str| {
        let notes = fs::read(format!("/sys/module/{module}/notes/.note.gnu.build-id")).ok()?;
        Some((format!("[{module}]"), note_build_id(&notes)?))
    };
    let mut ids: Vec<_> = list.lines().filter_map(|line| id(line.split(' ').next()?)).collect();
    ids.sort();
    ids
}

/// The GNU build id among ELF notes: sizes of name and description, type (3), name `GNU`, description; each padded to four bytes.
fn note_build_id(mut notes: &[u8]) -> Option<Vec<u8>> {
    const NT_GNU_BUILD_ID: u32 = 3;
    loop {
        let (header, rest) = notes.split_first_chunk::<12>()?;
        let field = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let (name_size, size, kind) = (field(0) as usize, field(4) as usize, field(8));
        let name = rest.get(..name_size)?;
        let rest = rest.get(name_size.checked_next_multiple_of(4)?..)?;
        let description = rest.get(..size)?;
        if kind == NT_GNU_BUILD_ID && name == b"GNU\0" {
            return Some(description.to_vec());
        }
        notes = rest.get(size.checked_next_multiple_of(4)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::io::Write;
    use std::os::unix::ffi::OsStrExt;

    use formats::mapped_files::is_id_of_bytes;

    use super::*;
    use crate::sys::process::mappings;

    fn note(kind: u32, name: &[u8], description: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [name.len() as u32, description.len() as u32, kind] {
            bytes.extend(number.to_le_bytes());
        }
        for part in [name, description] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    /// A 64-bit program whose only segment is a note.
    fn elf_with_note(note: &[u8]) -> Vec<u8> {
        let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
        elf.resize(16, 0);
        elf.extend([2_u16, 62].map(u16::to_le_bytes).as_flattened()); // an executable for x86-64
        elf.extend(1_u32.to_le_bytes());
        elf.extend([0_u64, 64, 0].map(u64::to_le_bytes).as_flattened()); // entry, program headers, sections
        elf.extend(0_u32.to_le_bytes());
        elf.extend([64_u16, 56, 1, 64, 0, 0].map(u16::to_le_bytes).as_flattened());
        elf.extend([4_u32, 4].map(u32::to_le_bytes).as_flattened()); // a note, readable
        let size = note.len() as u64;
        elf.extend([120, 120, 120, size, size, 4].map(u64::to_le_bytes).as_flattened());
        elf.extend(note);
        elf
    }

    #[test]
    fn notes() {
        let notes = [note(6, b"Linux\0", &[1, 2, 3]), note(3, b"Xen\0", &[9; 8]), note(3, b"GNU\0", &[7; 20])].concat();
        assert_eq!(note_build_id(&notes), Some(vec![7; 20]));
        for cut in 0..notes.len() {
            assert_eq!(note_build_id(&notes[..cut]), None, "{cut}");
        }
        assert_eq!(note_build_id(&[0xff; 64]), None);
    }

    #[test]
    fn a_long_build_id_is_cut_to_what_a_recording_keeps() {
        let id: Vec<u8> = (1..=32).collect();
        let ids = build_ids(&HashMap::from([(b"/x".to_vec(), Some(id.clone())), (b"/y".to_vec(), None)]), false);
        assert_eq!(ids.iter().map(|entry| entry.build_id.as_slice()).collect::<Vec<_>>(), [&id[..BuildId::MOST]]);
    }

    #[test]
    fn ids_of_files() {
        let of = |bytes: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            id_of_file(&file)
        };
        assert_eq!(of(&elf_with_note(&note(3, b"GNU\0", &[7; 20]))), Some(vec![7; 20]));
        let without = of(&elf_with_note(&note(1, b"GNU\0", &[7; 20]))).unwrap();
        assert!(is_id_of_bytes(&without));
        assert_ne!(Some(without), of(&elf_with_note(&note(1, b"GNU\0", &[8; 20]))));
        assert_eq!(of(b"#!/bin/sh"), None);
        // What strips and edits files may move the notes to their end.
        let mut at_end = elf_with_note(&[0; 24]);
        let note = note(3, b"GNU\0", &[7; 20]);
        let (place, size) = (1_u64 << 16, note.len() as u64);
        at_end[72..112].copy_from_slice([place, place, place, size, size].map(u64::to_le_bytes).as_flattened());
        at_end.resize(place as usize, 0);
        at_end.extend(note);
        assert_eq!(of(&at_end), Some(vec![7; 20]));
    }

    #[test]
    fn files_of_this_process() {
        let pid = std::process::id();
        let mapped = mappings(pid).into_iter().filter(|map| map.prot & 4 != 0);
        let id = |path: &[u8]| id_of_file(&File::open(OsStr::from_bytes(path)).ok()?);
        let mapped: HashMap<Vec<u8>, Option<Vec<u8>>> = mapped.map(|map| (map.path.clone(), id(&map.path))).collect();
        let ids = build_ids(&mapped, false);
        let libc = ids.iter().find(|entry| entry.path.ends_with(b"libc.so.6")).expect("libc has a build id");
        assert_eq!((libc.misc, libc.pid, libc.build_id.len()), (USER, -1, 20));
        assert!(ids.iter().any(|entry| entry.path == b"[vdso]"), "{ids:?}");
        assert!(ids.is_sorted_by_key(|entry| &entry.path));
    }
}
