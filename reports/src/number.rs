//! Numbers for people.

/// A count, rounded, with commas between thousands: `12,345,678`. Small fractions keep a digit: `0.3`.
pub fn count(value: f64) -> String {
    if value > 0.0 && value < 10.0 && value.fract() != 0.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits.as_str()),
    };
    let mut text = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// How many of what is counted by hand there are, by its names for one and for many: `1 process`, `2,000 processes`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number as f64), if number == 1 { one } else { many })
}

/// A number of at least 1 with so many digits that mean something: `1.23`, `12.3`, `1,230`.
pub fn with_digits(value: f64, digits: usize) -> String {
    let whole = (value.max(1.0).log10() as usize).saturating_add(1);
    if whole < digits {
        return format!("{value:.*}", digits - whole);
    }
    let unit = 10_f64.powi((whole - digits) as i32);
    count((value / unit).round() * unit)
}

/// How many times as long something takes as something else: `0.42x`, `1.3x`.
pub fn times(long: f64) -> String {
    if long < 1.0 { format!("{long:.2}x") } else { format!("{}x", with_digits(long, 2)) }
}

/// A unit for counts in narrow columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    factor: f64,
    /// To be put after a title: nothing, ` k`, ` M`, ` G`.
    pub suffix: &'static str,
}

impl Unit {
    /// Counts as they are.
    pub const ONE: Unit = Unit { factor: 1.0, suffix: "" };

    /// The unit in which such a count has at most six digits before the point.
    pub fn for_counts_up_to(largest: f64) -> Self {
        let units = [Unit::ONE, Unit { factor: 1e3, suffix: " k" }, Unit { factor: 1e6, suffix: " M" }];
        let fitting = units.into_iter().find(|unit| largest < unit.factor * 1e6);
        fitting.unwrap_or(Unit { factor: 1e9, suffix: " G" })
    }

    /// The count in this unit.
    pub fn show(self, value: f64) -> String {
        if self == Unit::ONE {
            return count(value);
        }
        let scaled = value / self.factor;
        if scaled < 100.0 { format!("{scaled:.1}") } else { count(scaled) }
    }
}

/// A share of a whole in per cent: `12.34 %`; `-` of nothing.
pub fn share(part: f64, whole: f64) -> String {
    if whole <= 0.0 {
        return "-".into();
    }
    let text = format!("{:.2} %", 100.0 * part / whole);
    // What is nothing when it is rounded has no sign; the sum of nothing is -0.
    if text == "-0.00 %" { text[1..].into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(count(0.0), "0");
        assert_eq!(count(999.6), "1,000");
        assert_eq!(count(1_234_567.0), "1,234,567");
        assert_eq!(count(0.3), "0.3");
        let unit = Unit::for_counts_up_to(12_345_678_901.0);
        assert_eq!(
            (unit.suffix, unit.show(12_345_678_901.0), unit.show(1_260_000.0)),
            (" M", "12,346".into(), "1.3".into())
        );
        assert_eq!(Unit::for_counts_up_to(999_999.0).show(1234.0), "1,234");
        assert_eq!(share(1.0, 8.0), "12.50 %");
        assert_eq!(share(0.0, 0.0), "-");
        // What is left of two equal sums may be a little below nothing.
        assert_eq!(share(-0.0, 8.0), "0.00 %");
        assert_eq!(share(-1e-12, 8.0), "0.00 %");
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!([0, 1, 2000].map(|number| counted(number, "row", "rows")), ["0 rows", "1 row", "2,000 rows"]);
    }

    #[test]
    fn means_and_factors_have_some_digits() {
        let three = [1.0, 31.337, 1234.5, 7_654_321.0].map(|value| with_digits(value, 3));
        assert_eq!(three, ["1.00", "31.3", "1,230", "7,650,000"]);
        assert_eq!([1.04, 9.96, 784.0, 12_345.0].map(|value| with_digits(value, 2)), ["1.0", "10.0", "780", "12,000"]);
    }
}
