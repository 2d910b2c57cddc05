//! Numbers that are short enough to be read, and to be the same after they were written.

/// A finite number rounded to that many significant digits (1 to 15).
pub fn to_digits(value: f64, digits: usize) -> f64 {
    format!("{value:.*e}", digits - 1).parse().unwrap_or(value)
}

/// The shortest number in `[low, high)` that rounding something between them gives.
pub fn shortest_between(low: f64, high: f64) -> f64 {
    let middle = low + (high - low) / 2.0;
    let rounded = (1..=15).map(|digits| to_digits(middle, digits));
    rounded.into_iter().find(|number| (low..high).contains(number)).unwrap_or(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_number_is_found() {
        assert_eq!(shortest_between(18.0, 19.0), 18.0);
        assert_eq!(shortest_between(0.0, 1.0), 0.5);
        assert_eq!(shortest_between(0.123_45, 0.123_59), 0.1235);
        assert_eq!(shortest_between(1_000.0, 9_000.0), 5_000.0);
        assert_eq!(shortest_between(1.0, 1.0 + f64::EPSILON), 1.0);
        assert_eq!(to_digits(1.0 / 3.0, 6), 0.333333);
    }
}
