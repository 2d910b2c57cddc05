//! Bursts in full, in the order of what they executed: what a simulated core is shown.

use formats::burst_data::DataUses;
use perfdata::{Avma, RawRecord, Sample};

use crate::recording::{ContextId, Subset};

/// Paths kept of one recording, about: their branches take 16 KiB each.
const KEPT: u64 = 2000;

/// What a burst executed, as far as its first sample has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BurstPath {
    /// The context that the burst is of.
    pub context: ContextId,
    /// When the burst began, ns on the recording's clock.
    pub time: u64,
    /// Address of its first instruction.
    pub start: Avma,
    /// Its taken branches, from and to, oldest first.
    pub branches: Vec<(Avma, Avma)>,
    /// The lines of data it used.
    pub uses: DataUses,
}

impl BurstPath {
    /// Paths that are looked at, however many were kept.
    pub const MOST: usize = 2 * KEPT as usize;
}

/// Which paths are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSelection {
    one_of: u64,
}

impl PathSelection {
    /// About 2,000 of so many bursts; which, depends on their times and threads only.
    pub fn of(bursts: u64) -> Self {
        PathSelection { one_of: bursts.div_ceil(KEPT).max(1) }
    }

    /// Whether this one is kept.
    pub fn keeps(self, sample: &Sample<'_>, raw: &RawRecord<'_>) -> bool {
        Subset::mixed(sample, raw).is_multiple_of(self.one_of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_few_bursts_are_kept() {
        assert_eq!(PathSelection::of(0), PathSelection { one_of: 1 });
        assert_eq!(PathSelection::of(2000), PathSelection { one_of: 1 });
        assert_eq!(PathSelection::of(100_000), PathSelection { one_of: 50 });
    }
}
