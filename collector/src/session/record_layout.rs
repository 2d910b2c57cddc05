//! Where in a record the time and the event id are.

use perf_event_open_sys::bindings as sys;
use perfdata::{AttrFlags, EventAttr, EventDescription, SampleFormat};

/// Bytes of a record's header: type, misc, size.
pub(crate) const HEADER: usize = 8;

/// A whole record, still in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordBytes<'a> {
    /// The type in its header, `PERF_RECORD_*`.
    pub(crate) kind: u32,
    /// What follows the header.
    pub(crate) body: &'a [u8],
    /// The whole record: its header, and its body.
    pub(crate) all: &'a [u8],
}

/// Bytes that are not a sequence of whole records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("record of type {kind} at byte {offset} of a ring says {size} bytes, {left} are left, {HEADER} is the least")]
pub struct BrokenRecord {
    /// Where it begins, in what was read from the ring.
    pub offset: usize,
    /// The type that its header states.
    pub kind: u32,
    /// The size that its header states, in bytes.
    pub size: u16,
    /// Bytes from its start to the end.
    pub left: usize,
}

/// The first record of `bytes`, which are at `offset` of what was read.
pub(crate) fn first_record(bytes: &[u8], offset: usize) -> Result<Option<RecordBytes<'_>>, BrokenRecord> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let left = bytes.len();
    let Some((header, _)) = bytes.split_first_chunk::<HEADER>() else {
        return Err(BrokenRecord { offset, kind: 0, size: 0, left });
    };
    let [a, b, c, d, _, _, low, high] = *header;
    let (kind, size) = (u32::from_le_bytes([a, b, c, d]), u16::from_le_bytes([low, high]));
    match bytes.get(..size.into()) {
        Some(all) if all.len() >= HEADER => Ok(Some(RecordBytes { kind, body: &all[HEADER..], all })),
        _ => Err(BrokenRecord { offset, kind, size, left }),
    }
}

/// The records of `bytes`, one after the other; the first that is broken is the last.
pub(crate) fn records(bytes: &[u8]) -> impl Iterator<Item = Result<RecordBytes<'_>, BrokenRecord>> {
    let mut offset = Some(0);
    std::iter::from_fn(move || {
        let at = offset.take()?;
        let record = first_record(bytes.get(at..).unwrap_or_default(), at).transpose()?;
        offset = record.ok().map(|record| at + record.all.len());
        Some(record)
    })
}

/// Places of time and id, the same for all events of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordLayout {
    sample_time: Option<usize>,
    sample_id: Option<usize>,
    sample_pid: Option<usize>,
    /// Bytes before the end.
    trailer_time: Option<usize>,
}

impl RecordLayout {
    /// The layout of an event's records. All events of a session agree in the fields that matter here.
    pub(crate) fn of(attr: &EventAttr) -> Self {
        let has = |field: SampleFormat| attr.sample_format.contains(field);
        // The kernel's order: samples IDENTIFIER, IP, TID, TIME, ADDR, ID; trailers TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER.
        let words = |fields: &[SampleFormat]| 8 * fields.iter().filter(|&&field| has(field)).count();
        use SampleFormat as F;
        let after_time = words(&[F::TIME, F::ID, F::STREAM_ID, F::CPU, F::IDENTIFIER]);
        let with_trailer = attr.flags.contains(AttrFlags::SAMPLE_ID_ALL);
        Self {
            sample_time: has(F::TIME).then(|| words(&[F::IDENTIFIER, F::IP, F::TID])),
            sample_id: if has(F::IDENTIFIER) {
                Some(0)
            } else {
                has(F::ID).then(|| words(&[F::IP, F::TID, F::TIME, F::ADDR]))
            },
            sample_pid: has(F::TID).then(|| words(&[F::IDENTIFIER, F::IP])),
            trailer_time: (has(F::TIME) && with_trailer).then_some(after_time),
        }
    }

    /// The layout of a recording's records.
    pub(crate) fn of_events(events: &[EventDescription]) -> Self {
        events.first().map(|event| Self::of(&event.attr)).unwrap_or_default()
    }

    /// When the record was made, if it says so.
    pub(crate) fn time(&self, record: &RecordBytes<'_>) -> Option<u64> {
        match record.kind {
            SAMPLE => word(record.body, self.sample_time?),
            // The last trailer word is at 8 bytes before the end. Record types from 64 on are made by tools and have no trailer.
            kind if kind < 64 => word(record.body, record.body.len().checked_sub(self.trailer_time?)?),
            _ => None,
        }
    }

    /// Makes a record of a mapping one of `pid`, before everything that is recorded.
    pub(crate) fn put_before_all(&self, mapping: &mut [u8], pid: u32) {
        let own = mapping.get(HEADER..HEADER + 4) == Some(&pid.to_le_bytes());
        // pid and tid.
        if let Some(ids) = mapping.get_mut(HEADER..HEADER + 8).filter(|_| !own) {
            ids.copy_from_slice([pid.to_le_bytes(); 2].as_flattened());
        }
        let time = self.trailer_time.and_then(|before_end| mapping.len().checked_sub(before_end));
        if let Some(time) = time.and_then(|at| mapping.get_mut(at..at + 8)) {
            time.fill(0);
        }
    }

    /// Gives the records of what was there before this time. Those of forks have it twice.
    pub(crate) fn put_at(&self, found: &mut [u8], time: u64) -> Result<(), BrokenRecord> {
        let mut offset = 0;
        while let Some(record) = first_record(&found[offset..], offset)? {
            let (begin, end) = (offset, offset + record.all.len());
            let in_fork = (record.kind == sys::PERF_RECORD_FORK).then_some(begin + HEADER + TIME_OF_FORK);
            let in_trailer = self.trailer_time.and_then(|before_end| end.checked_sub(before_end));
            for at in in_fork.into_iter().chain(in_trailer) {
                if let Some(place) = found.get_mut(at..at + 8) {
                    place.copy_from_slice(&time.to_le_bytes());
                }
            }
            offset = end;
        }
        Ok(())
    }

    /// The event id of a sample.
    pub(crate) fn sample_id(&self, record: &RecordBytes<'_>) -> Option<u64> {
        word(record.body, self.sample_id?)
    }

    /// The process of a sample.
    pub(crate) fn sample_pid(&self, record: &RecordBytes<'_>) -> Option<u32> {
        word(record.body, self.sample_pid?).map(|word| word as u32)
    }
}

impl RecordBytes<'_> {
    /// The bits beside the type in its header, `PERF_RECORD_MISC_*`.
    pub(crate) fn misc(&self) -> u16 {
        u16::from_le_bytes([self.all[4], self.all[5]])
    }
}

/// Where in the body of a FORK its time is: after pid, ppid, tid, ptid.
pub(crate) const TIME_OF_FORK: usize = 16;

/// `PERF_RECORD_SAMPLE`.
pub(crate) const SAMPLE: u32 = 9;

/// `misc` of a COMM: an exec gave the name. Of a FORK: the process was there before the recording.
pub(crate) const MISC_EXEC: u16 = 1 << 13;

/// The two numbers in a word: pid and tid, or a process and its parent.
pub(crate) fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

/// The path in the body of an MMAP2 of code; `None` of other mappings.
pub(crate) fn path_of_code(body: &[u8]) -> Option<&[u8]> {
    const PROT_EXEC: u64 = 4;
    (word(body, 56)? & PROT_EXEC != 0).then(|| path_of_mapping(body)).flatten()
}

/// The path in the body of an MMAP2.
pub(crate) fn path_of_mapping(body: &[u8]) -> Option<&[u8]> {
    body.get(64..)?.split(|&byte| byte == 0).next()
}

/// An event as sessions open it, whose records say when they were made and of what.
#[cfg(test)]
pub(crate) fn one_event() -> Vec<EventDescription> {
    let format = SampleFormat::IDENTIFIER | SampleFormat::IP | SampleFormat::TID | SampleFormat::TIME;
    let attr = EventAttr { sample_format: format, flags: AttrFlags::SAMPLE_ID_ALL, ..EventAttr::default() };
    vec![EventDescription { attr, ids: vec![5], name: "clock".to_owned() }]
}

/// The u64 at a byte offset.
pub(crate) fn word(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, words: &[u64]) -> Vec<u8> {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend([0, 0]);
        bytes.extend(((HEADER + words.len() * 8) as u16).to_le_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes
    }

    fn check(format: SampleFormat, kind: u32, words: &[u64], time: Option<u64>, id: Option<u64>) {
        let attr = EventAttr { sample_format: format, flags: AttrFlags::SAMPLE_ID_ALL, ..EventAttr::default() };
        let bytes = record(kind, words);
        let record = first_record(&bytes, 0).unwrap().unwrap();
        let layout = RecordLayout::of(&attr);
        assert_eq!(layout.time(&record), time, "{format} {kind}");
        if kind == SAMPLE {
            assert_eq!(layout.sample_id(&record), id, "{format} {kind}");
        }
    }

    #[test]
    fn places_follow_the_sample_format() {
        use SampleFormat as F;
        let ours = F::IDENTIFIER | F::IP | F::TID | F::TIME | F::PERIOD;
        check(ours, SAMPLE, &[7, 1, 2, 99, 5], Some(99), Some(7));
        check(ours, 3, &[1, 2, /* tid */ 3, /* time */ 98, /* identifier */ 7], Some(98), None);
        check(ours | F::CPU, 3, &[1, 3, 97, 0, 7], Some(97), None);
        check(F::IP | F::TID | F::TIME | F::ID, SAMPLE, &[1, 2, 96, 8], Some(96), Some(8));
        check(F::IP | F::TID, SAMPLE, &[1, 2], None, None);
        check(ours, 68, &[], None, None);
        // Too short for what the format asks for.
        check(ours, SAMPLE, &[7, 1], None, Some(7));
        check(ours, 3, &[1], None, None);
    }

    #[test]
    fn broken_records_are_told_with_their_values() {
        let mut bytes = record(SAMPLE, &[1, 2]);
        bytes.truncate(20);
        let error = first_record(&bytes, 40).unwrap_err();
        assert_eq!(error, BrokenRecord { offset: 40, kind: 9, size: 24, left: 20 });
        assert!(first_record(&[9, 0, 0, 0, 0, 0, 7, 0], 0).is_err(), "a size smaller than the header");
        assert!(first_record(&[1, 2, 3], 0).is_err());
    }
}
