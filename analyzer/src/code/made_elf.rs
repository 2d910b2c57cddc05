//! An ELF file for code that has none: what else reads code and names need not know where they are from.
//!
//! ```text
//! header | a program header for each run of pages | the pages | more sections | names | symbols | section headers
//! ```

use object::elf::{ET_CORE, STB_GLOBAL, STT_FUNC, STT_LOPROC, SymbolType};

/// A function: first address, bytes, name.
pub(crate) type MadeFunction<'a> = (u64, u64, std::borrow::Cow<'a, [u8]>);

/// The type of symbols of parts of functions: `STT_LOPROC`, which means nothing on x86-64.
pub(super) const STT_PART: SymbolType = SymbolType(STT_LOPROC);

const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const SECTION_HEADER: usize = 64;
/// The number of program headers is one of 16 bits.
const MOST_RUNS: usize = 60_000;

/// What the file is made of.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MadeElf<'a> {
    /// Addresses, ascending, and the bytes from there on, which do not overlap.
    pub(crate) runs: &'a [(u64, Vec<u8>)],
    pub(crate) functions: &'a [MadeFunction<'a>],
    /// What has a name, too, but may begin amid an instruction.
    pub(crate) parts: &'a [MadeFunction<'a>],
    /// Sections that are not loaded: names, and bytes.
    pub(crate) sections: &'a [(&'a str, Vec<u8>)],
}

/// Writes the file of code and functions, as [`MadeElf::write`] does.
pub(crate) fn made_elf(runs: &[(u64, Vec<u8>)], functions: &[MadeFunction<'_>]) -> (Vec<u8>, Vec<u64>) {
    MadeElf { runs, functions, ..MadeElf::default() }.write()
}

impl MadeElf<'_> {
    /// Writes the file. Returns the offset of each run, too; runs after 60,000 are left out and have none.
    pub(crate) fn write(&self) -> (Vec<u8>, Vec<u64>) {
        let Self { runs, functions, parts, sections } = *self;
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
        // SHT_PROGBITS: where their names are among the strings, where they are, and their sizes.
        let more = sections.iter().map(|(name, bytes)| {
            let (name_at, at) = (strings.len(), offset);
            strings.extend(name.bytes());
            strings.push(0);
            offset += bytes.len();
            (name_at, at, bytes.len())
        });
        let more: Vec<(usize, usize, usize)> = more.collect();
        let strings_at = offset;
        let symbols_at = (strings_at + strings.len()).next_multiple_of(8);
        let sections_at = symbols_at + symbols.len();

        let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        // A shared object for x86-64, version 1, without an entry.
        file.extend([3, 0, 62, 0, 1, 0, 0, 0]);
        let words = |file: &mut Vec<u8>, words: &[u64]| file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        words(&mut file, &[0, HEADER as u64, sections_at as u64]);
        file.extend(0_u32.to_le_bytes());
        // Names of sections are in section 1; where no section has a name, nothing says so.
        let names_in = usize::from(!more.is_empty());
        for half in [HEADER, PROGRAM_HEADER, runs.len(), SECTION_HEADER, 3 + more.len(), names_in] {
            file.extend((half as u16).to_le_bytes());
        }
        for ((start, bytes), offset) in runs.iter().zip(&offsets) {
            // PT_LOAD, readable and executable.
            file.extend([1, 0, 0, 0, 5, 0, 0, 0]);
            words(&mut file, &[*offset, *start, *start, bytes.len() as u64, bytes.len() as u64, 1]);
        }
        runs.iter().for_each(|(_, bytes)| file.extend(bytes));
        sections.iter().for_each(|(_, bytes)| file.extend(bytes));
        file.extend(&strings);
        file.resize(symbols_at, 0);
        file.extend(&symbols);
        file.resize(sections_at + SECTION_HEADER, 0);
        // SHT_STRTAB, and SHT_SYMTAB with its strings in section 1.
        let section = |name: usize, kind: u32, (at, size): (usize, usize), link: u32, (align, entry): (u64, u64)| {
            let mut header = [name as u32, kind].iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
            words(&mut header, &[0, 0, at as u64, size as u64]);
            header.extend([link, link].iter().flat_map(|word| word.to_le_bytes()));
            words(&mut header, &[align, entry]);
            header
        };
        file.extend(section(0, 3, (strings_at, strings.len()), 0, (8, 0)));
        file.extend(section(0, 2, (symbols_at, symbols.len()), 1, (8, 24)));
        for (name, at, size) in more {
            file.extend(section(name, 1, (at, size), 0, (1, 0)));
        }
        (file, offsets)
    }
}

/// The same as a core file: its addresses are those where the code ran.
pub(crate) fn made_core(runs: &[(u64, Vec<u8>)], functions: &[MadeFunction<'_>]) -> Vec<u8> {
    let (mut file, _) = made_elf(runs, functions);
    // `e_type`, after the 16 bytes that say which kind of ELF it is.
    file.splice(16..18, ET_CORE.0.to_le_bytes());
    file
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
        let runs = [(0x1000, vec![0x90; 0x1000])];
        let (file, _) = MadeElf { runs: &runs, functions: &whole, parts: &parts, ..MadeElf::default() }.write();
        let image = Image::parse(file).unwrap();
        let table = FunctionTable::of(&image);
        let of = |at| {
            let id = table.at(Svma(at)).unwrap();
            (table.name(id).into_owned(), table.get(id).origin)
        };
        assert_eq!(of(0x10ff), ("whole".to_owned(), Origin::Symbol));
        assert_eq!(of(0x11ff), ("part".to_owned(), Origin::Part));
        assert!(!Image::parse(MadeElf { parts: &parts, ..MadeElf::default() }.write().0).unwrap().is_stripped());
    }

    #[test]
    fn nothing_is_a_file_without_code() {
        let (file, offsets) = made_elf(&[], &[]);
        assert!(offsets.is_empty() && Image::parse(file).unwrap().segments().is_empty());
    }
}
