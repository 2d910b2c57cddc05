//! What two recordings differ in, by function.

use std::collections::HashMap;

use analyzer::flow::{FunctionName, Moved};
use analyzer::mix::Dimension;

use super::recorded::Recorded;
use super::sheet::{By, Link, Row, Sheet};
use crate::commands::diff::table::{function_cells, function_columns, overlaps, role};
use crate::commands::diff::{Report, modules};

/// The functions of both, the largest change first.
pub struct Diff {
    pub sheet: Sheet,
    /// How much both have in common, in words.
    pub overlap: String,
}

impl Diff {
    /// The functions of a report on these recordings.
    pub fn of(report: &Report<'_>, recorded: [&Recorded<'_>; 2]) -> Self {
        let places = recorded.map(places);
        let link = |name: &FunctionName| {
            let modules = modules(&name.module);
            // The code as it is now, if there is any.
            [1, 0].into_iter().find_map(|side| {
                let function = *places[side].get(&(modules[side].clone(), name.function.as_deref()?))?;
                Some(Link { recording: side, function, at: None })
            })
        };
        let row = |moved: &Moved<FunctionName>| {
            let noise = report.of_function(moved);
            let [before, after] = moved.shares;
            let numbers = vec![moved.change().abs(), moved.change(), before, after];
            Row { heat: role(noise), link: link(&moved.what), ..Row::new(function_cells(moved, noise), numbers) }
        };
        let rows = report.comparison.functions.iter().map(row).collect();
        let columns = function_columns();
        let column = |wanted: &str| columns.iter().position(|(title, _)| title == wanted).unwrap_or(0);
        let (function, module) = (column("function"), column("module"));
        let numbers =
            ["change", "growth", "before", "after"].into_iter().enumerate().map(|(at, name)| (name, By::Number(at)));
        let orders =
            numbers.chain([("function", By::Cell(function))]).map(|(name, by)| (name.to_owned(), by)).collect();
        let sheet = Sheet::new(columns, orders, rows)
            .dispense_with(vec![module])
            .with_keys(vec![(Dimension::Function, function), (Dimension::Module, module)]);
        Diff { sheet, overlap: overlaps(report) }
    }
}

/// The hottest function of each name, by base name of its module and name.
fn places<'a>(recorded: &'a Recorded<'_>) -> HashMap<(String, &'a str), usize> {
    let mut places = HashMap::new();
    for (place, of) in recorded.functions().iter().enumerate() {
        let Some(module) = recorded.analysis.counted.get(of.module) else { continue };
        let path = &recorded.analysis.modules.get(module.counts.module).path;
        let base = path.rsplit('/').next().unwrap_or(path).to_owned();
        places.entry((base, of.name.as_str())).or_insert(place);
    }
    places
}
