//! Numbers with their uncertainty, for people: they have no digits that mean nothing.

use analyzer::uncertainty::Interval;

use crate::output::share;

/// Below a table in which a row is marked.
pub const MARKED: &str = "?: seen in too little of the recording for its ± to be trusted";

/// A share of a whole and its uncertainty, in per cent: `37 %` and `12`, `4.2 %` and `0.7`. What is less certain than it is large is `< 5 %`,
/// without more. Marked with `?` is what rests on little.
pub fn share_cells(part: f64, whole: f64, interval: Interval) -> [String; 2] {
    let mark = if interval.rests_on_little { " ?" } else { "" };
    if whole <= 0.0 {
        return ["-".into(), String::new()];
    }
    let value = 100.0 * part / whole;
    let Some(width) = interval.half_width.map(|width| 100.0 * width) else {
        return [share(part, whole), "?".into()];
    };
    if width > value {
        // Of less, there would be no digits.
        let most = (value + width).clamp(0.01, 100.0);
        return [format!("< {most:.*} %", decimals(most)), mark.trim_start().into()];
    }
    let decimals = decimals(width);
    [format!("{value:.decimals$} %"), format!("{width:.decimals$}{mark}")]
}

/// Digits after the point of per cents that are uncertain by so much: two of its digits mean something.
fn decimals(width: f64) -> usize {
    match width {
        9.95.. => 0,
        0.995.. => 1,
        _ => 2,
    }
}

/// The value, rounded to the second digit of its uncertainty.
pub fn rounded(value: f64, interval: Interval) -> f64 {
    let Some(width) = interval.half_width.filter(|width| *width >= 100.0) else { return value };
    let unit = 10_f64.powi(width.min(value.max(100.0)).log10().floor() as i32 - 1);
    (value / unit).round() * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(half_width: f64) -> Interval {
        Interval { half_width: Some(half_width), by_chance: Some(half_width), rests_on_little: false }
    }

    #[test]
    fn digits_follow_the_uncertainty() {
        let check = |value: f64, width: f64, expected: [&str; 2]| {
            assert_eq!(share_cells(value, 1.0, interval(width)), expected);
        };
        check(0.372841, 0.12, ["37 %", "12"]);
        check(0.372841, 0.034, ["37.3 %", "3.4"]);
        check(0.372841, 0.0034, ["37.28 %", "0.34"]);
        check(0.372841, 0.00001, ["37.28 %", "0.00"]);
        check(0.01, 0.04, ["< 5.0 %", ""]);
        let counts = [(430_000.0, 12_350_000.0), (1e9, 12_000_000.0), (3.0, 12_345_678.0)];
        assert_eq!(counts.map(|(width, _)| rounded(12_345_678.0, interval(width))), counts.map(|(_, shown)| shown));
    }

    #[test]
    fn what_is_not_known_is_marked() {
        assert_eq!(share_cells(1.0, 3.0, Interval { rests_on_little: true, ..Interval::default() }), ["33.33 %", "?"]);
        assert_eq!(share_cells(1.0, 3.0, Interval { rests_on_little: true, ..interval(0.1) }), ["33 %", "10 ?"]);
        assert_eq!(share_cells(0.0, 0.0, interval(0.1)), ["-", ""]);
    }
}
