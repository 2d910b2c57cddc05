//! Reads all there is to read in some bytes.

use std::fmt::Write;

use perfdata::{Chunk, EventAttr, RawRecord, Recording, Sample};

use super::by_hand::{Attr, file, record};

/// What a read found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub records: u64,
    pub samples: u64,
    pub branches: u64,
    /// Records that could not be read.
    pub refused: u64,
    /// Reading ended before the data did.
    pub damaged: bool,
}

/// Takes any bytes for a recording and reads every record and feature of it. `None` when it is no recording.
pub fn read_everything(bytes: &[u8]) -> Option<Found> {
    let recording = Recording::from_bytes(bytes.to_vec()).ok()?;
    let mut sink = Sink::default();
    let _ = write!(sink, "{:?}{:?}{:?}", recording.events(), recording.features(), recording.notes());
    for event in recording.events() {
        let again = EventAttr::parse(&event.attr.to_bytes()).expect("an attr that was read can be written and read");
        assert_eq!(again, event.attr);
    }
    let mut found = Found::default();
    let mut reader = recording.chunks();
    let mut chunk = Chunk::new();
    while reader.next_into(&mut chunk).expect("memory can be read") {
        for raw in chunk.records() {
            found.records += 1;
            read_record(&recording, &raw, &mut found, &mut sink);
        }
        assert!(reader.position() <= recording.data_size());
    }
    assert_eq!(chunk.records().count(), 0, "the chunk at the end is empty");
    found.damaged = reader.damage().is_some();
    let _ = write!(sink, "{:?}", reader.damage());
    Some(found)
}

fn read_record(recording: &Recording, raw: &RawRecord<'_>, found: &mut Found, sink: &mut Sink) {
    assert!(raw.body.len() <= usize::from(u16::MAX) - 8);
    if !raw.is_sample() {
        match recording.parse(raw) {
            Ok(record) => drop(write!(sink, "{record:?}")),
            Err(error) => {
                found.refused += 1;
                let _ = write!(sink, "{error}");
            }
        }
        return;
    }
    found.samples += 1;
    match recording.sample(raw) {
        Ok(sample) => {
            assert!(sample.event < recording.events().len());
            found.branches += sample.branch_stack.map_or(0, |stack| stack.len() as u64);
            read_sample(&sample, sink);
        }
        Err(error) => {
            found.refused += 1;
            let _ = write!(sink, "{error}");
        }
    }
}

/// Goes through every view that a sample holds.
fn read_sample(sample: &Sample<'_>, sink: &mut Sink) {
    let _ = write!(sink, "{sample:?}");
    if let Some(stack) = sample.branch_stack {
        assert_eq!(stack.iter().count(), stack.len());
        let last = stack.len().wrapping_sub(1);
        assert_eq!(stack.get(last), stack.iter().next_back());
        let _ = write!(sink, "{:?}", (0..stack.len()).map(|index| stack.counters(index)).next_back());
    }
    if let Some(read) = sample.read {
        assert_eq!(read.iter().count(), read.len());
    }
    for registers in [sample.user_regs, sample.intr_regs].into_iter().flatten() {
        let _ = write!(sink, "{:?}", (0..70).filter_map(|register| registers.get(register)).count());
    }
}

/// Takes the first bytes for what an event records and the others for the body of one of its samples.
pub fn read_sample_of_any_event(bytes: &[u8]) -> Option<Found> {
    let (head, body) = bytes.split_first_chunk::<40>()?;
    let (words, _) = head.as_chunks::<8>();
    let word = |index: usize| u64::from_le_bytes(words[index]);
    let attr = Attr {
        sample_type: word(0),
        read_format: word(1),
        branch_sample_type: word(2),
        regs_user: word(3),
        regs_intr: word(4),
        ..Attr::default()
    };
    let body = &body[..body.len().min(60_000)];
    read_everything(&file(&[attr], &[record(9, 0, body)]))
}

/// Formats without keeping anything.
#[derive(Default)]
struct Sink(usize);

impl Write for Sink {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0 = self.0.wrapping_add(text.len());
        Ok(())
    }
}
