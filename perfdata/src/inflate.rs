//! Reads a data section that holds compressed records: one zstd stream cut into records, whose own records may be cut by that.

use zstd::stream::raw::{Decoder, Operation};

use crate::Error;
use crate::chunk::{CHUNK_SIZE, Chunk, MAX_RECORD, RecordHeader, Run};
use crate::data_section::DataSection;
use crate::record_walk::{Step, step};

/// The state between chunks.
pub(crate) struct Inflater {
    decoder: Decoder<'static>,
    /// Bytes read from the file; `at..filled` are still to be used. The data section's position is that of `at`.
    buffer: Vec<u8>,
    at: usize,
    filled: usize,
    /// The part of the compressed record before `at` that has not been decompressed.
    pending: Option<Pending>,
    /// The beginning of a record whose end is in the next compressed record.
    tail: Vec<u8>,
    bytes_in: u64,
    bytes_out: u64,
}

struct Pending {
    bytes: std::ops::Range<usize>,
    offset: u64,
}

/// Real recordings shrink to a tenth or so. Beyond this many times their size, plus the allowance, it is an attack.
const MOST_EXPANSION: u64 = 1024;
const EXPANSION_ALLOWANCE: u64 = 16 << 20;

/// Room that a chunk must have left for another round: the tail and one more record.
const ROUND: usize = 2 * (MAX_RECORD + 1);

impl Inflater {
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Self {
            decoder: Decoder::new().map_err(Error::io("starting zstd"))?,
            buffer: vec![0; CHUNK_SIZE],
            at: 0,
            filled: 0,
            pending: None,
            tail: Vec::new(),
            bytes_in: 0,
            bytes_out: 0,
        })
    }

    /// Adds records to the chunk until it is nearly full or the data ends; `false` when it ended before anything was added.
    pub(crate) fn fill(
        &mut self,
        data: &mut DataSection<'_>,
        chunk: &mut Chunk,
        damage: &mut Option<Error>,
    ) -> Result<bool, Error> {
        let mut used = 0;
        while damage.is_none() && chunk.bytes.len() - used >= ROUND {
            if let Some(pending) = self.pending.take() {
                match self.inflate(pending, chunk, used) {
                    Ok(now_used) => used = now_used,
                    Err((now_used, error)) => {
                        used = now_used;
                        *damage = Some(error);
                    }
                }
                continue;
            }
            let offset = data.position;
            let record = match self.next_record(data)? {
                Some(Step::Whole(record)) => record,
                Some(Step::Cut(error) | Step::Broken(error)) => {
                    *damage = Some(error);
                    break;
                }
                None => {
                    *damage = self.cut_tail(offset);
                    break;
                }
            };
            let (size, skip) = (record.size(), record.bytes_after());
            if let Some(compressed) = record.compressed_bytes() {
                let body = self.at + RecordHeader::SIZE;
                self.pending = Some(Pending { bytes: body + compressed.start..body + compressed.end, offset });
            } else {
                let Some(room) = chunk.bytes.get_mut(used..used + size) else { break };
                let (header, body) = room.split_at_mut(RecordHeader::SIZE);
                header.copy_from_slice(&record.header.to_bytes());
                body.copy_from_slice(record.body);
                chunk.push_run(Run { start: used, end: used + size, offset, compressed: false });
                used += size;
            }
            self.at += size;
            data.position += size as u64;
            let left = data.end.saturating_sub(data.position);
            if skip > left {
                let what = "data after an AUXTRACE or TRACING_DATA record";
                *damage = Some(Error::Short { what, offset: data.position, needs: skip, left });
            } else {
                data.position += skip;
                self.at = usize::try_from(skip).unwrap_or(usize::MAX).saturating_add(self.at).min(self.filled);
            }
        }
        Ok(used > 0)
    }

    /// The record at the data section's position, in the buffer from `at` on; `None` at the end of the data.
    fn next_record(&mut self, data: &mut DataSection<'_>) -> Result<Option<Step<'_>>, Error> {
        if !matches!(step(self.buffered(), data.position), Step::Whole(_)) {
            self.at = 0;
            self.filled = data.read(&mut self.buffer)?;
        }
        let buffered = self.buffered();
        Ok((!buffered.is_empty()).then(|| step(buffered, data.position)))
    }

    /// What was read and is still to be used.
    fn buffered(&self) -> &[u8] {
        self.buffer.get(self.at..self.filled).unwrap_or_default()
    }

    /// Decompresses what the chunk has room for, after the tail, and keeps whole records. Returns how much of the chunk is
    /// used then.
    fn inflate(&mut self, mut pending: Pending, chunk: &mut Chunk, used: usize) -> Result<usize, (usize, Error)> {
        let offset = pending.offset;
        let refuse = |reason: String| Error::Compressed { offset, reason };
        let room = chunk.bytes.get_mut(used..).unwrap_or_default();
        let Some((tail, room)) = room.split_at_mut_checked(self.tail.len()) else {
            return Err((used, refuse(format!("no room for a record of which {} bytes came before", self.tail.len()))));
        };
        tail.copy_from_slice(&self.tail);
        let input = self.buffer.get(pending.bytes.clone()).unwrap_or_default();
        let status = match self.decoder.run_on_buffers(input, room) {
            Ok(status) => status,
            Err(error) => return Err((used, refuse(error.to_string()))),
        };
        self.bytes_in += status.bytes_read as u64;
        self.bytes_out += status.bytes_written as u64;
        if self.bytes_out > EXPANSION_ALLOWANCE + MOST_EXPANSION * self.bytes_in {
            let (small, large) = (self.bytes_in, self.bytes_out);
            let reason = format!("{small} bytes decompress to {large} and more, over {MOST_EXPANSION} times as many");
            return Err((used, refuse(reason)));
        }
        if status.bytes_read == 0 && status.bytes_written == 0 && !input.is_empty() {
            return Err((used, refuse("zstd makes no progress".to_owned())));
        }
        pending.bytes.start += status.bytes_read;
        // A full output may hide more to come, even when all input was taken.
        let output_full = status.bytes_written == room.len();
        if !pending.bytes.is_empty() || output_full {
            self.pending = Some(pending);
        }

        let end = used + self.tail.len() + status.bytes_written;
        let mut rest = chunk.bytes.get(used..end).unwrap_or_default();
        let mut broken = None;
        while !rest.is_empty() {
            match step(rest, offset) {
                Step::Whole(record) => rest = record.rest,
                Step::Cut(_) => break,
                Step::Broken(error) => {
                    broken = Some(error);
                    break;
                }
            }
        }
        self.tail.clear();
        self.tail.extend_from_slice(rest);
        let end = end - rest.len();
        chunk.push_run(Run { start: used, end, offset, compressed: true });
        match broken {
            Some(error) => Err((end, error)),
            None => Ok(end),
        }
    }

    /// What is wrong when the data ends here.
    fn cut_tail(&self, offset: u64) -> Option<Error> {
        if self.tail.is_empty() {
            return None;
        }
        match step(&self.tail, offset) {
            Step::Cut(error) | Step::Broken(error) => Some(error),
            Step::Whole(_) => None,
        }
    }
}

impl std::fmt::Debug for Inflater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inflater").field("bytes_in", &self.bytes_in).field("bytes_out", &self.bytes_out).finish()
    }
}
