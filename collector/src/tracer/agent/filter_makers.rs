//! Code that makes filters of system calls (seccomp(2)): a program that has such code may forbid what an agent in it does, and would be killed
//! for it.
//!
//! A filter is made by `prctl(PR_SET_SECCOMP, ..)` or `seccomp(..)`, so somewhere in the code the constant is put into a register, and a call
//! follows: of the C library's `prctl` or `syscall`, of code that makes the call, or the instruction `syscall` itself. What computes the
//! constant, or is made while the program runs, is not found.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use agent::REGION;
use memchr::{memchr3_iter, memmem};
use object::read::elf::{FileHeader, ProgramHeader, Rela, SectionHeader, SectionTable, Sym};
use object::{Endianness, ReadCache, SymbolIndex, elf};
use perfdata::is_memory_without_file;

use crate::sys::process::{Mapping, open_mapped, place_of};
use crate::tracer::agent::searched_files::SearchedFiles;

/// Whether code that a process has mapped makes filters; `None` where code cannot be read. `harmless`: the mappings of which it was known a moment ago
/// that they make none, which is so still where the same is mapped; afterwards these, if they make none.
pub(crate) fn makes_filters(
    process: i32,
    maps: &[Mapping],
    harmless: &mut Vec<Mapping>,
    searched: &SearchedFiles,
) -> Option<bool> {
    let code = || maps.iter().filter(|map| is_code_of_file(map));
    let is_known = |map: &Mapping| {
        let place = harmless.binary_search_by_key(&map.start, |known| known.start);
        place.is_ok_and(|place| harmless[place] == *map)
    };
    let mut all_read = true;
    for map in code().filter(|map| !is_known(map)) {
        match has_maker(process, map, searched) {
            Some(true) => return Some(true),
            Some(false) => {}
            None => all_read = false,
        }
    }
    if all_read {
        *harmless = code().cloned().collect();
    }
    all_read.then_some(false)
}

/// Files without a name hold what is made while the program runs. The agent's own code makes no filters.
fn is_code_of_file(map: &Mapping) -> bool {
    if REGION.contains(&map.start) {
        return false;
    }
    let is_of_file = !is_memory_without_file(&map.path) && !map.path.starts_with(b"/dev/");
    map.prot & 4 != 0 && map.path.starts_with(b"/") && is_of_file
}

/// The same of the file of one mapping.
fn has_maker(process: i32, map: &Mapping, searched: &SearchedFiles) -> Option<bool> {
    // Looking is cheaper than opening.
    searched.found(&place_of(process, map)).or_else(|| {
        let file = open_mapped(process, map)?;
        searched.search(&file, file_makes_filters)
    })
}

/// The same of a file; `None` where it cannot be read.
fn file_makes_filters(file: &File) -> Option<bool> {
    let source = Source { file, failed: Cell::new(false) };
    // What is no ELF file of 64 bits holds no code that an agent could meet.
    let found = Code::of(&source).is_some_and(|code| code.makes_filters());
    (found || !source.failed.get()).then_some(found)
}

/// A file that is read, and whether that failed: what could not be read may make filters.
struct Source<'a> {
    file: &'a File,
    failed: Cell<bool>,
}

impl Source<'_> {
    fn noticed<T>(&self, result: io::Result<T>) -> io::Result<T> {
        let is_failure = |error: &io::Error| error.kind() != io::ErrorKind::Interrupted;
        self.failed.set(self.failed.get() || result.as_ref().is_err_and(is_failure));
        result
    }

    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.noticed(self.file.read_exact_at(bytes, offset))
    }
}

impl Read for &Source<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.noticed((&mut &*self.file).read(bytes))
    }
}

impl Seek for &Source<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.noticed((&mut &*self.file).seek(to))
    }
}

/// A function of the C library, by what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Prctl,
    SystemCall,
}

/// Bytes that put a number into a register, and what makes a filter together with it.
#[derive(Clone, Copy)]
struct Constant {
    /// The second of them is one of [`RARE`].
    bytes: &'static [u8],
    with: With,
}

#[derive(Clone, Copy)]
enum With {
    /// The first argument of a call of this function.
    CallOf(Function),
    /// The number of an instruction `syscall`.
    Instruction,
    /// The number of the system call `prctl`, near PR_SET_SECCOMP in the register of the next argument: for the instruction, or by Go's calling
    /// convention,
    Operation,
    /// or for syscall(3).
    OperationOfCall,
}

/// PR_SET_SECCOMP is 22; `seccomp` is system call 317, `prctl` 157.
const CONSTANTS: [Constant; 7] = [
    // mov edi, 22
    Constant { bytes: b"\xbf\x16\0\0\0", with: With::CallOf(Function::Prctl) },
    // push 22; pop rdi
    Constant { bytes: b"\x6a\x16\x5f", with: With::CallOf(Function::Prctl) },
    // mov edi, 317
    Constant { bytes: b"\xbf\x3d\x01\0\0", with: With::CallOf(Function::SystemCall) },
    // push 317; pop rdi
    Constant { bytes: b"\x68\x3d\x01\0\0\x5f", with: With::CallOf(Function::SystemCall) },
    // mov eax, 317
    Constant { bytes: b"\xb8\x3d\x01\0\0", with: With::Instruction },
    // mov eax, 157
    Constant { bytes: b"\xb8\x9d\0\0\0", with: With::Operation },
    // mov edi, 157
    Constant { bytes: b"\xbf\x9d\0\0\0", with: With::OperationOfCall },
];

/// Code is searched for these once.
const RARE: [u8; 3] = [0x16, 0x3d, 0x9d];

/// mov ebx, mov esi, mov edi with PR_SET_SECCOMP.
const OPERATIONS: [&[u8]; 3] = [b"\xbb\x16\0\0\0", b"\xbe\x16\0\0\0", b"\xbf\x16\0\0\0"];
const SYSCALL: &[u8] = b"\x0f\x05";
const ENDBR64: &[u8] = b"\xf3\x0f\x1e\xfa";

/// How far from the constant the call is looked for, in bytes.
const NEAR: usize = 64;
/// How much of a function that is called is looked at, in bytes.
const CALLEE: usize = 128;
/// Code is read in pieces that stay in the caches.
const PIECE: usize = 256 << 10;

struct Segment {
    address: u64,
    offset: u64,
    size: u64,
}

/// The code of a file.
struct Code<'a> {
    file: &'a Source<'a>,
    segments: Vec<Segment>,
    /// Where the file keeps the addresses of functions of other files.
    slots: HashMap<u64, Function>,
    /// It calls functions of other files, so it has none of its own that make any system call.
    is_linked: bool,
    /// It says which functions of other files it calls, if it calls any.
    tells_calls: bool,
}

/// What a file calls of others.
#[derive(Default)]
struct Imports {
    slots: HashMap<u64, Function>,
    is_linked: bool,
}

impl<'a> Code<'a> {
    fn of(file: &'a Source<'a>) -> Option<Self> {
        let cache = ReadCache::new(file);
        let header = elf::FileHeader64::<Endianness>::parse(&cache).ok()?;
        let endian = header.endian().ok()?;
        (header.is_class_64() && header.e_machine(endian) == elf::EM_X86_64).then_some(())?;
        let is_code = |header: &&elf::ProgramHeader64<Endianness>| {
            header.p_type(endian) == elf::PT_LOAD && header.p_flags(endian).contains(elf::PF_X)
        };
        let headers = header.program_headers(endian, &cache).ok()?;
        // A header may say anything: what is beyond the end of the file is not there, nothing goes around the end of all addresses, and
        // no file is read again and again.
        let bytes = file.file.metadata().ok()?.len();
        let mut left = bytes.saturating_mul(2);
        let segments = headers.iter().filter(is_code).map(|header| {
            let (address, offset) = (header.p_vaddr(endian), header.p_offset(endian));
            let there = bytes.saturating_sub(offset).min(u64::MAX - address).min(left);
            let size = header.p_filesz(endian).min(there);
            left -= size;
            Segment { address, offset, size }
        });
        let segments = segments.collect();
        let sections = header.sections(endian, &cache).ok();
        let is_dynamic = headers.iter().any(|header| header.p_type(endian) == elf::PT_DYNAMIC);
        // The linker needs no sections. Where they do not tell what the code calls, nobody does here.
        let imports = match is_dynamic {
            true => sections.and_then(|sections| imports(&sections, endian, &cache)),
            false => Some(Imports::default()),
        };
        let tells_calls = imports.is_some();
        let Imports { slots, is_linked } = imports.unwrap_or_default();
        Some(Self { file, segments, slots, is_linked, tells_calls })
    }

    /// Whether it does, or may: it does not tell what it calls.
    fn makes_filters(&self) -> bool {
        if !self.tells_calls {
            return true;
        }
        let can_be_completed = |constant: &Constant| !self.is_linked || self.may_call(constant.with);
        let sought: Vec<Constant> = CONSTANTS.into_iter().filter(can_be_completed).collect();
        let mut bytes = vec![0; NEAR + PIECE + 2 * NEAR];
        self.segments.iter().any(|segment| {
            (0..segment.size.div_ceil(PIECE as u64)).any(|piece| {
                let begin = piece * PIECE as u64;
                let from = begin.saturating_sub(NEAR as u64);
                let read = self.read(segment.address + from, &mut bytes);
                let within = (begin - from) as usize..(begin - from) as usize + PIECE;
                let piece = Piece { code: self, address: segment.address + from, bytes: &bytes[..read] };
                let [a, b, c] = RARE;
                let mut places = memchr3_iter(a, b, c, piece.bytes).filter_map(|at| at.checked_sub(1));
                places.any(|at| {
                    let found = sought.iter().find(|constant| piece.bytes[at..].starts_with(constant.bytes));
                    let found = found.filter(|_| within.contains(&at));
                    found.is_some_and(|constant| piece.completes(constant.with, at, at + constant.bytes.len()))
                })
            })
        })
    }

    /// Whether a file that takes functions from others can complete a constant.
    fn may_call(&self, with: With) -> bool {
        let takes = |function| self.slots.values().any(|slot| *slot == function);
        match with {
            With::CallOf(function) => takes(function),
            With::OperationOfCall => takes(Function::SystemCall),
            With::Instruction | With::Operation => true,
        }
    }

    /// Reads code at an address, and returns how much there is.
    fn read(&self, address: u64, bytes: &mut [u8]) -> usize {
        let contains = |segment: &&Segment| address.checked_sub(segment.address).is_some_and(|at| at < segment.size);
        let Some(segment) = self.segments.iter().find(contains) else { return 0 };
        let at = address - segment.address;
        let size = usize::try_from(segment.size - at).map_or(bytes.len(), |left| left.min(bytes.len()));
        let Some(offset) = segment.offset.checked_add(at) else { return 0 };
        match self.file.read_exact_at(&mut bytes[..size], offset) {
            Ok(()) => size,
            Err(_) => 0,
        }
    }

    /// What a function does that is called.
    fn function_at(&self, address: u64) -> Option<Function> {
        let mut bytes = [0; CALLEE];
        let size = self.read(address, &mut bytes);
        let bytes = &bytes[..size];
        // A stub of the procedure linkage table, with the marks of indirect branch tracking and MPX.
        let after_mark = bytes.strip_prefix(ENDBR64).unwrap_or(bytes);
        let jump = after_mark.strip_prefix(b"\xf2").unwrap_or(after_mark);
        if jump.starts_with(b"\xff\x25") {
            return self.slot(address.wrapping_add((bytes.len() - jump.len()) as u64), jump);
        }
        let call = memmem::find(bytes, SYSCALL)?;
        let number = memmem::find(bytes, b"\xb8\x9d\0\0\0");
        match number {
            Some(number) if number < call => Some(Function::Prctl),
            _ => (call < NEAR).then_some(Function::SystemCall),
        }
    }

    /// Whose address is in the slot that an instruction of six bytes names, relative to its end.
    fn slot(&self, address: u64, instruction: &[u8]) -> Option<Function> {
        let relative = instruction.get(2..6)?.first_chunk::<4>()?;
        let slot = address.wrapping_add(6).wrapping_add_signed(i64::from(i32::from_le_bytes(*relative)));
        self.slots.get(&slot).copied()
    }
}

/// Code that was read, with what is near it.
struct Piece<'a> {
    code: &'a Code<'a>,
    address: u64,
    bytes: &'a [u8],
}

impl Piece<'_> {
    /// Whether a constant between these places has beside it what makes a filter.
    fn completes(&self, with: With, start: usize, end: usize) -> bool {
        let after = &self.bytes[end..self.bytes.len().min(end + NEAR)];
        match with {
            With::CallOf(function) => {
                let called = (0..after.len()).find_map(|at| self.called_at(end + at));
                called == Some(function)
            }
            With::Instruction => memmem::find(after, SYSCALL).is_some(),
            With::Operation | With::OperationOfCall => {
                let near = &self.bytes[start.saturating_sub(NEAR)..end + after.len()];
                OPERATIONS.iter().any(|operation| memmem::find(near, operation).is_some())
            }
        }
    }

    /// The function that an instruction at this place calls, or ends in a jump to.
    fn called_at(&self, at: usize) -> Option<Function> {
        let address = self.address + at as u64;
        match self.bytes.get(at..at + 6)? {
            [0xe8 | 0xe9, a, b, c, d, _] => {
                let relative = i64::from(i32::from_le_bytes([*a, *b, *c, *d]));
                self.code.function_at(address.wrapping_add(5).wrapping_add_signed(relative))
            }
            call @ [0xff, 0x15 | 0x25, ..] => self.code.slot(address, call),
            _ => None,
        }
    }
}

/// Where a file that takes functions from others keeps the addresses of `prctl` and `syscall`; `None` if it does not tell.
fn imports<'a>(
    sections: &SectionTable<'a, elf::FileHeader64<Endianness>, &'a ReadCache<&'a Source<'a>>>,
    endian: Endianness,
    file: &'a ReadCache<&'a Source<'a>>,
) -> Option<Imports> {
    sections.iter().any(|section| section.sh_type(endian) == elf::SHT_DYNSYM).then_some(())?;
    let symbols = sections.symbols(endian, file, elf::SHT_DYNSYM).ok()?;
    // There may be very many names, and one may be the end of another.
    let names = sections.section(symbols.string_section()).ok()?.data(endian, file).ok()?;
    let mut named = HashMap::new();
    for (name, function) in [(&b"prctl\0"[..], Function::Prctl), (b"syscall\0", Function::SystemCall)] {
        named.extend(memmem::find_iter(names, name).map(|at| (at, function)));
    }
    let mut functions = HashMap::new();
    let mut is_linked = false;
    for (index, symbol) in symbols.iter().enumerate().skip(1).filter(|(_, symbol)| symbol.is_undefined(endian)) {
        is_linked = true;
        let function = named.get(&(symbol.st_name(endian) as usize));
        functions.extend(function.map(|function| (SymbolIndex(index), *function)));
    }
    let mut slots = HashMap::new();
    let mut without_slot: HashSet<SymbolIndex> = functions.keys().copied().collect();
    if !functions.is_empty() {
        let tables = sections.iter().filter_map(|section| section.rela(endian, file).ok().flatten());
        let tables = tables.filter(|(_, symbols_of)| *symbols_of == symbols.section());
        for relocation in tables.flat_map(|(table, _)| table) {
            let Some(symbol) = relocation.symbol(endian, false) else { continue };
            if let Some(function) = functions.get(&symbol) {
                slots.insert(relocation.r_offset(endian), *function);
                without_slot.remove(&symbol);
            }
        }
    }
    // What is called has an address somewhere, which the linker fills in.
    without_slot.is_empty().then_some(Imports { slots, is_linked })
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    const SOURCE: &str = r#"
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **arguments) {
#if defined BY_PRCTL
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, arguments);
#elif defined BY_SYSCALL
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, arguments);
#elif defined BY_SYSCALL_PRCTL
    return syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, arguments);
#elif defined BY_INSTRUCTION
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_seccomp), "D"(1L), "S"(0L), "d"(arguments) : "rcx", "r11", "memory");
    return (int)result;
#else
    /* The same numbers, for something else. */
    return prctl(PR_SET_NAME, arguments[0]) + syscall(SYS_gettid, 22, 317) + (int)lseek(PR_SET_SECCOMP, SYS_seccomp, count);
#endif
}
"#;

    /// `None`, said on stderr, where it cannot be compiled.
    fn finds(name: &str, flags: &[&str]) -> Option<bool> {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("maker.c");
        std::fs::write(&source, SOURCE).unwrap();
        let program: PathBuf = testing::c_program(Path::new(folder.path()), name, &[source], flags)?;
        file_makes_filters(&File::open(program).unwrap())
    }

    #[test]
    fn calls_that_make_filters_are_found_in_code_of_all_kinds() {
        for way in ["-DBY_PRCTL", "-DBY_SYSCALL", "-DBY_SYSCALL_PRCTL", "-DBY_INSTRUCTION"] {
            for kind in [&["-O2"][..], &["-O0"], &["-Os", "-no-pie"], &["-O2", "-static"], &["-O2", "-fno-plt"]] {
                let flags = [kind, &[way]].concat();
                if let Some(found) = finds("maker", &flags) {
                    assert!(found, "{flags:?}");
                }
            }
        }
    }

    #[test]
    fn other_calls_with_the_same_numbers_make_none() {
        for kind in [&["-O2"][..], &["-O0"], &["-O2", "-static"]] {
            if let Some(found) = finds("other", kind) {
                assert!(!found, "{kind:?}");
            }
        }
    }

    fn map(path: &[u8], prot: u32) -> Mapping {
        Mapping {
            start: 0x1000,
            end: 0x2000,
            prot,
            shared: false,
            offset: 0,
            device: (0, 0),
            inode: 0,
            path: path.to_vec(),
        }
    }

    #[test]
    fn only_the_same_mapping_is_known_to_make_none() {
        let known = map(b"/nowhere/known", 5);
        let moved = Mapping { start: 0x3000, end: 0x4000, ..known.clone() };
        let asked = |maps: &[Mapping], harmless: &[Mapping]| {
            let mut harmless = harmless.to_vec();
            // No process has this number, so that no file can be read.
            (makes_filters(i32::MAX, maps, &mut harmless, &SearchedFiles::default()), harmless)
        };
        let both = [known.clone(), moved.clone()];
        assert_eq!(asked(&both, &both), (Some(false), both.to_vec()));
        assert_eq!(asked(&both[1..], &both), (Some(false), both[1..].to_vec()), "what is mapped no more is forgotten");
        assert_eq!(asked(&both, &both[..1]), (None, both[..1].to_vec()));
        for other in [
            Mapping { inode: 8, ..known.clone() },
            Mapping { end: 0x3000, ..known.clone() },
            map(b"/nowhere/known (deleted)", 5),
        ] {
            assert_eq!(asked(&[other], &both).0, None);
        }
    }

    #[test]
    fn code_without_a_file_is_not_looked_for_in_one() {
        assert!(is_code_of_file(&map(b"/usr/lib/libc.so.6", 5)));
        for (path, prot) in
            [(&b"//anon"[..], 7), (b"[vdso]", 5), (b"/memfd:jit (deleted)", 7), (b"/usr/lib/libc.so.6", 3)]
        {
            assert!(!is_code_of_file(&map(path, prot)), "{path:?}");
        }
        // Nothing of it is taken for code that cannot be read.
        assert_eq!(
            makes_filters(i32::MAX, &[map(b"//anon", 7)], &mut Vec::new(), &SearchedFiles::default()),
            Some(false)
        );
    }

    /// The header of a program whose one segment of code is said to be as long as can be, at the end of all addresses, before its one page.
    #[test]
    fn segments_that_cannot_be_are_cut() {
        let mut bytes = vec![0_u8; 4096];
        bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(16, &2_u16.to_le_bytes()); // e_type
        put(18, &62_u16.to_le_bytes()); // e_machine
        put(20, &1_u32.to_le_bytes()); // e_version
        put(32, &64_u64.to_le_bytes()); // e_phoff
        put(52, &64_u16.to_le_bytes()); // e_ehsize
        put(54, &56_u16.to_le_bytes()); // e_phentsize
        put(56, &1_u16.to_le_bytes()); // e_phnum
        put(64, &1_u32.to_le_bytes()); // p_type: PT_LOAD
        put(68, &5_u32.to_le_bytes()); // p_flags: read, execute
        put(80, &(u64::MAX - 100).to_le_bytes()); // p_vaddr
        put(96, &(1_u64 << 63).to_le_bytes()); // p_filesz
        // mov edi, 22; call to far beyond
        put(120, b"\xbf\x16\0\0\0\xe8\xff\xff\xff\x7f");
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &bytes).unwrap();
        let source = Source { file: &file, failed: Cell::new(false) };
        let code = Code::of(&source).unwrap();
        assert_eq!(code.segments.iter().map(|segment| segment.size).collect::<Vec<_>>(), [100]);
        assert!(!code.makes_filters());
    }

    /// Nobody knows what is in it.
    #[test]
    fn a_file_that_cannot_be_read_is_not_taken_for_one_without_makers() {
        let folder = tempfile::tempdir().unwrap();
        // It opens, and reading it fails.
        assert_eq!(file_makes_filters(&File::open(folder.path()).unwrap()), None);
    }

    #[test]
    fn what_is_no_program_makes_none() {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, b"\x7fELF\x02\x01\x01").unwrap();
        assert_eq!(file_makes_filters(&file), Some(false));
    }

    /// The linker needs no sections: what the code calls may be in what was cut off, or be called what it is not.
    #[test]
    fn a_program_that_does_not_tell_what_it_calls_may_make_filters() {
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        let word = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize;
        let mut without = bytes.clone();
        without[40..48].fill(0); // e_shoff
        without[58..64].fill(0); // e_shentsize, e_shnum, e_shstrndx
        // Tables of relocations (SHT_RELA: 4) that say they are something else.
        let mut hidden = bytes.clone();
        let (sections, number) = (word(40), word(58) >> 16 & 0xffff);
        for section in (0..number).map(|index| sections + 64 * index) {
            if hidden[section + 4..section + 8] == [4, 0, 0, 0] {
                hidden[section + 4] = 1;
            }
        }
        let found = |bytes: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            std::io::Write::write_all(&mut file, bytes).unwrap();
            file_makes_filters(&file)
        };
        // The test program calls syscall(3), for getrandom(2) for example.
        for bytes in [&without, &hidden, &bytes[..bytes.len().min(1 << 20)]] {
            assert_eq!(found(bytes), Some(true));
        }
    }
}
