//! What a sum would be if a slice were missing, or code cost something else.

use serde::{Deserialize, Serialize};

use crate::uncertainty::{SLICES, Slice};

/// How many replicates have other costs of code.
pub const COSTS: usize = 20;

const ALL: usize = SLICES + COSTS;

/// A value in each replicate: first without each slice, in place of which the others count more, then with other costs of code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "Parts", from = "Parts")]
pub struct Replicates([f64; ALL]);

/// The two kinds of replicates: `serde` has no arrays as long as both together.
type Parts = ([f64; SLICES], [f64; COSTS]);

impl From<Parts> for Replicates {
    fn from((slices, costs): Parts) -> Self {
        Replicates(std::array::from_fn(|index| *slices.get(index).unwrap_or_else(|| &costs[index - SLICES])))
    }
}

impl From<Replicates> for Parts {
    fn from(Replicates(all): Replicates) -> Self {
        (std::array::from_fn(|index| all[index]), std::array::from_fn(|index| all[SLICES + index]))
    }
}

impl Default for Replicates {
    fn default() -> Self {
        Replicates::of(0.0)
    }
}

impl Replicates {
    /// How many bytes they are.
    pub(super) const BYTES: usize = ALL * size_of::<f64>();

    /// They as bytes, after others.
    pub(super) fn append_to(&self, bytes: &mut Vec<u8>) {
        self.0.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
    }

    /// Those of [`Self::append_to`]; what is missing is 0.
    pub(super) fn of_bytes(bytes: &[u8]) -> Self {
        let mut all = Replicates::default();
        let (values, _) = bytes.as_chunks();
        all.0.iter_mut().zip(values).for_each(|(value, bytes)| *value = f64::from_le_bytes(*bytes));
        all
    }

    /// The same in all.
    pub fn of(value: f64) -> Self {
        Replicates([value; ALL])
    }

    /// The value without that slice.
    pub fn without(&self, slice: Slice) -> f64 {
        self.0[slice.index()]
    }

    /// The value without that slice, to be changed.
    pub fn without_mut(&mut self, slice: Slice) -> &mut f64 {
        &mut self.0[slice.index()]
    }

    /// The values with other costs.
    pub fn with_costs(&self) -> &[f64] {
        &self.0[SLICES..]
    }

    /// The values with other costs, to be changed.
    pub fn with_costs_mut(&mut self) -> &mut [f64] {
        &mut self.0[SLICES..]
    }

    /// Of each replicate of this and another value, something new.
    pub fn zip(&self, other: &Replicates, new: impl Fn(f64, f64) -> f64) -> Replicates {
        Replicates(std::array::from_fn(|index| new(self.0[index], other.0[index])))
    }

    /// Of each replicate, something new.
    pub fn map(&self, new: impl Fn(f64) -> f64) -> Replicates {
        Replicates(self.0.map(new))
    }

    /// Adds another value so many times.
    pub fn add(&mut self, other: &Replicates, times: f64) {
        self.0.iter_mut().zip(&other.0).for_each(|(sum, more)| *sum += times * more);
    }
}
