//! Entries of the procedure linkage table, named after what they call.
//!
//! An entry is a stub of 8 or 16 bytes that jumps through a slot of the global offset table; the relocation of that slot
//! names the function. With indirect branch tracking the lazy half of a pair has no such jump: it pushes
//! the index of the relocation instead.

use iced_x86::{Code, Decoder, DecoderOptions, OpKind, Register};
use object::LittleEndian as LE;
use object::elf::{
    R_X86_64_GLOB_DAT, R_X86_64_IRELATIVE, R_X86_64_JUMP_SLOT, Rela64, RelocationType, SHT_DYNSYM, SHT_RELA,
};
use object::pod::slice_from_all_bytes;
use std::collections::HashMap;

use super::Image;
use super::candidate::{Candidate, Rank};
use super::function::Origin;
use super::names::Name;
use super::region::Region;
use super::section::Section;
use super::symbols::SymbolTable;
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
        [0xff, 0x25, _, _, _, _, 0x66, 0x90, ..] => 8,
        _ => 16,
    }
}

fn is_plt(name: &str) -> bool {
    matches!(name, ".plt" | ".plt.sec" | ".plt.got" | ".plt.bnd" | ".iplt")
}

/// Slots of the global offset table, by address and by index in the table of lazy relocations.
struct Slots {
    by_address: HashMap<u64, Name>,
    lazy: Vec<Option<Name>>,
}

impl Slots {
    fn of(image: &Image) -> Self {
        let symbols = SymbolTable::of(image, SHT_DYNSYM);
        let mut slots = Self { by_address: HashMap::new(), lazy: Vec::new() };
        let sections = image.sections().iter().filter(|section| section.kind == SHT_RELA);
        for section in within_file(image, sections) {
            let lazy = section.name == ".rela.plt";
            let bytes = image.section_bytes(section);
            let (whole, _) = bytes.as_chunks::<{ size_of::<Rela64<LE>>() }>();
            let relocations: &[Rela64<LE>] = slice_from_all_bytes(whole.as_flattened()).unwrap_or_default();
            for relocation in relocations {
                let name = target(relocation, symbols.as_ref());
                if let Some(name) = name {
                    slots.by_address.insert(relocation.r_offset.get(LE), name);
                }
                if lazy {
                    slots.lazy.push(name);
                }
            }
        }
        slots
    }

    fn name_of_entry(&self, bytes: &[u8], start: Svma) -> Option<Name> {
        let mut pushed = None;
        for instruction in &mut Decoder::with_ip(64, bytes, start.0, DecoderOptions::NONE) {
            match instruction.code() {
                Code::Jmp_rm64 if instruction.op0_kind() == OpKind::Memory => {
                    let relative = instruction.memory_base() == Register::RIP;
                    return self.by_address.get(&instruction.memory_displacement64()).copied().filter(|_| relative);
                }
                Code::Pushq_imm32 | Code::Pushq_imm8 => pushed = usize::try_from(instruction.immediate(0)).ok(),
                Code::INVALID => break,
                _ => {}
            }
        }
        *self.lazy.get(pushed?)?
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

fn target(relocation: &Rela64<LE>, symbols: Option<&SymbolTable<'_>>) -> Option<Name> {
    match relocation.r_type(LE, false) {
        R_X86_64_JUMP_SLOT | R_X86_64_GLOB_DAT => {
            let symbols = symbols?;
            let symbol = symbols.symbols().get(relocation.r_sym(LE, false) as usize)?;
            symbols.name_offset(symbol).map(Name::Plt)
        }
        R_X86_64_IRELATIVE => Some(Name::PltOfResolver(Svma(relocation.r_addend.get(LE).cast_unsigned()))),
        RelocationType(_) => None,
    }
}
