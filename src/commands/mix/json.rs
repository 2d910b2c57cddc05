//! The mix as JSON: hbbp-mix/1.

use std::io::Write;

use analyzer::mix::{Key, Sum};
use serde_json::{Map, Value, json};

use super::Report;
use super::numbers::{Number, part, per_call};

/// Prints the largest rows.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let keys: Vec<&str> = report.query.rows.iter().chain(&report.query.columns).map(Key::as_str).collect();
    let named = |values: &mut dyn Iterator<Item = &String>| -> Map<String, Value> {
        keys.iter().zip(values).map(|(key, value)| ((*key).to_owned(), json!(value))).collect()
    };
    let (mut rows, mut subtotals, mut others) = (Vec::new(), Vec::new(), (0, Vec::new()));
    report.for_each_line(|line| {
        if let Some(row) = line.row() {
            for &cell in &row.cells {
                let mut object = named(&mut cell.row.iter().chain(&cell.column));
                object.extend(numbers(report, &Sum::of([cell]), line.whole, &cell.row));
                if report.asks(Number::RowShare) {
                    object.insert("row_share".to_owned(), json!(part(cell.count, row.sum.count)));
                }
                rows.push(Value::Object(object));
            }
        } else if line.others {
            others.0 += line.rows();
            others.1.extend(line.cells());
        } else if let [group] = line.nodes {
            let mut object = named(&mut group.values.iter());
            object.insert("rows".to_owned(), json!(group.rows()));
            object.extend(numbers(report, &group.sum, line.whole, group.values));
            subtotals.push(Value::Object(object));
        }
    });
    let others = (others.0 > 0).then(|| {
        let mut object = Map::from_iter([("rows".to_owned(), json!(others.0))]);
        object.extend(numbers(report, &Sum::of(others.1), &report.mix.all, &[]));
        object
    });
    let mut document = json!({
        "schema": "hbbp-mix/1",
        "source": report.head.source,
        "instructions": report.mix.instructions,
        "head": report.head,
        "rows": rows,
        "others": others,
    });
    if report.is_nested() {
        document["subtotals"] = json!(subtotals);
    }
    serde_json::to_writer(&mut *out, &document)?;
    Ok(writeln!(out)?)
}

/// A sum and how far it can be from the truth.
fn numbers(report: &Report<'_>, sum: &Sum, whole: &Sum, row: &[String]) -> Map<String, Value> {
    let mix = report.mix;
    let uncertainty = mix.uncertainty_of(sum);
    let mut numbers = Map::from_iter([
        ("count".to_owned(), json!(sum.count)),
        ("share".to_owned(), json!(part(sum.count, mix.instructions))),
        ("count_error".to_owned(), json!(uncertainty.count.half_width)),
        ("share_error".to_owned(), json!(uncertainty.share.half_width)),
        ("rests_on_little".to_owned(), json!(uncertainty.share.rests_on_little)),
    ]);
    if report.per > 0 && !row.is_empty() {
        numbers.insert("share_of_group".to_owned(), json!(part(sum.count, whole.count)));
        numbers.insert("share_of_group_error".to_owned(), json!(report.mix.share_within(sum, whole).half_width));
    }
    if report.asks(Number::PerCall) && !row.is_empty() {
        numbers.insert("per_call".to_owned(), json!(per_call(mix, report.query, row, sum)));
    }
    if report.asks(Number::Samples) {
        numbers.insert("samples".to_owned(), json!(report.knows_samples().then_some(sum.samples)));
    }
    for (number, name) in report.numbers_of_branches() {
        numbers.insert(name.to_owned(), json!(number.of_branches(sum)));
    }
    numbers
}
