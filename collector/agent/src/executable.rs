//! The recorder's own executable, as far as an image is made of it.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use object::elf;
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader, Rela, SectionHeader, Sym};
use object::{Endianness, ReadCache, ReadRef};

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
    relocations: Vec<Relocation>,
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

/// A word to be written: at this address, relative to the start.
pub(crate) struct Relocation {
    pub(crate) at: u64,
    pub(crate) value: Value,
}

pub(crate) enum Value {
    /// An address of the executable, relative to the start.
    Own(u64),
    /// A function of a library.
    Import(String),
}

fn bad(why: &'static str) -> ImageError {
    ImageError::Executable(why.to_owned())
}

impl Executable {
    /// That of this process.
    pub(crate) fn own() -> Result<Self, ImageError> {
        let io = |error: std::io::Error| ImageError::Executable(error.to_string());
        let file = File::open("/proc/self/exe").map_err(io)?;
        let cache = ReadCache::new(file.try_clone().map_err(io)?);
        Self::read(&cache, file).map_err(|error| match error {
            Problem::Object(error) => ImageError::Executable(error.to_string()),
            Problem::Image(error) => error,
        })
    }

    fn read<'data, R: ReadRef<'data>>(data: R, file: File) -> Result<Self, Problem> {
        let elf = ElfFile64::<Endianness, R>::parse(data)?;
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
        let relocations = relocations(&elf, data)?;
        Ok(Self { file, fixed, changing, tls, relocations, data: data_page, end: end.next_multiple_of(PAGE) })
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

    /// The words that depend on where it is.
    pub(crate) fn relocations(&self) -> &[Relocation] {
        &self.relocations
    }
}

fn address_range(segment: &elf::ProgramHeader64<Endianness>, endian: Endianness) -> Range<u64> {
    let start = segment.p_vaddr(endian);
    start..start.saturating_add(segment.p_memsz(endian))
}

fn relocations<'data, R: ReadRef<'data>>(
    elf: &ElfFile64<'data, Endianness, R>,
    data: R,
) -> Result<Vec<Relocation>, Problem> {
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
    let mut all = Vec::new();
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
                        let name = symbol.name(endian, symbols.strings())?;
                        Value::Import(String::from_utf8_lossy(name).into_owned())
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
            all.push(Relocation { at, value });
        }
    }
    Ok(all)
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

impl From<ImageError> for Problem {
    fn from(error: ImageError) -> Self {
        Self::Image(error)
    }
}
