//! The mix as JSON: hbbp-mix/1.

use std::io::Write;

use analyzer::mix::{Key, Sum};
use reports::mix::{Described, Numbered};
use serde_json::{Map, Value, json};

use super::Report;

/// Prints the largest rows.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let keys: Vec<&str> = report.query.rows.iter().chain(&report.query.columns).map(Key::as_str).collect();
    let named = |values: &mut dyn Iterator<Item = &String>| -> Map<String, Value> {
        keys.iter().zip(values).map(|(key, value)| ((*key).to_owned(), json!(value))).collect()
    };
    let asked = report.asked();
    let (mut rows, mut subtotals, mut others) = (Vec::new(), Vec::new(), (0, Vec::new()));
    report.for_each_line(|line| {
        if line.row().is_some() {
            rows.extend(asked.pairs(&line).into_iter().map(|(cell, described)| {
                let mut object = named(&mut cell.row.iter().chain(&cell.column));
                object.extend(numbers(described));
                Value::Object(object)
            }));
        } else if line.others {
            others.0 += line.rows();
            others.1.extend(line.cells());
        } else if let [group] = line.nodes {
            let mut object = named(&mut group.values.iter());
            object.insert("rows".to_owned(), json!(group.rows()));
            let of_group = Numbered { sum: &group.sum, whole: line.whole, values: Some(group.values), row: None };
            object.extend(numbers(asked.described(&of_group)));
            subtotals.push(Value::Object(object));
        }
    });
    let others = (others.0 > 0).then(|| {
        let mut object = Map::from_iter([("rows".to_owned(), json!(others.0))]);
        let of_others = Numbered { sum: &Sum::of(others.1), whole: &report.mix.all, values: None, row: None };
        object.extend(numbers(asked.described(&of_others)));
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
fn numbers(of: Described) -> impl Iterator<Item = (String, Value)> {
    let Described { count, share, count_error, share_error, rests_on_little, more } = of;
    let always = [json!(count), json!(share), json!(count_error), json!(share_error), json!(rests_on_little)];
    let always = Described::NAMES.map(str::to_owned).into_iter().zip(always);
    always.chain(more.into_iter().map(|(name, number)| (name, json!(number))))
}
