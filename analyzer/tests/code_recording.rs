//! Blocks against what hardware saw: every branch of a recording ends a block, every target starts one, and between a target and the
//! next branch the blocks are one run.

use std::collections::BTreeMap;

use analyzer::address::Svma;
use analyzer::code::{BlockMap, FunctionTable, Image, Observed};
use perfdata::{Avma, Chunk, RecordType, Recording};
use testing::Fixture;

#[derive(Default)]
struct Seen {
    ips: Vec<Svma>,
    targets: Vec<Svma>,
    sources: Vec<Svma>,
    /// Target and next source, with how often.
    streams: BTreeMap<(Svma, Svma), u64>,
}

/// What the recording saw of a program that runs where its file says.
fn read(recording: &Recording, image: &Image) -> Seen {
    let mut seen = Seen::default();
    let here = |address: Avma| Some(Svma(address.0)).filter(|&address| image.is_executable(address));
    let (mut chunks, mut chunk) = (recording.chunks(), Chunk::new());
    while chunks.next_into(&mut chunk).unwrap() {
        for raw in chunk.records().filter(|raw| raw.record_type == RecordType::SAMPLE) {
            let sample = recording.sample(&raw).unwrap();
            seen.ips.extend(sample.ip.and_then(here));
            let stack = sample.branch_stack.unwrap();
            for branch in stack.iter() {
                seen.targets.extend(here(branch.to));
                seen.sources.extend(here(branch.from));
            }
            // Newest first: the branch before is the next that was taken.
            for (newer, older) in stack.iter().zip(stack.iter().skip(1)) {
                if let (Some(target), Some(source)) = (here(older.to), here(newer.from)) {
                    *seen.streams.entry((target, source)).or_default() += 1;
                }
            }
        }
    }
    seen
}

/// Whether the blocks from `target` to the one that ends with `source` follow each other.
fn is_one_run(blocks: &BlockMap, target: Svma, source: Svma) -> bool {
    let mut at = blocks.block_at(target);
    while let Some(index) = at {
        let block = &blocks.blocks()[index];
        if block.last >= source || !block.terminator.can_fall_through() {
            return block.last == source;
        }
        at = blocks.following(index);
    }
    false
}

#[test]
fn every_stream_is_a_run_of_blocks() {
    for (fixture, streams) in Fixture::all_stacks().iter().zip([15_000, 100_000]) {
        check(fixture, streams);
    }
}

fn check(fixture: &Fixture, least: u64) {
    let image = Image::open(&fixture.binary).unwrap();
    let functions = FunctionTable::of(&image);
    let Seen { ips, targets, sources, streams } = read(&Recording::open(&fixture.recording).unwrap(), &image);
    assert!(streams.values().sum::<u64>() > least);
    let observed = Observed::new(ips, targets, sources);
    let blocks = BlockMap::build(&image, &functions, &observed);
    let statistics = blocks.statistics();
    assert_eq!((statistics.sources_without_branch, statistics.observed_undecodable), (0, 0));
    for &(target, source) in streams.keys() {
        assert!(is_one_run(&blocks, target, source), "{target} to {source}");
    }
    // The same without symbols and unwind entries, from what was seen alone.
    let bare = std::fs::read(&fixture.binary).unwrap();
    let bare = without_headers(bare);
    let functions = FunctionTable::of(&bare);
    let blocks = BlockMap::build(&bare, &functions, &observed);
    for &(target, source) in streams.keys() {
        assert!(is_one_run(&blocks, target, source), "{target} to {source} in {} functions", functions.len());
    }
}

/// No section headers, and no program header that leads to the unwind table.
fn without_headers(mut file: Vec<u8>) -> Image {
    file[40..48].fill(0);
    file[60..64].fill(0);
    let headers = usize::from(u16::from_le_bytes([file[56], file[57]]));
    for header in file[64..].chunks_exact_mut(56).take(headers) {
        if header[..4] == 0x6474_e550u32.to_le_bytes() {
            header[..4].fill(0);
        }
    }
    Image::parse(file).unwrap()
}
