//! Halves of a recording, to see how much its counts vary by chance.

use perfdata::{RawRecord, Sample};

/// Which samples of a recording are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Subset {
    /// All samples of the recording.
    #[default]
    Whole,
    /// About half of them.
    FirstHalf,
    /// The samples that are not in the first half.
    SecondHalf,
}

impl Subset {
    /// Whether a sample belongs to the subset. A hash of its time and thread decides: pieces of one burst have both in common, and what
    /// happens at regular times falls into both halves.
    pub fn keeps(self, sample: &Sample<'_>, raw: &RawRecord<'_>) -> bool {
        let first = Self::mixed(sample, raw) >> 63 == 0;
        match self {
            Subset::Whole => true,
            Subset::FirstHalf => first,
            Subset::SecondHalf => !first,
        }
    }

    /// A hash of time and thread.
    pub(super) fn mixed(sample: &Sample<'_>, raw: &RawRecord<'_>) -> u64 {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        // Without a time each sample goes its own way.
        let key = sample.time.unwrap_or(raw.offset) ^ u64::from(sample.tid.unwrap_or(0)).rotate_left(32);
        let mixed = (key ^ key >> 29).wrapping_mul(ODD);
        (mixed ^ mixed >> 32).wrapping_mul(ODD)
    }
}
