//! Taxonomies: named groups of instructions, stated in TOML.

mod catalog;
mod condition;
mod error;
mod read;
#[cfg(test)]
mod tests;

pub use catalog::Taxonomies;
pub use error::{Problem, TaxonomyError};

use crate::mix::kind::Kind;
use condition::Condition;

/// Named groups of instructions. Each instruction is in the first group whose conditions hold for it.
#[derive(Clone, Debug)]
pub struct Taxonomy {
    /// The name: a key of rows, columns and filters.
    pub name: String,
    /// What it tells apart, in a sentence.
    pub description: String,
    /// The taxonomy whose groups come after those of its own.
    pub inherits: Option<String>,
    /// The groups in order, inherited ones last.
    pub groups: Vec<Group>,
    /// The name for instructions of no group.
    pub other: String,
}

/// A group of a taxonomy.
#[derive(Clone, Debug)]
pub struct Group {
    /// The name: a value of the taxonomy's key.
    pub name: String,
    /// What is in it, in a sentence.
    pub description: Option<String>,
    /// The group whose conditions hold, too.
    pub inherits: Option<String>,
    /// Those of the group itself, and those that it inherits.
    condition: Condition,
}

impl Taxonomy {
    /// The name of the group that a kind of instructions is in. The kind must have its form where that is needed.
    pub(super) fn group_of(&self, kind: &Kind) -> &str {
        let group = self.groups.iter().find(|group| group.condition.holds(kind));
        group.map_or(&self.other, |group| &group.name)
    }

    /// Whether a condition is of the form of instructions.
    pub(super) fn needs_form(&self) -> bool {
        self.groups.iter().any(|group| group.condition.needs_form())
    }
}

impl Group {
    /// What must hold, with what is inherited: `mnemonic=div*,idiv and memory=read`.
    pub fn conditions(&self) -> String {
        self.condition.to_string()
    }
}
