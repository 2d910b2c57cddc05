//! What documents and data frames say of a comparison beside its rows: hbbp-diff/1.

use std::path::Path;

use analyzer::mix::{Mix, Query};
use serde_json::{Value, json};

use super::{Changes, Work};
use crate::Arguments;
use crate::mix::{unmatched, without_source};

impl Changes<'_> {
    /// A side: its file, its unit, and which part of it is in files and in code that both have, unread, with lines.
    pub fn side(&self, side: usize) -> Value {
        let comparison = self.comparison;
        json!({
            "file": self.files[side],
            "unit": if self.executions[side] { "executions" } else { "relative" },
            "instructions": comparison.instructions[side],
            "same_files": comparison.same_files[side],
            "same_code": comparison.same_code[side],
            "unread": comparison.unread[side],
            "with_lines": comparison.with_lines[side],
        })
    }

    /// How much both sides have in common, 0 to 1.
    pub fn overlap(&self) -> Value {
        json!({
            "blocks": self.comparison.block_overlap,
            "functions": self.comparison.function_overlap,
            "lines": self.comparison.line_overlap,
        })
    }
}

impl Work {
    /// By which part the executed instructions changed, or why that is not known.
    pub fn described(&self, changes: &Changes<'_>) -> Value {
        let (change, error) = self.change().unzip();
        let instructions = self.sides.map(|side| side.map(|counted| counted.instructions));
        json!({"text": self.text(changes), "change": change, "change_error": error, "executed": instructions})
    }
}

/// What there is to say of the mix of a side.
pub fn said_of_mix(mix: &Mix, query: &Query, arguments: &dyn Arguments) -> impl Iterator<Item = String> {
    let unmatched = mix.unmatched.iter().map(|of| unmatched::sentence(of, arguments));
    mix.notes.iter().cloned().chain(unmatched).chain(without_source(&query.rows, mix, arguments))
}

/// What is said where an option chooses between the sources of a side that has none.
pub fn nothing_to_choose(option: &str, file: &Path) -> String {
    format!("{option} chooses between the sources of recordings: {} is none", file.display())
}
