//! The trailer that says which event, thread, time and CPU a record other than a sample belongs to.

use crate::words::{Word, Words};
use crate::{Error, SampleFormat};

/// `struct sample_id`: the end of every record but samples under [`crate::AttrFlags::SAMPLE_ID_ALL`]. All `None` without it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleId {
    /// Id of the process that the record is about, with [`SampleFormat::TID`].
    pub pid: Option<u32>,
    /// Id of its thread, with [`SampleFormat::TID`].
    pub tid: Option<u32>,
    /// Time stamp, ns unless a [`crate::EventAttr::clockid`] says otherwise.
    pub time: Option<u64>,
    /// Id of the event; of the group's leader for inherited events.
    pub id: Option<u64>,
    /// The event's own id, even when inherited.
    pub stream_id: Option<u64>,
    /// Number of the CPU that the record was made on.
    pub cpu: Option<u32>,
    /// Event id under [`SampleFormat::IDENTIFIER`].
    pub identifier: Option<u64>,
}

/// The fields that a trailer holds, one word each.
pub(crate) const TRAILER: SampleFormat = SampleFormat(
    SampleFormat::TID.0
        | SampleFormat::TIME.0
        | SampleFormat::ID.0
        | SampleFormat::STREAM_ID.0
        | SampleFormat::CPU.0
        | SampleFormat::IDENTIFIER.0,
);

/// Words in the trailer of an event with this format.
fn trailer_words(format: SampleFormat) -> usize {
    (format.0 & TRAILER.0).count_ones() as usize
}

/// The place of the event id in the trailer, in words before the record's end (1: the last word).
pub(crate) fn id_from_end(format: SampleFormat) -> Option<usize> {
    if format.contains(SampleFormat::IDENTIFIER) {
        return Some(1);
    }
    let after = [SampleFormat::STREAM_ID, SampleFormat::CPU].iter().filter(|&&field| format.contains(field)).count();
    format.contains(SampleFormat::ID).then_some(after + 1)
}

impl SampleId {
    /// Splits a record's body into its own fields and the trailer.
    pub(crate) fn split<'a>(
        format: SampleFormat,
        what: &'static str,
        offset: u64,
        body: &'a [u8],
    ) -> Result<(&'a [u8], Self), Error> {
        let needs = trailer_words(format) * 8;
        let left = body.len();
        let short = || Error::Short { what, offset, needs: needs as u64, left: left as u64 };
        let (own, trailer) = body.split_at_checked(left.wrapping_sub(needs)).ok_or_else(short)?;
        let (words, _) = trailer.as_chunks();
        Self::parse(format, words).map(|id| (own, id)).ok_or_else(short)
    }

    fn parse(format: SampleFormat, words: &[Word]) -> Option<Self> {
        let mut words = Words(words);
        let mut id = Self::default();
        if format.contains(SampleFormat::TID) {
            let (pid, tid) = words.take_pair()?;
            (id.pid, id.tid) = (Some(pid), Some(tid));
        }
        if format.contains(SampleFormat::TIME) {
            id.time = Some(words.take()?);
        }
        if format.contains(SampleFormat::ID) {
            id.id = Some(words.take()?);
        }
        if format.contains(SampleFormat::STREAM_ID) {
            id.stream_id = Some(words.take()?);
        }
        if format.contains(SampleFormat::CPU) {
            id.cpu = Some(words.take_pair()?.0);
        }
        if format.contains(SampleFormat::IDENTIFIER) {
            id.identifier = Some(words.take()?);
        }
        Some(id)
    }

    /// Appends the trailer that `format` asks for; what is `None` is written as 0.
    pub(crate) fn append(&self, format: SampleFormat, record: &mut Vec<u8>) {
        let mut put = |field, value: u64| {
            if format.contains(field) {
                record.extend(value.to_le_bytes());
            }
        };
        let pair =
            |low: Option<u32>, high: Option<u32>| u64::from(low.unwrap_or(0)) | u64::from(high.unwrap_or(0)) << 32;
        put(SampleFormat::TID, pair(self.pid, self.tid));
        put(SampleFormat::TIME, self.time.unwrap_or(0));
        put(SampleFormat::ID, self.id.unwrap_or(0));
        put(SampleFormat::STREAM_ID, self.stream_id.unwrap_or(0));
        put(SampleFormat::CPU, pair(self.cpu, None));
        put(SampleFormat::IDENTIFIER, self.identifier.unwrap_or(0));
    }
}
