//! Prints how fast a recording's samples are parsed: its data is repeated to 300 MB in memory and read over and over.
//!
//! `cargo run --release -p hbbp-perfdata --example throughput FILE [MEGABYTES]`; without a file, 16-branch samples are made up.

use std::hint::black_box;
use std::io::Cursor;
use std::path::Path;
use std::time::{Duration, Instant};

use perfdata::{
    AttrFlags, Avma, Branch, BranchFlags, BranchSampleType, Chunk, EventAttr, EventDescription, Features, Recording,
    SampleFields, SampleFormat, Writer,
};

type AnyError = Box<dyn std::error::Error>;

fn main() -> Result<(), AnyError> {
    let mut args = std::env::args().skip(1);
    let source = args.next();
    let megabytes: usize = args.next().map_or(Ok(300), |text| text.parse())?;
    let one = match &source {
        Some(path) => std::fs::read(Path::new(path))?,
        None => made_up()?,
    };
    let recording = Recording::from_bytes(repeated(&one, megabytes * 1_000_000)?)?;
    println!("{} MB of records, {} event(s)", recording.data_size() / 1_000_000, recording.events().len());
    for _ in 0..3 {
        measure(&recording)?;
    }
    Ok(())
}

/// Reads everything once: the time to fetch chunks, and the time to parse what is in them.
fn measure(recording: &Recording) -> Result<(), AnyError> {
    let mut reader = recording.chunks();
    let mut chunk = Chunk::new();
    let (mut samples, mut branches, mut sum) = (0u64, 0u64, 0u64);
    let (mut reading, mut parsing) = (Duration::ZERO, Duration::ZERO);
    loop {
        let start = Instant::now();
        let more = reader.next_into(&mut chunk)?;
        reading += start.elapsed();
        if !more {
            break;
        }
        let start = Instant::now();
        for raw in chunk.records().filter(|raw| raw.is_sample()) {
            let sample = recording.sample(&raw)?;
            samples += 1;
            sum = sum.wrapping_add(sample.ip.map_or(0, |ip| ip.0));
            for branch in sample.branch_stack.iter().flat_map(|stack| stack.iter()) {
                branches += 1;
                sum = sum.wrapping_add(branch.from.0 ^ branch.to.0).wrapping_add(branch.flags.cycles().into());
            }
        }
        parsing += start.elapsed();
    }
    black_box(sum);
    if let Some(damage) = reader.damage() {
        println!("stopped early: {damage}");
    }
    let rate = recording.data_size() as f64 / 1e9 / parsing.as_secs_f64();
    println!("{samples} samples, {branches} branches: reading {reading:.1?}, parsing {parsing:.1?} ({rate:.1} GB/s)");
    Ok(())
}

/// The recording with its data section repeated: a header whose sections are moved, and no features.
fn repeated(one: &[u8], size: usize) -> Result<Vec<u8>, AnyError> {
    let word = |at: usize| -> Result<usize, AnyError> {
        let bytes = one.get(at..at + 8).and_then(|bytes| bytes.first_chunk()).ok_or("too short")?;
        Ok(u64::from_le_bytes(*bytes) as usize)
    };
    if word(8)? != 104 {
        return Err("only recordings in file mode can be repeated".into());
    }
    let (start, len) = (word(40)?, word(48)?);
    let data = one.get(start..start + len).filter(|data| !data.is_empty()).ok_or("no data")?;
    let mut bytes = one[..start].to_vec();
    bytes.reserve(size + len);
    while bytes.len() < size {
        bytes.extend_from_slice(data);
    }
    let total = (bytes.len() - start) as u64;
    bytes[48..56].copy_from_slice(&total.to_le_bytes());
    bytes[72..104].fill(0);
    Ok(bytes)
}

/// A recording of two events of 16-branch samples, told apart by their ids as `hbbp record` has them.
fn made_up() -> Result<Vec<u8>, AnyError> {
    let event = |config, id| EventDescription {
        attr: EventAttr {
            config,
            sample_format: SampleFormat::IDENTIFIER
                | SampleFormat::IP
                | SampleFormat::TID
                | SampleFormat::TIME
                | SampleFormat::PERIOD
                | SampleFormat::BRANCH_STACK,
            flags: AttrFlags::SAMPLE_ID_ALL,
            branch_sample_type: BranchSampleType::USER | BranchSampleType::ANY,
            ..EventAttr::default()
        },
        name: String::new(),
        ids: vec![id],
    };
    let mut writer = Writer::create(Cursor::new(Vec::new()), &[event(0, 1), event(4, 2)])?;
    for number in 0..2000u64 {
        let branch = |n: u64| Branch { from: Avma(number * n), to: Avma(n), flags: BranchFlags::PREDICTED };
        let branches: Vec<_> = (0..16).map(branch).collect();
        let event = (number % 2) as usize;
        writer.write_sample(&SampleFields { event, time: number, branches: &branches, ..SampleFields::default() })?;
    }
    Ok(writer.finish(&Features::default())?.into_inner())
}
