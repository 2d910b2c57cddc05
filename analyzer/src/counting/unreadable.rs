//! Blocks of code that cannot be read: what the recording alone shows of them.

use serde::{Deserialize, Serialize};

use crate::address::FileOffset;
use crate::counting::ModuleHits;
use crate::counting::interval_sum::sum_over_addresses;

/// Bytes that is entered and left only at its ends as far as the recording shows. Its instructions are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadBlock {
    /// Its first byte: an address that something branched to, or was seen at.
    pub start: FileOffset,
    /// One past the first byte of the last instruction (whose length is not known).
    pub end: FileOffset,
}

impl UnreadBlock {
    /// Length in bytes, at least 1, short of all but the first byte of the last instruction.
    pub fn bytes(&self) -> u64 {
        self.end.0.saturating_sub(self.start.0).max(1)
    }

    /// How many instructions that may be, given the mean length of one.
    pub fn estimated_instructions(&self, bytes_per_instruction: f64) -> f64 {
        ((self.bytes() - 1) as f64 / bytes_per_instruction).floor() + 1.0
    }
}

/// Cuts what the streams cover at every stream's start and end; samples elsewhere become blocks of one byte. Sorted, disjoint.
pub fn unread_blocks(hits: &ModuleHits) -> Vec<UnreadBlock> {
    let covering = hits.streams.iter().map(|stream| (stream.start.0, stream.end.0.saturating_add(1), 1_i64));
    let mut blocks = Vec::new();
    sum_over_addresses(covering, |start, end, streams| {
        if streams > 0 {
            blocks.push(UnreadBlock { start: FileOffset(start), end: FileOffset(end) });
        }
    });
    let covered = blocks.len();
    for ip in &hits.ips {
        let before = blocks[..covered].partition_point(|block| block.start <= ip.at);
        let inside = before.checked_sub(1).is_some_and(|index| ip.at < blocks[index].end);
        if !inside {
            blocks.push(UnreadBlock { start: ip.at, end: FileOffset(ip.at.0.saturating_add(1)) });
        }
    }
    blocks.sort_unstable_by_key(|block| block.start);
    blocks.dedup();
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::{GroupId, LocatedIp, LocatedStream};
    use crate::recording::Weight;
    use crate::uncertainty::SliceSums;

    #[test]
    fn streams_cut_each_other_and_lone_samples_stand_alone() {
        let stream = |start, end| LocatedStream {
            burst: None,
            group: GroupId(0),
            start: FileOffset(start),
            end: FileOffset(end),
            to_kernel: false,
            seen: 1,
            weight: Weight(1),
            slices: SliceSums::default(),
        };
        let ip = |at| LocatedIp {
            group: GroupId(0),
            at: FileOffset(at),
            samples: 1,
            periods: 1,
            slices: SliceSums::default(),
        };
        let hits = ModuleHits {
            streams: vec![stream(0x10, 0x2f), stream(0x20, 0x2f), stream(0x20, 0x3f)],
            ips: vec![ip(0x15), ip(0x50), ip(0x8)],
            ..ModuleHits::default()
        };
        let blocks: Vec<_> = unread_blocks(&hits).iter().map(|block| (block.start.0, block.end.0)).collect();
        assert_eq!(blocks, [(0x8, 0x9), (0x10, 0x20), (0x20, 0x30), (0x30, 0x40), (0x50, 0x51)]);
    }
}
