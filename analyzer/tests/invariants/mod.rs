//! What must hold for any bytes: shared by the property tests and the fuzz target.

use std::collections::BTreeSet;

use ::instructions::{Attributes, BranchKind};
use analyzer::address::Svma;
use analyzer::code::{
    Block, BlockMap, Evidence, Function, FunctionId, FunctionTable, Image, Observed, Origin, Terminator, demangle,
    instructions,
};

/// One byte n, n observations of three bytes, then an ELF file: the input of the fuzz target and its seeds.
#[allow(dead_code, reason = "the fuzz target takes this one")]
pub fn check_input(input: &[u8]) {
    let Some((&count, rest)) = input.split_first() else { return };
    let (choices, file) = rest.split_at((usize::from(count) * 3).min(rest.len()));
    check(choices, file);
}

/// Analyzes `file` as if the code that `choices` point at had run, and checks everything that is promised of the outcome.
///
/// Three bytes of `choices` are one observation: what was seen (ip, target or source), and where, as a fraction of the code.
pub fn check(choices: &[u8], file: &[u8]) {
    let Ok(image) = Image::parse(file.to_vec()) else { return };
    let functions = FunctionTable::of(&image);
    check_functions(&image, &functions);
    let observed = observations(&image, choices);
    let blocks = BlockMap::build(&image, &functions, &observed);
    check_map(&image, &functions, &blocks);
    check_observed(&image, &functions, &blocks, &observed);
    check_targets(&image, &functions, &blocks);
}

fn observations(image: &Image, choices: &[u8]) -> Observed {
    let code: Vec<_> = image.segments().iter().filter(|segment| segment.executable).collect();
    let total: u64 = code.iter().map(|segment| segment.size).sum();
    let mut seen = [vec![], vec![], vec![]];
    for choice in choices.chunks_exact(3) {
        let mut distance = (total * u64::from(u16::from_le_bytes([choice[1], choice[2]]))) >> 16;
        for segment in &code {
            if distance < segment.size {
                seen[usize::from(choice[0]) % 3].push(Svma(segment.start.0 + distance));
                break;
            }
            distance -= segment.size;
        }
    }
    let [ips, targets, sources] = seen;
    Observed::new(ips, targets, sources)
}

fn check_functions(image: &Image, functions: &FunctionTable) {
    let mut end = Svma(0);
    for (id, function) in functions.iter() {
        assert!(function.start < function.end && end <= function.start, "{function:?}");
        assert!(function.symbol <= function.start, "{function:?}");
        assert!(image.is_executable(function.start) && image.is_executable(Svma(function.end.0 - 1)), "{function:?}");
        assert_eq!(functions.at(function.start), Some(id));
        assert_eq!(functions.at(Svma(function.end.0 - 1)), Some(id));
        if id.0 < 64 {
            assert!(!demangle(&functions.name(id)).is_empty() || function.origin != Origin::Gap);
        }
        end = function.end;
    }
}

fn check_map(image: &Image, functions: &FunctionTable, blocks: &BlockMap) {
    let mut end = Svma(0);
    for (index, block) in blocks.blocks().iter().enumerate() {
        assert!(end <= block.start && block.start <= block.last && block.last < block.end, "{block:?}");
        let function = functions.get(block.function);
        assert!(function.start <= block.start && block.end <= function.end, "{block:?} {function:?}");
        assert_eq!(blocks.block_at(block.start), Some(index));
        assert_eq!(blocks.block_at(Svma(block.end.0 - 1)), Some(index));
        check_instructions(image, function, blocks, index, block);
        end = block.end;
    }
    check_coverage(functions, blocks);
}

fn check_instructions(image: &Image, function: &Function, blocks: &BlockMap, index: usize, block: &Block) {
    let decoded: Vec<_> = instructions(image, block).collect();
    assert_eq!(decoded.len(), block.instructions as usize, "{block:?}");
    let (last, before) = decoded.split_last().unwrap();
    assert_eq!(last.ip(), block.last.0);
    assert!(last.next_ip() >= block.end.0 && last.next_ip() <= function.end.0, "{block:?}");
    for instruction in before {
        assert_eq!(Attributes::of(instruction).branch, BranchKind::None, "{block:?}");
    }
    let branch = Attributes::of(last).branch;
    let expected: &[Terminator] = match branch {
        BranchKind::None => {
            &[Terminator::FallThrough, Terminator::Observed, Terminator::Overlap, Terminator::Undecodable]
        }
        BranchKind::Conditional => &[Terminator::Conditional],
        BranchKind::Jump => &[Terminator::Jump],
        BranchKind::IndirectJump => &[Terminator::IndirectJump],
        BranchKind::Call => &[Terminator::Call],
        BranchKind::IndirectCall => &[Terminator::IndirectCall],
        BranchKind::Return => &[Terminator::Return],
        BranchKind::SystemCall => &[Terminator::SystemCall],
        BranchKind::Trap => &[Terminator::Trap],
    };
    assert!(expected.contains(&block.terminator), "{block:?} {branch:?}");
    match blocks.following(index) {
        Some(next) => assert_eq!(blocks.blocks()[next].start.0, last.next_ip(), "{block:?}"),
        None => {
            let inside = last.next_ip() < function.end.0;
            assert!(!(inside && block.terminator == Terminator::FallThrough), "{block:?} falls into nothing");
        }
    }
}

/// In functions that are decoded as a whole every byte is in a block or counted, unless instructions overlap.
fn check_coverage(functions: &FunctionTable, blocks: &BlockMap) {
    let hit: BTreeSet<FunctionId> = blocks.blocks().iter().map(|block| block.function).collect();
    let size = |id: &FunctionId| functions.get(*id).end.0 - functions.get(*id).start.0;
    // In gaps, and in parts that only have a name, what was seen to run is decoded, and what follows from it.
    let is_whole = |id: FunctionId| !matches!(functions.get(id).origin, Origin::Gap | Origin::Part);
    let total: u64 = hit.iter().filter(|id| is_whole(**id)).map(size).sum();
    let in_whole = |block: &&Block| is_whole(block.function);
    let covered: u64 = blocks.blocks().iter().filter(in_whole).map(|block| block.end.0 - block.start.0).sum();
    let statistics = blocks.statistics();
    assert!(statistics.functions >= hit.len() as u64);
    if statistics.overlapping_instructions == 0 && statistics.functions == hit.len() as u64 {
        assert_eq!(covered + blocks.undecodable_bytes(), total);
    }
}

fn check_observed(image: &Image, functions: &FunctionTable, blocks: &BlockMap, observed: &Observed) {
    let block_of = |address: Svma| {
        let function = functions.get(functions.at(address)?);
        decodes(image, function, address).then(|| blocks.blocks()[blocks.block_at(address).expect("a block")])
    };
    for &target in &observed.targets {
        assert!(block_of(target).is_none_or(|block| block.start == target), "target {target}");
    }
    for &source in &observed.sources {
        assert!(block_of(source).is_none_or(|block| block.last == source), "source {source}");
    }
    for &ip in &observed.ips {
        let starts = |block: Block| instructions(image, &block).any(|instruction| instruction.ip() == ip.0);
        assert!(block_of(ip).is_none_or(starts), "ip {ip}");
    }
}

/// Where code that ran jumps to, a block starts.
fn check_targets(image: &Image, functions: &FunctionTable, blocks: &BlockMap) {
    let hit: BTreeSet<FunctionId> = blocks.blocks().iter().map(|block| block.function).collect();
    for block in blocks.blocks() {
        if block.evidence != Evidence::Reached
            || !matches!(block.terminator, Terminator::Conditional | Terminator::Jump)
        {
            continue;
        }
        let Some(last) = instructions(image, block).last().filter(|last| last.near_branch_target() != 0) else {
            continue;
        };
        let target = Svma(last.near_branch_target());
        let Some(id) = functions.at(target).filter(|id| hit.contains(id)) else { continue };
        if decodes(image, functions.get(id), target) {
            let index = blocks.block_at(target).expect("a block at the target");
            assert_eq!(blocks.blocks()[index].start, target, "{block:?}");
        }
    }
}

/// Whether the bytes at an address are an instruction that ends in the function.
fn decodes(image: &Image, function: &Function, address: Svma) -> bool {
    !image.decoder(address, (function.end.0 - address.0).min(15)).decode().is_invalid()
}
