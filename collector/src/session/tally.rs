//! What went by: samples per event, losses, throttling, mapped files.

use std::collections::HashMap;

use crate::session::kernel_code::KernelHits;
use crate::session::mapped_files::mapping_record::{MISC_BUILD_ID, id_in};
use crate::session::record_layout::{RecordBytes, RecordLayout, SAMPLE, path_of_code, word};

/// Counts of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Samples that were written to the file.
    pub samples: u64,
    /// Records the kernel had no room for in a ring, samples and others (`PERF_RECORD_LOST`).
    pub lost: u64,
    /// Samples the hardware or its driver lost (`PERF_RECORD_LOST_SAMPLES`).
    pub lost_by_hardware: u64,
    /// Times the kernel held an event back because it sampled too often.
    pub throttled: u64,
    /// Records whose place in time was past when they were read.
    pub late: u64,
    /// Samples of other events that came before the first burst and were left out, so that a burst comes first.
    pub before_first_burst: u64,
    /// Samples that were left out because what made them was switched off.
    pub switched_off: u64,
    /// Bursts among them.
    pub bursts_switched_off: u64,
    /// Marks of phases.
    pub phase_marks: u64,
    /// Samples made before the first of these, and after the last of the file before, while no file could be written.
    pub unwritten: u64,
}

/// Sees every record on its way to the file.
#[derive(Debug)]
pub(crate) struct Tally {
    layout: RecordLayout,
    /// Id of the event whose samples are bursts: they have no kernel code, and are long.
    burst: Option<u64>,
    /// Event id -> index of the event.
    events: HashMap<u64, usize>,
    pub(crate) counts: Counts,
    /// Samples that were written, by event.
    pub(crate) samples: Vec<u64>,
    /// Times of the first and the last sample.
    pub(crate) sample_time: Option<(u64, u64)>,
    /// Files mapped with code, by path; with their id, if it is known and the same of all mappings.
    pub(crate) mapped: HashMap<Vec<u8>, Option<Vec<u8>>>,
    /// Addresses of kernel code in samples.
    pub(crate) kernel: KernelHits,
}

const MMAP2: u32 = 10;
const LOST: u32 = 2;
const THROTTLE: u32 = 5;
const LOST_SAMPLES: u32 = 13;

impl Tally {
    /// `ids`: for each event, its ids. `burst`: the id of the event whose samples are bursts.
    pub(crate) fn new(layout: RecordLayout, ids: &[Vec<u64>], burst: Option<u64>) -> Self {
        let events = ids.iter().enumerate().flat_map(|(event, ids)| ids.iter().map(move |&id| (id, event))).collect();
        Self {
            layout,
            burst,
            events,
            counts: Counts::default(),
            samples: vec![0; ids.len()],
            sample_time: None,
            mapped: HashMap::new(),
            kernel: KernelHits::default(),
        }
    }

    pub(crate) fn see(&mut self, record: &RecordBytes<'_>) {
        match record.kind {
            SAMPLE => self.sample(record),
            LOST => self.counts.lost += word(record.body, 8).unwrap_or(0),
            LOST_SAMPLES => self.counts.lost_by_hardware += word(record.body, 0).unwrap_or(0),
            THROTTLE => self.counts.throttled += 1,
            MMAP2 => self.mapping(record).unwrap_or_default(),
            _ => {}
        }
    }

    /// Samples that were written of the event with this id.
    pub(crate) fn samples_of(&self, id: u64) -> u64 {
        self.events.get(&id).and_then(|&event| self.samples.get(event)).copied().unwrap_or(0)
    }

    fn sample(&mut self, record: &RecordBytes<'_>) {
        self.counts.samples += 1;
        let id = self.layout.sample_id(record);
        if id.is_none() || id != self.burst {
            self.kernel.see(record.body);
        }
        let event = id.and_then(|id| self.events.get(&id));
        if let Some(count) = event.and_then(|&event| self.samples.get_mut(event)) {
            *count += 1;
        }
        if let Some(time) = self.layout.time(record) {
            let (first, last) = self.sample_time.unwrap_or((time, time));
            self.sample_time = Some((first.min(time), last.max(time)));
        }
    }

    /// pid, tid, start, length, pgoff, maj, min, ino, generation, prot, flags, path; or a build id from maj to generation.
    fn mapping(&mut self, record: &RecordBytes<'_>) -> Option<()> {
        let body = record.body;
        let pid = word(body, 0)? as u32;
        let path = path_of_code(body)?;
        let is_kernel = pid == u32::MAX;
        if is_kernel {
            self.kernel.map(word(body, 8)?, word(body, 16)?, path);
            return None;
        }
        let id = (record.misc() & MISC_BUILD_ID != 0).then(|| id_in(body)).flatten();
        match self.mapped.get_mut(path) {
            Some(known) if known.as_deref() == id => {}
            Some(known) => *known = None,
            None => drop(self.mapped.insert(path.to_vec(), id.map(<[u8]>::to_vec))),
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use perfdata::{AttrFlags, EventAttr, SampleFormat};

    use super::*;
    use crate::session::record_layout::{HEADER, first_record};

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let size = ((HEADER + body.len()) as u16).to_le_bytes();
        [&kind.to_le_bytes(), &[0, 0][..], &size, body].concat()
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn counts_what_it_sees() {
        let format = SampleFormat::IDENTIFIER | SampleFormat::TIME;
        let attr = EventAttr { sample_format: format, flags: AttrFlags::SAMPLE_ID_ALL, ..EventAttr::default() };
        let mut tally = Tally::new(RecordLayout::of(&attr), &[vec![5, 6], vec![7]], Some(7));
        let mmap = |prot: u64, path: &[u8]| {
            [&words(&[9, 0x1000, 0x1000, 0, 0, 77, 0, prot])[..], path, &[0], &words(&[1, 5])].concat()
        };
        let records = [
            record(SAMPLE, &words(&[5, 100])),
            record(SAMPLE, &words(&[7, 90])),
            record(SAMPLE, &words(&[6, 110])),
            record(SAMPLE, &words(&[8, 95])),
            record(SAMPLE, &[]),
            record(LOST, &words(&[5, 12, 0, 5])),
            record(LOST, &[]),
            record(LOST_SAMPLES, &words(&[3, 0, 5])),
            record(THROTTLE, &words(&[1, 5, 5, 0, 5])),
            record(MMAP2, &mmap(5, b"/bin/x")),
            record(MMAP2, &mmap(1, b"/data")),
            record(MMAP2, &mmap(5, b"/bin/x")),
            record(MMAP2, &[0; 20]),
        ];
        for bytes in &records {
            tally.see(&first_record(bytes, 0).unwrap().unwrap());
        }
        assert_eq!(
            tally.counts,
            Counts { samples: 5, lost: 12, lost_by_hardware: 3, throttled: 1, ..Counts::default() }
        );
        assert_eq!(tally.samples, [2, 1]);
        assert_eq!(tally.sample_time, Some((90, 110)));
        assert_eq!(tally.mapped.into_iter().collect::<Vec<_>>(), [(b"/bin/x".to_vec(), None)]);
    }

    #[test]
    fn kernel_code_is_looked_for_in_all_samples_but_bursts() {
        let attr = EventAttr { sample_format: SampleFormat::IDENTIFIER, ..EventAttr::default() };
        let seen = |burst| {
            let mut tally = Tally::new(RecordLayout::of(&attr), &[vec![5], vec![7]], burst);
            tally.see(&first_record(&record(SAMPLE, &words(&[7, 0xffff_ffff_8123_4567])), 0).unwrap().unwrap());
            !tally.kernel.is_empty()
        };
        assert_eq!([seen(None), seen(Some(5)), seen(Some(7))], [true, true, false]);
    }
}
