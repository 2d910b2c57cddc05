//! What the weight of a burst's sample says (`PERF_SAMPLE_WEIGHT`, 64 bits).
//!
//! ```text
//! bit 63                           62                            61..32                              31..0
//! the burst starts right after     the last piece of a burst     all instructions of a burst that    instructions of this piece
//! a system call                    that ends at a call           ends at a call, or 0
//! ```
//!
//! Most often the upper half is 0: a burst of one piece that starts and ends elsewhere.

const AFTER_CALL: u64 = 1 << 63;
const ENDS_AT_CALL: u64 = 1 << 62;
const MOST_OF_CUT: u64 = (1 << 30) - 1;
const MOST: u64 = u32::MAX as u64;

/// The weight of a piece of a burst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BurstWeight {
    /// Instructions of this piece; 0 where nobody counted them.
    pub instructions: u64,
    /// All instructions of the burst, if it ended before a system call; 0 if it did not.
    pub of_cut: u64,
    /// The burst starts at the first instruction after a system call.
    pub after_call: bool,
    /// The burst ended before a system call, and this is its last piece.
    pub ends_at_call: bool,
}

impl BurstWeight {
    /// Reads it; any number is one.
    pub fn read(weight: u64) -> Self {
        Self {
            instructions: weight & MOST,
            of_cut: weight >> 32 & MOST_OF_CUT,
            after_call: weight & AFTER_CALL != 0,
            ends_at_call: weight & ENDS_AT_CALL != 0,
        }
    }

    /// As the number that a sample has. Numbers that are too large stay at the largest.
    pub fn to_number(self) -> u64 {
        let flag = |is: bool, bit: u64| if is { bit } else { 0 };
        let numbers = self.of_cut.min(MOST_OF_CUT) << 32 | self.instructions.min(MOST);
        numbers | flag(self.after_call, AFTER_CALL) | flag(self.ends_at_call, ENDS_AT_CALL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        for weight in [
            BurstWeight { instructions: 10_000, ..BurstWeight::default() },
            BurstWeight { instructions: 7, of_cut: 9_993, after_call: true, ends_at_call: false },
            BurstWeight { instructions: MOST, of_cut: MOST_OF_CUT, after_call: false, ends_at_call: true },
        ] {
            assert_eq!(BurstWeight::read(weight.to_number()), weight);
        }
        let too_many = BurstWeight { instructions: 1 << 40, of_cut: 1 << 40, ..BurstWeight::default() };
        assert_eq!(BurstWeight::read(too_many.to_number()).of_cut, MOST_OF_CUT);
        // A recording of before.
        assert_eq!(BurstWeight::read(10_000).to_number(), 10_000);
    }
}
