//! The mix as JSON: hbbp-mix/1.

use std::io::Write;
use std::slice::from_ref;

use analyzer::mix::{Cell, Key};
use serde_json::{Map, Value, json};

use super::Report;

/// Prints the largest rows.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let keys: Vec<&str> = report.query.rows.iter().chain(&report.query.columns).map(Key::as_str).collect();
    let rows: Vec<Value> = report
        .rows()
        .take(report.top)
        .flatten()
        .map(|cell| {
            let values = cell.row.iter().chain(&cell.column).map(|value| json!(value));
            let mut row: Map<String, Value> = keys.iter().map(ToString::to_string).zip(values).collect();
            row.extend(numbers(report, from_ref(cell)));
            Value::Object(row)
        })
        .collect();
    let (rows_left_out, cells) = report.others();
    let others = (rows_left_out > 0).then(|| {
        let mut others = Map::from_iter([("rows".to_owned(), json!(rows_left_out))]);
        others.extend(numbers(report, cells));
        others
    });
    let document = json!({
        "schema": "hbbp-mix/1",
        "source": report.head.source,
        "instructions": report.mix.instructions,
        "head": report.head,
        "rows": rows,
        "others": others,
    });
    serde_json::to_writer(&mut *out, &document)?;
    Ok(writeln!(out)?)
}

/// The sum of cells and how far it can be from the truth.
fn numbers(report: &Report<'_>, cells: &[Cell]) -> Map<String, Value> {
    let count: f64 = cells.iter().map(|cell| cell.count).sum();
    let uncertainty = report.mix.uncertainty(cells.iter());
    let numbers = json!({
        "count": count,
        "share": count / report.mix.instructions,
        "count_error": uncertainty.count.half_width,
        "share_error": uncertainty.share.half_width,
        "rests_on_little": uncertainty.share.rests_on_little,
    });
    if let Value::Object(numbers) = numbers { numbers } else { Map::new() }
}
