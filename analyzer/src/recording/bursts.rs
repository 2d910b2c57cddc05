//! Bursts: which samples are pieces of the same one, where bursts start.

use std::collections::HashMap;

use perfdata::{Avma, BranchStack, RawRecord, Recording, Sample, Weight};

use formats::metadata::Metadata;

use crate::recording::burst_unit;
use crate::uncertainty::{Slice, SliceSums};

/// Instructions of a burst or a piece of one; 0 where nobody counted them. The upper half of the weight is not read.
pub fn instructions_of(piece: &Sample<'_>) -> u64 {
    match piece.weight {
        Some(Weight::Full(weight)) => weight & 0xffff_ffff,
        Some(Weight::Struct { .. }) | None => 0,
    }
}

/// A burst, or one of the pieces it was cut into because a sample holds at most 65,535 bytes.
#[derive(Clone, Copy, Debug)]
pub struct BurstPiece<'a> {
    /// Its first instruction, where recorded.
    pub start: Option<Avma>,
    /// How many instructions it executed.
    pub instructions: u64,
    /// What it stands for.
    pub period: u64,
    /// Every taken branch of it.
    pub stack: &'a BranchStack<'a>,
    /// It is the first of its burst.
    pub first: bool,
    /// The slice of the recording that its burst is in.
    pub slice: Slice,
}

/// The bursts that started in one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Starts {
    /// How many bursts started there.
    pub bursts: u64,
    /// What they stand for: the sum of their periods.
    pub periods: u128,
    /// The bursts by slice.
    pub bursts_by_slice: SliceSums,
    /// The periods by slice.
    pub periods_by_slice: SliceSums,
}

impl Starts {
    /// Adds a burst, or one more piece of one.
    pub fn add(&mut self, piece: &BurstPiece<'_>) {
        self.periods = self.periods.saturating_add(u128::from(piece.period));
        self.periods_by_slice.add(&SliceSums::one(piece.slice, piece.period));
        if piece.first {
            self.bursts += 1;
            self.bursts_by_slice.add(&SliceSums::one(piece.slice, 1));
        }
    }

    /// Adds the bursts that another reader of the recording saw start there.
    pub fn merge(&mut self, other: Starts) {
        self.bursts += other.bursts;
        self.periods = self.periods.saturating_add(other.periods);
        self.bursts_by_slice.add(&other.bursts_by_slice);
        self.periods_by_slice.add(&other.periods_by_slice);
    }
}

/// The first piece of a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstPiece {
    /// Where the burst starts.
    pub start: Option<Avma>,
    /// Where the sample is in the recording.
    pub offset: u64,
}

/// Whose burst: event, thread, time.
type BurstId = (usize, Option<u32>, u64);

/// The first pieces of bursts that have several.
pub type FirstPieces = HashMap<BurstId, FirstPiece>;

/// Finds the bursts among the samples: those of one thread and time that follow each other are pieces of one.
pub struct BurstCounter<'a> {
    recording: &'a Recording,
    has_bursts: Vec<bool>,
    /// How many bursts each event of the recording has.
    pub bursts: Vec<u64>,
    /// The first pieces of bursts that have several.
    pub first_pieces: FirstPieces,
    last_of_thread: HashMap<(usize, Option<u32>), (u64, FirstPiece)>,
}

impl<'a> BurstCounter<'a> {
    /// Of the events that the metadata calls bursts.
    pub fn new(recording: &'a Recording, metadata: &Metadata) -> Self {
        let has_bursts: Vec<bool> =
            recording.events().iter().map(|event| burst_unit(metadata, &event.name).is_some()).collect();
        BurstCounter {
            recording,
            bursts: vec![0; has_bursts.len()],
            has_bursts,
            first_pieces: FirstPieces::new(),
            last_of_thread: HashMap::new(),
        }
    }

    /// Looks at one sample.
    pub fn add(&mut self, event: usize, raw: &RawRecord<'_>) {
        let (Some(true), Some(bursts)) = (self.has_bursts.get(event), self.bursts.get_mut(event)) else { return };
        let Ok(sample) = self.recording.sample(raw) else { return };
        let this = FirstPiece { start: sample.ip, offset: raw.offset };
        let Some(time) = sample.time else {
            *bursts += 1;
            return;
        };
        match self.last_of_thread.get(&(event, sample.tid)) {
            Some((same, first)) if *same == time => {
                self.first_pieces.insert((event, sample.tid, time), *first);
            }
            _ => {
                self.last_of_thread.insert((event, sample.tid), (time, this));
                *bursts += 1;
            }
        }
    }
}
