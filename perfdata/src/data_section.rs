//! The bytes of a recording's records.

use crate::Error;
use crate::recording_bytes::RecordingBytes;

/// The part of the data section not yet read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataSection<'a> {
    pub(crate) source: &'a RecordingBytes,
    pub(crate) start: u64,
    pub(crate) position: u64,
    pub(crate) end: u64,
}

impl DataSection<'_> {
    /// Reads from the position on, no further than the section goes; does not move the position.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        let left = self.end.saturating_sub(self.position);
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let filled = self.source.read_at(self.position, buffer.get_mut(..wanted).unwrap_or_default())?;
        if filled < wanted {
            // The file got shorter while it was read.
            self.end = self.position + filled as u64;
        }
        Ok(filled)
    }
}
