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

/// A share of a whole in per cent: `12.34 %`; `-` of nothing.
pub fn share(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{:.2} %", 100.0 * part / whole) } else { "-".into() }
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
        assert_eq!(share(1.0, 8.0), "12.50 %");
        assert_eq!(share(0.0, 0.0), "-");
    }
}
