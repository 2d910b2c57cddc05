//! The mix as CSV: a line for each pair of row and column.

use std::io::Write;

use analyzer::mix::{Key, Sum, Uncertainty};
use analyzer::uncertainty::Interval;
use anyhow::Context;

use super::Report;
use super::numbers::{Number, part, per_call};

/// Prints the largest rows.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    let [is_per, has_calls, has_samples] = [report.per > 0, report.asks(Number::PerCall), report.asks(Number::Samples)];
    let has_row_shares = report.asks(Number::RowShare);
    let of_branches: Vec<(Number, &str)> = report.numbers_of_branches().collect();
    let keys = report.query.rows.iter().chain(&report.query.columns).map(Key::as_str);
    let mut titles: Vec<&str> =
        keys.chain(["count", "share", "count_error", "share_error", "rests_on_little"]).collect();
    titles.extend(is_per.then_some(["share_of_group", "share_of_group_error"]).into_iter().flatten());
    titles.extend(has_calls.then_some("per_call"));
    titles.extend(has_samples.then_some("samples"));
    titles.extend(has_row_shares.then_some("row_share"));
    titles.extend(of_branches.iter().map(|(_, name)| *name));
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
            if is_per {
                let of_group = report.mix.share_within(&sum, line.whole);
                fields.extend([part(cell.count, line.whole.count).to_string(), width(of_group)]);
            }
            let calls = || per_call(report.mix, report.query, &cell.row, &sum);
            fields.extend(has_calls.then(|| calls().map_or(String::new(), |calls| calls.to_string())));
            let samples = report.knows_samples().then(|| cell.samples.to_string());
            fields.extend(has_samples.then(|| samples.unwrap_or_default()));
            fields.extend(has_row_shares.then(|| part(cell.count, row.sum.count).to_string()));
            let branches = of_branches.iter().map(|(number, _)| number.of_branches(&sum));
            fields.extend(branches.map(|number| number.map_or(String::new(), |number| number.to_string())));
            written = csv.write_record(fields);
        }
    });
    written?;
    csv.flush().context("cannot write the table")
}
