//! A module of the kernel as it is loaded. Its file (`ext4.ko`) is relocatable: sections have no addresses. The kernel puts the
//! executable ones one after the other (`__layout_sections` of `kernel/module/main.c`), and those of the start-up elsewhere, until it
//! frees them:
//!
//! ```text
//! file     .text    .init.text    .exit.text    .altinstr_replacement    .rodata ...
//! loaded   0, ...   (apart)       aligned       aligned                  (after all code, or apart)
//! ```
//!
//! Branches between these sections, and to the kernel, get their targets by relocation.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use object::elf::{R_X86_64_PC32, R_X86_64_PLT32, SHF_ALLOC, SHF_EXECINSTR};
use object::read::elf::{ElfFile64, ElfSection64, ElfSymbol64};
use object::{
    LittleEndian as LE, Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SectionFlags,
    SectionIndex, SymbolKind,
};

use super::{Image, ImageError, MadeFunction, made_elf};

/// Functions that are not in the module are taken to be here, past what any has in memory, in so many bytes each, which cannot be executed.
const IMPORTS: u64 = 1 << 30;
const IMPORTED: u64 = 16;
const BREAKPOINT: u8 = 0xcc;
/// Calls of this function at the begin of others are nops of five bytes when the module is loaded.
const FENTRY: &[u8] = b"__fentry__";
const CALL: u8 = 0xe8;
const NOP: [u8; 5] = [0x0f, 0x1f, 0x44, 0x00, 0x00];

impl Image {
    /// The code of a relocatable file as the kernel has it in memory, from address 0 on, with the names of its functions. It has the file's
    /// identity and build id, and no debug information.
    ///
    /// # Errors
    /// It is damaged.
    pub(crate) fn loaded_module(&self) -> Result<Self, ImageError> {
        let bytes = self.shared_bytes();
        let made = loaded(bytes.get_up_to(0, bytes.length())).map_err(ImageError::Relocatable)?;
        let mut loaded = Self::parse(made)?;
        (loaded.identity, loaded.build_id) = (self.identity, self.build_id.clone());
        Ok(loaded)
    }
}

fn loaded(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let file = ElfFile64::<LE>::parse(bytes).map_err(|why| why.to_string())?;
    let (mut starts, mut runs, mut end) = (HashMap::new(), Vec::new(), 0_u64);
    for section in file.sections().filter(is_loaded_code) {
        let data = section.data().map_err(|why| why.to_string())?;
        let start = end.checked_next_multiple_of(section.align().max(1));
        // Sections that share their bytes would make much of little.
        let is_possible = |start: &u64| start.saturating_add(data.len() as u64) <= IMPORTS.min(2 * bytes.len() as u64);
        let start = start.filter(is_possible).ok_or("its code is larger than the file")?;
        end = start + data.len() as u64;
        starts.insert(section.index(), start);
        runs.push((start, data.to_vec()));
    }
    let mut symbols = Symbols { starts, imports: BTreeMap::new() };
    for (section, (start, code)) in file.sections().filter(is_loaded_code).zip(&mut runs) {
        relocate(&file, &section, *start, code, &mut symbols)?;
    }
    if !symbols.imports.is_empty() {
        runs.push((IMPORTS, vec![BREAKPOINT; IMPORTED as usize * symbols.imports.len()]));
    }
    Ok(made_elf(&runs, &symbols.functions(&file)).0)
}

/// Whether it is executable, and stays.
fn is_loaded_code(section: &ElfSection64<'_, '_, LE>) -> bool {
    let SectionFlags::Elf { sh_flags, .. } = section.flags() else { return false };
    let is_of_start = section.name_bytes().is_ok_and(|name| name.starts_with(b".init"));
    sh_flags.contains(SHF_ALLOC) && sh_flags.contains(SHF_EXECINSTR) && section.size() > 0 && !is_of_start
}

/// Where symbols are in memory.
struct Symbols {
    starts: HashMap<SectionIndex, u64>,
    /// By name, those that are elsewhere.
    imports: BTreeMap<Vec<u8>, u64>,
}

impl Symbols {
    /// `None` for those of data and of the start-up.
    fn address(&mut self, symbol: &ElfSymbol64<'_, '_, LE>) -> Option<u64> {
        if !symbol.is_undefined() {
            return self.starts.get(&symbol.section_index()?)?.checked_add(symbol.address());
        }
        let next = IMPORTS + IMPORTED * self.imports.len() as u64;
        Some(*self.imports.entry(symbol.name_bytes().ok()?.to_vec()).or_insert(next))
    }

    /// Those of functions, and of what is called elsewhere.
    fn functions<'a>(&'a self, file: &ElfFile64<'a, LE>) -> Vec<MadeFunction<'a>> {
        let own = file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0);
        let own = own.filter_map(|symbol| {
            let start = self.starts.get(&symbol.section_index()?)?.checked_add(symbol.address())?;
            Some((start, symbol.size(), Cow::Borrowed(symbol.name_bytes().ok()?)))
        });
        let imports = self.imports.iter().map(|(name, at)| (*at, IMPORTED, Cow::Borrowed(name.as_slice())));
        own.chain(imports).collect()
    }
}

/// Gives the branches of a section their targets. What is at addresses of data stays as it is in the file.
fn relocate(
    file: &ElfFile64<'_, LE>,
    section: &ElfSection64<'_, '_, LE>,
    start: u64,
    code: &mut [u8],
    symbols: &mut Symbols,
) -> Result<(), String> {
    for (offset, relocation) in section.relocations() {
        let RelocationFlags::Elf { r_type: R_X86_64_PC32 | R_X86_64_PLT32 } = relocation.flags() else { continue };
        let RelocationTarget::Symbol(symbol) = relocation.target() else { continue };
        let symbol = file.symbol_by_index(symbol).map_err(|why| why.to_string())?;
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        let call = at.checked_sub(1).and_then(|at| code.get_mut(at..)?.first_chunk_mut::<5>());
        if let Some(call) = call.filter(|call| call.first() == Some(&CALL) && symbol.name_bytes() == Ok(FENTRY)) {
            *call = NOP;
            continue;
        }
        let slot = code.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<4>());
        let slot = slot.ok_or("a relocation is outside of its section")?;
        if let Some(target) = symbols.address(&symbol) {
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
        let status = Command::new("gcc").arg("-c").arg(&source).arg("-o").arg(&object).status();
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
