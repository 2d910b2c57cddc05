//! A module of the kernel as it is loaded. Its file (`ext4.ko`) is relocatable: sections have no addresses. The kernel puts the
//! executable ones one after the other (`__layout_sections` of `kernel/module/main.c`), and those of the start-up elsewhere, until it
//! frees them:
//!
//! ```text
//! file     .text    .init.text    .exit.text    .altinstr_replacement    .rodata ...
//! loaded   0, ...   (apart)       aligned       aligned                  (after all code, or apart)
//! ```
//!
//! Branches between these sections, and to the kernel, get their targets by relocation; debug information gets the addresses of the code.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use object::elf::{R_X86_64_32, R_X86_64_32S, R_X86_64_64, R_X86_64_PC32, R_X86_64_PLT32, SHF_ALLOC, SHF_EXECINSTR};
use object::read::elf::{ElfFile64, ElfSection64};
use object::{
    LittleEndian as LE, Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SectionFlags,
    SectionIndex, SymbolIndex, SymbolKind,
};

use super::{Image, ImageError, MadeElf, MadeFunction};

/// Functions that are not in the module are taken to be here, past what any has in memory, in so many bytes each, which cannot be executed.
const IMPORTS: u64 = 1 << 30;
const IMPORTED: u64 = 16;
const BREAKPOINT: u8 = 0xcc;
/// Bytes of a relocation.
const RELOCATION: usize = 24;
/// Calls of this function at the begin of others are nops of five bytes when the module is loaded.
const FENTRY: &[u8] = b"__fentry__";
const CALL: u8 = 0xe8;
const NOP: [u8; 5] = [0x0f, 0x1f, 0x44, 0x00, 0x00];

impl Image {
    /// The code of a relocatable file as the kernel has it in memory, from address 0 on, with the names of its functions and its debug
    /// information. It has the file's identity and build id. Of a separate debug file, which has no code, the debug information is of the same
    /// addresses.
    ///
    /// # Errors
    /// It is damaged.
    pub(crate) fn loaded_module(&self) -> Result<Self, ImageError> {
        let bytes = self.shared_bytes();
        let made = loaded(bytes.get_up_to(0, bytes.length()), self).map_err(ImageError::Relocatable)?;
        let mut loaded = Self::parse(made)?;
        (loaded.identity, loaded.build_id) = (self.identity, self.build_id.clone());
        Ok(loaded)
    }
}

fn loaded(bytes: &[u8], image: &Image) -> Result<Vec<u8>, String> {
    let file = ElfFile64::<LE>::parse(bytes).map_err(|why| why.to_string())?;
    let (mut starts, mut runs, mut end) = (HashMap::new(), Vec::new(), 0_u64);
    for section in file.sections().filter(is_loaded_code) {
        let data = section.data().map_err(|why| why.to_string())?;
        // Those without bytes take their place, too.
        let start = end.checked_next_multiple_of(section.align().max(1));
        // Sections that share their bytes would make much of little.
        let is_possible = |start: &u64| start.saturating_add(section.size()) <= IMPORTS.min(2 * bytes.len() as u64);
        let start = start.filter(is_possible).ok_or("its code is larger than the file")?;
        end = start + section.size();
        starts.insert(section.index(), start);
        runs.push((start, data.to_vec()));
    }
    let is_debug = |section: &ElfSection64<'_, '_, LE>| section.name().is_ok_and(is_debug_section);
    // They refer to each other by the symbols of sections.
    starts.extend(file.sections().filter(is_debug).map(|section| (section.index(), 0)));
    let symbols = Symbols::of(&file, starts, bytes.len())?;
    // What several sections of relocations share would be done again and again.
    let mut left = bytes.len() / RELOCATION;
    for (section, (start, code)) in file.sections().filter(is_loaded_code).zip(&mut runs) {
        // Separate debug files have none of it.
        if !code.is_empty() {
            relocate(&section, (*start, code), &symbols, &mut left)?;
        }
    }
    let mut debug = Vec::new();
    let mut names = HashSet::new();
    for section in file.sections().filter(is_debug) {
        let name = section.name().map_err(|why| why.to_string())?;
        // Of several of a name, as there are none, the image has the first.
        if names.insert(name) {
            let mut bytes = image.debug_section(name).map_err(|why| why.to_string())?;
            // Each has four bytes of its own at least; in the file both may be compressed.
            let mut left = bytes.len() / 4;
            relocate_debug(&section, &mut bytes, &symbols, &mut left)?;
            debug.push((name, bytes));
        }
    }
    runs.retain(|(_, code)| !code.is_empty());
    if symbols.imported > 0 {
        runs.push((IMPORTS, vec![BREAKPOINT; IMPORTED as usize * symbols.imported]));
    }
    Ok(MadeElf { runs: &runs, functions: &symbols.functions, parts: &[], sections: &debug }.write().0)
}

/// Whether it is debug information, or says where more of it is.
fn is_debug_section(name: &str) -> bool {
    name.starts_with(".debug_") || matches!(name, ".gnu_debuglink" | ".gnu_debugaltlink")
}

/// Gives debug information the addresses of the code. What is not in memory has an address that no code has, as linkers write it for what they
/// leave out: -1, and in lists of DWARF 4, where that has a meaning, -2.
fn relocate_debug(
    section: &ElfSection64<'_, '_, LE>,
    bytes: &mut [u8],
    symbols: &Symbols<'_>,
    left: &mut usize,
) -> Result<(), String> {
    let is_list = section.name().is_ok_and(|name| matches!(name, ".debug_ranges" | ".debug_loc"));
    let nowhere = if is_list { u64::MAX - 1 } else { u64::MAX };
    for (offset, relocation) in section.relocations() {
        *left = left.checked_sub(1).ok_or("it has more relocations than bytes")?;
        let RelocationTarget::Symbol(symbol) = relocation.target() else { continue };
        let known = symbols.addresses.get(&symbol).map(|address| address.wrapping_add_signed(relocation.addend()));
        let value = known.unwrap_or(nowhere);
        let value: &[u8] = match relocation.flags() {
            RelocationFlags::Elf { r_type: R_X86_64_64 } => &value.to_le_bytes(),
            RelocationFlags::Elf { r_type: R_X86_64_32 | R_X86_64_32S } => &(value as u32).to_le_bytes(),
            _ => continue,
        };
        let slot = usize::try_from(offset).ok().and_then(|at| bytes.get_mut(at..)?.get_mut(..value.len()));
        slot.ok_or("a relocation is outside of its section")?.copy_from_slice(value);
    }
    Ok(())
}

/// Whether it is executable, and stays.
fn is_loaded_code(section: &ElfSection64<'_, '_, LE>) -> bool {
    let SectionFlags::Elf { sh_flags, .. } = section.flags() else { return false };
    let is_of_start = section.name_bytes().is_ok_and(|name| name.starts_with(b".init"));
    sh_flags.contains(SHF_ALLOC) && sh_flags.contains(SHF_EXECINSTR) && !is_of_start
}

/// Where symbols are in memory: those of code that stays, and those that are elsewhere.
struct Symbols<'a> {
    addresses: HashMap<SymbolIndex, u64>,
    functions: Vec<MadeFunction<'a>>,
    imported: usize,
    fentry: Option<SymbolIndex>,
}

impl<'a> Symbols<'a> {
    /// `most`: bytes of all names. Symbols that share one long string would make much of little.
    fn of(file: &ElfFile64<'a, LE>, starts: HashMap<SectionIndex, u64>, most: usize) -> Result<Self, String> {
        let (mut addresses, mut functions) = (HashMap::new(), Vec::new());
        let (mut imported, mut fentry, mut left) = (0, None, most);
        for symbol in file.symbols() {
            let section = symbol.section_index().and_then(|section| starts.get(&section));
            let address = match section {
                Some(start) => start.checked_add(symbol.address()),
                None if symbol.is_undefined() => Some(IMPORTS + IMPORTED * imported as u64),
                None => None,
            };
            let (Some(address), Ok(name)) = (address, symbol.name_bytes()) else { continue };
            if section.is_none() && name == FENTRY {
                fentry = Some(symbol.index());
                continue;
            }
            addresses.insert(symbol.index(), address);
            let size = if section.is_some() { symbol.size() } else { IMPORTED };
            imported += usize::from(section.is_none());
            if size > 0 && (section.is_none() || symbol.kind() == SymbolKind::Text) {
                left = left.checked_sub(name.len()).ok_or("the names of its symbols are longer than the file")?;
                functions.push((address, size, Cow::Borrowed(name)));
            }
        }
        Ok(Symbols { addresses, functions, imported, fentry })
    }
}

/// Gives the branches of a section their targets. What is at addresses of data stays as it is in the file. `left`: relocations that there may
/// be.
fn relocate(
    section: &ElfSection64<'_, '_, LE>,
    (start, code): (u64, &mut [u8]),
    symbols: &Symbols<'_>,
    left: &mut usize,
) -> Result<(), String> {
    for (offset, relocation) in section.relocations() {
        *left = left.checked_sub(1).ok_or("it has more relocations than bytes")?;
        let RelocationFlags::Elf { r_type: R_X86_64_PC32 | R_X86_64_PLT32 } = relocation.flags() else { continue };
        let RelocationTarget::Symbol(symbol) = relocation.target() else { continue };
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        let call = at.checked_sub(1).and_then(|at| code.get_mut(at..)?.first_chunk_mut::<5>());
        if let Some(call) = call.filter(|call| call.first() == Some(&CALL) && Some(symbol) == symbols.fentry) {
            *call = NOP;
            continue;
        }
        let slot = code.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<4>());
        let slot = slot.ok_or("a relocation is outside of its section")?;
        if let Some(target) = symbols.addresses.get(&symbol) {
            let distance = target.wrapping_add_signed(relocation.addend()).wrapping_sub(start + offset);
            *slot = (distance as u32).to_le_bytes();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Svma;
    use crate::code::FunctionTable;
    use std::process::Command;

    const SOURCE: &str = "
    .text
    .type first, @function
    first: call __fentry__
        jmp late
        call printk
        lea values(%rip), %rax
    .size first, .-first
    .section .init.text, \"ax\"
    init: .skip 100, 0x90
    .section .text.late, \"ax\"
    .balign 32
    .type late, @function
    late: jmp first
    .size late, .-late
    .data
    values: .quad first
    .section .note.GNU-stack,\"\",@progbits
    ";

    fn object() -> Option<Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let [source, object] = ["m.s", "m.ko"].map(|name| folder.path().join(name));
        std::fs::write(&source, SOURCE).unwrap();
        let status = Command::new("gcc").args(["-c", "-g"]).arg(&source).arg("-o").arg(&object).status();
        if !status.is_ok_and(|status| status.success()) {
            testing::skip!(Tool, "gcc cannot assemble");
            return None;
        }
        Some(std::fs::read(&object).unwrap())
    }

    #[test]
    fn sections_are_placed_and_branches_have_their_targets() {
        let Some(object) = object() else { return };
        let object = Image::parse(object).unwrap();
        assert!(object.is_relocatable() && object.segments().is_empty());
        let image = object.loaded_module().unwrap();
        let code = image.bytes_at(Svma(0), 22).unwrap();
        assert_eq!(code[..5], NOP);
        // To 0x20 from the end of the jump, and to what is elsewhere. Data is nowhere.
        assert_eq!(code[5..10], [0xe9, 0x20 - 10, 0, 0, 0]);
        assert_eq!(code[10..15], [0xe8, (256 - 15) as u8, 0xff, 0xff, 0x3f]);
        assert_eq!(code[15..22], [0x48, 0x8d, 0x05, 0, 0, 0, 0]);
        assert_eq!(image.bytes_at(Svma(0x20), 5), Some(&[0xe9, (256 - 0x25) as u8, 0xff, 0xff, 0xff][..]));
        let functions = FunctionTable::of(&image);
        let name = |at| functions.name(functions.at(Svma(at)).unwrap()).into_owned();
        assert_eq!([name(0), name(0x20), name(IMPORTS)], ["first", "late", "printk"]);
    }

    /// Of sections that share their bytes, little would become much.
    #[test]
    fn what_is_shared_is_refused() {
        let Some(object) = object() else { return };
        let section = |name: &str| {
            let image = Image::parse(object.clone()).unwrap();
            image.sections().iter().position(|section| section.name == name).unwrap()
        };
        let table = u64::from_le_bytes(object[0x28..0x30].try_into().unwrap()) as usize;
        // Code of 64 MiB.
        let text = table + 64 * section(".text");
        let mut large = object.clone();
        large[text + 32..text + 40].copy_from_slice(&(64_u64 << 20).to_le_bytes());
        assert!(Image::parse(large).unwrap().loaded_module().is_err());
        let mut aligned = object.clone();
        let late = table + 64 * section(".text.late");
        aligned[late + 48..late + 56].copy_from_slice(&(1_u64 << 63).to_le_bytes());
        assert!(Image::parse(aligned).unwrap().loaded_module().is_err());
    }

    #[test]
    fn damage_does_not_panic() {
        let Some(object) = object() else { return };
        let flipped = (0..object.len()).flat_map(|at| [0x01, 0x10, 0x80].map(|bit| (at, bit))).map(|(at, bit)| {
            let mut damaged = object.clone();
            damaged[at] ^= bit;
            damaged
        });
        let cut = (64..object.len()).map(|length| object[..length].to_vec());
        let loaded =
            |damaged| Image::parse(damaged).ok().filter(Image::is_relocatable).map(|image| image.loaded_module());
        let refused = flipped.chain(cut).filter_map(loaded).filter(Result::is_err).count();
        assert!(refused > 100, "{refused}");
    }
}
