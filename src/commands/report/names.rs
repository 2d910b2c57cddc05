//! What modules and functions are called where two recordings are compared: alike on both sides, as `hbbp diff` names them.

use reports::diff::Names as ComparedNames;
use serde::Serialize;

use super::composed::Functions;
use crate::commands::diff::Report;

/// The names of a side that differ from its own.
#[derive(Serialize)]
pub struct Names {
    /// By module, its base name; of versions of one program, both: `a|b`.
    modules: Vec<String>,
    /// Functions that are named without the suffixes of compilers: the index, and the name.
    functions: Vec<(usize, String)>,
}

impl Names {
    /// Of a side (0 is before) whose modules have these paths.
    pub fn of(report: &Report<'_>, side: usize, functions: &Functions, paths: &[&str]) -> Self {
        let compared = ComparedNames::of(report.changes.comparison);
        let functions = functions.names(paths).enumerate().filter_map(|(index, (path, name))| {
            let joined = compared.function(side, Some(path), name);
            (joined != name).then(|| (index, joined.to_owned()))
        });
        let functions = functions.collect();
        Names { modules: paths.iter().map(|path| compared.module(path).to_owned()).collect(), functions }
    }
}
