//! Both sides of a comparison as a mix by any keys, printed.

use std::io::Write;

use analyzer::flow::Moved;
use reports::diff::{Noise, Pivot, Row};
use serde_json::{Map, Value, json};

use super::Report;
use super::table::{columns, rest, role, shares};
use crate::output::{Align, Unit};

/// Prints it as a table.
pub fn print(pivot: &Pivot, report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let executions = report.changes.executions.iter().all(|is| *is);
    let mut more: Vec<(String, Align)> = pivot.keys[1..].iter().map(|key| (key.clone(), Align::Left)).collect();
    let largest = pivot.rows.iter().flat_map(|row| row.counts).fold(0.0, f64::max);
    let unit = Unit::for_counts_up_to(largest);
    if executions {
        let counts = ["count before", "count after"].map(|title| (format!("{title}{}", unit.suffix), Align::Right));
        more.extend(counts);
    }
    let more: Vec<(&str, Align)> = more.iter().map(|(title, align)| (title.as_str(), *align)).collect();
    let first = 5 + pivot.keys.len();
    let counted = if executions { vec![first, first + 1] } else { Vec::new() };
    let mut table = columns(report, &pivot.keys[0], &more).dispense_with(counted);
    let mut add = |row: &Row, names: Vec<String>| {
        let counts = row.counts.into_iter().filter(|_| executions).map(|count| unit.show(count));
        let cells = shares(&row.moved, row.noise).into_iter().chain(names).chain(counts);
        table.row_in(role(row.noise), cells.collect());
    };
    if pivot.groups.is_empty() {
        pivot.rows.iter().take(report.top).for_each(|row| add(row, row.moved.what.clone()));
    }
    // Rows are in the order of their groups.
    let of_groups = pivot.rows.chunk_by(|one, other| one.moved.what[0] == other.moved.what[0]);
    for (group, inside) in pivot.groups.iter().zip(of_groups).take(report.top) {
        let mut names = vec![String::new(); pivot.keys.len()];
        names[0].clone_from(&group.moved.what[0]);
        add(group, names);
        for row in inside.iter().take(report.top) {
            let mut names = row.moved.what.clone();
            names[0].clear();
            add(row, names);
        }
        if inside.len() > report.top {
            let others = &inside[report.top..];
            let sums = [0, 1].map(|side| others.iter().map(|row| row.moved.shares[side]).sum());
            let counts = [0, 1].map(|side| others.iter().map(|row| row.counts[side]).sum());
            let mut names = vec![String::new(); pivot.keys.len()];
            names[1] = format!("[{} others]", others.len());
            let moved = Moved { what: Vec::new(), shares: sums };
            add(&Row { moved, counts, noise: Noise::default() }, names);
        }
    }
    table.print(out, report.layout)?;
    match pivot.groups.len() {
        0 => rest(pivot.rows.len(), report.top, ["row", "rows"], out)?,
        groups => rest(groups, report.top, ["group", "groups"], out)?,
    }
    Ok(())
}

/// Prints it as CSV: a line for each row.
pub fn print_csv(pivot: &Pivot, report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    let numbers =
        ["before", "after", "change", "change_error", "within_error", "finding", "count_before", "count_after"];
    csv.write_record(pivot.keys.iter().map(String::as_str).chain(numbers))?;
    for row in pivot.rows.iter().take(report.top) {
        let Row { moved, counts, noise } = row;
        let text = |is: Option<bool>| is.map_or(String::new(), |is| is.to_string());
        let shares = [moved.shares[0], moved.shares[1], moved.change()].map(|share| share.to_string());
        let error = noise.error.map_or(String::new(), |error| error.to_string());
        let noise = [error, text(noise.is_within), text(noise.is_finding)];
        let counts = counts.map(|count| count.to_string());
        csv.write_record(moved.what.iter().chain(&shares).chain(&noise).chain(&counts))?;
    }
    Ok(csv.flush()?)
}

/// Its rows, for programs.
pub fn rows(pivot: &Pivot, top: usize) -> Vec<Value> {
    let row = |row: &Row| {
        let named = pivot.keys.iter().zip(&row.moved.what).map(|(key, value)| (key.clone(), json!(value)));
        let mut object: Map<String, Value> = named.collect();
        object.extend([
            ("before".to_owned(), json!(row.moved.shares[0])),
            ("after".to_owned(), json!(row.moved.shares[1])),
            ("change".to_owned(), json!(row.moved.change())),
            ("change_error".to_owned(), json!(row.noise.error)),
            ("within_error".to_owned(), json!(row.noise.is_within)),
            ("finding".to_owned(), json!(row.noise.is_finding)),
            ("count_before".to_owned(), json!(row.counts[0])),
            ("count_after".to_owned(), json!(row.counts[1])),
        ]);
        Value::Object(object)
    };
    pivot.rows.iter().take(top).map(row).collect()
}
