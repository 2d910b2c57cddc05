//! One set of branch stacks in every container and sample format that a recording may have: all are read, and count the same.
//!
//! The files are in `tests/fixtures/containers`; `INSTA_UPDATE=always cargo test --test containers` writes them anew from the
//! simulated PMU's stacks.

mod support;

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Once;

use perfdata::{
    AttrFlags, Avma, Branch, BranchSampleType, Chunk, Comm, CpuMode, EventAttr, EventDescription, Features, Mmap,
    Record, Recording, SampleFields, SampleFormat as F, SampleId, Weight, Writer,
};
use serde_json::Value;
use support::Fixture;
use zstd::stream::raw::{Encoder, Operation, OutBuffer};

/// A mapping of code, and who made it when.
struct Mapping {
    pid: u32,
    start: u64,
    len: u64,
    pgoff: u64,
    path: Vec<u8>,
}

/// A branch stack.
struct Stack {
    pid: u32,
    tid: u32,
    time: u64,
    ip: u64,
    branches: Vec<Branch>,
}

struct Stacks {
    mappings: Vec<Mapping>,
    stacks: Vec<Stack>,
}

const PERIOD: u64 = 100_003;

/// The stacks of the simulated event of taken branches, and what was mapped.
fn read() -> Stacks {
    let recording = Recording::open(&Fixture::simulated("ivy-bridge").recording).unwrap();
    let event = recording.events().iter().position(|event| event.name.contains("near_taken")).unwrap();
    let mut found = Stacks { mappings: Vec::new(), stacks: Vec::new() };
    let (mut chunks, mut chunk) = (recording.chunks(), Chunk::new());
    while chunks.next_into(&mut chunk).unwrap() {
        for raw in chunk.records() {
            if raw.is_sample() {
                let sample = recording.sample(&raw).unwrap();
                if sample.event == event {
                    found.stacks.push(Stack {
                        pid: sample.pid.unwrap(),
                        tid: sample.tid.unwrap(),
                        time: sample.time.unwrap(),
                        ip: sample.ip.unwrap().0,
                        branches: sample.branch_stack.unwrap().iter().collect(),
                    });
                }
            } else if let Record::Mmap2(mmap) = recording.parse(&raw).unwrap()
                && mmap.path.ends_with(b"/compress")
            {
                let (pid, start, len) = (mmap.pid, mmap.start.0, mmap.len);
                found.mappings.push(Mapping { pid, start, len, pgoff: mmap.pgoff, path: mmap.path.to_vec() });
            }
        }
    }
    assert!(!found.mappings.is_empty() && found.stacks.len() > 1000, "{} stacks", found.stacks.len());
    found
}

fn event(name: &str, config: u64, period: u64, sample_format: F, ids: &[u64]) -> EventDescription {
    let attr = EventAttr {
        kind: 4,
        config,
        sample_period_or_freq: period,
        sample_format,
        flags: AttrFlags::SAMPLE_ID_ALL,
        branch_sample_type: BranchSampleType::ANY | BranchSampleType::USER,
        ..EventAttr::default()
    };
    EventDescription { attr, name: name.into(), ids: ids.to_vec() }
}

fn taken(sample_format: F, ids: &[u64]) -> EventDescription {
    event("br_inst_retired.near_taken", 0x20c4, PERIOD, sample_format | F::BRANCH_STACK, ids)
}

fn instructions(ids: &[u64]) -> EventDescription {
    event("inst_retired.prec_dist", 0x1c0, 1_000_037, F::IDENTIFIER | BASIC | F::BRANCH_STACK, ids)
}

const BASIC: F = F(F::IP.0 | F::TID.0 | F::TIME.0);

/// Everything that a writer can know of a sample.
const WIDE: F = F(F::IDENTIFIER.0
    | BASIC.0
    | F::ADDR.0
    | F::ID.0
    | F::STREAM_ID.0
    | F::CPU.0
    | F::PERIOD.0
    | F::CALLCHAIN.0
    | F::RAW.0
    | F::WEIGHT.0
    | F::DATA_SRC.0
    | F::TRANSACTION.0
    | F::PHYS_ADDR.0
    | F::CGROUP.0
    | F::DATA_PAGE_SIZE.0
    | F::CODE_PAGE_SIZE.0);

fn features() -> Features {
    Features { hostname: Some("fixture".into()), arch: Some("x86_64".into()), ..Features::default() }
}

/// The recording in file mode: the last event has the stacks, `times` times each.
fn write(of: &Stacks, events: &[EventDescription], times: usize) -> Vec<u8> {
    let mut writer = Writer::create(Cursor::new(Vec::new()), events).unwrap();
    for mapping in &of.mappings {
        let sample_id =
            SampleId { pid: Some(mapping.pid), tid: Some(mapping.pid), time: Some(1), ..SampleId::default() };
        let (pid, tid) = (mapping.pid, mapping.pid);
        writer.write_comm(&Comm { pid, tid, exec: true, name: b"compress", sample_id }).unwrap();
        writer.write_mmap2(&mmap(mapping, sample_id)).unwrap();
    }
    for _ in 0..times {
        for stack in &of.stacks {
            let sample = SampleFields {
                event: events.len() - 1,
                cpu_mode: CpuMode::User,
                ip: Avma(stack.ip),
                pid: stack.pid,
                tid: stack.tid,
                time: stack.time,
                period: PERIOD,
                branches: &stack.branches,
                callchain: &[(-512i64) as u64, stack.ip],
                raw: &[1, 2, 3, 4],
                weight: Some(Weight::Full(5)),
                ..SampleFields::default()
            };
            writer.write_sample(&sample).unwrap();
        }
    }
    writer.finish(&features()).unwrap().into_inner()
}

fn mmap<'a>(mapping: &'a Mapping, sample_id: SampleId) -> Mmap<'a> {
    Mmap {
        cpu_mode: CpuMode::User,
        pid: mapping.pid,
        tid: mapping.pid,
        start: Avma(mapping.start),
        len: mapping.len,
        pgoff: mapping.pgoff,
        prot: 5,
        flags: 2,
        path: &mapping.path,
        sample_id,
        ..Mmap::default()
    }
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn record(record_type: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = u16::try_from(body.len() + 8).unwrap();
    [&record_type.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes(), body].concat()
}

/// The records of a file, and the attr of its only event.
fn parts(file: &[u8]) -> (&[u8], &[u8]) {
    let (entry, attrs, data, size) = (word(file, 16), word(file, 24), word(file, 40), word(file, 48));
    (&file[data as usize..(data + size) as usize], &file[attrs as usize..(attrs + entry) as usize - 16])
}

/// As `perf record -o -` writes it: what describes the events are records, too.
fn piped(file: &[u8]) -> Vec<u8> {
    let (data, attr) = parts(file);
    [b"PERFILE2".to_vec(), words(&[16]), record(64, 0, &[attr, &words(&[7])].concat()), data.to_vec()].concat()
}

/// As Linux 2.6.34 to 3.4 wrote it: a header without features, an attr of 80 bytes, no ids, and no inodes of what is mapped.
fn old(of: &Stacks) -> Vec<u8> {
    let mut event = taken(BASIC, &[]);
    event.attr.flags = AttrFlags::default();
    let file = write(of, &[event], 1);
    let (data, attr) = parts(&file);
    let mut attr = attr[..80].to_vec();
    attr[4..8].copy_from_slice(&80u32.to_le_bytes());
    let mut records = Vec::new();
    for mapping in &of.mappings {
        let mut path = mapping.path.clone();
        path.resize((path.len() + 1).next_multiple_of(8), 0);
        let pid = u64::from(mapping.pid);
        let numbers = words(&[pid << 32 | pid, mapping.start, mapping.len, mapping.pgoff]);
        records.extend(record(1, 2, &[numbers, path].concat()));
    }
    let mut rest = data;
    while !rest.is_empty() {
        let (one, others) = rest.split_at(usize::from(u16::from_le_bytes([rest[6], rest[7]])));
        if one[0] == 9 {
            records.extend(one);
        }
        rest = others;
    }
    let header = words(&[72, 96, 72, 96, 72 + 96, records.len() as u64, 0, 0]);
    [b"PERFILE2".to_vec(), header, attr, words(&[0, 0]), records].concat()
}

/// As `perf record -z`: one zstd stream over records of at most 60,000 bytes.
fn compressed(file: &[u8]) -> Vec<u8> {
    let (data, _) = parts(file);
    let mut encoder = Encoder::new(19).unwrap();
    let mut packed = vec![0; data.len() + 1024];
    let (mut read, mut written) = (0, 0);
    while read < data.len() {
        let status = encoder.run_on_buffers(&data[read..], &mut packed[written..]).unwrap();
        (read, written) = (read + status.bytes_read, written + status.bytes_written);
    }
    loop {
        let mut rest = OutBuffer::around(&mut packed[written..]);
        let left = encoder.flush(&mut rest).unwrap();
        written += rest.pos();
        if left == 0 {
            break;
        }
    }
    let records: Vec<u8> = packed[..written].chunks(60_000).flat_map(|part| record(81, 0, part)).collect();
    let start = word(file, 40) as usize;
    let mut bytes = file[..start].to_vec();
    bytes[48..56].copy_from_slice(&(records.len() as u64).to_le_bytes());
    bytes[72..104].fill(0);
    bytes.extend(records);
    bytes
}

/// The recorder was killed: no size, no features.
fn killed(file: &[u8]) -> Vec<u8> {
    let (data, _) = parts(file);
    let mut bytes = [&file[..word(file, 40) as usize], data].concat();
    bytes[48..56].fill(0);
    bytes[72..104].fill(0);
    bytes
}

/// How often each stack is in `many`.
const TIMES: usize = 20;

/// All of them, by name. `file` is the one that others are compared with.
fn containers() -> Vec<(&'static str, Vec<u8>)> {
    let stacks = read();
    let file = write(&stacks, &[taken(BASIC, &[7])], 1);
    vec![
        ("pipe", piped(&file)),
        ("compressed", compressed(&file)),
        ("killed", killed(&file)),
        ("old", old(&stacks)),
        ("wide", write(&stacks, &[taken(WIDE, &[7, 8, 9])], 1)),
        ("several", write(&stacks, &[instructions(&[7]), taken(F::IDENTIFIER | BASIC, &[8])], 1)),
        ("many", write(&stacks, &[taken(F(F::IP.0 | F::TID.0), &[7])], TIMES)),
        ("file", file),
    ]
}

static WRITTEN: Once = Once::new();

fn committed(name: &str) -> PathBuf {
    WRITTEN.call_once(|| {
        if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/containers");
            fs::create_dir_all(&folder).unwrap();
            for (name, bytes) in containers() {
                fs::write(folder.join(format!("{name}.data.zst")), zstd::bulk::compress(&bytes, 19).unwrap()).unwrap();
            }
        }
    });
    testing::fixture_file(&format!("containers/{name}.data"))
}

#[test]
fn the_committed_files_are_what_is_written() {
    for (name, bytes) in containers() {
        let stored = fs::read(committed(name)).unwrap();
        // Versions of zstd differ in what they make of the same bytes.
        assert!(stored == bytes || name == "compressed", "{name}: INSTA_UPDATE=always takes a wanted change over");
    }
}

#[test]
fn all_containers_count_the_same() {
    let blocks = |name: &str| -> Value {
        let fixture = Fixture { recording: committed(name), ..Fixture::simulated("ivy-bridge") };
        let mut arguments = fixture.input().to_vec();
        arguments.extend(["blocks", "--format", "json"].map(str::to_owned));
        arguments.rotate_right(3);
        let output = support::hbbp().args(&arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {said}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let file = blocks("file");
    let expected = file["blocks"].as_array().unwrap();
    assert!(expected.len() > 150, "{}", expected.len());
    for (name, _) in containers() {
        let found = blocks(name);
        let found = found["blocks"].as_array().unwrap();
        assert_eq!(found.len(), expected.len(), "{name}");
        for (found, expected) in found.iter().zip(expected) {
            if name == "many" {
                let number = |block: &Value, key: &str| block[key].as_f64().unwrap();
                for key in ["lbr", "count", "lbr_streams"] {
                    let (many, one) = (number(found, key), number(expected, key));
                    assert!((many / TIMES as f64 - one).abs() <= 1e-9 * one, "{name}: {found}, once {expected}");
                }
            } else {
                assert_eq!(found, expected, "{name}");
            }
        }
    }
}
