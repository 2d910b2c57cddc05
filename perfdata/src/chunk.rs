//! A piece of a recording: some whole records in one allocation.

use crate::{RawRecord, RecordType};

/// About how many bytes of records a [`Chunk`] holds.
pub const CHUNK_SIZE: usize = 1 << 20;

/// The longest record: its size field has 16 bits.
pub(crate) const MAX_RECORD: usize = u16::MAX as usize;

/// Whole records, at most about [`CHUNK_SIZE`] bytes of them. Filled by [`crate::ChunkReader::next_into`], which reuses it.
#[derive(Debug, Default)]
pub struct Chunk {
    /// As long as it ever was; only `runs` says what of it is records.
    pub(crate) bytes: Vec<u8>,
    pub(crate) runs: Vec<Run>,
}

/// Records that lie one after the other in a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Where the first of them is in the file.
    pub(crate) offset: u64,
    /// All of them are at that offset, in a compressed record.
    pub(crate) compressed: bool,
}

impl Chunk {
    /// An empty chunk, without an allocation yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Its records, in the order recorded.
    #[inline]
    pub fn records(&self) -> Records<'_> {
        Records { bytes: &self.bytes, runs: self.runs.iter(), rest: &[], offset: 0, compressed: false }
    }

    pub(crate) fn clear(&mut self) {
        self.runs.clear();
        if self.bytes.is_empty() {
            self.bytes = vec![0; CHUNK_SIZE];
        }
    }

    pub(crate) fn push_run(&mut self, run: Run) {
        if run.start < run.end {
            self.runs.push(run);
        }
    }
}

/// Iterator over the records of a [`Chunk`].
#[derive(Clone, Debug)]
pub struct Records<'a> {
    bytes: &'a [u8],
    runs: std::slice::Iter<'a, Run>,
    rest: &'a [u8],
    offset: u64,
    compressed: bool,
}

impl<'a> Iterator for Records<'a> {
    type Item = RawRecord<'a>;

    #[inline]
    fn next(&mut self) -> Option<RawRecord<'a>> {
        while self.rest.is_empty() {
            let run = self.runs.next()?;
            self.rest = self.bytes.get(run.start..run.end).unwrap_or_default();
            (self.offset, self.compressed) = (run.offset, run.compressed);
        }
        let header = RecordHeader::of(self.rest)?;
        let (record, rest) = self.rest.split_at_checked(header.size.into())?;
        let raw = RawRecord {
            offset: self.offset,
            record_type: header.record_type,
            misc: header.misc,
            body: record.get(RecordHeader::SIZE..)?,
        };
        self.rest = rest;
        if !self.compressed {
            self.offset += u64::from(header.size);
        }
        Some(raw)
    }
}

/// `struct perf_event_header`: the first eight bytes of every record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RecordHeader {
    pub(crate) record_type: RecordType,
    pub(crate) misc: u16,
    /// Of the whole record.
    pub(crate) size: u16,
}

impl RecordHeader {
    pub(crate) const SIZE: usize = 8;

    #[inline]
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let &[a, b, c, d, e, f, g, h] = bytes.first_chunk()?;
        Some(Self {
            record_type: RecordType(u32::from_le_bytes([a, b, c, d])),
            misc: u16::from_le_bytes([e, f]),
            size: u16::from_le_bytes([g, h]),
        })
    }

    /// Replaces the first 8 bytes of a record by this header; bytes too short for one are left alone.
    pub(crate) fn write_over(self, record: &mut [u8]) {
        if let Some(header) = record.first_chunk_mut() {
            *header = self.to_bytes();
        }
    }

    pub(crate) fn to_bytes(self) -> [u8; 8] {
        let [a, b, c, d] = self.record_type.0.to_le_bytes();
        let [e, f] = self.misc.to_le_bytes();
        let [g, h] = self.size.to_le_bytes();
        [a, b, c, d, e, f, g, h]
    }
}
