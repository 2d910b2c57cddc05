//! Any bytes give a clear error or a result that keeps the rules: no panic, no hang, no memory beyond a small multiple of the file.

mod invariants;
mod real;
mod synthetic;

use analyzer::address::Svma;
use analyzer::code::{Bitness, BlockMap, FunctionTable, Image, Observed};
use invariants::check;
use proptest::collection::vec;
use proptest::prelude::*;
use synthetic::{Elf, Segment, Symbol, TEXT, code};

/// Observations at twelve places all over the code.
const EVERYWHERE: &[u8] = &[
    0, 0, 0, 1, 0, 20, 2, 0, 40, 0, 0, 60, 1, 0, 80, 2, 0, 100, 0, 0, 120, 1, 0, 140, 2, 0, 160, 0, 0, 180, 1, 0, 220,
    2, 0, 250,
];

fn symbol() -> impl Strategy<Value = Symbol> {
    let names = prop::sample::select(vec!["f", "g", "_h", "f@@V1", "_ZN1a1bEv"]);
    let size = prop_oneof![Just(0), 1..40u64, Just(u64::MAX)];
    (names, 0..160u64, size, prop::sample::select(vec![0u8, 1, 2, 10]), 0..3u8).prop_map(
        |(name, offset, size, kind, binding)| Symbol { name, address: TEXT - 8 + offset, size, kind, binding },
    )
}

/// Bytes with more branches, prefixes and returns than chance would have.
fn code_byte() -> impl Strategy<Value = u8> {
    let frequent =
        vec![0x74, 0x75, 0xeb, 0xe8, 0xe9, 0xc3, 0x90, 0xf0, 0x66, 0x0f, 0x48, 0xff, 0xcc, 0x05, 0x01, 0xfe, 0xf8];
    prop_oneof![2 => any::<u8>(), 3 => prop::sample::select(frequent)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn random_code(bytes in vec(code_byte(), 1..150), symbols in vec(symbol(), 0..8), choices in vec(any::<u8>(), 0..40)) {
        check(&choices, &code(&bytes, symbols).bytes());
    }

    #[test]
    fn random_segments(
        layout in vec((0..0x3000u64, 0..0x3000u64, 0..8u32, vec(code_byte(), 0..200)), 0..5),
        choices in vec(any::<u8>(), 0..40),
    ) {
        let segment = |(address, offset, flags, bytes)| Segment { address, offset: 0x400 + offset, flags, bytes };
        let segments = layout.into_iter().map(segment).collect();
        check(&choices, &Elf { segments, sections: vec![], symbols: vec![] }.bytes());
    }

    #[test]
    fn random_bytes_after_an_elf_header(bytes in vec(any::<u8>(), 0..600), choices in vec(any::<u8>(), 0..40)) {
        let mut file = code(&[0xc3], vec![]).bytes();
        file.truncate(64);
        file.extend(bytes);
        check(&choices, &file);
    }
}

fn small_file() -> Vec<u8> {
    let symbols = vec![synthetic::function("f", TEXT, 6), synthetic::function("g", TEXT + 6, 4)];
    let mut elf = code(&[0x74, 0x02, 0xeb, 0x04, 0x90, 0xc3, 0xe8, 0xf5, 0xff, 0xff, 0xff, 0xc3], symbols);
    elf.segments[0].offset = 0x100;
    elf.sections[0].2 = 0x100;
    elf.bytes()
}

#[test]
fn every_truncation_of_a_small_file() {
    let file = small_file();
    for length in 0..=file.len() {
        check(EVERYWHERE, &file[..length]);
    }
}

#[test]
fn every_flipped_bit_of_a_small_file() {
    let mut file = small_file();
    for bit in 0..file.len() * 8 {
        file[bit / 8] ^= 1 << (bit % 8);
        check(EVERYWHERE, &file);
        file[bit / 8] ^= 1 << (bit % 8);
    }
}

/// `/bin/true`, cut and damaged: it has everything a linker writes.
#[test]
fn a_real_program_damaged() {
    let Ok(file) = std::fs::read("/bin/true") else {
        testing::skip!(Tool, "no /bin/true");
        return;
    };
    let section_headers = u64::from_le_bytes(file[40..48].try_into().unwrap()) as usize;
    damage(&file, 64 + 13 * 56, section_headers);
}

/// The same of a program of 32 bits.
#[test]
fn a_real_program_of_32_bits_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("small.c");
    std::fs::write(&source, "#include <stdio.h>\nint main(void) { return puts(\"small\"); }\n").unwrap();
    let Some(program) = testing::c_program(folder.path(), "small", &[source], &["-m32", "-s"]) else { return };
    let file = std::fs::read(program).unwrap();
    assert_eq!(Image::parse(file.clone()).unwrap().bitness(), Bitness::Bits32);
    let section_headers = u32::from_le_bytes(file[32..36].try_into().unwrap()) as usize;
    damage(&file, 52 + 11 * 32, section_headers);
}

/// Cuts a file, and damages it: `headers` are those at its start, `section_headers` those at its end.
fn damage(file: &[u8], headers: usize, section_headers: usize) {
    for length in (0..file.len()).step_by(97) {
        check(EVERYWHERE, &file[..length]);
    }
    // A fixed sequence of damage: headers more often than the rest.
    let mut random = fastrand::Rng::with_seed(1);
    let mut next = |limit: usize| random.usize(..limit);
    for round in 0..600 {
        let mut damaged = file.to_vec();
        for _ in 0..=next(4) {
            let at = match round % 4 {
                0 => next(headers),
                1 => section_headers + next(file.len() - section_headers),
                _ => next(file.len()),
            };
            damaged[at] ^= 1 << next(8);
        }
        check(EVERYWHERE, &damaged);
    }
}

/// Many symbols at one address whose names are one long string.
#[test]
fn aliases_without_end() {
    let mut elf = code(&[0xc3; 16], vec![]);
    elf.symbols = (0..50_000).map(|_| synthetic::function("x", TEXT, 16)).collect();
    let mut file = elf.bytes();
    let strings = file.windows(2).rposition(|pair| pair == b"x\0").unwrap();
    for byte in &mut file[strings - 100_000..] {
        if *byte == 0 {
            *byte = b'y';
        }
    }
    check(EVERYWHERE, &file);
    check(EVERYWHERE, &elf.bytes());
}

/// Thousands of section headers that all state the whole file, as everything that is read by kind.
#[test]
fn sections_that_state_the_file_many_times() {
    let mut elf = code(&[0xc3; 1 << 20], vec![]);
    let names = [".plt", ".rela.plt", ".eh_frame", ".symtab", ".dynsym", ".note"];
    elf.sections = (0..6_000).map(|index| (names[index % 6], TEXT, 0, 1 << 20)).collect();
    for kind in [1, 2, 4, 7, 11] {
        let mut file = elf.bytes();
        let headers = u64::from_le_bytes(file[40..48].try_into().unwrap()) as usize;
        for header in file[headers..].chunks_exact_mut(64).skip(1).take(6_000) {
            header[4] = kind;
        }
        check(&[1, 0, 0], &file);
    }
}

/// Functions that run into each other, each jumping far ahead: every one becomes hit by the one before.
#[test]
fn a_chain_of_functions_that_run_into_each_other() {
    let count = 20_000;
    // nop; nop; je to the second nop of the function 501 further on.
    let bytes: Vec<u8> = (0..count).flat_map(|_| [0x90, 0x90, 0x0f, 0x84, 0xa1, 0x0f, 0x00, 0x00]).collect();
    let symbols = (0..count).map(|index| synthetic::function("f", TEXT + 8 * index, 8)).collect();
    let image = code(&bytes, symbols).image();
    let functions = FunctionTable::of(&image);
    let blocks = BlockMap::build(&image, &functions, &Observed::new(vec![], vec![Svma(TEXT)], vec![]));
    assert_eq!(blocks.statistics().functions, count);
    let split = blocks.blocks().iter().filter(|block| block.start.0 % 8 == 1).count() as u64;
    assert_eq!((blocks.blocks().len() as u64, split), (count + count - 501, count - 501));
}

/// Overlapping instructions everywhere: every byte of a long run is seen as a target.
#[test]
fn every_byte_is_a_target() {
    let bytes = [0x48, 0xb8].repeat(20_000);
    let image = code(&bytes, vec![synthetic::function("f", TEXT, bytes.len() as u64)]).image();
    let functions = FunctionTable::of(&image);
    let targets = (0..bytes.len() as u64).map(|offset| Svma(TEXT + offset)).collect();
    let blocks = BlockMap::build(&image, &functions, &Observed::new(vec![], targets, vec![]));
    // The instructions at the very end do not fit.
    let (all, _) = blocks.blocks().split_at(bytes.len() - 20);
    assert!(all.iter().all(|block| block.instructions == 1 && block.end.0 == block.start.0 + 1));
}

/// The fuzz target's seeds, whole and with each byte damaged.
#[test]
fn fuzz_seeds() {
    let seeds = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/analyzer/seeds/blocks");
    let mut count = 0;
    for entry in std::fs::read_dir(&seeds).unwrap() {
        let path = entry.unwrap().path();
        let seed = std::fs::read(&path).unwrap();
        let image = Image::parse(seed[13..].to_vec()).unwrap();
        let blocks =
            BlockMap::build(&image, &FunctionTable::of(&image), &Observed::new(vec![], vec![image.entry()], vec![]));
        // What fuzzing has found need not begin with an instruction.
        assert!(image.entry().0 == 0 || !blocks.blocks().is_empty() || path.ends_with("part"));
        invariants::check_input(&seed);
        for offset in 0..seed.len() {
            let mut damaged = seed.clone();
            damaged[offset] = damaged[offset].wrapping_add(0x55);
            invariants::check_input(&damaged);
        }
        count += 1;
    }
    assert_eq!(count, 4);
}

/// Memory of this process, which has run all of the above or some of it, stays far below what hostile numbers ask for.
#[test]
fn memory_stays_small() {
    let file = small_file();
    for offset in 0..file.len() - 8 {
        let mut damaged = file.clone();
        damaged[offset..offset + 8].copy_from_slice(&0x7fff_ffff_ffff_fff0u64.to_le_bytes());
        check(EVERYWHERE, &damaged);
        damaged[offset..offset + 8].copy_from_slice(&0x0000_0000_fff0_0000u64.to_le_bytes());
        check(EVERYWHERE, &damaged);
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes < 1 << 20, "{kilobytes} kB");
    assert!(Image::parse(file).is_ok());
}
