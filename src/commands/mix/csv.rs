//! The mix as CSV: a line for each pair of row and column.

use std::io::Write;

use analyzer::mix::{Key, Uncertainty};
use analyzer::uncertainty::Interval;
use anyhow::Context;

use super::Report;

/// Prints the largest rows.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    let keys = report.query.rows.iter().chain(&report.query.columns).map(Key::as_str);
    csv.write_record(keys.chain(["count", "share", "count_error", "share_error", "rests_on_little"]))?;
    for cell in report.rows().take(report.top).flatten() {
        let values = cell.row.iter().chain(&cell.column).cloned();
        let share = cell.count / report.mix.instructions;
        let Uncertainty { count: of_count, share: of_share } = report.mix.uncertainty([cell].into_iter());
        let width = |interval: Interval| interval.half_width.map_or(String::new(), |width| width.to_string());
        let errors = [width(of_count), width(of_share), of_share.rests_on_little.to_string()];
        csv.write_record(values.chain([cell.count.to_string(), share.to_string()]).chain(errors))?;
    }
    csv.flush().context("cannot write the table")
}
