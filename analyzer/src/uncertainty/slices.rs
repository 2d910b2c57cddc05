//! A recording cut into slices, each of which sees the whole run.
//!
//! ```text
//! time       |..................... the recording .....................|
//! chunks     | 0 | 1 | 2 | .. | 19 | 20 | 21 | ..  about one burst (or sample) in each
//! slices     | 4 | 7 | 10| ..        | 9 | 6 | ..  20 chunks that follow each other go to 20 slices, each time in another order
//! ```
//!
//! So a phase of the program is in all slices, as far as it has bursts for them, and what the program does at regular times is not in one
//! slice only. What has one time, as the pieces of a burst have, is in one slice.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

/// How many slices there are.
pub const SLICES: usize = formats::flow::MOST_SLICES;

/// One of the slices: below [`SLICES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slice(u8);

impl Slice {
    /// All slices.
    pub fn all() -> impl Iterator<Item = Slice> {
        (0..SLICES as u8).map(Slice)
    }

    /// The one with this index, if there is one.
    pub fn of_index(index: usize) -> Option<Slice> {
        Slice::all().nth(index)
    }

    /// The index of its replicate.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Some of the slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceSet(u32);

impl SliceSet {
    /// How many they are.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// There is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether this one is among them.
    pub fn has(self, slice: Slice) -> bool {
        self.0 >> slice.0 & 1 == 1
    }

    /// Adds one.
    pub fn insert(&mut self, slice: Slice) {
        self.0 |= 1 << slice.0;
    }

    /// All of these.
    pub(crate) fn of(slices: impl Iterator<Item = Slice>) -> Self {
        let mut set = SliceSet::default();
        slices.for_each(|slice| set.insert(slice));
        set
    }

    /// One bit for each.
    pub(super) fn bits(self) -> u32 {
        self.0
    }

    /// Those of [`Self::bits`].
    pub(super) fn of_bits(bits: u32) -> Self {
        SliceSet(bits & ((1 << SLICES) - 1))
    }

    /// Those of either.
    pub fn or(self, other: SliceSet) -> SliceSet {
        SliceSet(self.0 | other.0)
    }
}

/// Tells which slice a sample is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slicing {
    /// The time of the first chunk, ns.
    first: u64,
    /// Length of a chunk, ns, at least 1.
    length: u64,
    /// Bytes of the recording that are a chunk of samples without a time, at least 1.
    bytes: u64,
}

impl Default for Slicing {
    fn default() -> Self {
        Slicing { first: 0, length: 1, bytes: 1 }
    }
}

impl Slicing {
    /// For so many bursts (or samples, where there are no bursts) in that time (ns) and so many bytes of records.
    pub fn new(times: &RangeInclusive<u64>, bytes: u64, bursts: u64) -> Self {
        let length = |all: u64| (all / bursts.max(1)).max(1);
        Slicing {
            first: *times.start(),
            length: length(times.end().saturating_sub(*times.start())),
            bytes: length(bytes),
        }
    }

    /// The slice of a sample of that time (ns), which is so far from the beginning of the recording (bytes).
    pub fn of(&self, time: Option<u64>, offset: u64) -> Slice {
        let chunk = match time {
            Some(time) => time.saturating_sub(self.first) / self.length,
            None => offset / self.bytes,
        };
        let (cycle, place) = (chunk / SLICES as u64, chunk % SLICES as u64);
        // The order of a cycle: times a number that has no factor in common with 20, plus any number.
        const UNITS: [u64; 8] = [1, 3, 7, 9, 11, 13, 17, 19];
        let mixed = mixed(cycle);
        let unit = UNITS[(mixed >> 61) as usize];
        Slice(((place * unit + mixed % SLICES as u64) % SLICES as u64) as u8)
    }
}

/// A number in which every bit of another matters (the finalizer of splitmix64).
pub(crate) fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_that_follow_each_other_are_in_different_slices() {
        let slicing = Slicing::new(&(1000..=401_000), 0, 400);
        for cycle in 0..20 {
            let mut seen = SliceSet::default();
            (0..20).for_each(|place| seen.insert(slicing.of(Some(1000 + 1000 * (20 * cycle + place)), 0)));
            assert_eq!(seen.len(), SLICES);
        }
    }

    #[test]
    fn what_happens_at_regular_times_is_in_all_slices() {
        let slicing = Slicing::new(&(0..=100_000_000), 0, 10_000);
        for period in [20, 40, 50, 100] {
            let mut seen = SliceSet::default();
            (0..10_000 / period).for_each(|turn| seen.insert(slicing.of(Some(10_000 * period * turn), 0)));
            assert!(seen.len() > 18, "{period}: {seen:?}");
        }
    }

    #[test]
    fn samples_without_a_time_are_cut_by_their_place() {
        let slicing = Slicing::new(&(0..=0), 20_000, 20);
        let mut seen = SliceSet::default();
        (0..20).for_each(|sample| seen.insert(slicing.of(None, 1000 * sample)));
        assert_eq!(seen.len(), SLICES);
    }

    #[test]
    fn absurd_times_are_in_some_slice() {
        for slicing in [
            Slicing::default(),
            Slicing::new(&RangeInclusive::new(5, 2), 0, 0),
            Slicing::new(&(0..=u64::MAX), u64::MAX, 1),
        ] {
            for time in [0, 1, u64::MAX] {
                assert!(slicing.of(Some(time), u64::MAX).index() < SLICES);
            }
        }
    }
}
