//! Numbers with no more digits than a page shows.

use serde::{Serialize, Serializer};

/// A number, rounded to seven digits when it is written; whole ones have no point. Nobody knows a count that well, and thousands of them
/// have to be loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Short(pub f64);

impl Serialize for Short {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// Up to it, `f64` has all whole numbers.
        const MOST: f64 = 9_007_199_254_740_992.0;
        let rounded: f64 = format!("{:.6e}", self.0).parse().unwrap_or(self.0);
        match rounded.fract() == 0.0 && rounded.abs() < MOST {
            true => serializer.serialize_i64(rounded as i64),
            false => serializer.serialize_f64(rounded),
        }
    }
}

impl From<f64> for Short {
    fn from(value: f64) -> Self {
        Short(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_that_nobody_knows_are_left_out() {
        let check = |value: f64, text: &str| assert_eq!(serde_json::to_string(&Short(value)).unwrap(), text);
        check(0.0, "0");
        check(-0.0, "0");
        check(3.0, "3");
        check(1.0 / 3.0, "0.3333333");
        check(1_234_567_890.123, "1234568000");
        check(12_345.678_912, "12345.68");
        check(1e300, "1e+300");
        check(f64::NAN, "null");
    }
}
