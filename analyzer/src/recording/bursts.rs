//! Bursts: which samples are pieces of the same one, where bursts start.

use std::collections::HashMap;

use perfdata::{Avma, BranchStack, RawRecord, Recording, Sample, Weight};

use formats::burst_weight::BurstWeight;
use formats::metadata::Metadata;

use crate::recording::burst_unit;
use crate::uncertainty::{Slice, SliceSums};

/// What the weight of a burst or a piece of one says; nothing where it has none.
pub fn weight_of(piece: &Sample<'_>) -> BurstWeight {
    match piece.weight {
        Some(Weight::Full(weight)) => BurstWeight::read(weight),
        Some(Weight::Struct { .. }) | None => BurstWeight::default(),
    }
}

/// What a piece shows of a period: all, or of a burst that ended at a call as much as it has of `full` instructions.
pub fn shown(period: u64, weight: &BurstWeight, full: Option<u64>) -> u64 {
    match full {
        Some(full) if weight.of_cut > 0 && weight.of_cut < full => {
            (u128::from(period) * u128::from(weight.of_cut) / u128::from(full)) as u64
        }
        _ => period,
    }
}

/// A burst, or one of the pieces it was cut into because a sample holds at most 65,535 bytes.
#[derive(Clone, Copy, Debug)]
pub struct BurstPiece<'a> {
    /// Its first instruction, where recorded.
    pub start: Option<Avma>,
    /// How many instructions it executed, and how its burst starts and ends.
    pub weight: BurstWeight,
    /// What it stands for.
    pub period: u64,
    /// What its streams stand for: the same, but less if its burst ended at a call.
    pub shown: u64,
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
    /// What their streams stand for: less where they ended at a call.
    pub shown: u128,
    /// The bursts by slice.
    pub bursts_by_slice: SliceSums,
    /// The periods by slice.
    pub periods_by_slice: SliceSums,
}

impl Starts {
    /// Adds a burst, or one more piece of one.
    pub fn add(&mut self, piece: &BurstPiece<'_>) {
        self.periods = self.periods.saturating_add(u128::from(piece.period));
        self.shown = self.shown.saturating_add(u128::from(piece.shown));
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
        self.shown = self.shown.saturating_add(other.shown);
        self.bursts_by_slice.add(&other.bursts_by_slice);
        self.periods_by_slice.add(&other.periods_by_slice);
    }
}

/// Bursts that ended at a system call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cuts {
    /// What they stand for: the sum of the periods of all their pieces.
    pub periods: u128,
    /// The same, each multiplied by the instructions of the burst.
    pub instructions: u128,
}

impl Cuts {
    /// Of a burst by its last piece, if it ended at a call.
    pub fn of(last: &BurstPiece<'_>) -> Option<Self> {
        let BurstWeight { instructions, of_cut, ends_at_call, .. } = last.weight;
        let all = u128::from(of_cut);
        let periods = (u128::from(last.period) * all).checked_div(u128::from(instructions))?;
        ends_at_call.then_some(Self { periods, instructions: periods.saturating_mul(all) })
    }

    /// Adds others.
    pub fn merge(&mut self, other: &Self) {
        self.periods = self.periods.saturating_add(other.periods);
        self.instructions = self.instructions.saturating_add(other.instructions);
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
