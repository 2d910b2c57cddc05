//! The data that a burst used: raw data (`PERF_SAMPLE_RAW`) of the burst's first sample.
//!
//! A sequence of little-endian words of 64 bits. A branch stack tells where a burst went; this tells what a simulated core needs
//! beside it, that is which loads miss caches, and which wait for a store.
//!
//! ```text
//! bit 63   62..32                                  31..0
//! 0        instructions of the burst before it     line: address / 64, its low 32 bits   first use of a line of data
//! 0        instructions of which all is known      0                                     there was no room for more
//! 1        instructions of the burst before it     distance in instructions              use of what was stored before
//! ```
//!
//! First uses come first, in their order, then the word that says there was no room for more, if so, then uses of what was stored, in
//! their order. A line whose low 32 bits are 0 is left out.

/// Says that a word is a [`Forwarded`].
const FORWARDED: u64 = 1 << 63;
/// Instructions are told up to this number; bursts are shorter.
const MOST_INSTRUCTIONS: u32 = (1 << 31) - 1;

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
    /// Uses of what the burst itself had stored, in order of instructions.
    pub forwarded: Vec<Forwarded>,
    /// Instructions for which both are known; `None` if for all.
    pub known_until: Option<u32>,
}

impl DataUses {
    /// Reads raw data of any length; bytes after the last whole word are the padding of the kernel's layout.
    pub fn read(raw: &[u8]) -> Self {
        let (words, _) = raw.as_chunks();
        let mut uses = DataUses::default();
        for word in words {
            let word = u64::from_le_bytes(*word);
            let (instruction, low) = ((word >> 32) as u32 & MOST_INSTRUCTIONS, word as u32);
            match low {
                distance if word & FORWARDED != 0 => uses.forwarded.push(Forwarded { instruction, distance }),
                0 => uses.known_until = Some(instruction),
                line => uses.first.push(DataUse { instruction, line }),
            }
        }
        uses
    }

    /// The bytes of it, as a sample's raw data: little-endian words of 64 bits.
    pub fn to_bytes(&self) -> Vec<u8> {
        write(self.first.iter().copied(), self.known_until, self.forwarded.iter().copied())
    }
}

/// Writes the data of a burst: first uses, the number of instructions for which all is known if that is not all, and uses of what was
/// stored.
pub fn write(
    first: impl Iterator<Item = DataUse>,
    known_until: Option<u32>,
    forwarded: impl Iterator<Item = Forwarded>,
) -> Vec<u8> {
    let word = |instruction: u32, low: u32| u64::from(instruction & MOST_INSTRUCTIONS) << 32 | u64::from(low);
    let first = first.filter(|used| used.line != 0).map(|used| word(used.instruction, used.line));
    let end = known_until.map(|instructions| word(instructions, 0));
    let forwarded = forwarded.map(|used| FORWARDED | word(used.instruction, used.distance));
    first.chain(end).chain(forwarded).flat_map(u64::to_le_bytes).collect()
}
