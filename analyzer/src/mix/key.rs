//! What names rows, columns and filters of a mix.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::mix::kind::Kind;
use crate::mix::{Dimension, Taxonomies, Taxonomy};

/// A key of rows, columns and filters. Keys of one name are equal.
#[derive(Clone, Debug)]
pub enum Key {
    /// One that every mix has.
    Dimension(Dimension),
    /// The groups of a taxonomy.
    Taxonomy(Arc<Taxonomy>),
}

/// Not the name of a [`Key`].
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no key {name:?}; the keys are {keys}, and the taxonomies {taxonomies}", keys = Dimension::names())]
pub struct UnknownKey {
    name: String,
    taxonomies: String,
}

impl UnknownKey {
    /// What was taken for one.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Key {
    /// The key of a name.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str, taxonomies: &Taxonomies) -> Result<Self, UnknownKey> {
        let taxonomy = || taxonomies.get(name.trim()).cloned().map(Key::Taxonomy);
        let unknown = || UnknownKey { name: name.to_owned(), taxonomies: taxonomies.names() };
        Dimension::named(name).map(Key::Dimension).or_else(taxonomy).ok_or_else(unknown)
    }

    /// The name on the command line and in JSON.
    pub fn as_str(&self) -> &str {
        match self {
            Key::Dimension(dimension) => dimension.as_str(),
            Key::Taxonomy(taxonomy) => &taxonomy.name,
        }
    }

    /// The dimension, if it is one.
    pub fn dimension(&self) -> Option<Dimension> {
        match self {
            Key::Dimension(dimension) => Some(*dimension),
            Key::Taxonomy(_) => None,
        }
    }

    /// Whether debug information tells it.
    pub fn is_of_source(&self) -> bool {
        self.dimension().is_some_and(Dimension::is_of_source)
    }

    /// Whether it tells instructions of one block apart.
    pub fn is_of_instruction(&self) -> bool {
        self.dimension().is_none_or(Dimension::is_of_instruction)
    }

    /// Whether an instruction has it wherever it is.
    pub(super) fn is_attribute(&self) -> bool {
        self.dimension().is_none_or(Dimension::is_attribute)
    }

    /// Its value for a kind of instructions: `None` if it is no attribute.
    pub(super) fn value_of(&self, kind: &Kind) -> Option<Cow<'_, str>> {
        match self {
            Key::Dimension(dimension) => kind.value(*dimension),
            Key::Taxonomy(taxonomy) => Some(taxonomy.group_of(kind).into()),
        }
    }

    /// Whether its values can be compared as numbers: of a taxonomy, where groups have numbers for names.
    pub fn is_numeric(&self) -> bool {
        match self {
            Key::Dimension(dimension) => dimension.is_numeric(),
            Key::Taxonomy(taxonomy) => taxonomy.groups.iter().any(|group| group.name.parse::<u64>().is_ok()),
        }
    }

    /// Whether the form of instructions decides it.
    pub(super) fn needs_form(&self) -> bool {
        match self {
            Key::Dimension(dimension) => dimension.is_of_form(),
            Key::Taxonomy(taxonomy) => taxonomy.needs_form(),
        }
    }
}

impl From<Dimension> for Key {
    fn from(dimension: Dimension) -> Self {
        Key::Dimension(dimension)
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl PartialEq<Dimension> for Key {
    fn eq(&self, other: &Dimension) -> bool {
        self.dimension() == Some(*other)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
