//! What two recordings differ in, by function.

use std::collections::{BTreeMap, HashMap};

use analyzer::flow::{FunctionName, Moved};
use analyzer::mix::{Dimension, UNREADABLE};
use reports::diff::modules;

use super::recorded::Recorded;
use super::sheet::{By, Link, Row, Sheet};
use crate::commands::diff::Report;
use crate::commands::diff::table::{function_cells, function_columns, head, overlaps, role};

/// The functions of both, the largest change first.
pub struct Diff {
    pub sheet: Sheet,
    /// How much both have in common, in words.
    pub overlap: String,
    /// All that is said of the comparison as a whole: titles and texts.
    pub head: Vec<(String, String)>,
    /// Of the rows: their functions of each side, hottest first.
    functions: Vec<[Vec<usize>; 2]>,
}

impl Diff {
    /// The functions of a report on these recordings.
    pub fn of(report: &Report<'_>, recorded: [&Recorded<'_>; 2]) -> Self {
        let (places, paths) = (recorded.map(places), recorded.map(paths));
        let functions_of = |name: &FunctionName| {
            let modules = modules(&name.module);
            [0, 1].map(|side| {
                let names = report.changes.names_of_function(name, side).into_iter().flatten();
                let of_name = |name: String| places[side].get(&(&*modules[side], &*name)).cloned().unwrap_or_default();
                let mut functions: Vec<usize> = names.flat_map(of_name).collect();
                functions.sort_unstable();
                functions
            })
        };
        let functions: Vec<_> =
            report.changes.comparison.functions.iter().map(|moved| functions_of(&moved.what)).collect();
        let row = |(moved, functions): (&Moved<FunctionName>, &[Vec<usize>; 2])| {
            let noise = report.changes.of_function(moved);
            let [before, after] = moved.shares;
            let numbers = vec![moved.change().abs(), moved.change(), before, after];
            // The code as it is now, if there is any.
            let link = [1, 0]
                .into_iter()
                .find_map(|side| Some(Link { recording: side, function: *functions[side].first()?, at: None }));
            let modules = modules(&moved.what.module);
            let path = [1, 0].into_iter().find_map(|side| paths[side].get(modules[side].as_str()).copied());
            let function = moved.what.function.clone().unwrap_or(UNREADABLE.into());
            let keys = vec![function, path.unwrap_or(&moved.what.module).to_owned()];
            Row { heat: role(noise), link, keys, ..Row::new(function_cells(moved, noise), numbers) }
        };
        let rows = report.changes.comparison.functions.iter().zip(&functions).map(row).collect();
        let columns = function_columns();
        let column = |wanted: &str| columns.iter().position(|(title, _)| title == wanted).unwrap_or(0);
        let (function, module) = (column("function"), column("module"));
        let numbers =
            ["change", "growth", "before", "after"].into_iter().enumerate().map(|(at, name)| (name, By::Number(at)));
        let orders =
            numbers.chain([("function", By::Cell(function))]).map(|(name, by)| (name.to_owned(), by)).collect();
        let sheet = Sheet::new(columns, orders, rows)
            .dispense_with(vec![module])
            .with_keys(vec![Dimension::Function, Dimension::Module]);
        let head = head(report).into_iter().map(|(title, text)| (title.to_owned(), text)).collect();
        Diff { sheet, overlap: overlaps(report), head, functions }
    }

    /// The function of the other recording that one of this side was compared with: the hottest, where these are several.
    pub fn other(&self, side: usize, function: usize) -> Option<usize> {
        let row = self.functions.iter().find(|row| row[side].contains(&function))?;
        row[1 - side].first().copied()
    }
}

/// The functions of each name, hottest first, by base name of its module and name.
fn places<'a>(recorded: &'a Recorded<'_>) -> HashMap<(&'a str, &'a str), Vec<usize>> {
    let mut places: HashMap<_, Vec<usize>> = HashMap::new();
    for (place, of) in recorded.functions().iter().enumerate() {
        places.entry(recorded.name_of(of)).or_default().push(place);
    }
    places
}

/// The path of the first module of each base name.
fn paths<'a>(recorded: &'a Recorded<'_>) -> BTreeMap<&'a str, &'a str> {
    let analysis = recorded.analysis;
    let paths = analysis.counted.iter().map(|module| analysis.modules.get(module.counts.module).path.as_str());
    paths.rev().map(|path| (path.rsplit('/').next().unwrap_or(path), path)).collect()
}
