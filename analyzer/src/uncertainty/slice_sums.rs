//! What each slice has of a sum.

use crate::recording::Weight;
use crate::uncertainty::{SLICES, Slice, SliceSet};

/// What each slice has of a sum of whole numbers, in units of their own. Most sums of a recording are of one slice, and take no more
/// memory than that needs. Sums stick at 2^64 - 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SliceSums {
    /// All slices have 0.
    #[default]
    Nothing,
    /// One slice has all, more than 0.
    One(Slice, u64),
    /// Several have a part.
    Many(Box<[u64; SLICES]>),
}

impl SliceSums {
    /// All of it is in one slice.
    pub fn one(slice: Slice, amount: u64) -> Self {
        if amount == 0 { SliceSums::Nothing } else { SliceSums::One(slice, amount) }
    }

    /// Executions that are all in one slice.
    pub fn of_weight(slice: Slice, weight: Weight) -> Self {
        // 2^-20 executions: 2^44 of them fit.
        const UNIT: u32 = 12;
        Self::one(slice, u64::try_from(weight.0 >> UNIT).unwrap_or(u64::MAX))
    }

    /// By slice.
    pub fn of_array(amounts: &[u64; SLICES]) -> Self {
        let mut sums = SliceSums::Nothing;
        let mut parts = Slice::all().zip(amounts).filter(|(_, amount)| **amount > 0);
        if let Some((slice, amount)) = parts.next() {
            sums = match parts.next() {
                None => SliceSums::One(slice, *amount),
                Some(_) => SliceSums::Many(Box::new(*amounts)),
            };
        }
        sums
    }

    /// Adds another sum.
    pub fn add(&mut self, other: &SliceSums) {
        if let SliceSums::Nothing = self {
            *self = other.clone();
            return;
        }
        match (&mut *self, other) {
            (SliceSums::One(slice, sum), SliceSums::One(same, more)) if slice == same => {
                *sum = sum.saturating_add(*more)
            }
            (SliceSums::Many(sums), _) => other.add_to(sums),
            (_, SliceSums::Nothing) => {}
            (_, _) => {
                let mut sums = Box::new([0; SLICES]);
                self.add_to(&mut sums);
                other.add_to(&mut sums);
                *self = SliceSums::Many(sums);
            }
        }
    }

    /// Adds what each slice has to its own sum.
    pub fn add_to(&self, sums: &mut [u64; SLICES]) {
        self.for_each(|slice, amount| {
            let sum = &mut sums[slice.index()];
            *sum = sum.saturating_add(amount);
        });
    }

    /// Calls `visit` with the slices that have some, and how much.
    pub fn for_each(&self, mut visit: impl FnMut(Slice, u64)) {
        match self {
            SliceSums::Nothing => {}
            SliceSums::One(slice, amount) => visit(*slice, *amount),
            SliceSums::Many(sums) => {
                Slice::all().zip(sums.iter()).filter(|(_, sum)| **sum > 0).for_each(|(slice, sum)| visit(slice, *sum));
            }
        }
    }

    /// Calls `visit` with the slices that have some, and which part of all of it, 0 to 1.
    pub fn for_each_part(&self, mut visit: impl FnMut(Slice, f64)) {
        let mut all = 0.0;
        self.for_each(|_, amount| all += amount as f64);
        self.for_each(|slice, amount| visit(slice, amount as f64 / all));
    }

    /// What one slice has.
    pub fn of(&self, wanted: Slice) -> u64 {
        match self {
            SliceSums::One(slice, amount) if *slice == wanted => *amount,
            SliceSums::Many(sums) => sums[wanted.index()],
            _ => 0,
        }
    }

    /// The slices that have some.
    pub fn slices(&self) -> SliceSet {
        let mut slices = SliceSet::default();
        self.for_each(|slice, _| slices.insert(slice));
        slices
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_do_not_depend_on_their_order() {
        let slices: Vec<Slice> = Slice::all().collect();
        let parts = [(0, 3), (0, 4), (7, 1), (0, 0), (19, u64::MAX), (19, 1)];
        let sum = |order: &mut dyn Iterator<Item = &(usize, u64)>| {
            let mut sums = SliceSums::default();
            order.for_each(|(slice, amount)| sums.add(&SliceSums::one(slices[*slice], *amount)));
            sums
        };
        let all = sum(&mut parts.iter());
        assert_eq!(all, sum(&mut parts.iter().rev()));
        assert_eq!([0, 7, 19, 3].map(|slice| all.of(slices[slice])), [7, 1, u64::MAX, 0]);
        assert_eq!(all.slices().len(), 3);
        assert_eq!(sum(&mut parts[..2].iter()), SliceSums::One(slices[0], 7));
        let mut array = [0; SLICES];
        all.add_to(&mut array);
        assert_eq!(SliceSums::of_array(&array), all);
    }

    #[test]
    fn parts_add_up_to_one() {
        let mut sums = SliceSums::default();
        Slice::all().take(3).for_each(|slice| sums.add(&SliceSums::one(slice, 5)));
        let mut parts = Vec::new();
        sums.for_each_part(|_, part| parts.push(part));
        assert_eq!(parts, [1.0 / 3.0; 3]);
    }
}
