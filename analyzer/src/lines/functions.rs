//! Which function an entry stands for.

use std::collections::HashMap;

use gimli::{AttributeValue, DebugInfoOffset, UnitOffset};

use super::SourceFunction;
use super::damage::{Damage, MOST_ATTRIBUTES};
use super::sections::{Bytes, Unit};
use super::strings::{LONGEST, string};
use super::units::{DebugFile, OpenUnit};

/// An entry refers to its declaration, which refers to its class': more steps are a cycle.
const MOST_STEPS: usize = 8;
/// Bytes of entries and of names that are read for each byte of a unit. Entries refer to names and to each other, so a few bytes could state
/// any number of long names; programs of Rust and of C++ templates took up to 5.
const FUEL_PER_BYTE: usize = 64;

/// The functions of a unit that were asked for.
pub(super) struct Functions<'file, 'data> {
    file: &'file DebugFile<'data>,
    indices: HashMap<UnitOffset, u32>,
    list: Vec<SourceFunction>,
    /// `DW_AT_name` is the name that the linker sees.
    plain_names: bool,
    /// Bytes of entries and of names that may still be read.
    fuel: usize,
}

impl<'file, 'data> Functions<'file, 'data> {
    pub fn new(file: &'file DebugFile<'data>, opened: &OpenUnit<'data>) -> Self {
        let plain_names = match opened.root.attr_value(gimli::DW_AT_language) {
            Some(AttributeValue::Language(language)) => matches!(
                language,
                gimli::DW_LANG_C
                    | gimli::DW_LANG_C89
                    | gimli::DW_LANG_C99
                    | gimli::DW_LANG_C11
                    | gimli::DW_LANG_C17
                    | gimli::DwLang(0x3e) // DW_LANG_C23
                    | gimli::DW_LANG_Mips_Assembler
            ),
            _ => false,
        };
        // Plain names are kept twice.
        let fuel_per_byte = if plain_names { FUEL_PER_BYTE / 2 } else { FUEL_PER_BYTE };
        let fuel = opened.unit.header.length_including_self().saturating_mul(fuel_per_byte);
        Self { file, indices: HashMap::new(), list: Vec::new(), plain_names, fuel }
    }

    /// The index of the function that an entry of the unit stands for. The error says that the names are too many.
    pub fn of(&mut self, unit: &Unit<'data>, entry: UnitOffset) -> Result<u32, Damage> {
        if let Some(&known) = self.indices.get(&entry) {
            return Ok(known);
        }
        let index = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        let mut function = SourceFunction::default();
        // What is damaged otherwise leaves the function without what would have come.
        if let Err(Damage::Names) = self.describe(unit, entry, &mut function) {
            return Err(Damage::Names);
        }
        if self.plain_names && function.linkage_name.is_none() {
            function.linkage_name.clone_from(&function.name);
        }
        self.indices.insert(entry, index);
        self.list.push(function);
        Ok(index)
    }

    pub fn into_list(self) -> Vec<SourceFunction> {
        self.list
    }

    fn describe(&mut self, unit: &Unit<'data>, entry: UnitOffset, function: &mut SourceFunction) -> Result<(), Damage> {
        let Self { file, fuel, .. } = self;
        let mut next = describe_entry(file, unit, entry, fuel, function)?;
        let (mut file, mut unit) = (*file, unit);
        for _ in 0..MOST_STEPS {
            let found = match next {
                Some(AttributeValue::UnitRef(offset)) => Some((file, unit, offset)),
                Some(AttributeValue::DebugInfoRef(offset)) => entry_at(file, offset),
                Some(AttributeValue::DebugInfoRefSup(offset)) => {
                    file.alternate.as_deref().and_then(|file| entry_at(file, offset))
                }
                _ => None,
            };
            let Some(entry) = found else { break };
            (file, unit) = (entry.0, entry.1);
            next = describe_entry(file, unit, entry.2, fuel, function)?;
        }
        Ok(())
    }
}

/// The unit that holds an entry, and the entry's offset in it.
fn entry_at<'file, 'data>(
    file: &'file DebugFile<'data>,
    offset: DebugInfoOffset,
) -> Option<(&'file DebugFile<'data>, &'file Unit<'data>, UnitOffset)> {
    let index = file.unit_of(offset)?;
    let start = file.units.get(index)?.offset()?;
    let offset = UnitOffset(offset.0.checked_sub(start.0)?);
    Some((file, &file.shared(index)?.unit, offset))
}

/// Takes from an entry what is not known yet, and returns what it refers to.
fn describe_entry<'data>(
    file: &DebugFile<'data>,
    unit: &Unit<'data>,
    entry: UnitOffset,
    fuel: &mut usize,
    function: &mut SourceFunction,
) -> Result<Option<AttributeValue<Bytes<'data>>>, Damage> {
    let mut entries = unit.entries_raw(Some(entry))?;
    let Some(abbreviation) = entries.read_abbreviation()? else { return Ok(None) };
    let mut next = None;
    let mut names = 0;
    for &specification in abbreviation.attributes().iter().take(MOST_ATTRIBUTES) {
        let attribute = entries.read_attribute(specification)?;
        let mut name = || {
            if matches!(attribute.value(), AttributeValue::DebugStrRefSup(_)) && file.dwarf.sup().is_none() {
                return None;
            }
            let name = string(&file.dwarf, unit, attribute.value());
            let name = name.map(|name| String::from_utf8_lossy(name).into_owned());
            names += name.as_ref().map_or(LONGEST, String::len);
            name.filter(|name| !name.is_empty())
        };
        match attribute.name() {
            gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name if function.linkage_name.is_none() => {
                function.linkage_name = name();
            }
            gimli::DW_AT_name if function.name.is_none() => function.name = name(),
            gimli::DW_AT_decl_line if function.start_line.is_none() => {
                let line = attribute.udata_value().and_then(|line| u32::try_from(line).ok());
                function.start_line = line.filter(|&line| line > 0);
            }
            gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => next = Some(attribute.value()),
            _ => {}
        }
    }
    let bytes = entries.next_offset().0 - entry.0;
    *fuel = fuel.checked_sub(bytes + names).ok_or(Damage::Names)?;
    Ok(next)
}
