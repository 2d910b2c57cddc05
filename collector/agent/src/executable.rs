//! The recorder's own executable, as far as an image is made of it.

use std::fs::File;
use std::ops::{Deref, Range};
use std::os::unix::fs::FileExt;
use std::ptr;

use object::Endianness;
use object::elf;
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader, Rela, SectionHeader, Sym};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::image::ImageError;

type Header = elf::FileHeader64<Endianness>;
const PAGE: u64 = 4096;

/// What of the executable is loaded, and what has to be put where.
pub(crate) struct Executable {
    pub(crate) file: File,
    /// Code and constants, which are mapped from the file,
    pub(crate) fixed: Vec<Segment>,
    /// and data, which is copied.
    changing: Vec<Segment>,
    /// The initial thread-local variables: where they are stated to be, bytes in the file, bytes in memory, alignment.
    pub(crate) tls: Tls,
    bytes: FileBytes,
    /// Where constants and code end and data begins, a multiple of a page.
    pub(crate) data: u64,
    /// Where it all ends.
    pub(crate) end: u64,
}

/// A loaded part of the file.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) offset: u64,
    /// Relative to the start.
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) is_code: bool,
}

impl Segment {
    /// In whole pages, as it can be mapped.
    fn paged(self) -> Self {
        let before = self.address % PAGE;
        let bytes = (self.bytes + before).next_multiple_of(PAGE);
        Self { offset: self.offset - before, address: self.address - before, bytes, ..self }
    }
}

/// The thread-local variables of a new thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tls {
    pub(crate) initial: Vec<u8>,
    /// Bytes in memory, rounded up to the alignment.
    pub(crate) bytes: u64,
}

/// What is written to a word.
pub(crate) enum Value<'data> {
    /// An address of the executable, relative to the start.
    Own(u64),
    /// A function of a library, by its name.
    Import(&'data [u8]),
}

/// A file, mapped: most of it is never looked at, and what is has been read when this process began.
struct FileBytes {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: memory that nobody writes to.
unsafe impl Send for FileBytes {}
// SAFETY: as above.
unsafe impl Sync for FileBytes {}

impl FileBytes {
    fn of(file: &File) -> std::io::Result<Self> {
        let bytes = usize::try_from(file.metadata()?.len()).map_err(|_| std::io::ErrorKind::FileTooLarge)?;
        // SAFETY: a new mapping changes no memory that is in use.
        let start = unsafe { mmap(ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::PRIVATE, file, 0) }?;
        Ok(Self { start: start.cast(), bytes })
    }
}

impl Deref for FileBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: mapped as long as this lives. The kernel lets nobody write to an executable that runs.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }
}

impl Drop for FileBytes {
    fn drop(&mut self) {
        // SAFETY: what `of` has mapped; nothing refers to it any more.
        let _ = unsafe { munmap(self.start.cast(), self.bytes) };
    }
}

fn bad(why: &'static str) -> ImageError {
    ImageError::Executable(why.to_owned())
}

impl Executable {
    /// That of this process.
    pub(crate) fn own() -> Result<Self, ImageError> {
        let io = |error: std::io::Error| ImageError::Executable(error.to_string());
        let file = File::open("/proc/self/exe").map_err(io)?;
        let bytes = FileBytes::of(&file).map_err(io)?;
        Ok(Self::read(file, bytes)?)
    }

    fn read(file: File, bytes: FileBytes) -> Result<Self, Problem> {
        let data: &[u8] = &bytes;
        let elf = ElfFile64::<Endianness, &[u8]>::parse(data)?;
        let endian = elf.endian();
        let header: &Header = elf.elf_header();
        if header.e_machine.get(endian) != elf::EM_X86_64 || header.e_type.get(endian) != elf::ET_DYN {
            return Err(bad("it is no position-independent executable for x86-64").into());
        }
        let program_headers = header.program_headers(endian, data)?;
        let (mut fixed, mut changing, mut tls) = (Vec::new(), Vec::new(), Tls::default());
        let (mut fixed_end, mut data_start, mut end) = (0_u64, u64::MAX, 0_u64);
        for segment in program_headers {
            let range = address_range(segment, endian);
            match segment.p_type(endian) {
                elf::PT_LOAD => {
                    let (offset, bytes) = segment.file_range(endian);
                    let has = |flag| segment.p_flags(endian) & flag != elf::ProgramFlags(0);
                    let part = Segment { offset, address: range.start, bytes, is_code: has(elf::PF_X) };
                    end = end.max(range.end);
                    if has(elf::PF_W) {
                        data_start = data_start.min(range.start);
                        changing.push(part);
                    } else if offset % PAGE == range.start % PAGE {
                        fixed_end = fixed_end.max(range.end);
                        fixed.push(part.paged());
                    } else {
                        return Err(bad("a segment cannot be mapped").into());
                    }
                }
                elf::PT_TLS => {
                    let align = segment.p_align(endian).max(1);
                    let initial = segment.data(endian, data).unwrap_or_default().to_vec();
                    tls = Tls { initial, bytes: segment.p_memsz(endian).next_multiple_of(align) };
                }
                _ => {}
            }
        }
        let data_page = data_start / PAGE * PAGE;
        if fixed_end > data_page || end == 0 {
            return Err(bad("its data does not follow its code on pages of its own").into());
        }
        Ok(Self { file, fixed, changing, tls, bytes, data: data_page, end: end.next_multiple_of(PAGE) })
    }

    /// Copies its data to `memory`, which is zero, begins at [`Self::data`] and is as long as all of it.
    pub(crate) fn load(&self, memory: &mut [u8]) -> Result<(), ImageError> {
        for segment in &self.changing {
            let start = (segment.address - self.data) as usize;
            let range = start..start + segment.bytes as usize;
            let bytes = memory.get_mut(range).ok_or_else(|| bad("a segment is longer than it says"))?;
            self.file
                .read_exact_at(bytes, segment.offset)
                .map_err(|error| ImageError::Executable(error.to_string()))?;
        }
        Ok(())
    }

    /// Calls `write` with the words that depend on where it is: the address of each, relative to the start, and what is there.
    ///
    /// # Errors
    /// Its relocations are not as expected, or what `write` says.
    pub(crate) fn relocate(
        &self,
        mut write: impl FnMut(u64, Value<'_>) -> Result<(), ImageError>,
    ) -> Result<(), ImageError> {
        let data: &[u8] = &self.bytes;
        Ok(relocate(data, &mut write)?)
    }
}

fn address_range(segment: &elf::ProgramHeader64<Endianness>, endian: Endianness) -> Range<u64> {
    let start = segment.p_vaddr(endian);
    start..start.saturating_add(segment.p_memsz(endian))
}

fn relocate<'data>(
    data: &'data [u8],
    write: &mut impl FnMut(u64, Value<'data>) -> Result<(), ImageError>,
) -> Result<(), Problem> {
    let elf = ElfFile64::<Endianness, &[u8]>::parse(data)?;
    let endian = elf.endian();
    let sections = elf.elf_section_table();
    let symbols = sections.symbols(endian, data, elf::SHT_DYNSYM)?;
    for segment in elf.elf_header().program_headers(endian, data)? {
        for entry in segment.dynamic(endian, data)?.unwrap_or_default() {
            if entry.d_tag(endian) == elf::DT_RELR {
                return Err(bad("its relocations are packed (DT_RELR)").into());
            }
        }
    }
    for section in sections.iter() {
        // Those that the loader applies are loaded.
        let Some((entries, _)) = section.rela(endian, data)? else { continue };
        if section.sh_flags(endian) & elf::SHF_ALLOC == elf::SectionFlags(0) {
            continue;
        }
        for entry in entries {
            let (at, addend) = (entry.r_offset.get(endian), entry.r_addend(endian) as u64);
            let value = match entry.r_type(endian, false) {
                elf::R_X86_64_RELATIVE => Value::Own(addend),
                elf::R_X86_64_GLOB_DAT | elf::R_X86_64_JUMP_SLOT | elf::R_X86_64_64 => {
                    let index = object::SymbolIndex(entry.r_sym(endian, false) as usize);
                    let symbol = symbols.symbol(index)?;
                    if symbol.is_undefined(endian) {
                        Value::Import(symbol.name(endian, symbols.strings())?)
                    } else {
                        Value::Own(symbol.st_value(endian).wrapping_add(addend))
                    }
                }
                // Data of libraries, and thread-local variables of libraries: nothing inside uses them.
                elf::R_X86_64_COPY | elf::R_X86_64_DTPMOD64 | elf::R_X86_64_DTPOFF64 | elf::R_X86_64_TPOFF64 => {
                    continue;
                }
                _ => return Err(bad("it has relocations of an unknown kind").into()),
            };
            write(at, value)?;
        }
    }
    Ok(())
}

enum Problem {
    Object(object::Error),
    Image(ImageError),
}

impl From<object::Error> for Problem {
    fn from(error: object::Error) -> Self {
        Self::Object(error)
    }
}

impl From<Problem> for ImageError {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::Object(error) => Self::Executable(error.to_string()),
            Problem::Image(error) => error,
        }
    }
}

impl From<ImageError> for Problem {
    fn from(error: ImageError) -> Self {
        Self::Image(error)
    }
}
