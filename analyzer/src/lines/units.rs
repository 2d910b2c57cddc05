//! The units of one file: where they are, and which code they are about.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use gimli::{
    Abbreviations, AttributeValue, DebugAbbrev, DebugAbbrevOffset, DebugAddrBase, DebugInfoOffset, DebugLineOffset,
    DebugLocListsBase, DebugRngListsBase, DebugStrOffsetsBase, Dwarf, EndianSlice, LittleEndian, Section, UnitHeader,
    UnitType,
};

use super::damage::{Damage, MOST_ATTRIBUTES};
use super::ranges::{RangeAttributes, read_ranges};
use super::sections::{Bytes, Entry, Sections, Unit};

/// The debug information of one file, by units.
pub(super) struct DebugFile<'data> {
    pub dwarf: Dwarf<Bytes<'data>>,
    /// The units whose header and abbreviations can be read, by offset in the section.
    pub units: Vec<UnitHead<'data>>,
    /// What was damaged, in words.
    pub notes: Vec<String>,
    /// What `dwz` moved to another file.
    pub alternate: Option<Box<DebugFile<'data>>>,
}

/// What is known of a unit without reading it.
pub(super) struct UnitHead<'data> {
    header: UnitHeader<Bytes<'data>>,
    abbreviations: Arc<Abbreviations>,
    /// For entries of other units that refer to it: `None` if it is damaged.
    opened: OnceLock<Option<OpenUnit<'data>>>,
}

/// A unit, opened, with its first entry.
pub(super) struct OpenUnit<'data> {
    pub unit: Unit<'data>,
    pub root: Entry<'data>,
}

impl<'data> DebugFile<'data> {
    /// Finds the units; reading stops at the first one whose header is damaged.
    pub fn of(dwarf: Dwarf<Bytes<'data>>) -> Self {
        let mut notes = Vec::new();
        let mut headers = Vec::new();
        let mut all = dwarf.units();
        loop {
            match all.next() {
                Ok(Some(header)) => headers.push(header),
                Ok(None) => break,
                Err(error) => {
                    notes.push(format!("debug information after its unit {} is not read: {error}", headers.len()));
                    break;
                }
            }
        }
        let tables = abbreviations(&dwarf, headers.iter().map(|header| header.debug_abbrev_offset().0).collect());
        let found = headers.len();
        let units: Vec<UnitHead<'data>> = headers
            .into_iter()
            .filter_map(|header| {
                let abbreviations = Arc::clone(tables.get(&header.debug_abbrev_offset().0)?);
                Some(UnitHead { header, abbreviations, opened: OnceLock::new() })
            })
            .collect();
        if units.len() < found {
            notes.push(format!(
                "{} of {found} units of debug information have a damaged table of abbreviations and are not read",
                found - units.len()
            ));
        }
        Self { dwarf, units, notes, alternate: None }
    }

    /// The same of a file that refers to another one.
    pub fn with_alternate(sections: &'data Sections, alternate: Option<&'data Sections>) -> Self {
        let mut dwarf = sections.dwarf();
        if let Some(alternate) = alternate {
            dwarf.set_sup(alternate.dwarf());
        }
        let alternate = alternate.map(|alternate| Box::new(Self::of(alternate.dwarf())));
        Self { alternate, ..Self::of(dwarf) }
    }

    /// Opens a unit: reads its first entry, and nothing after that.
    pub fn open(&self, index: usize) -> Result<OpenUnit<'data>, Damage> {
        let head = self.units.get(index).ok_or(gimli::Error::MissingUnitDie)?;
        let mut entries = head.header.entries_raw(&head.abbreviations, None)?;
        let abbreviation = entries.clone().read_abbreviation()?.ok_or(gimli::Error::MissingUnitDie)?;
        if abbreviation.attributes().len() > MOST_ATTRIBUTES {
            return Err(Damage::Attributes(abbreviation.attributes().len()));
        }
        let mut root = Entry::null();
        entries.read_entry(&mut root)?;
        let unit = unit(&self.dwarf, head, &root);
        let low_pc = root.attr_value(gimli::DW_AT_low_pc).map(|value| self.dwarf.attr_address(&unit, value));
        let low_pc = low_pc.transpose()?.flatten().unwrap_or(0);
        Ok(OpenUnit { unit: Unit { low_pc, ..unit }, root })
    }

    /// A unit that entries of others refer to, opened once, whoever asks.
    pub fn shared(&self, index: usize) -> Option<&OpenUnit<'data>> {
        self.units.get(index)?.opened.get_or_init(|| self.open(index).ok()).as_ref()
    }

    /// The unit that holds an entry.
    pub fn unit_of(&self, offset: DebugInfoOffset) -> Option<usize> {
        let after = self.units.partition_point(|head| head.offset().is_some_and(|start| start <= offset));
        after.checked_sub(1)
    }

    /// The address ranges of every unit, as far as its first entry says. More ranges than the lists have bytes are in no honest file:
    /// units do not share lists.
    pub fn code_of_units(&mut self) -> Vec<Vec<Range<u64>>> {
        let lists = &self.dwarf.ranges;
        let bytes = lists.debug_ranges().reader().slice().len() + lists.debug_rnglists().reader().slice().len();
        let mut fuel = bytes + 2 * self.units.len();
        let (mut damaged, mut example) = (0, None);
        let code = (0..self.units.len())
            .map(|index| {
                let mut ranges = Vec::new();
                let read = self.open(index).and_then(|opened| {
                    let attributes = RangeAttributes::of(&opened.root);
                    read_ranges(&self.dwarf, &opened.unit, &attributes, &mut fuel, |range| ranges.push(range))
                });
                if let Err(error) = read {
                    damaged += 1;
                    example.get_or_insert(error);
                }
                ranges
            })
            .collect();
        if let Some(error) = example {
            self.notes.push(format!("{damaged} units of debug information cannot be opened: {error}"));
        }
        code
    }

    /// The line program that a unit names. Programs are cut where the next one starts: nothing is read twice.
    pub fn line_program(
        &self,
        opened: &OpenUnit<'data>,
        starts: &BTreeSet<usize>,
    ) -> Option<Result<gimli::IncompleteLineProgram<Bytes<'data>>, gimli::Error>> {
        let offset = line_offset(&opened.root)?;
        let bytes = self.dwarf.debug_line.reader().slice();
        let end = starts.range(offset + 1..).next().map_or(bytes.len(), |&next| next);
        let section = gimli::DebugLine::from(EndianSlice::new(bytes.get(..end).unwrap_or(bytes), LittleEndian));
        Some(section.program(DebugLineOffset(offset), opened.unit.header.address_size(), None, None))
    }
}

impl UnitHead<'_> {
    pub fn offset(&self) -> Option<DebugInfoOffset> {
        self.header.debug_info_offset()
    }
}

/// Where the line program of a unit starts.
pub(super) fn line_offset(root: &Entry<'_>) -> Option<usize> {
    match root.attr_value(gimli::DW_AT_stmt_list)? {
        AttributeValue::DebugLineRef(offset) => Some(offset.0),
        _ => None,
    }
}

/// The tables of abbreviations by offset, each cut where the next one starts: nothing is read twice.
fn abbreviations(dwarf: &Dwarf<Bytes<'_>>, offsets: BTreeSet<usize>) -> BTreeMap<usize, Arc<Abbreviations>> {
    let bytes = dwarf.debug_abbrev.reader().slice();
    let ends = offsets.iter().skip(1).copied().chain([bytes.len()]);
    let tables = offsets.iter().zip(ends).filter_map(|(&offset, end)| {
        let section = DebugAbbrev::from(EndianSlice::new(bytes.get(..end).unwrap_or(bytes), LittleEndian));
        Some((offset, Arc::new(section.abbreviations(DebugAbbrevOffset(offset)).ok()?)))
    });
    tables.collect()
}

/// As `gimli::Unit::new` makes it, but without its line program, whose header is long, and without its names.
fn unit<'data>(dwarf: &Dwarf<Bytes<'data>>, head: &UnitHead<'data>, root: &Entry<'data>) -> Unit<'data> {
    let (encoding, file) = (head.header.encoding(), dwarf.file_type);
    let mut unit = Unit {
        abbreviations: Arc::clone(&head.abbreviations),
        name: None,
        comp_dir: None,
        low_pc: 0,
        str_offsets_base: DebugStrOffsetsBase::default_for_encoding_and_file(encoding, file),
        addr_base: DebugAddrBase(0),
        loclists_base: DebugLocListsBase::default_for_encoding_and_file(encoding, file),
        rnglists_base: DebugRngListsBase::default_for_encoding_and_file(encoding, file),
        line_program: None,
        dwo_id: match head.header.type_() {
            UnitType::Skeleton(id) | UnitType::SplitCompilation(id) => Some(id),
            _ => None,
        },
        header: head.header,
    };
    for attribute in root.attrs() {
        match attribute.value() {
            AttributeValue::DebugStrOffsetsBase(base) => unit.str_offsets_base = base,
            AttributeValue::DebugAddrBase(base) => unit.addr_base = base,
            AttributeValue::DebugRngListsBase(base) => unit.rnglists_base = base,
            AttributeValue::DwoId(id) => unit.dwo_id = unit.dwo_id.or(Some(id)),
            _ => {}
        }
    }
    unit
}
