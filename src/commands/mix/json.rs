//! The mix as JSON: hbbp-mix/1.

use std::io::Write;

use analyzer::mix::{Key, Sum};
use reports::mix::Numbered;
use reports::mix::numbers::part;
use serde_json::{Map, Value, json};

use super::Report;

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
                let sum = &Sum::of([cell]);
                let of_cell = Numbered { sum, whole: line.whole, values: Some(&cell.row), row: Some(&row.sum) };
                object.extend(numbers(report, &of_cell));
                rows.push(Value::Object(object));
            }
        } else if line.others {
            others.0 += line.rows();
            others.1.extend(line.cells());
        } else if let [group] = line.nodes {
            let mut object = named(&mut group.values.iter());
            object.insert("rows".to_owned(), json!(group.rows()));
            let of_group = Numbered { sum: &group.sum, whole: line.whole, values: Some(group.values), row: None };
            object.extend(numbers(report, &of_group));
            subtotals.push(Value::Object(object));
        }
    });
    let others = (others.0 > 0).then(|| {
        let mut object = Map::from_iter([("rows".to_owned(), json!(others.0))]);
        let of_others = Numbered { sum: &Sum::of(others.1), whole: &report.mix.all, values: None, row: None };
        object.extend(numbers(report, &of_others));
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

/// A sum and how far it can be from the truth, and what else is asked for.
fn numbers(report: &Report<'_>, of: &Numbered<'_>) -> Map<String, Value> {
    let (mix, sum) = (report.mix, of.sum);
    let uncertainty = mix.uncertainty_of(sum);
    let mut numbers = Map::from_iter([
        ("count".to_owned(), json!(sum.count)),
        ("share".to_owned(), json!(part(sum.count, mix.instructions))),
        ("count_error".to_owned(), json!(uncertainty.count.half_width)),
        ("share_error".to_owned(), json!(uncertainty.share.half_width)),
        ("rests_on_little".to_owned(), json!(uncertainty.share.rests_on_little)),
    ]);
    numbers.extend(report.asked().more_numbers(of).into_iter().map(|(name, number)| (name, json!(number))));
    numbers
}
