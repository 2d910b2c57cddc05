//! Bursts in full, in the order of what they executed: what a simulated core is shown.

use perfdata::{Avma, RawRecord, Sample};

use crate::recording::{ContextId, Subset};

/// Paths kept of one recording, about: their branches take 16 KiB each.
const KEPT: u64 = 2000;

/// The first use of a line of data by a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DataUse {
    /// Instructions of the burst that were executed before.
    pub instruction: u32,
    /// The low 32 bits of address / 64.
    pub line: u32,
}

/// A use of an address that the burst had stored to shortly before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Forwarded {
    /// Instructions of the burst that were executed before.
    pub instruction: u32,
    /// How many instructions before it the store was.
    pub distance: u32,
}

/// The data that a burst used.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DataUses {
    /// In order; empty where nobody recorded them.
    pub first: Vec<DataUse>,
    /// In order.
    pub forwarded: Vec<Forwarded>,
    /// Instructions for which both are known; `None` if for all.
    pub known_until: Option<u32>,
}

impl DataUses {
    /// From the raw data of a burst's first sample: words of the instructions executed before, in the upper half, and the line. Line 0 is none: it
    /// says that there was no room for more. With the highest bit set, the lower half is the distance from a store.
    pub fn of(raw: &[u8]) -> Self {
        const FORWARDED: u32 = 1 << 31;
        let (words, _) = raw.as_chunks();
        let mut uses = DataUses::default();
        for word in words {
            let word = u64::from_le_bytes(*word);
            let (instruction, line) = ((word >> 32) as u32, word as u32);
            match line {
                distance if instruction & FORWARDED != 0 => {
                    uses.forwarded.push(Forwarded { instruction: instruction & !FORWARDED, distance });
                }
                0 => uses.known_until = Some(instruction),
                line => uses.first.push(DataUse { instruction, line }),
            }
        }
        uses
    }
}

/// What a burst executed, as far as its first sample has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BurstPath {
    /// Whose.
    pub context: ContextId,
    /// When, ns.
    pub time: u64,
    /// Its first instruction.
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
    fn raw_data_of_any_length_is_read() {
        let words = [7 << 32 | 0x1234, 9 << 32 | 0xffff_ffff_u64];
        let mut raw: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let uses = [DataUse { instruction: 7, line: 0x1234 }, DataUse { instruction: 9, line: u32::MAX }];
        assert_eq!(DataUses::of(&raw).first, uses);
        raw.extend([0; 4]); // The kernel's layout pads to eight bytes with its size before.
        assert_eq!(DataUses::of(&raw).first, uses);
        assert_eq!(DataUses::of(&raw[..11]).first, uses[..1]);
        raw.splice(16.., (500_u64 << 32).to_le_bytes());
        raw.extend((1 << 63 | 600_u64 << 32 | 3).to_le_bytes());
        let forwarded = vec![Forwarded { instruction: 600, distance: 3 }];
        assert_eq!(DataUses::of(&raw), DataUses { first: uses.to_vec(), forwarded, known_until: Some(500) });
    }

    #[test]
    fn all_of_few_bursts_are_kept() {
        assert_eq!(PathSelection::of(0), PathSelection { one_of: 1 });
        assert_eq!(PathSelection::of(2000), PathSelection { one_of: 1 });
        assert_eq!(PathSelection::of(100_000), PathSelection { one_of: 50 });
    }
}
