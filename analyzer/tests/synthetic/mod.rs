//! ELF files made for tests.
#![allow(dead_code, reason = "each test file uses a part")]

use analyzer::address::Svma;
use analyzer::code::{BlockMap, FunctionTable, Image, Observed};

/// A `PT_LOAD` program header and its bytes.
#[derive(Debug)]
pub struct Segment {
    pub address: u64,
    pub offset: u64,
    /// `PF_R` 4, `PF_W` 2, `PF_X` 1.
    pub flags: u32,
    pub bytes: Vec<u8>,
}

#[derive(Debug)]
pub struct Symbol {
    pub name: &'static str,
    pub address: u64,
    pub size: u64,
    /// `STT_NOTYPE` 0, `STT_OBJECT` 1, `STT_FUNC` 2, `STT_GNU_IFUNC` 10.
    pub kind: u8,
    /// `STB_LOCAL` 0, `STB_GLOBAL` 1, `STB_WEAK` 2.
    pub binding: u8,
}

pub fn function(name: &'static str, address: u64, size: u64) -> Symbol {
    Symbol { name, address, size, kind: 2, binding: 1 }
}

#[derive(Debug)]
pub struct Elf {
    pub segments: Vec<Segment>,
    /// Executable sections: name, address, file offset, size.
    pub sections: Vec<(&'static str, u64, u64, u64)>,
    pub symbols: Vec<Symbol>,
}

/// Where [`code`] puts its bytes.
pub const TEXT: u64 = 0x40_1000;

/// A file with one section of code at [`TEXT`].
pub fn code(bytes: &[u8], symbols: Vec<Symbol>) -> Elf {
    Elf {
        segments: vec![Segment { address: TEXT, offset: 0x1000, flags: 5, bytes: bytes.to_vec() }],
        sections: vec![(".text", TEXT, 0x1000, bytes.len() as u64)],
        symbols,
    }
}

impl Elf {
    pub fn image(&self) -> Image {
        Image::parse(self.bytes()).unwrap()
    }

    /// The file: headers, segments where they say, then symbols, strings and section headers.
    pub fn bytes(&self) -> Vec<u8> {
        let mut file = vec![0; 64 + 56 * self.segments.len()];
        for segment in &self.segments {
            let (start, end) = (segment.offset as usize, segment.offset as usize + segment.bytes.len());
            file.resize(file.len().max(end), 0);
            file[start..end].copy_from_slice(&segment.bytes);
        }
        let mut strings = vec![0];
        let mut intern = |name: &str| {
            let offset = strings.len() as u32;
            strings.extend(name.bytes().chain([0]));
            offset
        };
        let mut symbols = vec![0; 24];
        for symbol in &self.symbols {
            symbols.extend(intern(symbol.name).to_le_bytes());
            symbols.extend([symbol.binding << 4 | symbol.kind, 0, 1, 0]);
            symbols.extend(symbol.address.to_le_bytes());
            symbols.extend(symbol.size.to_le_bytes());
        }
        let mut headers = vec![0; 64];
        for &(name, address, offset, size) in &self.sections {
            headers.extend(section_header(intern(name), 1, 6, address, offset, size, 0, 0));
        }
        let count = self.sections.len() as u32 + 3;
        let (symtab, strtab) = (intern(".symtab"), intern(".strtab"));
        let symbols_at = file.len() as u64;
        file.extend(&symbols);
        headers.extend(section_header(symtab, 2, 0, 0, symbols_at, symbols.len() as u64, count - 1, 24));
        headers.extend(section_header(strtab, 3, 0, 0, file.len() as u64, strings.len() as u64, 0, 0));
        file.extend(&strings);
        let headers_at = file.len() as u64;
        file.extend(&headers);
        self.write_headers(&mut file, headers_at, count as u16);
        file
    }

    fn write_headers(&self, file: &mut [u8], section_headers: u64, sections: u16) {
        let mut header = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        header.extend(3u16.to_le_bytes());
        header.extend(62u16.to_le_bytes());
        header.extend(1u32.to_le_bytes());
        for word in [0, 64, section_headers] {
            header.extend(word.to_le_bytes());
        }
        header.extend(0u32.to_le_bytes());
        for half in [64, 56, self.segments.len() as u16, 64, sections, sections - 1] {
            header.extend(half.to_le_bytes());
        }
        for segment in &self.segments {
            header.extend(1u32.to_le_bytes());
            header.extend(segment.flags.to_le_bytes());
            let size = segment.bytes.len() as u64;
            for word in [segment.offset, segment.address, segment.address, size, size, 0x1000] {
                header.extend(word.to_le_bytes());
            }
        }
        file[..header.len()].copy_from_slice(&header);
    }
}

#[expect(clippy::too_many_arguments, reason = "the fields of Elf64_Shdr")]
fn section_header(
    name: u32,
    kind: u32,
    flags: u64,
    address: u64,
    offset: u64,
    size: u64,
    link: u32,
    entry: u64,
) -> Vec<u8> {
    let mut header = Vec::new();
    header.extend(name.to_le_bytes());
    header.extend(kind.to_le_bytes());
    for word in [flags, address, offset, size] {
        header.extend(word.to_le_bytes());
    }
    header.extend(link.to_le_bytes());
    header.extend(0u32.to_le_bytes());
    for word in [1, entry] {
        header.extend(word.to_le_bytes());
    }
    header
}

/// Addresses at offsets from [`TEXT`].
pub fn at(offsets: &[u64]) -> Vec<Svma> {
    offsets.iter().map(|offset| Svma(TEXT + offset)).collect()
}

pub fn build(image: &Image, observed: &Observed) -> (FunctionTable, BlockMap) {
    let functions = FunctionTable::of(image);
    let blocks = BlockMap::build(image, &functions, observed);
    (functions, blocks)
}

/// One line per block: offsets from [`TEXT`] of start and end, number of instructions, terminator, evidence.
pub fn listing(blocks: &BlockMap) -> String {
    let line = |block: &analyzer::code::Block| {
        let (start, end) = (block.start.0 - TEXT, block.end.0 - TEXT);
        format!("{start:x}-{end:x} {} {:?} {:?}", block.instructions, block.terminator, block.evidence)
    };
    blocks.blocks().iter().map(line).collect::<Vec<_>>().join("\n")
}
