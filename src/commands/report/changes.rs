//! What changed between the two recordings of a page, as `hbbp diff` says it.

use std::collections::{BTreeSet, HashMap};

use analyzer::flow::Moved;
use analyzer::mix::{Attribute, UNREADABLE};
use analyzer::uncertainty::Side as UncertaintySide;
use reports::diff::{Noise, modules};
use serde::Serialize;

use super::composed::Functions;
use super::short::Short;
use crate::commands::diff::Report;
use crate::commands::diff::table::head;

/// All that a page says of the changes. Shares are of all instructions of a side, 0 to 1.
#[derive(Serialize)]
pub struct Changes {
    /// What both are called.
    files: [String; 2],
    /// Whether both sides are exact counts: nothing is chance.
    is_exact: bool,
    /// What is said of the comparison as a whole: titles and texts.
    lines: Vec<(&'static str, String)>,
    functions: ChangedFunctions,
    /// Attributes of instructions that are known of both.
    keys: Vec<ChangedKey>,
}

/// Functions, the largest change first, by column.
#[derive(Default, Serialize)]
struct ChangedFunctions {
    name: Vec<String>,
    /// Base name of the file; of versions of one program, both: `a|b`.
    module: Vec<String>,
    before: Vec<Short>,
    after: Vec<Short>,
    change_error: Vec<Option<Short>>,
    /// Indices of those whose change is within its error.
    within: Vec<usize>,
    /// Indices of those whose change is more than chance does in any of all of them.
    findings: Vec<usize>,
    /// The function after, among those of the page: the hottest, where these are several.
    function: Vec<Option<usize>>,
    /// The same before.
    function_before: Vec<Option<usize>>,
}

/// The values of a key that are on one side at least, by column.
#[derive(Serialize)]
struct ChangedKey {
    name: String,
    values: Vec<String>,
    change_errors: Vec<Option<Short>>,
    /// Indices, as of functions.
    within: Vec<usize>,
    findings: Vec<usize>,
}

/// What is shown of a side.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    pub attributes: &'a [Attribute],
    /// Instructions of all.
    pub instructions: f64,
    /// What is not compared of it, in a sentence.
    pub left_out: Option<&'a str>,
}

impl Changes {
    /// Of a comparison, with the attributes of both sides, and their functions, which are in modules of these paths.
    pub fn of(report: &Report<'_>, sides: [Shown<'_>; 2], functions: [(&Functions, &[&str]); 2]) -> Self {
        let left_out = sides
            .iter()
            .zip(&report.changes.files)
            .filter_map(|(side, file)| side.left_out.map(|left_out| ("degraded", format!("{file}: {left_out}"))));
        let keys = sides[1].attributes.iter().filter_map(|after| {
            let before = sides[0].attributes.iter().find(|before| before.key == after.key)?;
            Some(key(report, sides.map(|side| side.instructions), [before, after]))
        });
        Changes {
            files: report.changes.files.clone(),
            is_exact: report.changes.sides.iter().all(|side| matches!(side, UncertaintySide::Exact)),
            lines: head(report).into_iter().chain(left_out).collect(),
            functions: changed_functions(report, functions),
            keys: keys.collect(),
        }
    }
}

fn changed_functions(report: &Report<'_>, functions: [(&Functions, &[&str]); 2]) -> ChangedFunctions {
    let known = functions.map(|(functions, paths)| {
        let mut known: HashMap<(String, String), usize> = HashMap::new();
        for (index, (path, name)) in functions.names(paths).enumerate() {
            let module = path.rsplit('/').next().unwrap_or(path);
            known.entry((module.to_owned(), name.to_owned())).or_insert(index);
        }
        known
    });
    let mut changed = ChangedFunctions::default();
    for (index, moved) in report.changes.comparison.functions.iter().enumerate() {
        let modules = modules(&moved.what.module);
        let [before, after] = [0, 1].map(|side| {
            let names = report.changes.names_of_function(&moved.what, side).into_iter();
            let names = names.map(|name| name.unwrap_or(UNREADABLE.to_owned()));
            names.filter_map(|name| known[side].get(&(modules[side].clone(), name)).copied()).min()
        });
        let Noise { error, is_within, is_finding } = report.changes.of_function(moved);
        changed.name.push(moved.what.function.clone().unwrap_or(UNREADABLE.to_owned()));
        changed.module.push(moved.what.module.clone());
        changed.before.push(Short(moved.shares[0]));
        changed.after.push(Short(moved.shares[1]));
        changed.change_error.push(error.map(Short));
        changed.within.extend((is_within == Some(true)).then_some(index));
        changed.findings.extend((is_finding == Some(true)).then_some(index));
        changed.function.push(after);
        changed.function_before.push(before);
    }
    changed
}

fn key(report: &Report<'_>, instructions: [f64; 2], sides: [&Attribute; 2]) -> ChangedKey {
    let counts = sides.map(|side| -> HashMap<&str, f64> {
        side.values.iter().map(|value| (value.text.as_str(), value.count)).collect()
    });
    let values: BTreeSet<&str> = counts.iter().flat_map(HashMap::keys).copied().collect();
    let share = |side: usize, value: &str| match instructions[side] > 0.0 {
        true => counts[side].get(value).copied().unwrap_or(0.0) / instructions[side],
        false => 0.0,
    };
    let name = sides[1].key.as_str();
    let mut changed = ChangedKey {
        name: name.to_owned(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
        change_errors: Vec::new(),
        within: Vec::new(),
        findings: Vec::new(),
    };
    for (index, value) in values.iter().enumerate() {
        let moved = Moved { what: *value, shares: [0, 1].map(|side| share(side, value)) };
        let Noise { error, is_within, is_finding } = report.changes.of_value(name, &moved, values.len());
        changed.change_errors.push(error.map(Short));
        changed.within.extend((is_within == Some(true)).then_some(index));
        changed.findings.extend((is_finding == Some(true)).then_some(index));
    }
    changed
}
