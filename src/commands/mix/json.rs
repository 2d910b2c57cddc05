//! The mix as JSON: hbbp-mix/1.

use std::io::Write;
use std::slice::from_ref;

use analyzer::mix::Key;
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
            row.insert("count".into(), json!(cell.count));
            row.insert("share".into(), json!(cell.count / report.mix.instructions));
            let uncertainty = report.mix.uncertainty(from_ref(cell));
            row.insert("count_error".into(), json!(uncertainty.count.half_width));
            row.insert("share_error".into(), json!(uncertainty.share.half_width));
            row.insert("rests_on_little".into(), json!(uncertainty.share.rests_on_little));
            Value::Object(row)
        })
        .collect();
    let document = json!({
        "schema": "hbbp-mix/1",
        "source": report.head.source,
        "instructions": report.mix.instructions,
        "head": report.head,
        "rows": rows,
    });
    serde_json::to_writer(&mut *out, &document)?;
    Ok(writeln!(out)?)
}
