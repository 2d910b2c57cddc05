//! Instructions of one side that are not compared with the other's.

use std::collections::{BTreeMap, BTreeSet};

use crate::code::FunctionId;
use crate::validation::counts::{Column, Counts, Estimate};

/// Which side executed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The run that was counted exactly.
    Truth,
    /// The run that was recorded.
    Recording,
}

impl Side {
    /// Its name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Side::Truth => "truth",
            Side::Recording => "recording",
        }
    }
}

/// Instructions of one side that are not compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Uncompared {
    /// The side that executed them.
    pub side: Side,
    /// Which instructions they are, and why they are not compared: a sentence.
    pub what: String,
    /// Their share of all instructions of that side, 0 to 1.
    pub share: f64,
}

/// The functions of these families that ran on one side only while another of the family ran on the other side only: the CPUs of the
/// two runs differ. One that just was not sampled is none.
pub(super) fn is_variant_of_one_side(
    families: &[Vec<FunctionId>],
    counts: &BTreeMap<FunctionId, Counts>,
) -> BTreeSet<FunctionId> {
    let ran = |function: &FunctionId, column| counts.get(function).is_some_and(|counts| counts.get(column) > 0.0);
    let in_truth = |function: &FunctionId| ran(function, Column::Truth);
    let in_recording =
        |function: &FunctionId| Estimate::ALL.iter().any(|&estimate| ran(function, Column::Whole(estimate)));
    let mut taken = BTreeSet::new();
    for family in families {
        let one_side: Vec<FunctionId> =
            family.iter().copied().filter(|function| in_truth(function) != in_recording(function)).collect();
        if one_side.iter().any(in_truth) && one_side.iter().any(in_recording) {
            taken.extend(one_side);
        }
    }
    taken
}
