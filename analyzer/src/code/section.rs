//! Section headers, as far as the analysis needs them.

use object::LittleEndian as LE;
use object::elf::{SHF_ALLOC, SHF_COMPRESSED, SHF_EXECINSTR, SHT_NOBITS, SectionType};
use object::read::elf::{FileHeader, SectionHeader};

use super::file_bytes::FileBytes;
use crate::address::Svma;

/// A section header, with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The name, such as `.text`; bytes that are not UTF-8 are replaced.
    pub name: String,
    /// `sh_addr`: the address that the file states for its first byte.
    pub start: Svma,
    /// `sh_offset`: where its bytes begin in the file.
    pub file_offset: u64,
    /// `sh_size` in bytes, as stated: it may reach beyond the file.
    pub size: u64,
    /// `SHF_ALLOC` and `SHF_EXECINSTR` are set and the section has bytes in the file.
    pub executable: bool,
    /// `SHF_COMPRESSED` is set: its bytes begin with an `Elf64_Chdr` or `Elf32_Chdr`.
    pub(super) compressed: bool,
    pub(super) kind: SectionType,
    pub(super) link: u32,
}

impl Section {
    pub(crate) fn is_of(&self, kind: SectionType) -> bool {
        self.kind == kind
    }

    pub(super) fn has_bytes(&self) -> bool {
        self.kind != SHT_NOBITS && self.size > 0
    }
}

/// Section names are cut at this length: a damaged table must not make one long string into many.
const LONGEST_NAME: u64 = 255;

/// The section headers by index; none, and a note, when their table is damaged: programs run without it.
pub(super) fn sections<Elf: FileHeader<Endian = LE>>(
    header: &Elf,
    bytes: &FileBytes,
    notes: &mut Vec<String>,
) -> Vec<Section> {
    let headers = match header.section_headers(LE, bytes) {
        Ok(headers) => headers,
        Err(error) => {
            notes.push(format!("section headers are not used: {error}"));
            return Vec::new();
        }
    };
    let strings = header.shstrndx(LE, bytes).ok().and_then(|index| headers.get(index as usize));
    let strings = strings.map_or(u64::MAX, |section| section.sh_offset(LE).into());
    let name = |header: &Elf::SectionHeader| {
        let text = bytes.get_up_to(strings.saturating_add(header.sh_name(LE).into()), LONGEST_NAME);
        text.split(|&byte| byte == 0).next().unwrap_or_default()
    };
    headers.iter().map(|header| section(header, name(header))).collect()
}

fn section(header: &impl SectionHeader<Endian = LE>, name: &[u8]) -> Section {
    let flags = header.sh_flags(LE);
    let kind = header.sh_type(LE);
    Section {
        name: String::from_utf8_lossy(name).into_owned(),
        start: Svma(header.sh_addr(LE).into()),
        file_offset: header.sh_offset(LE).into(),
        size: header.sh_size(LE).into(),
        executable: flags.contains(SHF_ALLOC) && flags.contains(SHF_EXECINSTR) && kind != SHT_NOBITS,
        compressed: flags.contains(SHF_COMPRESSED),
        kind,
        link: header.sh_link(LE),
    }
}
