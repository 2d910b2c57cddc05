//! Merges the records of several rings by time.

use crate::session::record_layout::{BrokenRecord, RecordLayout, first_record};

/// Bytes of memory kept from round to round.
const MOST_SPARE: usize = 4 << 20;

/// Holds records back until no earlier one can come.
///
/// All rings are read once per round. A record read in round n can be older than others of round n (its ring was read last), but
/// not older than what was read in round n - 1, for its ring was empty after that. So a round lets go everything up to the newest
/// time of the round before, the rule of perf's own `ordered-events.c`:
///
/// ```text
/// round        1           2           3
/// ring A    10 30 |     50 60 |        80 |
/// ring B    20 40 |     45 70 |     65    |
/// let go     -          10 20 30 40    45 50 60 65 70     (the rest at the end)
/// ```
#[derive(Debug)]
pub(crate) struct TimeOrder {
    layout: RecordLayout,
    /// What rings held of which records are held back, and memory that can be used for more: new memory costs more than what is done
    /// with it.
    batches: Vec<Batch>,
    /// Those of which nothing is held back.
    free: Vec<usize>,
    /// Times and places of these records.
    index: Vec<Held>,
    /// Newest time of the round that is being read, and of the one before.
    newest: u64,
    newest_before: Option<u64>,
    /// Newest time let go.
    let_go: u64,
    late: u64,
}

/// What a ring held.
#[derive(Debug, Default)]
struct Batch {
    bytes: Vec<u8>,
    /// Records that are held back. Where there are none, its memory is free.
    held: usize,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    time: u64,
    batch: usize,
    start: usize,
    length: u16,
}

impl TimeOrder {
    pub(crate) fn new(layout: RecordLayout) -> Self {
        Self {
            layout,
            batches: Vec::new(),
            free: Vec::new(),
            index: Vec::new(),
            newest: 0,
            newest_before: None,
            let_go: 0,
            late: 0,
        }
    }

    /// Takes what one ring held, and gives other memory for it. A record without a time counts as made when the one before it was,
    /// and the first one now.
    ///
    /// # Errors
    /// When the bytes are not whole records; those before the break are taken.
    pub(crate) fn take(&mut self, ring: &mut Vec<u8>) -> Result<(), BrokenRecord> {
        if ring.is_empty() {
            return Ok(());
        }
        let batch = self.free.pop().unwrap_or_else(|| {
            self.batches.push(Batch::default());
            self.batches.len() - 1
        });
        let Batch { bytes, held } = &mut self.batches[batch];
        bytes.clear();
        std::mem::swap(bytes, ring);
        let (mut offset, mut time) = (0, self.let_go);
        while let Some(record) = first_record(&bytes[offset..], offset)? {
            time = self.layout.time(&record).unwrap_or(time);
            // Its size is a u16 in the record's header.
            let length = record.all.len() as u16;
            self.index.push(Held { time, batch, start: offset, length });
            *held += 1;
            self.newest = self.newest.max(time);
            offset += record.all.len();
        }
        Ok(())
    }

    /// Ends a round: appends to `out` what can be let go, by time. Records of the same time stay in the order they came in.
    pub(crate) fn end_round(&mut self, out: &mut Vec<u8>) {
        if let Some(limit) = self.newest_before {
            self.release(limit, out);
        }
        self.newest_before = Some(self.newest);
    }

    /// Lets all records go that are still held back.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        self.release(u64::MAX, out);
    }

    /// The newest time let go: the earliest at which a record is not late.
    pub(crate) fn let_go(&self) -> u64 {
        self.let_go
    }

    /// Records that came too late to be put in order; they are in the recording all the same.
    pub(crate) fn late(&self) -> u64 {
        self.late
    }

    fn release(&mut self, limit: u64, out: &mut Vec<u8>) {
        self.index.sort_by_key(|held| held.time);
        let count = self.index.partition_point(|held| held.time <= limit);
        for held in self.index.drain(..count) {
            self.late += u64::from(held.time < self.let_go);
            self.let_go = self.let_go.max(held.time);
            let batch = &mut self.batches[held.batch];
            out.extend_from_slice(&batch.bytes[held.start..held.start + usize::from(held.length)]);
            batch.held -= 1;
        }
        // From what was let go.
        self.free.clear();
        let mut spare = 0;
        for (place, batch) in self.batches.iter_mut().enumerate().filter(|(_, batch)| batch.held == 0) {
            self.free.push(place);
            match batch.bytes.capacity() {
                bytes if spare + bytes > MOST_SPARE => batch.bytes = Vec::new(),
                bytes => spare += bytes,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use perfdata::{AttrFlags, EventAttr, SampleFormat};

    use super::*;
    use crate::session::record_layout::SAMPLE;

    fn attr() -> EventAttr {
        EventAttr { sample_format: SampleFormat::TIME, flags: AttrFlags::SAMPLE_ID_ALL, ..EventAttr::default() }
    }

    fn samples(times: &[u64]) -> Vec<u8> {
        let header = [SAMPLE as u8, 0, 0, 0, 0, 0, 16, 0];
        times.iter().flat_map(|time| [header, time.to_le_bytes()].concat()).collect()
    }

    fn times(bytes: &[u8]) -> Vec<u64> {
        bytes.chunks(16).map(|record| u64::from_le_bytes(record[8..].try_into().unwrap())).collect()
    }

    /// Rounds of what each ring held -> what is let go after each, and at the end.
    fn check(rounds: &[&[&[u64]]], expected: &[&[u64]], late: u64) {
        let mut order = TimeOrder::new(RecordLayout::of(&attr()));
        let mut got = Vec::new();
        for rings in rounds {
            rings.iter().for_each(|ring| order.take(&mut samples(ring)).unwrap());
            let mut out = Vec::new();
            order.end_round(&mut out);
            got.push(times(&out));
        }
        let mut out = Vec::new();
        order.finish(&mut out);
        got.push(times(&out));
        assert_eq!(got, expected);
        assert_eq!(order.late(), late);
    }

    #[test]
    fn the_picture_in_the_documentation() {
        check(
            &[&[&[10, 30], &[20, 40]], &[&[50, 60], &[45, 70]], &[&[80], &[65]]],
            &[&[], &[10, 20, 30, 40], &[45, 50, 60, 65, 70], &[80]],
            0,
        );
    }

    #[test]
    fn empty_rounds_let_go_what_is_held() {
        check(&[&[&[1, 2]], &[&[]], &[&[]]], &[&[], &[1, 2], &[], &[]], 0);
    }

    #[test]
    fn late_records_are_kept_and_counted() {
        check(&[&[&[10]], &[&[20]], &[&[5]]], &[&[], &[10], &[5, 20], &[]], 1);
    }

    #[test]
    fn records_without_time_stay_behind_the_one_before() {
        let mut order = TimeOrder::new(RecordLayout::of(&attr()));
        let timeless = [68, 0, 0, 0, 0, 0, 8, 0];
        order.take(&mut [samples(&[30]), timeless.to_vec(), samples(&[40])].concat()).unwrap();
        order.take(&mut samples(&[35])).unwrap();
        let mut out = Vec::new();
        order.finish(&mut out);
        assert_eq!(out, [samples(&[30]), timeless.to_vec(), samples(&[35, 40])].concat());
    }

    #[test]
    fn a_first_record_without_time_is_not_late() {
        let mut order = TimeOrder::new(RecordLayout::of(&attr()));
        order.take(&mut samples(&[30])).unwrap();
        let mut out = Vec::new();
        order.finish(&mut out);
        order.take(&mut [65, 0, 0, 0, 0, 0, 8, 0].to_vec()).unwrap();
        order.finish(&mut out);
        assert_eq!((out.len(), order.late()), (24, 0));
    }

    #[test]
    fn memory_is_bounded_by_what_two_rounds_bring() {
        let mut order = TimeOrder::new(RecordLayout::of(&attr()));
        let mut out = Vec::new();
        for round in 0..1000 {
            order.take(&mut samples(&[round * 2, round * 2 + 1])).unwrap();
            order.end_round(&mut out);
            let bytes: usize = order.batches.iter().map(|batch| batch.bytes.capacity()).sum();
            assert!(order.batches.len() <= 3 && order.index.len() <= 4 && bytes <= 3 * 32, "{bytes}");
        }
    }
}
