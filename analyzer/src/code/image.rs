//! An ELF file opened for analysis.

use std::borrow::Cow;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use formats::file_identity::FileIdentity;
use formats::mapped_files::id_of_bytes;
use iced_x86::Decoder;
use object::LittleEndian as LE;
use object::elf::{
    EM_386, EM_X86_64, ET_CORE, ET_REL, FileHeader32, FileHeader64, FileType, PF_X, PT_GNU_EH_FRAME, PT_LOAD,
};
use object::read::elf::{FileHeader, ProgramHeader};

use super::build_id::build_id;
use super::file_bytes::FileBytes;
use super::section::{Section, sections};
use super::segment::{Segment, load_segments};
use super::{Bitness, ImageError};
use crate::address::Svma;
use crate::build_id::BuildId;

/// An ELF file for x86-64, x32 or i386, opened for analysis.
///
/// Opening reads headers only; symbols, unwind tables and code are read when a [`FunctionTable`](super::FunctionTable) or
/// [`BlockMap`](super::BlockMap) needs them. The file must not change meanwhile: what can no longer be read counts as
/// undecodable.
#[derive(Clone, Debug)]
pub struct Image {
    bytes: Arc<FileBytes>,
    bitness: Bitness,
    address_bytes: u8,
    file_type: FileType,
    /// Where the section headers end.
    headers_end: u64,
    pub(super) identity: Option<FileIdentity>,
    segments: Vec<Segment>,
    /// The executable ones of `segments`: disjoint, by address.
    code: Vec<Segment>,
    sections: Vec<Section>,
    pub(super) build_id: Option<BuildId>,
    base: Svma,
    entry: Svma,
    eh_frame_header: Option<Svma>,
    /// Offset and size of code that is not in the file, if none is.
    missing_code: Option<(u64, u64)>,
    notes: Vec<String>,
}

impl Image {
    /// The largest file that is analyzed, in bytes: 4 GiB.
    pub const MAX_BYTES: u64 = 1 << 32;

    /// Opens an ELF file and reads what is known of its code.
    ///
    /// # Errors
    /// The file cannot be read, is larger than [`Self::MAX_BYTES`], or [`Self::parse`] refuses it.
    pub fn open(path: &Path) -> Result<Self, ImageError> {
        let (bytes, identity) = open(path)?;
        Ok(Self { identity: Some(identity), ..Self::of_program(bytes)? })
    }

    /// Parses the bytes of a file.
    ///
    /// # Errors
    /// The bytes are not a little-endian ELF file for x86-64, x32 or i386, its program headers do not fit in the file or state
    /// more code than the file can hold, or the bytes end before the first byte of code.
    /// Other damage is survived and told by [`Self::notes`].
    pub fn parse(bytes: Vec<u8>) -> Result<Self, ImageError> {
        Self::parse_shared(bytes.into())
    }

    /// Parses the bytes of a file that others have, too.
    pub(crate) fn parse_shared(bytes: Arc<[u8]>) -> Result<Self, ImageError> {
        Self::of_program(FileBytes::of_memory(bytes))
    }

    /// Reads a separate debug file (as `objcopy --only-keep-debug` makes them): symbols without code.
    ///
    /// # Errors
    /// As for [`Self::open`], except that code may be missing.
    pub fn open_debug(path: &Path) -> Result<Self, ImageError> {
        let (bytes, identity) = open(path)?;
        Ok(Self { identity: Some(identity), ..Self::parse_headers(bytes)? })
    }

    /// Its bytes, if they are in memory: it is a copy of what ran, or was made of a file.
    pub fn bytes_in_memory(&self) -> Option<&[u8]> {
        self.bytes.in_memory()
    }

    /// Its bytes, all of which are read and stay in memory: for copies of what ran. None if they cannot be read.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get_up_to(0, self.bytes.length())
    }

    /// Which file it is, in the state before anything of it was read; `None` for bytes in memory.
    pub fn identity(&self) -> Option<FileIdentity> {
        self.identity
    }

    /// The same, made of what this file has.
    pub(crate) fn of_file(self, identity: FileIdentity) -> Self {
        Self { identity: Some(identity), ..self }
    }

    /// Whether its code is of 32 or 64 bits.
    pub fn bitness(&self) -> Bitness {
        self.bitness
    }

    /// Bytes of the addresses that the file states: 4 where its class is 32 (i386 and x32), or else 8.
    pub fn address_bytes(&self) -> u8 {
        self.address_bytes
    }

    /// The build id: 20 bytes as a rule, other lengths are possible.
    pub fn build_id(&self) -> Option<&BuildId> {
        self.build_id.as_ref()
    }

    /// Whether it is the file with this id: its build id, or, where it has none, that of its bytes, all of which are read then.
    pub fn is_of(&self, id: &BuildId) -> bool {
        match &self.build_id {
            Some(own) => own == id,
            None => id.is_of_bytes() && id_of_bytes(self.bytes.reader()).is_ok_and(|own| own == id.as_bytes()),
        }
    }

    /// The address that the byte at a file offset has when it is mapped as code: by the *executable* load segment that
    /// holds the offset. `None` if no executable segment does.
    ///
    /// A page of the file that two segments share is mapped twice; only the segment that really holds the offset
    /// counts, not its neighbour on the same page:
    /// ```text
    /// file offset  0x0000        0x06b8 0x06c0         0x1000
    ///              |-- R ------------|  |-- R E ----------
    /// mapping 1    [ pgoff 0, r-- at +0x0000 ............ ]
    /// mapping 2    [ pgoff 0, r-x at +0x1000 ............ ]      offset 0x700 -> 0x1700
    /// ```
    pub fn svma_of_file_offset(&self, offset: u64) -> Option<Svma> {
        self.executable_segments().find_map(|segment| segment.address_of(offset))
    }

    /// The file offset of an address' byte. Executable segments are asked first.
    pub fn file_offset_of_svma(&self, address: Svma) -> Option<u64> {
        self.segment_of(address).and_then(|segment| segment.offset_of(address))
    }

    /// Whether the address lies in the file-backed part of an executable segment.
    pub fn is_executable(&self, address: Svma) -> bool {
        self.segment_of(address).is_some_and(|segment| segment.executable)
    }

    /// The `len` bytes from `start`. `None` unless one segment holds them all.
    pub fn bytes_at(&self, start: Svma, len: u64) -> Option<&[u8]> {
        let segment = self.segment_of(start)?;
        let end = start.0.checked_add(len)?;
        (end <= segment.end().0).then_some(())?;
        self.bytes.get(segment.offset_of(start)?, len)
    }

    /// At most `len` bytes from `start`, fewer at the end of the segment that holds it, none outside of all.
    pub fn bytes_up_to(&self, start: Svma, len: u64) -> &[u8] {
        self.bytes_at(start, self.size_up_to(start, len)).unwrap_or_default()
    }

    /// How many bytes [`Self::bytes_up_to`] has, without reading them.
    pub(crate) fn size_up_to(&self, start: Svma, len: u64) -> u64 {
        self.segment_of(start).map_or(0, |segment| segment.end().0 - start.0).min(len)
    }

    /// Decodes at most `size` bytes from `start`: those of [`Self::bytes_up_to`].
    pub fn decoder(&self, start: Svma, size: u64) -> Decoder<'_> {
        self.bitness.decoder(self.bytes_up_to(start, size), start)
    }

    /// The address that the file has at an address.
    pub(super) fn address_at(&self, place: Svma) -> Option<Svma> {
        match *self.bytes_at(place, self.address_bytes.into())? {
            [a, b, c, d] => Some(Svma(u32::from_le_bytes([a, b, c, d]).into())),
            ref bytes => Some(Svma(u64::from_le_bytes(bytes.try_into().ok()?))),
        }
    }

    /// `_GLOBAL_OFFSET_TABLE_`: what position-independent code of 32 bits has in a register.
    pub(super) fn global_offset_table(&self) -> Option<Svma> {
        self.section(".got.plt").or_else(|| self.section(".got")).map(|section| section.start)
    }

    /// The lowest address of any load segment, rounded down to a page (4,096 bytes): what the load address of
    /// a running program is compared with.
    pub fn base_vaddr(&self) -> Svma {
        self.base
    }

    /// `e_entry`: where the program starts; 0 for none.
    pub fn entry(&self) -> Svma {
        self.entry
    }

    /// Load segments with bytes in the file, by address. Executable ones are disjoint.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Sections by index; empty when the file has no (usable) section headers.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Whether it is a core file: memory of something that ran, not a program.
    pub fn is_core(&self) -> bool {
        self.file_type == ET_CORE
    }

    /// Whether it is relocatable: an object file, or a module of the kernel. It has no addresses.
    pub fn is_relocatable(&self) -> bool {
        self.file_type == ET_REL
    }

    /// What was damaged or odd about the file, but survivable.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The file's length in bytes.
    pub fn length(&self) -> u64 {
        self.bytes.length()
    }

    /// Where the last of its sections, or their headers, ends: a file of fewer bytes was cut.
    pub fn expected_length(&self) -> u64 {
        let sections = self.sections.iter().filter(|section| section.has_bytes());
        sections.map(|section| section.file_offset.saturating_add(section.size)).fold(self.headers_end, u64::max)
    }

    pub(super) fn shared_bytes(&self) -> Arc<FileBytes> {
        Arc::clone(&self.bytes)
    }

    pub(super) fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// The section's bytes, cut at the end of the file.
    pub(super) fn section_bytes(&self, section: &Section) -> Cow<'_, [u8]> {
        self.bytes.copy_up_to(section.file_offset, if section.has_bytes() { section.size } else { 0 })
    }

    pub(super) fn executable_segments(&self) -> impl Iterator<Item = &Segment> {
        self.code.iter()
    }

    pub(super) fn eh_frame_header(&self) -> Option<Svma> {
        self.eh_frame_header
    }

    fn of_program(bytes: FileBytes) -> Result<Self, ImageError> {
        let mut image = Self::parse_headers(bytes)?;
        if image.code.is_empty() {
            image.notes.push("the file has no executable load segment".to_owned());
        }
        if let Some((offset, size)) = image.missing_code {
            let file = image.bytes.length();
            return Err(ImageError::Truncated { what: "executable segment", offset, size, file });
        }
        Ok(image)
    }

    pub(super) fn parse_headers(bytes: FileBytes) -> Result<Self, ImageError> {
        let file_size = bytes.length();
        if file_size > Self::MAX_BYTES {
            return Err(ImageError::TooLarge { bytes: file_size, limit: Self::MAX_BYTES });
        }
        match class(&bytes)? {
            Class::Elf32 => Self::parse_class::<FileHeader32<LE>>(bytes),
            Class::Elf64 => Self::parse_class::<FileHeader64<LE>>(bytes),
        }
    }

    fn parse_class<Elf: FileHeader<Endian = LE>>(bytes: FileBytes) -> Result<Self, ImageError> {
        let file_size = bytes.length();
        let size = size_of::<Elf>() as u64;
        let header = Elf::parse(&bytes).map_err(|_| ImageError::header_truncated(size, file_size))?;
        let bitness = match header.e_machine(LE) {
            EM_X86_64 => Bitness::Bits64,
            EM_386 if header.is_class_32() => Bitness::Bits32,
            other => return Err(ImageError::Machine(other.0)),
        };
        let mut notes = Vec::new();
        let program_headers = header.program_headers(LE, &bytes).map_err(|error| {
            ImageError::ProgramHeaders(format!(
                "{error} ({} entries of {} bytes at {:#x} in a file of {file_size} bytes)",
                header.e_phnum(LE),
                header.e_phentsize(LE),
                header.e_phoff(LE).into()
            ))
        })?;
        let segments = load_segments(program_headers, file_size, &mut notes)?;
        let load = program_headers.iter().filter(|header| header.p_type(LE) == PT_LOAD);
        let base = load.map(|header| header.p_vaddr(LE).into()).min().unwrap_or(0);
        let frame = program_headers.iter().find(|header| header.p_type(LE) == PT_GNU_EH_FRAME);
        let section_headers = u64::from(header.e_shnum(LE)) * u64::from(header.e_shentsize(LE));
        Ok(Self {
            bitness,
            address_bytes: if header.is_class_32() { 4 } else { 8 },
            file_type: header.e_type(LE),
            headers_end: header.e_shoff(LE).into().saturating_add(section_headers),
            missing_code: missing_code(program_headers, &segments),
            code: segments.iter().filter(|segment| segment.executable).copied().collect(),
            segments,
            sections: sections(header, &bytes, &mut notes),
            build_id: build_id(header, program_headers, &bytes),
            base: Svma(base & !0xfff),
            entry: Svma(header.e_entry(LE).into()),
            eh_frame_header: frame.map(|header| Svma(header.p_vaddr(LE).into())),
            notes,
            identity: None,
            bytes: Arc::new(bytes),
        })
    }

    fn segment_of(&self, address: Svma) -> Option<&Segment> {
        // Executable ones win where damaged headers overlap.
        let after = self.code.partition_point(|segment| segment.start <= address);
        let code = after.checked_sub(1).and_then(|index| self.code.get(index));
        let holds = |segment: &&Segment| segment.offset_of(address).is_some();
        code.filter(holds).or_else(|| self.segments.iter().find(holds))
    }
}

/// `e_ident[EI_CLASS]`.
enum Class {
    Elf32,
    Elf64,
}

fn class(bytes: &FileBytes) -> Result<Class, ImageError> {
    let ident = bytes.get_up_to(0, 7);
    if !ident.starts_with(b"\x7fELF") {
        return Err(ImageError::NotElf(ident.iter().take(4).copied().collect()));
    }
    match *ident {
        [_, _, _, _, 1, 1, 1] => Ok(Class::Elf32),
        [_, _, _, _, 2, 1, 1] => Ok(Class::Elf64),
        [_, _, _, _, class, data, version] => Err(ImageError::Ident { class, data, version }),
        _ => Err(ImageError::header_truncated(size_of::<FileHeader64<LE>>() as u64, bytes.length())),
    }
}

/// The file range of the first executable segment that has no byte at all in the file, if no other has any.
fn missing_code(headers: &[impl ProgramHeader<Endian = LE>], segments: &[Segment]) -> Option<(u64, u64)> {
    if segments.iter().any(|segment| segment.executable) {
        return None;
    }
    let code = headers.iter().filter(|header| header.p_type(LE) == PT_LOAD && header.p_flags(LE).contains(PF_X));
    code.map(|header| (header.p_offset(LE).into(), header.p_filesz(LE).into())).find(|&(_, size)| size > 0)
}

pub(super) fn open(path: &Path) -> Result<(FileBytes, FileIdentity), ImageError> {
    let wrap = |source| ImageError::Read { path: path.to_owned(), source };
    let metadata = std::fs::metadata(path).map_err(wrap)?;
    // Asked before opening: opening a pipe waits for its other end.
    if !metadata.is_file() {
        return Err(ImageError::NotAFile(path.to_owned()));
    }
    let file = File::open(path).map_err(wrap)?;
    let metadata = file.metadata().map_err(wrap)?;
    let length = metadata.len();
    if length > Image::MAX_BYTES {
        return Err(ImageError::TooLarge { bytes: length, limit: Image::MAX_BYTES });
    }
    Ok((FileBytes::of_file(file, length), FileIdentity::of(&metadata)))
}
