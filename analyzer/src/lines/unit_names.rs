//! What compilers were told to compile.

use super::sections::Sections;
use super::strings::string;
use super::units::DebugFile;
use crate::address::Svma;
use crate::binaries::Binary;

/// The name of the unit that each address is in (`DW_AT_name`: the file as it was named to the compiler); `None` where debug information
/// does not say it. That of units in `.dwo` files is not read.
pub(crate) fn unit_names(binary: &Binary, addresses: &[Svma]) -> Vec<Option<String>> {
    let image = binary.images().find(|image| image.has_debug_information());
    let Some(sections) = image.and_then(|image| Sections::of(image).ok()) else { return vec![None; addresses.len()] };
    let mut file = DebugFile::with_alternate(&sections, None);
    let code = file.code_of_units();
    let mut ranges: Vec<(u64, u64, usize)> = code
        .iter()
        .enumerate()
        .flat_map(|(unit, ranges)| ranges.iter().map(move |range| (range.start, range.end, unit)))
        // Linkers put code there that they left out.
        .filter(|(start, ..)| *start != 0)
        .collect();
    ranges.sort_unstable();
    let name = |address: &Svma| {
        let after = ranges.partition_point(|(start, ..)| *start <= address.0);
        let &(_, _, unit) = ranges.get(after.checked_sub(1)?).filter(|(_, end, _)| address.0 < *end)?;
        let opened = file.shared(unit)?;
        let name = string(&file.dwarf, &opened.unit, opened.root.attr_value(gimli::DW_AT_name)?)?;
        String::from_utf8(name.to_vec()).ok()
    };
    addresses.iter().map(name).collect()
}
