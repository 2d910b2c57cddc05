//! The answer in one sentence.

use analyzer::uncertainty::Interval;
use analyzer::vectorization::{Domain, Form, Row, Vectorization};

use crate::output::share_cells;

/// Widths of vectors, in bits.
pub const WIDTHS: [u32; 4] = [64, 128, 256, 512];

/// Parts of less are not worth a word.
const WORTH_A_WORD: f64 = 0.005;

/// Which part of the floating-point operations is scalar, and where most of that is.
///
/// Example: `83 % (± 4) of the floating-point operations are scalar; most of them in matmul (61 %)`.
pub fn answer(of: &Vectorization, by_loop: bool) -> String {
    let Some((scalar, interval)) = of.scalar() else { return without_float(of, by_loop) };
    let mut text = if scalar > 0.0 {
        let first = of.rows.first().and_then(|row| Some((row, of.share_of_scalar(row)?)));
        let at = first.map_or(String::new(), |(row, share)| most(row, share, by_loop));
        let part = if scalar == 1.0 { "all".to_owned() } else { with_width(scalar, interval) };
        format!("{part} of the floating-point operations are scalar{at}")
    } else {
        let widths = WIDTHS.map(|width| (width, of.all.float_share(Form::Packed(width)).unwrap_or(0.0)));
        format!("no floating-point operation is scalar that could be packed{}", in_widths(&widths))
    };
    let x87 = of.all.float_share(Form::X87).unwrap_or(0.0);
    if x87 >= WORTH_A_WORD {
        text += &format!("; {} are of x87, which has no packed form", percent(x87));
    }
    text
}

fn without_float(of: &Vectorization, by_loop: bool) -> String {
    let integer = of.all.integer();
    if integer <= 0.0 {
        return "no floating-point operations were seen, and no work on vectors of integers".to_owned();
    }
    let widths = WIDTHS.map(|width| (width, of.all.integer_share(width).unwrap_or(0.0)));
    let shares = of.rows.first().and_then(|row| Some((row, of.share(&row.work, Domain::Integer)?.0)));
    let at = shares.map_or(String::new(), |(row, share)| most(row, share, by_loop));
    let part = percent(integer / of.all.instructions);
    let widths = in_widths(&widths);
    format!(
        "no floating-point operations were seen; {part} of the instructions work on vectors of integers{widths}{at}"
    )
}

fn most(row: &Row, share: f64, by_loop: bool) -> String {
    let what = match (by_loop, &row.place) {
        (true, Some(_)) => format!("the loop {}", row.name()),
        (true, None) => format!("{}, in no loop", row.function),
        (false, _) => row.function.clone(),
    };
    let most = if share > 0.5 { "most of them" } else { "the largest part" };
    format!("; {most} in {what} ({})", percent(share))
}

fn in_widths(widths: &[(u32, f64)]) -> String {
    let worth = widths.iter().filter(|(_, share)| *share >= WORTH_A_WORD);
    let words: Vec<String> = worth.map(|(width, share)| format!("in {width} bits: {}", percent(*share))).collect();
    if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) }
}

fn with_width(share: f64, interval: Interval) -> String {
    let [value, width] = share_cells(share, 1.0, interval);
    match width.as_str() {
        "" => value,
        "?" => format!("{value} (± unknown)"),
        width => format!("{value} (± {width})"),
    }
}

/// Whole per cents; of what is little, that it is.
pub fn percent(part: f64) -> String {
    match 100.0 * part {
        percent if percent > 0.0 && percent < 0.5 => "<1 %".to_owned(),
        percent => format!("{percent:.0} %"),
    }
}
