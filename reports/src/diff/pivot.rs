//! Both sides of a comparison as a mix by any keys: what each row had before and after.

use std::collections::{BTreeMap, BTreeSet};

use analyzer::flow::Moved;
use analyzer::mix::{Dimension, Key, Mix, Query, Sum};
use analyzer::uncertainty::{RowName, Rows, Side};

use super::{Names, Noise, noise};

/// A comparison by keys.
pub struct Pivot {
    /// The keys of the rows.
    pub keys: Vec<String>,
    /// The largest change first; of several keys, by their first key: see [`Pivot::of`].
    pub rows: Vec<Row>,
    /// Of several keys, what all rows with the same first key are together.
    pub groups: Vec<Row>,
    /// What is known of the uncertainty of each side.
    sides: [Side; 2],
}

/// Instructions with the same values of all keys, or of the first one.
pub struct Row {
    /// The values of the keys, and the shares of both sides.
    pub moved: Moved<Vec<String>>,
    /// Executed instructions, in the unit of each side.
    pub counts: [f64; 2],
    /// How far its change is from none.
    pub noise: Noise,
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
    pub fn of(query: &Query, mixes: [&Mix; 2], sides: [&Side; 2], names: &Names<'_>) -> Self {
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
        Pivot { keys: query.rows.iter().map(Key::to_string).collect(), rows, groups, sides }
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
}
