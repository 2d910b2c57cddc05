//! What is in a recording.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use perfdata::{Chunk, Record, Recording};
use serde_json::Value;

/// A recording, read whole.
#[derive(Debug, Default)]
pub struct Contents {
    /// Samples per (process, thread).
    pub samples: BTreeMap<(u32, u32), u64>,
    /// Times of the kernel's records, in the order of the file; those made up from `/proc` have time 0.
    pub times: Vec<u64>,
    /// Names of threads.
    pub names: BTreeMap<u32, String>,
    /// (process, file) with code.
    pub mapped: BTreeSet<(u32, String)>,
    /// Symbols of the kernel, in the order of the file, and whether they went.
    pub symbols: Vec<(String, bool)>,
    /// (parent, child) processes.
    pub forks: BTreeSet<(u32, u32)>,
    /// Threads that ended.
    pub exits: BTreeSet<u32>,
    /// hbbp's metadata.
    pub metadata: Value,
    /// Files with build ids.
    pub build_ids: BTreeSet<String>,
    /// Event names.
    pub events: Vec<String>,
}

impl Contents {
    /// Reads all of it; a recording that is damaged fails the test.
    pub fn of(path: &Path) -> Self {
        let recording = Recording::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(recording.notes(), &[] as &[String], "a complete recording");
        let mut contents = Self {
            events: recording.events().iter().map(|event| event.name.clone()).collect(),
            metadata: serde_json::from_slice(&recording.features().other[&perfdata::FeatureBit(250)]).unwrap(),
            ..Self::default()
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        contents.build_ids = recording.features().build_ids.iter().map(|entry| text(&entry.path)).collect();
        let (mut chunks, mut chunk) = (recording.chunks(), Chunk::new());
        while chunks.next_into(&mut chunk).unwrap() {
            for raw in chunk.records() {
                if raw.is_sample() {
                    let sample = recording.sample(&raw).unwrap();
                    *contents.samples.entry((sample.pid.unwrap(), sample.tid.unwrap())).or_default() += 1;
                    contents.times.push(sample.time.unwrap());
                    continue;
                }
                let time = match recording.parse(&raw).unwrap() {
                    Record::Comm(comm) => {
                        contents.names.insert(comm.tid, text(comm.name));
                        comm.sample_id.time
                    }
                    Record::Mmap2(mmap) => {
                        contents.mapped.insert((mmap.pid, text(mmap.path)));
                        mmap.sample_id.time
                    }
                    Record::Fork(task) => {
                        contents.forks.insert((task.ppid, task.pid));
                        task.sample_id.time
                    }
                    Record::Exit(task) => {
                        contents.exits.insert(task.tid);
                        task.sample_id.time
                    }
                    Record::Ksymbol(symbol) => {
                        contents.symbols.push((text(symbol.name), symbol.unregister));
                        // Those that are made up come last.
                        symbol.sample_id.time.filter(|time| *time > 0)
                    }
                    _ => None,
                };
                contents.times.extend(time);
            }
        }
        assert!(chunks.damage().is_none());
        contents
    }

    /// Samples of a process.
    pub fn of_process(&self, pid: u32) -> u64 {
        self.samples.iter().filter(|((process, _), _)| *process == pid).map(|(_, count)| count).sum()
    }

    /// All samples.
    pub fn total(&self) -> u64 {
        self.samples.values().sum()
    }

    /// Whether any process mapped a file of that name.
    pub fn has_mapped(&self, name: &str) -> bool {
        self.mapped.iter().any(|(_, path)| path.rsplit('/').next() == Some(name))
    }
}
