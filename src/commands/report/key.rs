//! The keys of a page's mix: what rows and columns can have.

use analyzer::mix::{Attribute, Dimension, Key};
use serde::Serialize;

use super::short::Short;

/// A key that rows and columns can have.
#[derive(Serialize)]
pub struct KeyData {
    pub name: String,
    about: String,
    is_taxonomy: bool,
    /// Whether its values are compared as numbers.
    is_numeric: bool,
    /// Of a key of blocks, nothing: their columns have it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    values: Vec<String>,
    /// By kind of instructions, the index of its value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub of_kinds: Vec<u32>,
    /// The same by place of the source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub of_places: Vec<u32>,
    /// The same by block.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub of_blocks: Vec<u32>,
    /// The same by task.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub of_tasks: Vec<u32>,
    /// By value, executed instructions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    counts: Vec<Short>,
    /// By value, how uncertain its share of all is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    share_errors: Vec<Option<Short>>,
    /// The values that were seen in too little of the recording.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rest_on_little: Vec<usize>,
}

/// One that follows from the blocks.
pub fn of_block(key: Dimension) -> KeyData {
    KeyData {
        name: key.as_str().to_owned(),
        about: about(&Key::Dimension(key)),
        is_taxonomy: false,
        is_numeric: key.is_numeric(),
        values: Vec::new(),
        of_kinds: Vec::new(),
        of_places: Vec::new(),
        of_blocks: Vec::new(),
        of_tasks: Vec::new(),
        counts: Vec::new(),
        share_errors: Vec::new(),
        rest_on_little: Vec::new(),
    }
}

/// One of instructions, by kind.
pub fn of_attribute(attribute: &Attribute) -> KeyData {
    let Attribute { key, values, of_kinds } = attribute;
    let little = values.iter().enumerate().filter(|(_, value)| value.uncertainty.share.rests_on_little);
    KeyData {
        name: key.as_str().to_owned(),
        about: about(key),
        is_taxonomy: matches!(key, Key::Taxonomy(_)),
        is_numeric: key.is_numeric(),
        values: values.iter().map(|value| value.text.clone()).collect(),
        of_kinds: of_kinds.clone(),
        of_places: Vec::new(),
        of_blocks: Vec::new(),
        of_tasks: Vec::new(),
        counts: values.iter().map(|value| Short(value.count)).collect(),
        share_errors: values.iter().map(|value| value.uncertainty.share.half_width.map(Short)).collect(),
        rest_on_little: little.map(|(index, _)| index).collect(),
    }
}

fn about(key: &Key) -> String {
    match key {
        Key::Dimension(dimension) => dimension.about().replace('`', ""),
        Key::Taxonomy(taxonomy) => taxonomy.description.clone(),
    }
}
