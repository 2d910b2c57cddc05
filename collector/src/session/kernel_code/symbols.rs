//! The symbols of the running kernel around some addresses, from `/proc/kallsyms`.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

/// Bytes of the list that are looked at: kernels have some 100,000 to 250,000 symbols of 45 bytes.
const MOST: u64 = 256 << 20;
/// Those that are looked at first.
const FIRST: u64 = 1 << 20;
/// Where a function ends that has no symbol after it is not known: so far after its start, on the bound of a page.
const PAGE: u64 = 4096;

/// The functions that hold some addresses.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    /// By address, disjoint.
    pub functions: Vec<(Range<u64>, String)>,
}

impl Symbols {
    /// Reads those that hold one of the addresses, which ascend, and those of the image with one of these names. The list is not sorted, and the
    /// kernel makes it anew for who reads it: it is read once, and gone through twice, first for where functions begin, then for the names of the
    /// few.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn around(path: &Path, addresses: &[u64], wanted: &[&str]) -> io::Result<Self> {
        let mut list = Vec::new();
        let mut file = File::open(path)?.take(MOST);
        file.by_ref().take(FIRST).read_to_end(&mut list)?;
        // Who may not know addresses sees zeros.
        if symbols(&list).next().is_none() {
            return Ok(Self::default());
        }
        file.read_to_end(&mut list)?;
        // Addresses, and the module: each has its symbols together.
        let mut starts: Vec<(u64, u32)> = Vec::new();
        let (mut module, mut number) = (None, 0);
        let mut addresses = addresses.to_vec();
        for symbol in symbols(&list) {
            if symbol.module != module {
                (module, number) = (symbol.module, number + 1);
            }
            starts.push((symbol.address, number));
            if symbol.module.is_none() && wanted.iter().any(|name| name.as_bytes() == symbol.name) {
                addresses.push(symbol.address);
            }
        }
        addresses.sort_unstable();
        starts.sort_unstable();
        starts.dedup_by_key(|(address, _)| *address);
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for at in &addresses {
            if ranges.last().is_some_and(|last| last.contains(at)) {
                continue;
            }
            let after = starts.partition_point(|(start, _)| start <= at);
            let Some((start, module)) = after.checked_sub(1).and_then(|before| starts.get(before)) else { continue };
            // What lies between modules may be code of something else, without symbols.
            let end = match starts.get(after) {
                Some((next, of)) if of == module => *next,
                next => end_unknown(*start).min(next.map_or(u64::MAX, |(next, _)| *next)),
            };
            if *at < end {
                ranges.push(*start..end);
            }
        }
        let mut names: Vec<Option<(u8, String)>> = vec![None; ranges.len()];
        for Symbol { address, kind, name, .. } in symbols(&list) {
            let Ok(index) = ranges.binary_search_by_key(&address, |range| range.start) else { continue };
            let Ok(name) = std::str::from_utf8(name) else { continue };
            let Some(rank) = rank(kind, name) else { continue };
            if let Some(known) = names.get_mut(index)
                && known.as_ref().is_none_or(|(best, _)| rank < *best)
            {
                *known = Some((rank, name.to_owned()));
            }
        }
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

/// Of several names the lowest is taken: global before weak and local ones, and before marks of the linker around functions, as
/// `__x86_indirect_thunk_array` is at `__x86_indirect_thunk_rax`. `None` of data.
fn rank(kind: u8, name: &str) -> Option<u8> {
    let is_mark = ["_text", "_stext", "_start", "_end", "_array"].iter().any(|end| name.ends_with(end));
    match kind {
        b'T' | b't' | b'w' | b'W' if is_mark || name == "_sinittext" => Some(2),
        b'T' => Some(0),
        b't' | b'w' | b'W' => Some(1),
        _ => None,
    }
}

fn end_unknown(start: u64) -> u64 {
    start.saturating_add(PAGE).checked_next_multiple_of(PAGE).unwrap_or(u64::MAX)
}

/// A line of the list.
pub(super) struct Symbol<'a> {
    pub address: u64,
    pub kind: u8,
    name: &'a [u8],
    /// `[ext4]`; the image has none.
    module: Option<&'a [u8]>,
}

/// Those that have an address where code of the kernel is. Lists have hundreds of thousands: what is not asked for is not looked at.
pub(super) fn symbols(list: &[u8]) -> impl Iterator<Item = Symbol<'_>> {
    let ends = memchr::memchr_iter(b'\n', list).chain((list.last() != Some(&b'\n')).then_some(list.len()));
    let mut begin = 0;
    let lines = ends.map(move |end| list.get(std::mem::replace(&mut begin, end + 1)..end).unwrap_or_default());
    lines.filter_map(|line| {
        let (address, line) = hexadecimal(line).filter(|(address, _)| *address >= super::TEXT)?;
        let (kind, line) = line.strip_prefix(b" ")?.split_first()?;
        let mut words = line.strip_prefix(b" ")?.splitn(2, u8::is_ascii_whitespace);
        let name = words.next().filter(|name| !name.is_empty())?;
        Some(Symbol { address, kind: *kind, name, module: words.next().map(<[u8]>::trim_ascii) })
    })
}

/// The number at the beginning, in digits of base 16, and what comes after it.
fn hexadecimal(line: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0_u64;
    for (at, byte) in line.iter().enumerate() {
        match char::from(*byte).to_digit(16) {
            Some(digit) if number >> 60 == 0 => number = number << 4 | u64::from(digit),
            Some(_) => return None,
            None => return Some((number, line.get(at..)?)),
        }
    }
    None
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
            Symbols::around(file.path(), &[5, at + 1, at + 0x30, at + 0x7f, at + 0x90, far + 5, far + 0x2000], &[])
                .unwrap();
        let expected = [(at..at + 0x20, "startup"), (at + 0x20..at + 0x80, "global"), (far..far + PAGE, "late")];
        assert_eq!(symbols.functions, expected.map(|(range, name)| (range, name.to_owned())));
        assert_eq!((symbols.at(at + 0x7f), symbols.at(at + 0x80)), (Some(at + 0x20..at + 0x80), None));
    }
    fn around(list: &str, addresses: &[u64]) -> Vec<(Range<u64>, String)> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), list).unwrap();
        Symbols::around(file.path(), addresses, &[]).unwrap().functions
    }

    #[test]
    fn names_of_functions_go_before_marks_of_the_linker() {
        let list = "ffffffff81c01150 t common_interrupt_return\nffffffff81c01150 T __irqentry_text_end\n\
                    ffffffff81e01580 T __x86_indirect_thunk_array\nffffffff81e01580 T __x86_indirect_thunk_rax\n\
                    ffffffff81e015a0 T _etext\n";
        let names = around(list, &[0xffff_ffff_81c0_1158, 0xffff_ffff_81e0_1580]);
        let names: Vec<&str> = names.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["common_interrupt_return", "__x86_indirect_thunk_rax"]);
    }

    #[test]
    fn what_lies_between_modules_is_no_function_of_the_first() {
        let list = "ffffffffc0215a07 t last\t[null_blk]\nffffffffc0215000 t first\t[null_blk]\n\
                    ffffffffc0533000 t begin\t[configfs]\nffffffffc0217800 t near\t[loop]\n";
        let last = 0xffff_ffff_c021_5a07;
        let functions = around(list, &[last + 0x10, last + 0x10_0000, 0xffff_ffff_c021_7801]);
        let near = 0xffff_ffff_c021_7800;
        let expected =
            [(last..0xffff_ffff_c021_7000, "last".to_owned()), (near..0xffff_ffff_c021_9000, "near".to_owned())];
        assert_eq!(functions, expected);
    }
}
