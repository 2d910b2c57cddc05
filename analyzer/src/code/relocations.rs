//! Relocations of the slots of the global offset table.

use object::LittleEndian as LE;
use object::elf::{
    FileHeader32, FileHeader64, R_386_GLOB_DAT, R_386_IRELATIVE, R_386_JMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_IRELATIVE,
    R_X86_64_JUMP_SLOT, RelocationType, SHT_REL, SHT_RELA,
};
use object::pod::{Pod, slice_from_all_bytes};
use object::read::elf::{FileHeader, Rela};

use super::section::Section;
use super::{Bitness, Image};
use crate::address::Svma;

/// What a slot of the global offset table is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotOf {
    /// The dynamic symbol of this index.
    Symbol(usize),
    /// What the resolver at this address returns.
    Resolver(Svma),
    /// Something else.
    Other,
}

/// Whether a section has relocations.
pub(super) fn has_relocations(section: &Section) -> bool {
    section.kind == SHT_RELA || section.kind == SHT_REL
}

/// Of each relocation in a section, the address of the slot and what it is for.
pub(super) fn slots(image: &Image, section: &Section) -> Vec<(Svma, SlotOf)> {
    match (image.address_bytes(), section.kind) {
        (4, SHT_REL) => read::<FileHeader32<LE>, <FileHeader32<LE> as FileHeader>::Rel>(image, section, true),
        (4, _) => read::<FileHeader32<LE>, <FileHeader32<LE> as FileHeader>::Rela>(image, section, false),
        (_, SHT_REL) => read::<FileHeader64<LE>, <FileHeader64<LE> as FileHeader>::Rel>(image, section, true),
        (..) => read::<FileHeader64<LE>, <FileHeader64<LE> as FileHeader>::Rela>(image, section, false),
    }
}

/// `in_place`: what is to be added is not in the relocation, but in its slot.
fn read<Elf: FileHeader<Endian = LE>, Entry: Pod + Clone + Into<Elf::Rela>>(
    image: &Image,
    section: &Section,
    in_place: bool,
) -> Vec<(Svma, SlotOf)> {
    let bytes = image.section_bytes(section);
    let whole = bytes.len() - bytes.len() % size_of::<Entry>();
    let entries: &[Entry] = bytes.get(..whole).and_then(|whole| slice_from_all_bytes(whole).ok()).unwrap_or_default();
    let slots = entries.iter().cloned().map(|entry| {
        let entry: Elf::Rela = entry.into();
        let slot = Svma(entry.r_offset(LE).into());
        let added: i64 = entry.r_addend(LE).into();
        let added = || if in_place { image.address_at(slot) } else { Some(Svma(added.cast_unsigned())) };
        let of = match kind(entry.r_type(LE, false), image.bitness()) {
            Kind::Symbol => SlotOf::Symbol(entry.r_sym(LE, false) as usize),
            Kind::Resolver => added().map_or(SlotOf::Other, SlotOf::Resolver),
            Kind::Other => SlotOf::Other,
        };
        (slot, of)
    });
    slots.collect()
}

enum Kind {
    Symbol,
    Resolver,
    Other,
}

fn kind(relocation: RelocationType, bitness: Bitness) -> Kind {
    match (bitness, relocation) {
        (Bitness::Bits64, R_X86_64_JUMP_SLOT | R_X86_64_GLOB_DAT) => Kind::Symbol,
        (Bitness::Bits32, R_386_JMP_SLOT | R_386_GLOB_DAT) => Kind::Symbol,
        (Bitness::Bits64, R_X86_64_IRELATIVE) | (Bitness::Bits32, R_386_IRELATIVE) => Kind::Resolver,
        _ => Kind::Other,
    }
}
