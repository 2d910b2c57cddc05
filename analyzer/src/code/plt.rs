//! Entries of the procedure linkage table, named after what they call.
//!
//! An entry is a stub of 8 or 16 bytes that jumps through a slot of the global offset table; the relocation of that slot
//! names the function. With indirect branch tracking the lazy half of a pair has no such jump: it pushes
//! the index of the relocation instead.
//!
//! ```text
//! 64 bits  jmp *slot(%rip)      push $index
//! 32 bits  jmp *slot            push $offset, in bytes
//!          jmp *slot(%ebx)      position-independent: %ebx is the address of the global offset table
//! ```

use iced_x86::{Code, Instruction, OpKind, Register};
use object::LittleEndian as LE;
use object::elf::{Rel32, SHT_DYNSYM};
use std::collections::HashMap;

use super::candidate::{Candidate, Rank};
use super::function::Origin;
use super::names::Name;
use super::region::Region;
use super::relocations::{SlotOf, has_relocations, slots};
use super::section::Section;
use super::symbols::SymbolTable;
use super::{Bitness, Image};
use crate::address::Svma;

/// Adds the entries of all PLT sections that can be named.
pub(super) fn add_plt_entries(image: &Image, regions: &[Region], candidates: &mut Vec<Candidate>) {
    let sections = || image.sections().iter().filter(|section| section.executable && is_plt(&section.name));
    if sections().next().is_none() {
        return;
    }
    let slots = Slots::of(image);
    for section in within_file(image, sections()) {
        let bytes = image.section_bytes(section);
        let mut rest = &*bytes;
        let mut start = section.start;
        while let Some((entry, others)) = rest.split_at_checked(entry_size(rest)).filter(|(entry, _)| !entry.is_empty())
        {
            let end = Svma(start.0.saturating_add(entry.len() as u64));
            let inside = Region::holding(regions, start).is_some_and(|region| end <= region.end);
            if let Some(name) = slots.name_of_entry(entry, start).filter(|_| inside) {
                let (rank, origin) = (Rank::PLT, Origin::Plt);
                candidates.push(Candidate { start, end, rank, origin, has_known_end: true, name });
            }
            (rest, start) = (others, end);
        }
    }
}

/// Entries have 16 bytes, but those that are only a jump and `xchg %ax,%ax`. The section header's word on it may be 0.
fn entry_size(bytes: &[u8]) -> usize {
    match bytes {
        [0xff, 0x25 | 0xa3, _, _, _, _, 0x66, 0x90, ..] => 8,
        _ => 16,
    }
}

fn is_plt(name: &str) -> bool {
    matches!(name, ".plt" | ".plt.sec" | ".plt.got" | ".plt.bnd" | ".iplt")
}

/// Slots of the global offset table, by address and by index in the table of lazy relocations.
struct Slots {
    by_address: HashMap<Svma, Name>,
    lazy: Vec<Option<Name>>,
    bitness: Bitness,
    global_offset_table: Option<Svma>,
}

impl Slots {
    fn of(image: &Image) -> Self {
        let symbols = SymbolTable::of(image, SHT_DYNSYM);
        let (mut by_address, mut lazily) = (HashMap::new(), Vec::new());
        let sections = image.sections().iter().filter(|section| has_relocations(section));
        for section in within_file(image, sections) {
            let lazy = section.name == ".rela.plt" || section.name == ".rel.plt";
            for (slot, of) in slots(image, section) {
                let name = name(of, symbols.as_ref());
                if let Some(name) = name {
                    by_address.insert(slot, name);
                }
                if lazy {
                    lazily.push(name);
                }
            }
        }
        let (bitness, global_offset_table) = (image.bitness(), image.global_offset_table());
        Self { by_address, lazy: lazily, bitness, global_offset_table }
    }

    fn name_of_entry(&self, bytes: &[u8], start: Svma) -> Option<Name> {
        let mut pushed = None;
        for instruction in &mut self.bitness.decoder(bytes, start) {
            match instruction.code() {
                Code::Jmp_rm64 | Code::Jmp_rm32 if instruction.op0_kind() == OpKind::Memory => {
                    return self.by_address.get(&self.slot(&instruction)?).copied();
                }
                Code::Pushq_imm32 | Code::Pushq_imm8 => pushed = usize::try_from(instruction.immediate(0)).ok(),
                Code::Pushd_imm32 => pushed = Some(instruction.immediate32() as usize / size_of::<Rel32<LE>>()),
                Code::INVALID => break,
                _ => {}
            }
        }
        *self.lazy.get(pushed?)?
    }

    /// The slot that a jump goes through.
    fn slot(&self, jump: &Instruction) -> Option<Svma> {
        match (self.bitness, jump.memory_base()) {
            (Bitness::Bits64, Register::RIP) => Some(Svma(jump.memory_displacement64())),
            (Bitness::Bits32, Register::None) => Some(Svma(jump.memory_displacement32().into())),
            (Bitness::Bits32, Register::EBX) => {
                let table = self.global_offset_table?.0 as u32;
                Some(Svma(table.wrapping_add(jump.memory_displacement32()).into()))
            }
            _ => None,
        }
    }
}

/// Sections until they have more bytes than the file: damaged headers can state the same bytes many times.
fn within_file<'image>(
    image: &Image,
    sections: impl Iterator<Item = &'image Section>,
) -> impl Iterator<Item = &'image Section> {
    let mut left = image.length();
    sections.take_while(move |section| match left.checked_sub(section.size) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    })
}

fn name(of: SlotOf, symbols: Option<&SymbolTable<'_>>) -> Option<Name> {
    match of {
        SlotOf::Symbol(index) => {
            let symbols = symbols?;
            symbols.name_offset(symbols.symbols().get(index)?).map(Name::Plt)
        }
        SlotOf::Resolver(resolver) => Some(Name::PltOfResolver(resolver)),
        SlotOf::Other => None,
    }
}
