//! The sections that the index reads.

use gimli::{Dwarf, DwarfPackageSections, DwarfSections, EndianSlice, LittleEndian, SectionId};

use crate::code::{ExpansionError, Image};

/// Bytes of a section.
pub(super) type Bytes<'data> = EndianSlice<'data, LittleEndian>;
pub(super) type Unit<'data> = gimli::Unit<Bytes<'data>>;
pub(super) type Entry<'data> = gimli::DebuggingInformationEntry<Bytes<'data>>;

/// Sections of one file, decompressed.
pub(super) struct Sections(DwarfSections<Vec<u8>>);

impl Sections {
    /// Those of a program, a library or a separate debug file.
    pub fn of(image: &Image) -> Result<Self, ExpansionError> {
        DwarfSections::load(|id| load(image, id, Some(id.name()))).map(Self)
    }

    /// Those of a `.dwo` file.
    pub fn of_split(image: &Image) -> Result<Self, ExpansionError> {
        DwarfSections::load(|id| load(image, id, id.dwo_name())).map(Self)
    }

    pub fn dwarf(&self) -> Dwarf<Bytes<'_>> {
        self.0.borrow(|bytes| EndianSlice::new(bytes, LittleEndian))
    }
}

/// The sections of a `.dwp` file: all, as its index is checked against all.
pub(super) fn package_sections(image: &Image) -> Result<DwarfPackageSections<Vec<u8>>, SectionError> {
    let load = |id: SectionId| id.dwo_name().map_or(Ok(Vec::new()), |name| image.debug_section(name));
    DwarfPackageSections::load(|id| Ok(load(id)?))
}

/// Why the sections of a `.dwp` file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum SectionError {
    /// What is in them contradicts the format.
    #[error("{0}")]
    Format(#[from] gimli::Error),
    /// They cannot be decompressed.
    #[error(transparent)]
    Compressed(#[from] ExpansionError),
}

fn load(image: &Image, id: SectionId, name: Option<&str>) -> Result<Vec<u8>, ExpansionError> {
    match (id, name) {
        (
            SectionId::DebugAbbrev
            | SectionId::DebugAddr
            | SectionId::DebugInfo
            | SectionId::DebugLine
            | SectionId::DebugLineStr
            | SectionId::DebugStr
            | SectionId::DebugStrOffsets
            | SectionId::DebugRanges
            | SectionId::DebugRngLists,
            Some(name),
        ) => image.debug_section(name),
        _ => Ok(Vec::new()),
    }
}
