//! What comes first of the samples in a recording with bursts: a burst.

use crate::session::record_layout::{BrokenRecord, RecordLayout, SAMPLE, first_record};

/// Bytes of samples of other events that are held back at most.
const MOST: usize = 1 << 20;

/// Leaves samples of other events out until the first burst.
///
/// `llvm-profgen` and others tell by the first sample, the first in time, whether a recording has branch stacks. The clock samples more
/// often than bursts are made, so that some of its samples come first: those are left out and counted. Where no burst comes, because the
/// program was too short, they are all there is, and are written in the end. Where programs of 32 bits run, which have no bursts, none is left
/// out.
///
/// ```text
/// in     mmap  clock  comm  clock  BURST  clock  BURST
/// out    mmap         comm         BURST  clock  BURST       2 left out
/// in     mmap  clock  comm  clock  exit
/// out    mmap         comm         exit   clock  clock       none left out
/// ```
#[derive(Debug)]
pub(crate) struct Lead {
    layout: RecordLayout,
    /// Id of the bursts' event; `None` once the first has come, or if there is none to wait for.
    burst: Option<u64>,
    held: Vec<u8>,
    count: u64,
    left_out: u64,
    /// What was held back was too much, or is needed: samples of other events are in the file, and a burst may follow.
    is_full: bool,
}

impl Lead {
    /// `burst`: the id of the bursts' event, if there is one.
    pub(crate) fn new(layout: RecordLayout, burst: Option<u64>) -> Self {
        Self { layout, burst, held: Vec::new(), count: 0, left_out: 0, is_full: false }
    }

    /// Whether the first burst is still to come. Records are not to be marked as a round then, for older samples may follow.
    pub(crate) fn is_open(&self) -> bool {
        self.burst.is_some()
    }

    /// Samples that were left out.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Whether what came before the first burst was not left out.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Takes samples before the first burst out of `records`.
    pub(crate) fn hold_back(&mut self, records: &mut Vec<u8>) -> Result<(), BrokenRecord> {
        let Some(burst) = self.burst else { return Ok(()) };
        let (mut kept, mut offset) = (Vec::with_capacity(records.len()), 0);
        while let Some(record) = first_record(&records[offset..], offset)? {
            if record.kind != SAMPLE {
                kept.extend_from_slice(record.all);
            } else if self.layout.sample_id(&record) == Some(burst) {
                (self.burst, self.left_out) = (None, self.count);
                self.held = Vec::new();
                break;
            } else {
                self.held.extend_from_slice(record.all);
                self.count += 1;
            }
            offset += record.all.len();
        }
        kept.extend_from_slice(&records[offset..]);
        *records = kept;
        if self.held.len() > MOST {
            self.is_full = true;
            self.give_up(records);
        }
        Ok(())
    }

    /// Nothing is held back from now on, as some code has samples of other events only. Adds what was held back to `records`.
    pub(crate) fn let_all_through(&mut self, records: &mut Vec<u8>) {
        if self.is_open() {
            self.is_full = true;
            self.give_up(records);
        }
    }

    /// Adds what is held back to `records`: no burst came.
    pub(crate) fn give_up(&mut self, records: &mut Vec<u8>) {
        self.burst = None;
        records.append(&mut self.held);
    }
}

#[cfg(test)]
mod tests {
    use perfdata::{AttrFlags, EventAttr, SampleFormat};

    use super::*;

    const BURST: u64 = 7;
    const CLOCK: u64 = 5;

    fn lead() -> Lead {
        let format = SampleFormat::IDENTIFIER | SampleFormat::TIME;
        let attr = EventAttr { sample_format: format, flags: AttrFlags::SAMPLE_ID_ALL, ..EventAttr::default() };
        Lead::new(RecordLayout::of(&attr), Some(BURST))
    }

    fn record(kind: u32, words: [u64; 2]) -> Vec<u8> {
        let header = [&kind.to_le_bytes()[..], &[0, 0, 24, 0]].concat();
        header.into_iter().chain(words.into_iter().flat_map(u64::to_le_bytes)).collect()
    }

    fn sample(id: u64, time: u64) -> Vec<u8> {
        record(SAMPLE, [id, time])
    }

    fn comm(time: u64) -> Vec<u8> {
        record(3, [time, CLOCK])
    }

    #[test]
    fn samples_before_the_first_burst_are_left_out_and_counted() {
        let mut lead = lead();
        let mut first = [sample(CLOCK, 1), comm(2)].concat();
        lead.hold_back(&mut first).unwrap();
        assert_eq!((first, lead.is_open()), (comm(2), true));
        let rest = [sample(BURST, 5), sample(CLOCK, 6), comm(7)].concat();
        let mut second = [comm(3), sample(CLOCK, 4), rest.clone()].concat();
        lead.hold_back(&mut second).unwrap();
        assert_eq!((second, lead.is_open(), lead.left_out()), ([comm(3), rest.clone()].concat(), false, 2));
        let mut third = rest.clone();
        lead.hold_back(&mut third).unwrap();
        lead.give_up(&mut third);
        assert_eq!((third, lead.left_out()), (rest, 2));
    }

    #[test]
    fn without_a_burst_nothing_is_left_out() {
        let mut lead = lead();
        let mut records = [sample(CLOCK, 1), comm(2), sample(CLOCK, 3)].concat();
        lead.hold_back(&mut records).unwrap();
        assert_eq!(records, comm(2));
        let mut end = Vec::new();
        lead.give_up(&mut end);
        assert_eq!((end, lead.left_out()), ([sample(CLOCK, 1), sample(CLOCK, 3)].concat(), 0));
        assert!(!lead.is_full());
    }

    #[test]
    fn what_is_held_back_is_bounded() {
        let mut lead = lead();
        let mut written = 0;
        for time in 0..100_000 {
            let mut records = sample(CLOCK, time);
            lead.hold_back(&mut records).unwrap();
            written += records.len();
            assert!(lead.held.len() <= MOST);
        }
        assert!(lead.is_full());
        assert_eq!((written, lead.is_open(), lead.left_out()), (100_000 * 24, false, 0));
    }

    #[test]
    fn nothing_is_left_out_where_some_code_has_no_bursts() {
        let mut lead = lead();
        let mut first = sample(CLOCK, 1);
        lead.hold_back(&mut first).unwrap();
        let mut second = [sample(CLOCK, 2), sample(BURST, 3)].concat();
        lead.let_all_through(&mut second);
        lead.hold_back(&mut second).unwrap();
        assert_eq!(second, [sample(CLOCK, 2), sample(BURST, 3), sample(CLOCK, 1)].concat());
        assert_eq!((lead.is_full(), lead.left_out()), (true, 0));
    }

    #[test]
    fn other_recordings_are_as_they_were() {
        let mut lead = Lead::new(RecordLayout::default(), None);
        let mut records = sample(CLOCK, 1);
        lead.hold_back(&mut records).unwrap();
        assert_eq!((records, lead.is_open()), (sample(CLOCK, 1), false));
    }
}
