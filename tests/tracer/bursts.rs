//! The bursts of a recording, as our reader sees them.

use std::collections::BTreeMap;
use std::path::Path;

use perfdata::{Chunk, Record, Recording, Weight};
use serde_json::Value;

/// A sample of a burst: a stack, or the part of it that fits into a record.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Its first instruction.
    pub ip: u64,
    /// Instructions executed.
    pub instructions: u64,
    /// What it stands for.
    pub period: u64,
    /// (from, to), oldest first.
    pub branches: Vec<(u64, u64)>,
}

/// The path of a thread from a stop.
#[derive(Clone, Debug)]
pub struct Burst {
    pub pid: u32,
    pub tid: u32,
    pub time: u64,
    pub pieces: Vec<Piece>,
}

impl Burst {
    pub fn instructions(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.instructions).sum()
    }

    pub fn branches(&self) -> impl Iterator<Item = (u64, u64)> {
        self.pieces.iter().flat_map(|piece| piece.branches.iter().copied())
    }

    pub fn depth(&self) -> usize {
        self.branches().count()
    }
}

/// An executable mapping of a file.
#[derive(Clone, Debug)]
pub struct Mapping {
    pub pid: u32,
    pub time: u64,
    pub start: u64,
    pub len: u64,
    pub offset: u64,
    pub path: String,
}

/// What the tests look at.
#[derive(Debug)]
pub struct Traced {
    pub bursts: Vec<Burst>,
    pub mappings: Vec<Mapping>,
    /// hbbp's metadata.
    pub metadata: Value,
    /// Samples by event.
    pub samples: BTreeMap<String, u64>,
    /// Names by thread.
    pub names: BTreeMap<u32, String>,
}

impl Traced {
    /// Reads all of it; a recording that is damaged fails the test.
    pub fn read(path: &Path) -> Self {
        let recording = Recording::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(recording.notes(), &[] as &[String], "a complete recording");
        let metadata = serde_json::from_slice(&recording.features().other[&perfdata::FeatureBit(250)]).unwrap();
        let mut traced = Self {
            bursts: Vec::new(),
            mappings: Vec::new(),
            metadata,
            samples: BTreeMap::new(),
            names: BTreeMap::new(),
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (mut chunks, mut chunk) = (recording.chunks(), Chunk::new());
        while chunks.next_into(&mut chunk).unwrap() {
            for raw in chunk.records() {
                if raw.is_sample() {
                    let sample = recording.sample(&raw).unwrap();
                    let event = &recording.events()[sample.event].name;
                    *traced.samples.entry(event.clone()).or_default() += 1;
                    if event.starts_with("burst") {
                        traced.piece(&sample);
                    }
                    continue;
                }
                match recording.parse(&raw).unwrap() {
                    Record::Mmap2(map) if map.prot & 4 != 0 => traced.mappings.push(Mapping {
                        pid: map.pid,
                        time: map.sample_id.time.unwrap_or(0),
                        start: map.start.0,
                        len: map.len,
                        offset: map.pgoff,
                        path: text(map.path),
                    }),
                    Record::Comm(comm) => drop(traced.names.insert(comm.tid, text(comm.name))),
                    _ => {}
                }
            }
        }
        assert!(chunks.damage().is_none());
        traced
    }

    fn piece(&mut self, sample: &perfdata::Sample<'_>) {
        let (pid, tid, time) = (sample.pid.unwrap(), sample.tid.unwrap(), sample.time.unwrap());
        let Some(Weight::Full(weight)) = sample.weight else { panic!("no instructions: {sample:?}") };
        let instructions = weight & 0xffff_ffff;
        let stack = sample.branch_stack.expect("a stack, if an empty one");
        let piece = Piece {
            ip: sample.ip.unwrap().0,
            instructions,
            period: sample.period.unwrap(),
            branches: stack.iter().rev().map(|branch| (branch.from.0, branch.to.0)).collect(),
        };
        match self.bursts.last_mut() {
            Some(burst) if (burst.tid, burst.time) == (tid, time) => burst.pieces.push(piece),
            _ => self.bursts.push(Burst { pid, tid, time, pieces: vec![piece] }),
        }
    }

    /// The tracer's part of the metadata.
    pub fn tracer(&self) -> &Value {
        &self.metadata["tracer"]
    }

    /// A number of the tracer's metadata.
    pub fn number(&self, pointer: &str) -> u64 {
        let value = self.tracer().pointer(pointer).and_then(Value::as_u64);
        value.unwrap_or_else(|| panic!("{pointer}: {:#}", self.tracer()))
    }

    /// The sum of a histogram of the tracer's metadata.
    pub fn sum(&self, histogram: &str) -> u64 {
        self.tracer()[histogram].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum()
    }

    /// Bursts per process.
    pub fn by_process(&self) -> BTreeMap<u32, u64> {
        let mut counts = BTreeMap::new();
        self.bursts.iter().for_each(|burst| *counts.entry(burst.pid).or_default() += 1);
        counts
    }

    /// The bursts that begin in a file of this name.
    pub fn bursts_in(&self, name: &str) -> impl Iterator<Item = &Burst> {
        let is_it = move |path: &str| Path::new(path).file_name().is_some_and(|file| file == name);
        self.bursts
            .iter()
            .filter(move |burst| self.locate(burst, burst.pieces[0].ip).is_some_and(|(path, _)| is_it(path)))
    }

    /// The file that is mapped at `address` at the time of a burst, and the offset into it.
    pub fn locate(&self, burst: &Burst, address: u64) -> Option<(&str, u64)> {
        let here = |map: &&Mapping| {
            map.pid == burst.pid && map.time <= burst.time && (map.start..map.start + map.len).contains(&address)
        };
        let map = self.mappings.iter().filter(here).max_by_key(|map| map.time)?;
        Some((&map.path, address - map.start + map.offset))
    }
}
