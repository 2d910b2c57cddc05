//! How often something was seen, what that stands for, and in which slices of the recording.

use crate::recording::Weight;
use crate::uncertainty::{Replicates, Sampled, Slice, SliceSums};
use crate::walks::TreeSum;

/// How often something was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Times.
    pub seen: u64,
    /// What they stand for.
    pub weight: Weight,
    /// The weight by slice.
    pub slices: SliceSums,
}

impl Sum {
    /// Once.
    pub fn once(weight: Weight, slice: Slice) -> Self {
        Self::times(weight, slice, 1)
    }

    /// Once, of so many instructions.
    pub fn times(weight: Weight, slice: Slice, instructions: u64) -> Self {
        let weight = Weight(weight.0.saturating_mul(u128::from(instructions)));
        Sum { seen: 1, weight, slices: SliceSums::of_weight(slice, weight) }
    }

    /// Adds another.
    pub fn plus(&mut self, other: &Self) {
        self.seen = self.seen.saturating_add(other.seen);
        self.weight = self.weight.plus(other.weight);
        self.slices.add(&other.slices);
    }

    /// Its weight, and what that would be without each slice.
    pub fn sampled(&self) -> (f64, Sampled) {
        let weight = self.weight.to_f64();
        let mut replicates = Replicates::of(weight);
        self.slices.for_each_part(|slice: Slice, part| *replicates.without_mut(slice) -= weight * part);
        (weight, Sampled { replicates, seen: self.slices.slices() })
    }
}

impl TreeSum for Sum {
    fn add(&mut self, other: &Self) {
        self.plus(other);
    }

    fn is_nothing(&self) -> bool {
        self.seen == 0
    }
}
