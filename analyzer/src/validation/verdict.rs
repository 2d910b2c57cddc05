//! How good a recording is, in a word.

use crate::validation::{CodeName, Estimate, Named, Validation};

/// A step of the scale. The larger, the worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// A mnemonic error of at most 1 %, and an overlap of blocks of at least 98 %.
    Excellent,
    /// At most 3 %, at least 92 %.
    Good,
    /// At most 8 %, at least 85 %.
    Fair,
    /// What is worse.
    Poor,
}

/// The steps, with the largest mnemonic error and the least overlap of blocks of each.
const SCALE: [(Grade, f64, f64); 3] =
    [(Grade::Excellent, 0.01, 0.98), (Grade::Good, 0.03, 0.92), (Grade::Fair, 0.08, 0.85)];

/// Rows of each kind that are named.
const NAMED: usize = 3;

impl Grade {
    /// In words, and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Grade::Excellent => "excellent",
            Grade::Good => "good",
            Grade::Fair => "fair",
            Grade::Poor => "poor",
        }
    }

    /// The worse of what the average weighted error of mnemonics (0 to 2) says, and the overlap of blocks (0 to 1) where it is known.
    pub fn of(mnemonic_error: f64, block_overlap: Option<f64>) -> Self {
        let is_in = |(_, most, least): &&(Grade, f64, f64)| {
            mnemonic_error <= *most && block_overlap.is_none_or(|overlap| overlap >= *least)
        };
        SCALE.iter().find(is_in).map_or(Grade::Poor, |(grade, ..)| *grade)
    }
}

/// What a validation comes to.
#[derive(Clone, Debug)]
pub struct Verdict<'a> {
    /// The step of the scale.
    pub grade: Grade,
    /// The average weighted error of mnemonics, of the hybrid, 0 to 2.
    pub mnemonic_error: f64,
    /// What of it chance alone would be; `None` where the recording was not divided.
    pub mnemonic_noise: Option<f64>,
    /// The overlap of the block profiles, 0 to 1; `None` where the truth has no blocks.
    pub block_overlap: Option<f64>,
    /// The mnemonics that add most to the error, the worst first; those that add nothing are not among them.
    pub mnemonics: Vec<&'a Named<String>>,
    /// The functions that add most to the error, likewise.
    pub functions: Vec<&'a Named<CodeName>>,
}

impl Validation {
    /// What it comes to; `None` where the recording has no counts.
    pub fn verdict(&self) -> Option<Verdict<'_>> {
        let quality = self.qualities[Estimate::Hybrid as usize]?;
        let block_overlap = quality.code.map(|code| code.block_overlap);
        let mnemonic_error = quality.mnemonic.error;
        Some(Verdict {
            grade: Grade::of(mnemonic_error, block_overlap),
            mnemonic_error,
            mnemonic_noise: quality.mnemonic.noise,
            block_overlap,
            mnemonics: worst(&self.mnemonics),
            functions: worst(&self.functions),
        })
    }
}

fn worst<N>(rows: &[Named<N>]) -> Vec<&Named<N>> {
    /// Less adds nothing.
    const LEAST: f64 = 0.0005;
    let mut worst: Vec<&Named<N>> = rows.iter().filter(|row| row.contribution() >= LEAST).collect();
    worst.sort_by(|one, other| other.contribution().total_cmp(&one.contribution()));
    worst.truncate(NAMED);
    worst
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worse_of_both_measures_decides() {
        let grade = |error, overlap| Grade::of(error, Some(overlap));
        assert_eq!(grade(0.01, 0.98), Grade::Excellent);
        assert_eq!(grade(0.021, 0.94), Grade::Good);
        assert_eq!(grade(0.005, 0.94), Grade::Good);
        assert_eq!(grade(0.031, 0.99), Grade::Fair);
        assert_eq!(grade(0.01, 0.84), Grade::Poor);
        assert_eq!(Grade::of(0.01, None), Grade::Excellent);
        assert_eq!(Grade::of(f64::NAN, None), Grade::Poor);
    }
}
