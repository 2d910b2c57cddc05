//! Real programs: instructions against `objdump`, names against `nm`, stripped copies against the originals.

mod real;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use analyzer::address::Svma;
use analyzer::code::{BlockMap, FunctionId, FunctionTable, Image, Observed, Origin, instructions, variants};
use real::{binaries, output_of};

/// Where `objdump -d` sees instructions, and how it prints them.
fn disassembly(path: &Path) -> Option<BTreeMap<Svma, String>> {
    let output = output_of("objdump", &["-d", "-w", "--no-show-raw-insn", path.to_str().unwrap()])?;
    let text = String::from_utf8(output).unwrap();
    let line = |line: &str| {
        let (address, instruction) = line.split_once(":\t")?;
        Some((Svma(u64::from_str_radix(address.trim(), 16).ok()?), instruction.to_owned()))
    };
    Some(text.lines().filter_map(line).collect())
}

fn all_blocks(image: &Image) -> (FunctionTable, BlockMap) {
    let functions = FunctionTable::of(image);
    let known = functions.iter().filter(|(_, function)| function.origin != Origin::Gap);
    let entries = known.map(|(_, function)| function.start).collect();
    let blocks = BlockMap::build(image, &functions, &Observed::new(vec![], entries, vec![]));
    (functions, blocks)
}

fn starts(image: &Image, blocks: &BlockMap) -> BTreeSet<Svma> {
    let decoded = blocks.blocks().iter().flat_map(|block| instructions(image, block));
    decoded.map(|instruction| Svma(instruction.ip())).collect()
}

/// Every instruction that `objdump` sees in a function, and no other, with three exceptions: the instruction behind a `lock` prefix
/// that code jumps over, the one behind an `fwait`, which `objdump` prints as one with it (`fstcw` for `fwait; fnstcw`), and zeros, which
/// it leaves out.
#[test]
fn instruction_boundaries_are_those_of_objdump() {
    for path in binaries() {
        let Some(disassembly) = disassembly(&path) else { return };
        let image = Image::open(&path).unwrap();
        let (functions, blocks) = all_blocks(&image);
        let found = starts(&image, &blocks);
        let in_function =
            |address: Svma| functions.at(address).is_some_and(|id| functions.get(id).origin != Origin::Gap);
        let missing: Vec<_> = disassembly
            .iter()
            .filter(|(address, _)| in_function(**address) && !found.contains(address))
            .take(20)
            .collect();
        assert!(missing.is_empty(), "{}: {missing:x?}", path.display());
        let explained = |address: Svma| {
            let prefix = Svma(address.0 - 1);
            let text = disassembly.get(&prefix).map_or("", String::as_str);
            let are_zeros = image.bytes_at(address, 2) == Some(&[0, 0]);
            are_zeros || text.starts_with("lock ") || image.bytes_at(prefix, 1) == Some(&[0x9b])
        };
        let extra: Vec<_> = found.iter().filter(|address| !disassembly.contains_key(address)).collect();
        let unexplained: Vec<_> = extra.iter().filter(|address| !explained(***address)).take(20).collect();
        assert!(unexplained.is_empty(), "{}: {unexplained:x?}", path.display());
        eprintln!("{}: {} instructions, {} explained", path.display(), found.len(), extra.len());
        assert!(found.len() > 5_000);
    }
}

#[test]
fn blocks_of_real_programs_keep_the_rules() {
    for path in binaries() {
        let image = Image::open(&path).unwrap();
        let (functions, blocks) = all_blocks(&image);
        for (index, block) in blocks.blocks().iter().enumerate() {
            assert!(block.start <= block.last && block.last < block.end && block.instructions > 0, "{block:?}");
            let function = functions.get(block.function);
            assert!(function.start <= block.start && block.end <= function.end, "{block:?} {function:?}");
            if let Some(next) = blocks.blocks().get(index + 1) {
                assert!(block.end <= next.start, "{block:?} {next:?}");
            }
            assert_eq!(instructions(&image, block).count(), block.instructions as usize, "{block:?}");
        }
    }
}

/// The symbols that `nm` calls code are functions, or aliases of one.
#[test]
fn functions_are_those_of_nm() {
    for path in binaries() {
        let path_text = path.to_str().unwrap();
        let Some(dynamic) = output_of("nm", &["-D", "--defined-only", path_text]) else { return };
        let image = Image::open(&path).unwrap();
        let functions = FunctionTable::of(&image);
        let mut checked = 0;
        for line in String::from_utf8(dynamic).unwrap().lines() {
            let mut fields = line.split_whitespace();
            let (Some(address), Some(kind), Some(name)) = (fields.next(), fields.next(), fields.next()) else {
                continue;
            };
            if !matches!(kind, "T" | "t" | "W" | "i") {
                continue;
            }
            let address = Svma(u64::from_str_radix(address, 16).unwrap());
            if kind == "W" && !image.is_executable(address) {
                continue;
            }
            let id = functions.at(address).unwrap_or_else(|| panic!("{}: {name}", path.display()));
            assert_eq!(functions.get(id).start, address, "{}: {name} is in {}", path.display(), functions.name(id));
            checked += 1;
        }
        eprintln!("{}: {checked} dynamic functions", path.display());
    }
}

#[test]
fn plt_entries_have_the_names_that_objdump_gives() {
    for path in binaries() {
        let Some(output) = output_of("objdump", &["-d", "-w", "--no-show-raw-insn", path.to_str().unwrap()]) else {
            return;
        };
        let image = Image::open(&path).unwrap();
        let functions = FunctionTable::of(&image);
        let mut checked = 0;
        for line in String::from_utf8(output).unwrap().lines() {
            let Some((address, name)) = line.split_once(" <") else { continue };
            let Some(name) = name.strip_suffix(">:").filter(|name| name.ends_with("@plt") && !name.starts_with('*'))
            else {
                continue;
            };
            let id = functions.at(Svma(u64::from_str_radix(address, 16).unwrap())).unwrap();
            // objdump prints the symbol's version, the string table has none.
            let bare = name.trim_end_matches("@plt").split('@').next().unwrap();
            assert_eq!(functions.name(id), format!("{bare}@plt"), "{}", path.display());
            checked += 1;
        }
        eprintln!("{}: {checked} PLT entries", path.display());
        assert!(checked > 0 || !path.ends_with("bash"));
    }
}

/// Stripped copies lose names but, with their unwind entries, not their code.
#[test]
fn stripped_copies_have_the_same_instructions() {
    let directory = tempfile::tempdir().unwrap();
    for path in binaries() {
        let image = Image::open(&path).unwrap();
        if image.is_stripped() {
            continue;
        }
        let copy = directory.path().join("stripped");
        let arguments = ["-o", copy.to_str().unwrap(), path.to_str().unwrap()];
        if output_of("strip", &arguments).is_none() {
            return;
        }
        let stripped = Image::open(&copy).unwrap();
        assert!(stripped.is_stripped());
        assert_eq!(stripped.build_id(), image.build_id());
        let (functions, blocks) = all_blocks(&stripped);
        let (found, original) = (starts(&stripped, &blocks), starts(&image, &all_blocks(&image).1));
        let described =
            |address: &&Svma| functions.at(**address).is_some_and(|id| functions.get(id).origin != Origin::Gap);
        let missing: Vec<_> = original.iter().filter(described).filter(|address| !found.contains(address)).collect();
        let extra: Vec<_> = found.difference(&original).take(20).collect();
        assert!(missing.is_empty() && extra.is_empty(), "{}: {missing:x?} {extra:x?}", path.display());
        let share = found.len() as f64 / original.len() as f64;
        eprintln!("{}: {} of {} instructions", path.display(), found.len(), original.len());
        assert!(share > 0.9, "{}: {share}", path.display());
    }
}

/// Without section headers the unwind table is found through its program header.
#[test]
fn unwind_entries_without_section_headers() {
    for path in binaries() {
        let image = Image::open(&path).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        // e_shoff, and e_shnum with e_shstrndx.
        let [table, number] = if image.address_bytes() == 4 { [32..36, 48..52] } else { [40..48, 60..64] };
        bytes[table].fill(0);
        bytes[number].fill(0);
        let bare = Image::parse(bytes).unwrap();
        assert!(bare.sections().is_empty());
        let ranges = |image: &Image| -> BTreeSet<(Svma, Svma)> {
            let functions = FunctionTable::of(image);
            let unwind = functions.iter().filter(|(_, function)| function.origin == Origin::EhFrame);
            unwind.map(|(_, function)| (function.start, function.end)).collect()
        };
        let (with, without) = (ranges(&image), ranges(&bare));
        assert!(without.len() > 50, "{}: {}", path.display(), without.len());
        let lost: Vec<_> = with
            .difference(&without)
            .filter(|(start, _)| !without.iter().any(|(s, e)| s <= start && start < e))
            .collect();
        assert!(lost.is_empty(), "{}: {lost:x?}", path.display());
    }
}

/// The GNU C library has some ten variants of `memcpy` alone, and a resolver for each of dozens of functions.
#[test]
fn variants_of_libc_are_found_without_symbols() {
    let path = Path::new("/lib/x86_64-linux-gnu/libc.so.6");
    let Some(symbols) = output_of("nm", &["-D", path.to_str().unwrap()]).filter(|_| path.exists()) else { return };
    let image = Image::open(path).unwrap();
    let functions = FunctionTable::of(&image);
    let families = variants(&image, &functions);
    let resolver = |line: &&str| line.contains(" i ");
    let resolvers: BTreeSet<&str> = std::str::from_utf8(&symbols)
        .unwrap()
        .lines()
        .filter(resolver)
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert!(2 * families.len() > resolvers.len(), "{} families of {} resolvers", families.len(), resolvers.len());
    assert!(families.iter().any(|family| family.len() >= 6), "{families:?}");
    let own = |family: &Vec<_>| family.windows(2).all(|pair: &[FunctionId]| pair[0] < pair[1]);
    assert!(families.iter().all(own), "{families:?}");
}
