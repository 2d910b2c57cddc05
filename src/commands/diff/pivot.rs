//! Both sides of a comparison as a mix by any keys: what each row had before and after.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use analyzer::flow::Moved;
use analyzer::mix::{Dimension, Key, Mix, Query, Sum};
use analyzer::uncertainty::{RowName, Rows, Side};
use serde_json::{Map, Value, json};

use super::names::Names as ComparedNames;
use super::table::{columns, rest, role, shares};
use super::{Noise, Report, noise};
use crate::commands::mix::titles;
use crate::output::{Align, Unit};

/// A comparison by keys.
pub struct Pivot {
    /// The keys of the rows.
    keys: Vec<String>,
    /// The largest change first; of several keys, by their first key: see [`Pivot::of`].
    rows: Vec<Row>,
    /// Of several keys, what all rows with the same first key are together.
    groups: Vec<Row>,
    /// What is known of the uncertainty of each side.
    sides: [Side; 2],
}

/// Instructions with the same values of all keys, or of the first one.
struct Row {
    moved: Moved<Vec<String>>,
    /// Executed instructions, in the unit of each side.
    counts: [f64; 2],
    noise: Noise,
}

/// What a row has of the mixes.
#[derive(Default)]
struct Counted<'a> {
    /// Executed instructions of each side.
    sums: [f64; 2],
    /// The rows of both that it is: modules may have other names there.
    of_mixes: BTreeSet<&'a [String]>,
}

impl Pivot {
    /// Of the mixes of both sides by the keys of a query. Modules and functions are called as both sides call them: a program in two folders is one.
    /// Rows with the same value of the first key, of several, are one after the other: those first that have most of one side.
    pub fn of(query: &Query, mixes: [&Mix; 2], sides: [&Side; 2], names: &ComparedNames<'_>) -> Self {
        let sampled = |at: usize| match sides[at] {
            Side::Sampled(_) => Side::Sampled(Rows::of_mix(mixes[at]).into()),
            known => known.clone(),
        };
        let sides = [sampled(0), sampled(1)];
        let module = query.rows.iter().position(|key| *key == Key::Dimension(Dimension::Module));
        let named = |side: usize, row: &[String]| -> Vec<String> {
            let path = module.map(|at| row[at].as_str());
            let value = |(value, key): (&String, &Key)| match key {
                Key::Dimension(Dimension::Module) => names.module(value).to_owned(),
                Key::Dimension(Dimension::Function) => names.function(side, path, value).to_owned(),
                _ => value.clone(),
            };
            row.iter().zip(&query.rows).map(value).collect()
        };
        let mut counts: BTreeMap<Vec<String>, Counted<'_>> = BTreeMap::new();
        for (side, mix) in mixes.into_iter().enumerate() {
            for row in mix.cells.chunk_by(|one, other| one.row == other.row) {
                let counted = counts.entry(named(side, &row[0].row)).or_default();
                counted.sums[side] += Sum::of(row).count;
                counted.of_mixes.insert(&row[0].row);
            }
        }
        let all = mixes.map(|mix| mix.instructions);
        let part = |counts: [f64; 2]| [0, 1].map(|side| if all[side] > 0.0 { counts[side] / all[side] } else { 0.0 });
        let row = |what: &[String], counts: [f64; 2], names: &[RowName], rows: usize| {
            let moved = Moved { what: what.to_vec(), shares: part(counts) };
            let noise = noise(&moved, [&sides[0], &sides[1]], [names, names], rows);
            Row { moved, counts, noise }
        };
        let mut of_groups: BTreeMap<&[String], ([f64; 2], Vec<RowName>)> = BTreeMap::new();
        let mut rows: Vec<Row> = Vec::new();
        for (values, counted) in &counts {
            let of_mixes: Vec<RowName> =
                counted.of_mixes.iter().map(|values| RowName::Values(values.to_vec())).collect();
            rows.push(row(values, counted.sums, &of_mixes, counts.len()));
            let (sums, names) = of_groups.entry(&values[..1]).or_default();
            sums.iter_mut().zip(&counted.sums).for_each(|(sum, count)| *sum += count);
            names.extend(of_mixes);
        }
        let by_change = |one: &Row, other: &Row| other.moved.change().abs().total_cmp(&one.moved.change().abs());
        rows.sort_by(by_change);
        let mut groups = Vec::new();
        if query.rows.len() > 1 {
            let number = of_groups.len();
            groups.extend(of_groups.iter().map(|(value, (counts, names))| row(value, *counts, names, number)));
            let most = |group: &Row| group.moved.shares[0].max(group.moved.shares[1]);
            groups.sort_by(|one, other| most(other).total_cmp(&most(one)));
            let place: BTreeMap<&str, usize> =
                groups.iter().enumerate().map(|(place, group)| (group.moved.what[0].as_str(), place)).collect();
            rows.sort_by_key(|row| place.get(row.moved.what[0].as_str()).copied());
        }
        Pivot { keys: titles(&query.rows), rows, groups, sides }
    }

    /// How many rows changed by more than chance changes any of so many, in a sentence; `None` where there is no chance, and where it is not known.
    pub fn changes(&self) -> Option<String> {
        let is_exact = self.sides.iter().all(|side| matches!(side, Side::Exact));
        let known = || self.rows.iter().filter_map(|row| row.noise.is_finding);
        let (findings, all) = (known().filter(|is| *is).count(), self.rows.len());
        (!is_exact && known().next().is_some()).then(|| {
            let findings = if findings == 0 { "none".to_owned() } else { findings.to_string() };
            format!(
                "{findings} of {all} row{} changed by more than chance changes one of so many (95 %); changes marked = are within their own ±",
                if all == 1 { "" } else { "s" }
            )
        })
    }

    /// Prints it as a table.
    pub fn print(&self, report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
        let executions = report.executions.iter().all(|is| *is);
        let mut more: Vec<(String, Align)> = self.keys[1..].iter().map(|key| (key.clone(), Align::Left)).collect();
        let largest = self.rows.iter().flat_map(|row| row.counts).fold(0.0, f64::max);
        let unit = Unit::for_counts_up_to(largest);
        if executions {
            let counts = ["count before", "count after"].map(|title| (format!("{title}{}", unit.suffix), Align::Right));
            more.extend(counts);
        }
        let more: Vec<(&str, Align)> = more.iter().map(|(title, align)| (title.as_str(), *align)).collect();
        let first = 5 + self.keys.len();
        let counted = if executions { vec![first, first + 1] } else { Vec::new() };
        let mut table = columns(report, &self.keys[0], &more).dispense_with(counted);
        let mut add = |row: &Row, names: Vec<String>| {
            let counts = row.counts.into_iter().filter(|_| executions).map(|count| unit.show(count));
            let cells = shares(&row.moved, row.noise).into_iter().chain(names).chain(counts);
            table.row_in(role(row.noise), cells.collect());
        };
        if self.groups.is_empty() {
            self.rows.iter().take(report.top).for_each(|row| add(row, row.moved.what.clone()));
        }
        // Rows are in the order of their groups.
        let of_groups = self.rows.chunk_by(|one, other| one.moved.what[0] == other.moved.what[0]);
        for (group, inside) in self.groups.iter().zip(of_groups).take(report.top) {
            let mut names = vec![String::new(); self.keys.len()];
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
                let mut names = vec![String::new(); self.keys.len()];
                names[1] = format!("[{} others]", others.len());
                let moved = Moved { what: Vec::new(), shares: sums };
                add(&Row { moved, counts, noise: Noise::default() }, names);
            }
        }
        table.print(out, report.layout)?;
        match self.groups.len() {
            0 => rest(self.rows.len(), report.top, "rows", out)?,
            groups => rest(groups, report.top, "groups", out)?,
        }
        Ok(())
    }

    /// Prints it as CSV: a line for each row.
    pub fn print_csv(&self, report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        let numbers =
            ["before", "after", "change", "change_error", "within_error", "finding", "count_before", "count_after"];
        csv.write_record(self.keys.iter().map(String::as_str).chain(numbers))?;
        for row in self.rows.iter().take(report.top) {
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
    pub fn rows(&self, top: usize) -> Vec<Value> {
        let row = |row: &Row| {
            let named = self.keys.iter().zip(&row.moved.what).map(|(key, value)| (key.clone(), json!(value)));
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
        self.rows.iter().take(top).map(row).collect()
    }
}
