//! Counts while they are added up.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// How many of them are one execution.
const PER_EXECUTION: u128 = 1_000_000_000;

/// A count as a whole number of 10^-9 executions: sums of such do not depend on the order in which they are added up, and a column of decimal
/// numbers holds them as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ExactCount(i128);

impl ExactCount {
    /// How many decimal digits it has after the point.
    pub const SCALE: u8 = 9;

    /// The nearest one, but what is more than 0 is 10^-9 at least: what was seen ran. Less than 0, and what is no number, is 0. What is past
    /// all counts that can be (3e20) may be the largest that there is.
    pub fn of(count: f64) -> Self {
        // False of what is no number, too.
        let is_some = count > 0.0;
        if !is_some {
            return Self(0);
        }
        const MANTISSA: u32 = 52;
        let bits = count.to_bits();
        let (exponent, fraction) = ((bits >> MANTISSA) as i32 & 0x7ff, bits & ((1 << MANTISSA) - 1));
        // Of the smallest numbers it is wrong, which does not matter: they are 0 either way.
        let scaled = u128::from(fraction | 1 << MANTISSA) * PER_EXECUTION;
        let shift = exponent - 1023 - MANTISSA as i32;
        let nearest = if shift >= 0 {
            // `scaled` has 83 bits at most.
            if shift > 43 { i128::MAX as u128 } else { scaled << shift }
        } else if shift > -100 {
            let (whole, rest) = (scaled >> -shift, scaled & ((1 << -shift) - 1));
            let half = 1_u128 << (-shift - 1);
            whole + u128::from(rest > half || rest == half && whole & 1 == 1)
        } else {
            0
        };
        Self(nearest.max(1) as i128)
    }

    /// So many 10^-9 executions; of less than none, none.
    pub fn of_billionths(count: i128) -> Self {
        Self(count.max(0))
    }

    /// How many 10^-9 executions it is, from 0 on.
    pub fn billionths(self) -> i128 {
        self.0
    }

    /// The nearest number of executions.
    pub fn to_f64(self) -> f64 {
        let count = self.0 as u128;
        if count == 0 {
            return 0.0;
        }
        let shift = count.leading_zeros();
        let (quotient, rest) = ((count << shift) / PER_EXECUTION, (count << shift) % PER_EXECUTION);
        // The quotient has 98 bits or more: the last one says what is left of a rest.
        (quotient | u128::from(rest > 0)) as f64 * 2_f64.powi(-(shift as i32))
    }
}

impl AddAssign for ExactCount {
    /// What would be past the largest is that.
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

impl AddAssign<f64> for ExactCount {
    fn add_assign(&mut self, count: f64) {
        *self += Self::of(count);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_the_nearest_in_both_directions(count in prop_oneof![0.0..3e20, 0.0..1e9, 0.0..2.0, 0.0..1e-7]) {
            let exact = ExactCount::of(count);
            // The standard library rounds texts to the nearest.
            let digits = format!("{count:.9}").replace('.', "");
            prop_assert_eq!(exact.billionths(), digits.parse::<i128>().unwrap().max(i128::from(count > 0.0)));
            let (whole, rest) = (exact.billionths() / 1_000_000_000, exact.billionths() % 1_000_000_000);
            prop_assert_eq!(exact.to_f64(), format!("{whole}.{rest:09}").parse::<f64>().unwrap());
        }

        #[test]
        fn every_sum_is_the_nearest(billionths in 0..=i128::MAX) {
            let (whole, rest) = (billionths / 1_000_000_000, billionths % 1_000_000_000);
            prop_assert_eq!(ExactCount::of_billionths(billionths).to_f64(), format!("{whole}.{rest:09}").parse::<f64>().unwrap());
        }
    }

    #[test]
    fn odd_counts_are_counts() {
        let of = |count| ExactCount::of(count).billionths();
        assert_eq!([of(0.0), of(-0.0), of(-1.0), of(f64::NAN), of(f64::NEG_INFINITY)], [0; 5]);
        assert_eq!([of(f64::MIN_POSITIVE), of(5e-324), of(1e-9)], [1; 3]);
        assert_eq!([of(1.0 / 1024.0), of(3.0 / 1024.0)], [976_562, 2_929_688], "of two that are as near, the even one");
        assert_eq!([of(f64::INFINITY), of(f64::MAX)], [i128::MAX; 2]);
        let mut most = ExactCount::of(f64::MAX);
        most += 1.0;
        assert_eq!(most, ExactCount::of(f64::MAX));
        assert_eq!(ExactCount::of_billionths(-3).to_f64(), 0.0);
    }
}
