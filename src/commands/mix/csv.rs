//! The mix as CSV: a line for each pair of row and column.

use std::io::Write;

use analyzer::mix::Key;
use anyhow::Context;
use reports::mix::Described;

use super::Report;

/// Prints the largest rows.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    let keys = report.query.rows.iter().chain(&report.query.columns).map(Key::as_str);
    let asked = report.asked();
    let titles = keys.chain(Described::NAMES).map(str::to_owned).chain(asked.more_names());
    csv.write_record(titles.collect::<Vec<_>>())?;
    let known = |number: Option<f64>| number.map_or(String::new(), |number| number.to_string());
    let mut written = Ok(());
    report.for_each_line(|line| {
        for (cell, described) in asked.pairs(&line) {
            let Described { count, share, count_error, share_error, rests_on_little, more } = described;
            let values = cell.row.iter().chain(&cell.column).cloned();
            let always = [
                count.to_string(),
                share.to_string(),
                known(count_error),
                known(share_error),
                rests_on_little.to_string(),
            ];
            let fields = values.chain(always).chain(more.into_iter().map(|(_, number)| known(number)));
            if written.is_ok() {
                written = csv.write_record(fields.collect::<Vec<_>>());
            }
        }
    });
    written?;
    csv.flush().context("cannot write the table")
}
