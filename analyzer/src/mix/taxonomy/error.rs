//! What can be wrong with a taxonomy.

use crate::mix::{ComparisonError, Dimension, Values};

/// Something is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {problem}")]
pub struct TaxonomyError {
    /// The file's name.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub problem: Problem,
}

impl TaxonomyError {
    /// At a place of a text, in bytes.
    pub(super) fn at(file: &str, text: &str, place: usize, problem: Problem) -> Self {
        let before = text.get(..place).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        TaxonomyError { file: file.to_owned(), line, column, problem }
    }
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It is no TOML.
    #[error("{0}")]
    Syntax(String),
    /// Nobody knows the key.
    #[error("{what} has no key {key:?}; there are {known}")]
    UnknownKey {
        /// What has the key.
        what: &'static str,
        /// The key.
        key: String,
        /// All that there are.
        known: String,
    },
    /// A key is missing.
    #[error("{what} has no {key:?}, and needs one")]
    Missing {
        /// What lacks it.
        what: &'static str,
        /// The key.
        key: &'static str,
    },
    /// A value of another type.
    #[error("{key:?} is a {found}, and must be {expected}")]
    Type {
        /// The key.
        key: String,
        /// The type that it has.
        found: &'static str,
        /// What it must be.
        expected: &'static str,
    },
    /// A name that would not be found on the command line.
    #[error("{name:?} cannot be a name: {rule}")]
    Name {
        /// The name.
        name: String,
        /// The rule.
        rule: &'static str,
    },
    /// The key has no such value.
    #[error("{key} is never {value:?}{known}", known = known(*key))]
    NoSuchValue {
        /// The key.
        key: Dimension,
        /// The value.
        value: String,
    },
    /// An operator with something that it cannot compare with.
    #[error(transparent)]
    Comparison(#[from] ComparisonError),
    /// The key has no numbers.
    #[error("{0} has no numbers to compare")]
    NoNumbers(Dimension),
    /// No instruction fulfils it.
    #[error("no instruction has {0}")]
    HoldsForNothing(String),
    /// `any` or `not` without conditions.
    #[error("{0:?} has no conditions")]
    NoConditions(&'static str),
    /// A second one of the same name.
    #[error("there is another {what} {name:?}")]
    Duplicate {
        /// What there are two of.
        what: &'static str,
        /// Their name.
        name: String,
    },
    /// What is to be inherited is not there.
    #[error("there is no {what} {name:?} to inherit; there are {known}")]
    Unknown {
        /// What was looked for.
        what: &'static str,
        /// Its name.
        name: String,
        /// All that there are.
        known: String,
    },
    /// It inherits itself.
    #[error("{0} inherits itself: {1}")]
    Cycle(&'static str, String),
    /// An earlier group takes all that it could have.
    #[error(
        "no instruction gets to the group {name:?}: {earlier:?}, which is before it, takes all. Put what is special first"
    )]
    Unreachable {
        /// The group.
        name: String,
        /// The one before.
        earlier: String,
    },
    /// More than is sensible.
    #[error("{what} are at most {most}")]
    TooMuch {
        /// Of what.
        what: &'static str,
        /// How much.
        most: usize,
    },
}

fn known(key: Dimension) -> String {
    const MOST: usize = 40;
    match key.values() {
        Values::Words(words) if words.len() <= MOST => format!(": it is one of {}", words.join(", ")),
        Values::Words(_) => String::new(),
        Values::Numbers(words) => format!(": it is {}", [&["a number"], words].concat().join(" or ")),
        Values::Text => ": its parts are reg, mem, imm and target, joined by '-'".to_owned(),
    }
}
