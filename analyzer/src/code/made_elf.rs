//! An ELF file for code that has none: what else reads code and names need not know where they are from.
//!
//! ```text
//! header | a program header for each run of pages | the pages | names | symbols | three section headers
//! ```

use object::elf::{STB_GLOBAL, STT_FUNC, STT_LOPROC, SymbolType};

/// A function: first address, bytes, name.
pub(crate) type MadeFunction<'a> = (u64, u64, std::borrow::Cow<'a, [u8]>);

/// The type of symbols of parts of functions: `STT_LOPROC`, which means nothing on x86-64.
pub(super) const STT_PART: SymbolType = SymbolType(STT_LOPROC);

const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const SECTION_HEADER: usize = 64;
/// The number of program headers is one of 16 bits.
const MOST_RUNS: usize = 60_000;

/// Writes the file, as [`made_elf_of_parts`] does.
pub(crate) fn made_elf(runs: &[(u64, Vec<u8>)], functions: &[MadeFunction<'_>]) -> (Vec<u8>, Vec<u64>) {
    made_elf_of_parts(runs, functions, &[])
}

/// Writes the file. `parts`: what has a name, too, but may begin amid an instruction. `runs`: addresses, ascending, and the bytes from there on, which do not overlap. Returns the offset of each run, too; runs after
/// 60,000 are left out and have none.
pub(crate) fn made_elf_of_parts(
    runs: &[(u64, Vec<u8>)],
    functions: &[MadeFunction<'_>],
    parts: &[MadeFunction<'_>],
) -> (Vec<u8>, Vec<u64>) {
    let runs = runs.get(..MOST_RUNS).unwrap_or(runs);
    let mut offset = HEADER + PROGRAM_HEADER * runs.len();
    let offsets: Vec<u64> = runs
        .iter()
        .map(|(_, bytes)| {
            let start = offset;
            offset += bytes.len();
            start as u64
        })
        .collect();
    let (mut strings, mut symbols) = (vec![0], vec![0; 24]);
    let of_functions = functions.iter().map(|function| (STT_FUNC, function));
    for (kind, (start, size, name)) in of_functions.chain(parts.iter().map(|part| (STT_PART, part))) {
        symbols.extend((strings.len() as u32).to_le_bytes());
        // Global, of the first section, whichever it is.
        symbols.extend([STB_GLOBAL.0 << 4 | kind.0, 0, 1, 0]);
        symbols.extend(start.to_le_bytes());
        symbols.extend(size.to_le_bytes());
        strings.extend(name.iter().map(|&byte| if byte == 0 { b'?' } else { byte }));
        strings.push(0);
    }
    let strings_at = offset;
    let symbols_at = (strings_at + strings.len()).next_multiple_of(8);
    let sections_at = symbols_at + symbols.len();

    let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    // A shared object for x86-64, version 1, without an entry.
    file.extend([3, 0, 62, 0, 1, 0, 0, 0]);
    let words = |file: &mut Vec<u8>, words: &[u64]| file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    words(&mut file, &[0, HEADER as u64, sections_at as u64]);
    file.extend(0_u32.to_le_bytes());
    for half in [HEADER, PROGRAM_HEADER, runs.len(), SECTION_HEADER, 3, 0] {
        file.extend((half as u16).to_le_bytes());
    }
    for ((start, bytes), offset) in runs.iter().zip(&offsets) {
        // PT_LOAD, readable and executable.
        file.extend([1, 0, 0, 0, 5, 0, 0, 0]);
        words(&mut file, &[*offset, *start, *start, bytes.len() as u64, bytes.len() as u64, 1]);
    }
    runs.iter().for_each(|(_, bytes)| file.extend(bytes));
    file.extend(&strings);
    file.resize(symbols_at, 0);
    file.extend(&symbols);
    file.resize(sections_at + SECTION_HEADER, 0);
    // SHT_STRTAB, and SHT_SYMTAB with its strings in section 1.
    let section = |kind: u32, at: usize, size: usize, link: u32, entry: u64| {
        let mut header = [0, kind].iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
        words(&mut header, &[0, 0, at as u64, size as u64]);
        header.extend([link, link].iter().flat_map(|word| word.to_le_bytes()));
        words(&mut header, &[8, entry]);
        header
    };
    file.extend(section(3, strings_at, strings.len(), 0, 0));
    file.extend(section(2, symbols_at, symbols.len(), 1, 24));
    (file, offsets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Svma;
    use crate::code::{FunctionTable, Image, Origin};

    #[test]
    fn its_code_and_names_are_read_as_of_any_file() {
        let runs = [(0x7f00_0000_1000, vec![0x90; 0x2000]), (0x7f00_0000_8000, vec![0xc3; 0x1000])];
        let functions: [MadeFunction<'_>; 2] =
            [(0x7f00_0000_1800, 0x900, b"JS:*fib a.js:1"[..].into()), (0x7f00_0000_8000, 0x9000, b"a\0b"[..].into())];
        let (file, offsets) = made_elf(&runs, &functions);
        let image = Image::parse(file).unwrap();
        assert_eq!(image.notes(), [""; 0]);
        assert_eq!(image.bytes_at(Svma(0x7f00_0000_1fff), 2), Some(&[0x90; 2][..]));
        assert_eq!(image.bytes_at(Svma(0x7f00_0000_8fff), 1), Some(&[0xc3][..]));
        assert_eq!(image.svma_of_file_offset(offsets[1] + 5), Some(Svma(0x7f00_0000_8005)));
        let table = FunctionTable::of(&image);
        let name = |address| table.name(table.at(Svma(address)).unwrap()).into_owned();
        assert_eq!(name(0x7f00_0000_20ff), "JS:*fib a.js:1");
        assert_eq!(name(0x7f00_0000_8fff), "a?b");
        assert!(table.at(Svma(0x7f00_0000_9000)).is_none());
        assert!(!image.is_stripped());
    }

    #[test]
    fn a_part_has_a_name_and_no_known_beginning() {
        let whole: [MadeFunction<'_>; 1] = [(0x1000, 0x100, b"whole"[..].into())];
        let parts: [MadeFunction<'_>; 1] = [(0x1100, 0x100, b"part"[..].into())];
        let (file, _) = made_elf_of_parts(&[(0x1000, vec![0x90; 0x1000])], &whole, &parts);
        let image = Image::parse(file).unwrap();
        let table = FunctionTable::of(&image);
        let of = |at| {
            let id = table.at(Svma(at)).unwrap();
            (table.name(id).into_owned(), table.get(id).origin)
        };
        assert_eq!(of(0x10ff), ("whole".to_owned(), Origin::Symbol));
        assert_eq!(of(0x11ff), ("part".to_owned(), Origin::Part));
        assert!(!Image::parse(made_elf_of_parts(&[], &[], &parts).0).unwrap().is_stripped());
    }

    #[test]
    fn nothing_is_a_file_without_code() {
        let (file, offsets) = made_elf(&[], &[]);
        assert!(offsets.is_empty() && Image::parse(file).unwrap().segments().is_empty());
    }
}
