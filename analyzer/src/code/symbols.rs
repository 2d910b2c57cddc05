//! Function symbols of the file.

use std::borrow::Cow;
use std::ops::Range;

use object::LittleEndian as LE;
use object::elf::{SHN_ABS, SHN_UNDEF, SHT_DYNSYM, SHT_SYMTAB, STT_FUNC, STT_OBJECT, SectionType, Sym32, Sym64};
use object::pod::{bytes_of, slice_from_all_bytes};
use object::{U32, U64};

use super::Image;
use super::candidate::{Candidate, Rank};
use super::function::Origin;
use super::made_elf::STT_PART;
use super::names::{Name, NamesOf};
use super::region::Region;
use crate::address::Svma;

/// A symbol table and where its strings start.
pub(crate) struct SymbolTable<'image> {
    bytes: Cow<'image, [u8]>,
    /// File range of the string table.
    strings: Range<u64>,
}

impl<'image> SymbolTable<'image> {
    /// The table of the given kind (`SHT_SYMTAB` or `SHT_DYNSYM`), if the file has one.
    pub fn of(image: &'image Image, kind: SectionType) -> Option<Self> {
        let section = image.sections().iter().find(|section| section.kind == kind)?;
        let strings = image.sections().get(section.link as usize)?;
        let strings = strings.file_offset..strings.file_offset.saturating_add(strings.size);
        let bytes = image.section_bytes(section);
        let bytes = if image.address_bytes() == 4 { Cow::Owned(widened(&bytes)) } else { bytes };
        Some(Self { bytes, strings })
    }

    pub fn symbols(&self) -> &[Sym64<LE>] {
        let (whole, _) = self.bytes.as_chunks::<{ size_of::<Sym64<LE>>() }>();
        slice_from_all_bytes(whole.as_flattened()).unwrap_or_default()
    }

    /// The file offset of a symbol's name.
    pub fn name_offset(&self, symbol: &Sym64<LE>) -> Option<u32> {
        let offset = self.strings.start.checked_add(symbol.st_name.get(LE).into())?;
        (symbol.st_name.get(LE) != 0 && offset < self.strings.end).then(|| u32::try_from(offset).ok())?
    }
}

/// The symbols of a file of class 32, as one of class 64 has them.
fn widened(symbols: &[u8]) -> Vec<u8> {
    let (whole, _) = symbols.as_chunks::<{ size_of::<Sym32<LE>>() }>();
    let symbols: &[Sym32<LE>] = slice_from_all_bytes(whole.as_flattened()).unwrap_or_default();
    let widened = symbols.iter().map(|symbol| Sym64::<LE> {
        st_name: U32::new(LE, symbol.st_name.get(LE)),
        st_info: symbol.st_info,
        st_other: symbol.st_other,
        st_shndx: symbol.st_shndx,
        st_value: U64::new(LE, symbol.st_value.get(LE).into()),
        st_size: U64::new(LE, symbol.st_size.get(LE).into()),
    });
    let mut bytes = Vec::with_capacity(symbols.len() * size_of::<Sym64<LE>>());
    widened.for_each(|symbol| bytes.extend(bytes_of(&symbol)));
    bytes
}

/// Adds the function symbols of `file` that lie in one of the regions. `names` says which file that is.
pub(super) fn add_symbols(file: &Image, names: NamesOf, regions: &[Region], candidates: &mut Vec<Candidate>) {
    for (kind, origin) in [(SHT_SYMTAB, Origin::Symbol), (SHT_DYNSYM, Origin::DynamicSymbol)] {
        let Some(table) = SymbolTable::of(file, kind) else { continue };
        candidates.reserve(table.symbols().len());
        candidates
            .extend(table.symbols().iter().filter_map(|symbol| candidate(&table, symbol, names, origin, regions)));
    }
}

impl Image {
    /// Whether the file has no function symbols of its own (`.symtab`), only dynamic ones at most.
    pub fn is_stripped(&self) -> bool {
        !SymbolTable::of(self, SHT_SYMTAB).is_some_and(|table| {
            table
                .symbols()
                .iter()
                .any(|symbol| symbol.st_shndx.get(LE) != SHN_UNDEF && [STT_FUNC, STT_PART].contains(&symbol.st_type()))
        })
    }

    /// The address of the first symbol of that name, of any type, in the full symbol table.
    pub(crate) fn symbol_address(&self, name: &str) -> Option<Svma> {
        let table = SymbolTable::of(self, SHT_SYMTAB)?;
        let bytes = self.shared_bytes();
        let wanted = [name.as_bytes(), &[0]].concat();
        let mut defined = table.symbols().iter().filter(|symbol| symbol.st_shndx.get(LE) != SHN_UNDEF);
        let is_wanted = |symbol: &&Sym64<LE>| {
            let at = table.name_offset(symbol);
            at.is_some_and(|at| bytes.get_up_to(at.into(), wanted.len() as u64) == wanted)
        };
        defined.find(is_wanted).map(|symbol| Svma(symbol.st_value.get(LE)))
    }

    /// Whether LLVM marked the program as one whose discriminators say which pass made a copy (`-enable-fs-discriminator`).
    pub(crate) fn has_flow_sensitive_discriminators(&self) -> bool {
        const MARK: &[u8] = b"__llvm_fs_discriminator__\0";
        SymbolTable::of(self, SHT_SYMTAB).is_some_and(|table| {
            let mut names = table.symbols().iter().filter(|symbol| symbol.st_type() == STT_OBJECT);
            let bytes = self.shared_bytes();
            names.any(|symbol| {
                table.name_offset(symbol).is_some_and(|name| bytes.get_up_to(name.into(), MARK.len() as u64) == MARK)
            })
        })
    }
}

fn candidate(
    table: &SymbolTable<'_>,
    symbol: &Sym64<LE>,
    names: NamesOf,
    origin: Origin,
    regions: &[Region],
) -> Option<Candidate> {
    let rank = Rank::of(symbol)?;
    let origin = if symbol.st_type() == STT_PART { Origin::Part } else { origin };
    let section = symbol.st_shndx.get(LE);
    if section == SHN_UNDEF || section == SHN_ABS {
        return None;
    }
    let start = Svma(symbol.st_value.get(LE));
    let region = Region::holding(regions, start)?;
    let end = Svma(start.0.saturating_add(symbol.st_size.get(LE))).min(region.end);
    let name = Name::String(names, table.name_offset(symbol)?);
    Some(Candidate { start, end, rank, origin, has_known_end: start < end, name })
}
