//! Which function an entry stands for.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;

use gimli::{AttributeValue, DebugInfoOffset, Error, UnitOffset};

use super::SourceFunction;
use super::damage::MOST_ATTRIBUTES;
use super::sections::Bytes;
use super::units::{DebugFile, OpenUnit, Unit};

/// An entry refers to its declaration, which refers to its class': more steps are a cycle.
const MOST_STEPS: usize = 8;
/// Longest name, in bytes.
const LONGEST_NAME: usize = 1 << 14;

/// The functions of a unit that were asked for.
pub(super) struct Functions<'file, 'data> {
    file: &'file DebugFile<'data>,
    /// Other units that entries refer to.
    others: HashMap<usize, Option<OpenUnit<'data>>>,
    indices: HashMap<UnitOffset, u32>,
    list: Vec<SourceFunction>,
    /// `DW_AT_name` is the name that the linker sees.
    plain_names: bool,
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
        Self { file, others: HashMap::new(), indices: HashMap::new(), list: Vec::new(), plain_names }
    }

    /// The index of the function that an entry of the unit stands for.
    pub fn of(&mut self, unit: &Unit<'data>, entry: UnitOffset) -> u32 {
        if let Some(&known) = self.indices.get(&entry) {
            return known;
        }
        let index = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        self.indices.insert(entry, index);
        let mut function = SourceFunction::default();
        // What is damaged leaves the function without what would have come.
        let _ = self.describe(unit, entry, &mut function);
        if self.plain_names && function.linkage_name.is_none() {
            function.linkage_name.clone_from(&function.name);
        }
        self.list.push(function);
        index
    }

    pub fn into_list(self) -> Vec<SourceFunction> {
        self.list
    }

    fn describe(&mut self, unit: &Unit<'data>, entry: UnitOffset, function: &mut SourceFunction) -> Result<(), Error> {
        let Self { file, others, .. } = self;
        let mut next = describe_entry(file, unit, entry, function)?;
        let mut here = None;
        for _ in 0..MOST_STEPS {
            let (index, offset) = match next {
                Some(AttributeValue::UnitRef(offset)) => (here, offset),
                Some(AttributeValue::DebugInfoRef(offset)) => {
                    let Some(index) = file.unit_of(offset) else { break };
                    match to_unit(file, index, offset) {
                        Some(offset) => (Some(index), offset),
                        None => break,
                    }
                }
                _ => break,
            };
            here = index;
            let unit = match index {
                None => unit,
                Some(index) => {
                    let opened = match others.entry(index) {
                        Slot::Occupied(known) => known.into_mut(),
                        Slot::Vacant(free) => free.insert(file.open(index).ok()),
                    };
                    match opened {
                        Some(opened) => &opened.unit,
                        None => break,
                    }
                }
            };
            next = describe_entry(file, unit, offset, function)?;
        }
        Ok(())
    }
}

fn to_unit(file: &DebugFile<'_>, index: usize, offset: DebugInfoOffset) -> Option<UnitOffset> {
    let start = file.units[index].offset()?;
    offset.0.checked_sub(start.0).map(UnitOffset)
}

/// Takes from an entry what is not known yet, and returns what it refers to.
fn describe_entry<'data>(
    file: &DebugFile<'data>,
    unit: &Unit<'data>,
    entry: UnitOffset,
    function: &mut SourceFunction,
) -> Result<Option<AttributeValue<Bytes<'data>>>, Error> {
    let mut entries = unit.entries_raw(Some(entry))?;
    let Some(abbreviation) = entries.read_abbreviation()? else { return Ok(None) };
    let mut next = None;
    for &specification in abbreviation.attributes().iter().take(MOST_ATTRIBUTES) {
        let attribute = entries.read_attribute(specification)?;
        let name = || file.dwarf.attr_string(unit, attribute.value()).ok().and_then(text);
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
    Ok(next)
}

fn text(bytes: Bytes<'_>) -> Option<String> {
    let bytes = bytes.slice();
    (1..=LONGEST_NAME).contains(&bytes.len()).then(|| String::from_utf8_lossy(bytes).into_owned())
}
