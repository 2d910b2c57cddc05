//! The mix as CSV: a line for each pair of row and column.

use std::io::Write;

use analyzer::mix::{Key, Sum, Uncertainty};
use analyzer::uncertainty::Interval;
use anyhow::Context;
use reports::mix::Numbered;
use reports::mix::numbers::part;

use super::Report;

/// Prints the largest rows.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    let keys = report.query.rows.iter().chain(&report.query.columns).map(Key::as_str);
    let numbers = ["count", "share", "count_error", "share_error", "rests_on_little"];
    let mut titles: Vec<String> = keys.chain(numbers).map(str::to_owned).collect();
    let nothing = Sum::default();
    let more = Numbered { sum: &nothing, whole: &nothing, values: Some(&[]), row: Some(&nothing) };
    titles.extend(report.asked().more_numbers(&more).into_iter().map(|(name, _)| name));
    csv.write_record(titles)?;
    let width = |interval: Interval| interval.half_width.map_or(String::new(), |width| width.to_string());
    let mut written = Ok(());
    report.for_each_line(|line| {
        let Some(row) = line.row().filter(|_| written.is_ok()) else { return };
        for &cell in &row.cells {
            let sum = Sum::of([cell]);
            let Uncertainty { count: of_count, share: of_share } = report.mix.uncertainty_of(&sum);
            let mut fields: Vec<String> = cell.row.iter().chain(&cell.column).cloned().collect();
            fields.extend([cell.count.to_string(), part(cell.count, report.mix.instructions).to_string()]);
            fields.extend([width(of_count), width(of_share), of_share.rests_on_little.to_string()]);
            let more = Numbered { sum: &sum, whole: line.whole, values: Some(&cell.row), row: Some(&row.sum) };
            let more = report.asked().more_numbers(&more).into_iter();
            fields.extend(more.map(|(_, number)| number.map_or(String::new(), |number| number.to_string())));
            written = csv.write_record(fields);
        }
    });
    written?;
    csv.flush().context("cannot write the table")
}
