//! Reads a recording's data section chunk by chunk.

use crate::Error;
use crate::chunk::{CHUNK_SIZE, Chunk, Run};
use crate::data_section::DataSection;
use crate::inflate::Inflater;
use crate::record_walk::{Step, step};
use crate::recording_bytes::RecordingBytes;

/// Fills [`Chunk`]s with the records of a recording, from the first on.
///
/// Compressed records are decompressed on the way. Several readers of one recording can be open at once.
#[derive(Debug)]
pub struct ChunkReader<'a> {
    data: DataSection<'a>,
    /// From the first compressed record on.
    inflater: Option<Box<Inflater>>,
    inflate: bool,
    damage: Option<Error>,
}

impl<'a> ChunkReader<'a> {
    pub(crate) fn new(source: &'a RecordingBytes, start: u64, end: u64) -> Self {
        let data = DataSection { source, start, position: start, end };
        Self { data, inflater: None, inflate: true, damage: None }
    }

    /// The same, but compressed records come out as they are.
    pub(crate) fn without_inflating(self) -> Self {
        Self { inflate: false, ..self }
    }

    /// Refills `chunk`, whose allocation is reused. `Ok(false)`, with an empty chunk, at the end; then see
    /// [`Self::damage`].
    ///
    /// # Errors
    /// [`Error::Io`] when the file cannot be read.
    pub fn next_into(&mut self, chunk: &mut Chunk) -> Result<bool, Error> {
        chunk.clear();
        while self.damage.is_none() && chunk.runs.is_empty() {
            if let Some(inflater) = &mut self.inflater {
                if !inflater.fill(&mut self.data, chunk, &mut self.damage)? {
                    break;
                }
            } else if self.data.position >= self.data.end || !self.fill(chunk)? {
                break;
            }
        }
        Ok(!chunk.runs.is_empty())
    }

    /// Bytes of the data section consumed so far, for progress.
    pub fn position(&self) -> u64 {
        self.data.position.min(self.data.end) - self.data.start
    }

    /// Why reading stopped before the end of the data: the last record is cut short, or has an impossible size, or compressed
    /// data is broken. All records before it have been handed out.
    pub fn damage(&self) -> Option<&Error> {
        self.damage.as_ref()
    }

    /// Reads records straight into the chunk; `false` at the end of the bytes.
    fn fill(&mut self, chunk: &mut Chunk) -> Result<bool, Error> {
        let data = &mut self.data;
        let filled = data.read(&mut chunk.bytes)?;
        let bytes = chunk.bytes.get(..filled).unwrap_or_default();
        let base = data.position;
        let mut run = Run { start: 0, end: 0, offset: base, compressed: false };
        let mut runs = std::mem::take(&mut chunk.runs);
        let mut keep = |run: Run| {
            if run.start < run.end {
                runs.push(run);
            }
        };
        // `base + at` is the next record to look at; it may be past the bytes read.
        let mut at = 0;
        while let Ok(here) = usize::try_from(at)
            && let Some(rest @ [_, ..]) = bytes.get(here..)
        {
            let record = match step(rest, base + at) {
                Step::Whole(record) => record,
                Step::Cut(_) if here > 0 && base + (filled as u64) < data.end => break,
                Step::Cut(error) | Step::Broken(error) => {
                    self.damage = Some(error);
                    break;
                }
            };
            if self.inflate && record.compressed_bytes().is_some() {
                if here == 0 {
                    self.inflater = Some(Box::new(Inflater::new()?));
                }
                break;
            }
            run.end = here + record.size();
            at = run.end as u64;
            let skip = record.bytes_after();
            if skip > 0 {
                let left = data.end.saturating_sub(base + at);
                if skip > left {
                    let what = "data after an AUXTRACE or TRACING_DATA record";
                    self.damage = Some(Error::Short { what, offset: base + at, needs: skip, left });
                    break;
                }
                keep(run);
                at += skip;
                let start = usize::try_from(at).unwrap_or(usize::MAX);
                run = Run { start, end: start, offset: base + at, compressed: false };
            }
        }
        keep(run);
        chunk.runs = runs;
        data.position = base + at;
        Ok(filled > 0)
    }
}

const _: () = assert!(CHUNK_SIZE > 2 * crate::chunk::MAX_RECORD);
