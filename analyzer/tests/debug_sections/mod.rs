//! Sections of debug information as one input, and what must hold of its index: shared by the tests and the fuzz target.
//!
//! ```text
//! u16 length of each section of `SECTIONS`, lowest byte first
//! their bytes, one after the other; the last of them may be cut short
//! ```

use std::path::PathBuf;

use analyzer::Binary;
use analyzer::address::Svma;
use analyzer::code::Image;
use analyzer::lines::{FileId, SourceIndex};

/// The sections that the index reads, and those of `.dwo` files among them.
pub const SECTIONS: [&str; 9] = [
    ".debug_info",
    ".debug_abbrev",
    ".debug_line",
    ".debug_str",
    ".debug_line_str",
    ".debug_rnglists",
    ".debug_ranges",
    ".debug_addr",
    ".debug_str_offsets",
];

/// Where the code is.
pub const CODE: Svma = Svma(0x40_1000);
/// Bytes of code.
pub const CODE_SIZE: usize = 0x1000;

/// An input of these sections, in the order of [`SECTIONS`].
#[allow(dead_code, reason = "the fuzz target is given inputs")]
pub fn input_of(sections: &[Vec<u8>]) -> Vec<u8> {
    let length = |section: &Vec<u8>| u16::try_from(section.len()).unwrap().to_le_bytes();
    [sections.iter().flat_map(length).collect(), sections.concat()].concat()
}

/// Reads the debug information of an input, and checks everything that is promised of the index. Returns how many spans it has.
pub fn check_input(input: &[u8]) -> usize {
    let Some((lengths, mut rest)) = input.split_at_checked(2 * SECTIONS.len()) else { return 0 };
    let sections: Vec<&[u8]> = lengths
        .chunks_exact(2)
        .map(|length| {
            let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
            let (section, behind) = rest.split_at(length.min(rest.len()));
            rest = behind;
            section
        })
        .collect();
    // No file is there to be found.
    let folder = PathBuf::from("/nonexistent");
    let image = Image::parse(program(&sections)).unwrap();
    let binary = Binary {
        file: folder.join("program"),
        place: folder.join("program"),
        image,
        debug_file: None,
        symfs: Some(folder),
        other_build: None,
        is_recorded: false,
        slide: 0,
        beside: Vec::new(),
        elsewhere: Default::default(),
    };
    let hits = [CODE..Svma(CODE.0 + CODE_SIZE as u64 / 4), Svma(CODE.0 + CODE_SIZE as u64 / 2)..Svma(u64::MAX)];
    let index = SourceIndex::read(&binary, &hits, 1);
    check(&index, input.len());
    index.spans().len()
}

fn check(index: &SourceIndex, bytes: usize) {
    assert!(index.spans().is_sorted_by(|a, b| a.end <= b.start));
    // Entries, ranges and rows take some of the bytes each.
    assert!(index.scopes().len() <= bytes && index.spans().len() <= 64 * bytes, "{}", index.spans().len());
    let is_known = |file: FileId| file == FileId::default() || index.file(file).is_some();
    let mut names = 0;
    for (place, scope) in index.scopes().iter().enumerate() {
        if let Some((caller, call)) = scope.caller {
            assert!((caller.0 as usize) < place && is_known(call.file));
        }
        let function = index.function(scope);
        names += [&function.name, &function.linkage_name].into_iter().flatten().map(String::len).sum::<usize>();
    }
    assert!(names <= 200 * bytes, "{names} {bytes}");
    for span in index.spans() {
        assert!(span.start < span.end && is_known(span.position.file));
        assert!((span.scope.0 as usize) < index.scopes().len());
        assert_eq!(index.at(span.start), Some(span));
    }
    for span in index.spans().iter().take(64) {
        assert!(index.frames(span).count() <= 501);
    }
}

/// An ELF file of code and these sections.
fn program(sections: &[&[u8]]) -> Vec<u8> {
    const HEADERS: usize = 64 + 56;
    let names = [&[""], &SECTIONS[..], &[".shstrtab"]].concat();
    let name_bytes: Vec<u8> = names.iter().flat_map(|name| [name.as_bytes(), b"\0"].concat()).collect();
    let bodies = [sections, &[&name_bytes]].concat();
    let mut file = vec![0; HEADERS];
    file.resize(HEADERS + CODE_SIZE, 0x90);
    let mut table = vec![[0_u64; 8]];
    let mut name = 1;
    for (index, body) in bodies.iter().enumerate() {
        let kind = if index < sections.len() { 1 } else { 3 }; // SHT_PROGBITS, SHT_STRTAB
        table.push([name | kind << 32, 0, 0, file.len() as u64, body.len() as u64, 0, 1, 0]);
        name += names[index + 1].len() as u64 + 1;
        file.extend_from_slice(body);
    }
    let at = file.len() as u64;
    file.extend(table.iter().flatten().flat_map(|word| word.to_le_bytes()));
    let count = table.len() as u64;
    let header = [
        0x0001_0102_464c_457f,
        0,
        0x0000_0001_003e_0002, // an executable for x86-64
        CODE.0,
        64,
        at,
        0x0038_0040_0000_0000, // sizes of the header and of a program header
        1 | 64 << 16 | count << 32 | (count - 1) << 48, // number of program headers, sections, and which has the names
    ];
    // PT_LOAD, readable and executable.
    let size = CODE_SIZE as u64;
    let segment = [1 | 5 << 32, HEADERS as u64, CODE.0, CODE.0, size, size, 1];
    let words = header.iter().chain(&segment).flat_map(|word: &u64| word.to_le_bytes());
    file.splice(..HEADERS, words);
    file
}
