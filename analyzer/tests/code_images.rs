//! Images: what is accepted, where bytes lie, and what damage does.

mod synthetic;

use std::path::Path;

use analyzer::address::Svma;
use analyzer::code::{Image, ImageError};
use synthetic::{Elf, Segment, TEXT, code, function};

fn refusal(bytes: &[u8]) -> String {
    Image::parse(bytes.to_vec()).unwrap_err().to_string()
}

#[test]
fn what_is_no_x86_program_is_refused() {
    let good = code(&[0xc3], vec![]).bytes();
    let patched = |offset: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[offset] = byte;
        refusal(&bytes)
    };
    assert_eq!(refusal(b""), "not an ELF file: it starts with [], not with 7f 45 4c 46");
    assert_eq!(refusal(b"#!/bin/sh\n"), "not an ELF file: it starts with [23, 21, 2f, 62], not with 7f 45 4c 46");
    assert_eq!(refusal(&good[..40]), "the ELF header at 0x0 with 64 bytes does not fit in the file's 40 bytes");
    let ident = "x86 code needs 1 or 2 (32 or 64 bits), 1 (little-endian), 1";
    assert_eq!(patched(4, 3), format!("ELF class 3, data encoding 1, version 1: {ident}"));
    assert_eq!(patched(5, 2), format!("ELF class 2, data encoding 2, version 1: {ident}"));
    let of_i386 = "ELF machine 3: only 62 (x86-64), and 3 (i386) in files of 32 bits, can be analyzed";
    assert_eq!(patched(18, 3), of_i386);
    assert_eq!(
        patched(18, 183),
        "ELF machine 183: only 62 (x86-64), and 3 (i386) in files of 32 bits, can be analyzed"
    );
    assert!(patched(54, 55).starts_with("bad program headers: "), "{}", patched(54, 55));
    assert!(refusal(&good[..100]).starts_with("bad program headers: "));
    let code_is_missing = "executable segment at 0x1000 with 1 bytes does not fit in the file's 512 bytes";
    assert_eq!(refusal(&good[..512]), code_is_missing);
}

#[test]
fn what_cannot_be_read_is_refused() {
    let missing = Image::open(Path::new("/nonexistent/file")).unwrap_err();
    assert!(matches!(missing, ImageError::Read { .. }), "{missing}");
    assert!(missing.to_string().starts_with("cannot read /nonexistent/file: "));
    let directory = Image::open(Path::new("/")).unwrap_err();
    assert_eq!(directory.to_string(), "/ is not a regular file");
    assert!(matches!(Image::open(Path::new("/dev/zero")), Err(ImageError::NotAFile(_))));
}

/// Relocatable files (kernel modules) and files of data only are files, but have no code.
#[test]
fn a_file_without_code_is_told() {
    let elf = Elf { segments: vec![], sections: vec![(".text", 0, 0, 0)], symbols: vec![] };
    let image = elf.image();
    assert_eq!(image.notes(), ["the file has no executable load segment"]);
    assert_eq!((image.svma_of_file_offset(0), image.is_executable(Svma(0))), (None, false));
}

/// A file whose first page holds the end of the read-only segment and the beginning of the code, mapped twice.
fn shared_page() -> Elf {
    Elf {
        segments: vec![
            Segment { address: 0, offset: 0, flags: 4, bytes: vec![0x11; 0x6b8] },
            Segment { address: 0x16c0, offset: 0x6c0, flags: 5, bytes: vec![0x90; 0x200] },
            Segment { address: 0x28c0, offset: 0x8c0, flags: 6, bytes: vec![0x22; 0x40] },
        ],
        sections: vec![],
        symbols: vec![],
    }
}

#[test]
fn segments_that_share_a_page_are_told_apart_by_address() {
    let image = shared_page().image();
    assert_eq!(image.svma_of_file_offset(0x6bf), None, "before the code");
    assert_eq!(image.svma_of_file_offset(0x6c0), Some(Svma(0x16c0)));
    assert_eq!(image.svma_of_file_offset(0x8bf), Some(Svma(0x18bf)));
    assert_eq!(image.svma_of_file_offset(0x8c0), None, "data");
    assert_eq!(image.file_offset_of_svma(Svma(0x16c0)), Some(0x6c0));
    assert_eq!(image.file_offset_of_svma(Svma(0x28c0)), Some(0x8c0));
    assert_eq!(image.file_offset_of_svma(Svma(0x16bf)), None);
    assert_eq!((image.is_executable(Svma(0x16c0)), image.is_executable(Svma(0x28c0))), (true, false));
    assert_eq!(image.bytes_at(Svma(0x16c0), 0x200), Some(&[0x90; 0x200][..]));
    assert_eq!(image.bytes_at(Svma(0x16c0), 0x201), None);
    assert_eq!(image.bytes_at(Svma(0x18bf), 1), Some(&[0x90][..]));
    assert_eq!(image.bytes_up_to(Svma(0x18b0), 100), [0x90; 16]);
    assert_eq!(image.bytes_at(Svma(u64::MAX), 1), None);
    assert_eq!(image.base_vaddr(), Svma(0));
}

/// Old linkers put code and read-only data at one file offset; only the code counts.
#[test]
fn an_offset_in_two_segments_is_that_of_the_code() {
    let segment = |address, flags| Segment { address, offset: 0x1000, flags, bytes: vec![0x90; 16] };
    let elf = Elf { segments: vec![segment(0x10_0000, 4), segment(0x20_0000, 5)], sections: vec![], symbols: vec![] };
    assert_eq!(elf.image().svma_of_file_offset(0x1008), Some(Svma(0x20_0008)));
    assert_eq!(elf.image().base_vaddr(), Svma(0x10_0000));
}

#[test]
fn executable_segments_are_disjoint_and_not_larger_than_the_file() {
    let segment = |address| Segment { address, offset: 0x1000, flags: 5, bytes: vec![0x90; 0x1000] };
    let overlapping = Elf { segments: vec![segment(0x1000), segment(0x1800)], sections: vec![], symbols: vec![] };
    let image = overlapping.image();
    assert_eq!(image.segments().len(), 1);
    assert_eq!(image.notes(), ["executable segment at 0x1800 overlaps the one before it and is left out"]);
    let many = Elf { segments: (0..100).map(|i| segment(i << 20)).collect(), sections: vec![], symbols: vec![] };
    let error = refusal(&many.bytes());
    assert!(error.starts_with("bad program headers: 409600 bytes of executable segments in a file of "), "{error}");
}

#[test]
fn damaged_section_headers_are_survived_and_told() {
    let elf = code(&[0x90, 0xc3], vec![function("f", TEXT, 2)]);
    let mut bytes = elf.bytes();
    bytes.truncate(bytes.len() - 1);
    let image = Image::parse(bytes).unwrap();
    assert!(image.sections().is_empty() && image.is_stripped());
    assert_eq!(image.notes().len(), 1);
    assert!(image.notes()[0].starts_with("section headers are not used: "), "{:?}", image.notes());
    assert_eq!(image.bytes_at(Svma(TEXT), 2), Some(&[0x90, 0xc3][..]));
}

#[test]
fn a_cut_segment_keeps_what_is_there() {
    let mut bytes = code(&[0x90; 0x100], vec![]).bytes();
    bytes.truncate(0x1080);
    let image = Image::parse(bytes).unwrap();
    assert_eq!(image.notes().len(), 2, "the segment and the section headers: {:?}", image.notes());
    assert!(image.notes()[0].contains("states 256 bytes, 128 are in the file"), "{:?}", image.notes());
    assert_eq!(image.svma_of_file_offset(0x107f), Some(Svma(TEXT + 0x7f)));
    assert_eq!(image.svma_of_file_offset(0x1080), None);
}
