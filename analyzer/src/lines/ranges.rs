//! Address ranges of entries.

use std::ops::Range;

use gimli::{AttributeValue, Dwarf};

use super::damage::Damage;
use super::sections::{Bytes, Entry, Unit};

type Value<'data> = AttributeValue<Bytes<'data>>;

/// What an entry says of its addresses.
#[derive(Default)]
pub(super) struct RangeAttributes<'data> {
    pub low: Option<Value<'data>>,
    pub high: Option<Value<'data>>,
    pub list: Option<Value<'data>>,
}

impl<'data> RangeAttributes<'data> {
    pub fn of(entry: &Entry<'data>) -> Self {
        Self {
            low: entry.attr_value(gimli::DW_AT_low_pc),
            high: entry.attr_value(gimli::DW_AT_high_pc),
            list: entry.attr_value(gimli::DW_AT_ranges),
        }
    }
}

/// Reads the ranges of an entry that hold at least one byte.
///
/// Entries can share lists, so each range takes one of `fuel`; the list that it runs out in ends there.
pub(super) fn read_ranges<'data>(
    dwarf: &Dwarf<Bytes<'data>>,
    unit: &Unit<'data>,
    attributes: &RangeAttributes<'data>,
    fuel: &mut usize,
    mut found: impl FnMut(Range<u64>),
) -> Result<(), Damage> {
    let mut found = |range: Range<u64>| {
        if range.start < range.end {
            found(range);
        }
    };
    if let Some(list) = attributes.list
        && let Some(mut list) = dwarf.attr_ranges(unit, list)?
    {
        while let Some(range) = list.next()? {
            if *fuel == 0 {
                return Err(Damage::Ranges);
            }
            *fuel -= 1;
            found(range.begin..range.end);
        }
        return Ok(());
    }
    let Some(low) = attributes.low else { return Ok(()) };
    let Some(low) = dwarf.attr_address(unit, low)? else { return Ok(()) };
    let high = match attributes.high {
        Some(AttributeValue::Udata(size)) => low.checked_add(size),
        Some(high) => dwarf.attr_address(unit, high)?,
        None => None,
    };
    found(low..high.unwrap_or(low));
    Ok(())
}
