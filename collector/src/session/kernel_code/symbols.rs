//! The symbols of the running kernel around some addresses, from `/proc/kallsyms`.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::ops::Range;
use std::path::Path;

/// Symbols that are looked at: kernels have some 200,000, with modules and all debugging half a million.
const MOST: usize = 8_000_000;
/// Where the last function ends that has no symbol after it.
const PAGE: u64 = 4096;

/// The functions that hold some addresses.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    /// By address, disjoint.
    pub functions: Vec<(Range<u64>, String)>,
}

impl Symbols {
    /// Reads those that hold one of the addresses, which ascend. The list is not sorted, and long: it is read twice, first for where functions
    /// begin, then for the names of the few.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn around(path: &Path, addresses: &[u64]) -> io::Result<Self> {
        let mut starts: Vec<u64> = Vec::new();
        for_each(path, |address, _, _| starts.push(address))?;
        starts.sort_unstable();
        starts.dedup();
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for at in addresses {
            if ranges.last().is_some_and(|last| last.contains(at)) {
                continue;
            }
            let after = starts.partition_point(|start| start <= at);
            let Some(start) = after.checked_sub(1).and_then(|before| starts.get(before)) else { continue };
            let end = starts.get(after).copied().unwrap_or(start.saturating_add(PAGE));
            if at < &end {
                ranges.push(*start..end);
            }
        }
        let mut names: Vec<Option<(u8, String)>> = vec![None; ranges.len()];
        for_each(path, |address, kind, name| {
            let Ok(index) = ranges.binary_search_by_key(&address, |range| range.start) else { return };
            let Some(rank) = rank(kind, name) else { return };
            if let Some(known) = names.get_mut(index)
                && known.as_ref().is_none_or(|(best, _)| rank < *best)
            {
                *known = Some((rank, name.to_owned()));
            }
        })?;
        let named = ranges.into_iter().zip(names).filter_map(|(range, known)| Some((range, known?.1)));
        Ok(Self { functions: named.collect() })
    }

    /// The function that holds an address.
    pub fn at(&self, address: u64) -> Option<Range<u64>> {
        let after = self.functions.partition_point(|(range, _)| range.start <= address);
        let (range, _) = self.functions.get(after.checked_sub(1)?)?;
        range.contains(&address).then(|| range.clone())
    }
}

/// Of several names the lowest is taken: global before weak and local ones, and before marks of the linker, which are no functions. `None` of data.
fn rank(kind: u8, name: &str) -> Option<u8> {
    if matches!(name, "_text" | "_stext" | "_sinittext") {
        return Some(2);
    }
    match kind {
        b'T' => Some(0),
        b't' | b'w' | b'W' => Some(1),
        _ => None,
    }
}

/// Calls `see` with each symbol that has an address: that, its type, its name.
fn for_each(path: &Path, mut see: impl FnMut(u64, u8, &str)) -> io::Result<()> {
    let mut file = BufReader::with_capacity(1 << 16, File::open(path)?);
    let mut line = String::new();
    for _ in 0..MOST {
        line.clear();
        if file.read_line(&mut line)? == 0 {
            break;
        }
        let mut fields = line.split_ascii_whitespace();
        let (Some(address), Some(kind), Some(name)) = (fields.next(), fields.next(), fields.next()) else { continue };
        let address = u64::from_str_radix(address, 16).ok().filter(|address| *address >= super::TEXT);
        if let (Some(address), Some(kind)) = (address, kind.bytes().next()) {
            see(address, kind, name);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_end_where_the_next_symbol_begins() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "0000000000001000 A percpu\nffffffff81000000 T _text\nffffffff81000000 t startup\nffffffff81000000 T _stext\n\
                    odd\nffffffffc0000000 t late\t[m]\nffffffff81000020 t alias\nffffffff81000020 T global\nffffffff81000080 D end\n";
        std::fs::write(file.path(), text).unwrap();
        let at = 0xffff_ffff_8100_0000;
        let far = 0xffff_ffff_c000_0000;
        let symbols =
            Symbols::around(file.path(), &[5, at + 1, at + 0x30, at + 0x7f, at + 0x90, far + 5, far + 0x2000]).unwrap();
        let expected = [(at..at + 0x20, "startup"), (at + 0x20..at + 0x80, "global"), (far..far + PAGE, "late")];
        assert_eq!(symbols.functions, expected.map(|(range, name)| (range, name.to_owned())));
        assert_eq!((symbols.at(at + 0x7f), symbols.at(at + 0x80)), (Some(at + 0x20..at + 0x80), None));
    }
}
