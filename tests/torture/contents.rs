//! What is in a recording, as far as these tests ask.

use std::path::Path;

use perfdata::{Chunk, Recording};
use serde_json::Value;

use crate::tracer;

/// The event whose samples hold the branches of bursts.
const BURST_EVENT: &str = "burst:u";

/// A recording, read whole.
pub struct Contents {
    /// hbbp's metadata.
    pub metadata: Value,
    /// The branches of each burst sample, as (from, to), oldest first.
    pub bursts: Vec<Vec<(u64, u64)>>,
}

impl Contents {
    /// Reads all of it; a recording that is damaged fails the test, and so does one without bursts where there was a tracer.
    pub fn of(path: &Path) -> Self {
        let contents = Self::read(path);
        assert!(tracer::kind().is_none() || contents.has_bursts(), "{}", contents.metadata);
        contents
    }

    /// Whether there are bursts, and branches in them.
    pub fn has_bursts(&self) -> bool {
        self.metadata["tracer"]["bursts"].as_u64().is_some_and(|bursts| bursts > 0)
            && self.bursts.iter().any(|branches| !branches.is_empty())
    }

    /// The same of a recording that may have none.
    pub fn read(path: &Path) -> Self {
        let recording = Recording::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(recording.notes(), &[] as &[String], "a complete recording");
        let metadata: Value = serde_json::from_slice(&recording.features().other[&perfdata::FeatureBit(250)]).unwrap();
        let mut bursts = Vec::new();
        let (mut chunks, mut chunk) = (recording.chunks(), Chunk::new());
        while chunks.next_into(&mut chunk).unwrap() {
            for raw in chunk.records() {
                if !raw.is_sample() {
                    recording.parse(&raw).unwrap();
                    continue;
                }
                let sample = recording.sample(&raw).unwrap();
                if recording.events()[sample.event].name == BURST_EVENT {
                    let stack = sample.branch_stack.expect("a burst has branches");
                    let mut branches: Vec<_> = stack.iter().map(|branch| (branch.from.0, branch.to.0)).collect();
                    branches.reverse();
                    bursts.push(branches);
                }
            }
        }
        assert!(chunks.damage().is_none());
        if let Some(kind) = tracer::kind() {
            let kinds = [kind.as_str(), if kind == "agent" { "lookahead" } else { kind.as_str() }];
            assert!(kinds.iter().any(|kind| metadata["tracer"]["kind"] == *kind), "{metadata}");
        }
        Self { metadata, bursts }
    }
}
