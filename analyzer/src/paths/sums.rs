//! How often something was seen, what that stands for, and in which slices of the recording.

use crate::recording::Weight;
use crate::uncertainty::{Replicates, SLICES, Sampled, Slice, SliceSums, made_up};
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

    /// Its weight, and what that would be without each slice, which nothing makes up for: for parts of a whole that lacks the slice, too.
    pub fn sampled(&self) -> (f64, Sampled) {
        let weight = self.weight.to_f64();
        let mut replicates = Replicates::of(weight);
        self.slices.for_each_part(|slice: Slice, part| *replicates.without_mut(slice) -= weight * part);
        (weight, Sampled { replicates, seen: self.slices.slices() })
    }

    /// By slice of a recording whose whole this is, what makes up for it where it is left out.
    pub fn made_up(&self) -> Replicates {
        let mut sums = [0; SLICES];
        self.slices.add_to(&mut sums);
        let mut replicates = Replicates::of(1.0);
        Slice::all().zip(made_up(&sums)).for_each(|(slice, factor)| *replicates.without_mut(slice) = factor);
        replicates
    }
}

/// How often a path was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathSum {
    pub executions: Sum,
    /// Those of all its blocks, also of those that are left out for want of room.
    pub instructions: Sum,
    /// How often it was one of the pieces of a path.
    pub pieces: u64,
}

impl TreeSum for PathSum {
    fn add(&mut self, other: &Self) {
        self.executions.plus(&other.executions);
        self.instructions.plus(&other.instructions);
        self.pieces = self.pieces.saturating_add(other.pieces);
    }

    fn is_nothing(&self) -> bool {
        self.executions.is_nothing()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::ModuleId;
    use crate::walks::{BlockKey, SuffixTree};

    #[test]
    fn what_every_slice_has_alike_is_certain() {
        let (mut whole, mut part) = (Sum::default(), Sum::default());
        for slice in Slice::all() {
            whole.plus(&Sum::times(Weight::of_executions(2.0), slice, 10));
            part.plus(&Sum::once(Weight::of_executions(2.0), slice));
        }
        let (value, sampled) = part.sampled();
        let replicates = sampled.replicates.zip(&whole.made_up(), |weight, factor| weight * factor);
        for slice in Slice::all() {
            assert!((replicates.without(slice) - value).abs() < 1e-6 && sampled.replicates.without(slice) < value);
        }
    }

    #[test]
    fn without_room_no_instruction_is_lost() {
        let mut tree: SuffixTree<BlockKey, PathSum> = SuffixTree::new(20, 8);
        for path in 0..30_u32 {
            let keys = (0..6)
                .map(|step| BlockKey { module: ModuleId(0), index: if step < 2 { step } else { path * 8 + step } });
            let weight = Weight::of_executions(1.0);
            let [executions, instructions] = [1, 6].map(|times| Sum::times(weight, Slice::default(), times));
            tree.add(keys, &PathSum { executions, instructions, pieces: 0 });
        }
        assert!(tree.depth() < 6);
        let instructions: f64 = tree.sequences().map(|of| of.sum.instructions.weight.to_f64()).sum();
        assert!((instructions - 180.0).abs() < 1e-6, "{instructions}");
        assert!(tree.sequences().all(|of| !of.cut.is_nothing()));
    }
}
