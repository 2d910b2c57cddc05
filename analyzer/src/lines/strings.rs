//! Strings of the debug information.

use gimli::{AttributeValue, Dwarf, Section};

use super::sections::{Bytes, Unit};

/// Longest string, in bytes.
pub(super) const LONGEST: usize = 1 << 14;

/// The string of an attribute. Its end is looked for no further than a string may be long; `None` for what is longer, damaged or no string.
pub(super) fn string<'data>(
    dwarf: &Dwarf<Bytes<'data>>,
    unit: &Unit<'data>,
    value: AttributeValue<Bytes<'data>>,
) -> Option<&'data [u8]> {
    let (section, offset) = match value {
        AttributeValue::String(string) => return Some(string.slice()).filter(|string| string.len() <= LONGEST),
        AttributeValue::DebugStrRef(offset) => (dwarf.debug_str.reader(), offset.0),
        AttributeValue::DebugStrRefSup(offset) => (dwarf.sup()?.debug_str.reader(), offset.0),
        AttributeValue::DebugLineStrRef(offset) => (dwarf.debug_line_str.reader(), offset.0),
        AttributeValue::DebugStrOffsetsIndex(index) => {
            (dwarf.debug_str.reader(), dwarf.string_offset(unit, index).ok()?.0)
        }
        _ => return None,
    };
    let string = section.slice().get(offset..)?;
    let end = string.iter().take(LONGEST + 1).position(|&byte| byte == 0)?;
    string.get(..end)
}
