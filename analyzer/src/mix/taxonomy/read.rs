//! One file, read and checked as far as that can be done without others.

use std::collections::HashSet;
use std::ops::Range;

use toml_edit::{Document, Item, TableLike, Value};

use crate::mix::Dimension;
use crate::mix::comparison::Comparison;

use super::condition::{Attribute, Condition};
use super::error::{Problem, TaxonomyError};

/// Bytes of a file.
pub(super) const MOST_BYTES: usize = 1 << 16;
/// Groups of a taxonomy, with those that it inherits.
pub(super) const MOST_GROUPS: usize = 256;
/// Levels of `any` and `not`.
const MOST_LEVELS: usize = 4;

/// A taxonomy as its file states it.
#[derive(Debug)]
pub(super) struct Draft {
    pub file: String,
    pub text: String,
    pub name: Stated,
    pub description: String,
    pub inherits: Option<Stated>,
    pub other: Option<Stated>,
    pub groups: Vec<DraftGroup>,
}

/// A group as its file states it.
#[derive(Debug)]
pub(super) struct DraftGroup {
    pub name: Stated,
    pub description: Option<String>,
    pub inherits: Option<Stated>,
    /// Its own; all must hold.
    pub conditions: Vec<Condition>,
}

/// A text and where it is.
#[derive(Clone, Debug)]
pub(super) struct Stated {
    pub text: String,
    pub at: usize,
}

type Found<T> = Result<T, (usize, Problem)>;

impl Draft {
    /// Reads a file's text.
    ///
    /// # Errors
    /// It is no TOML, or no taxonomy.
    pub fn read(file: &str, text: &str) -> Result<Self, TaxonomyError> {
        let fail = |(at, problem)| TaxonomyError::at(file, text, at, problem);
        if text.len() > MOST_BYTES {
            return Err(fail((0, Problem::TooMuch { what: "bytes of a file", most: MOST_BYTES })));
        }
        let document = Document::parse(text).map_err(|error| {
            fail((error.span().map_or(0, |span| span.start), Problem::Syntax(error.message().to_owned())))
        })?;
        taxonomy(file, text, document.as_table()).map_err(fail)
    }

    /// An error at a place of the file.
    pub fn error(&self, at: usize, problem: Problem) -> TaxonomyError {
        TaxonomyError::at(&self.file, &self.text, at, problem)
    }
}

fn taxonomy(file: &str, text: &str, table: &dyn TableLike) -> Found<Draft> {
    const WHAT: &str = "a taxonomy";
    const KEYS: [&str; 5] = ["name", "description", "inherits", "other", "group"];
    if let Some((key, _)) = table.iter().find(|(key, _)| !KEYS.contains(key)) {
        let known = KEYS.join(", ");
        return Err((place_of_key(table, key), Problem::UnknownKey { what: WHAT, key: key.to_owned(), known }));
    }
    let needed = |key| move || (0, Problem::Missing { what: WHAT, key });
    let name = string(table, "name")?.ok_or_else(needed("name"))?;
    check_key(&name)?;
    let other = string(table, "other")?;
    other.as_ref().map_or(Ok(()), check_value)?;
    let mut groups = Vec::new();
    if let Some(item) = table.get("group") {
        let tables = item.as_array_of_tables().ok_or_else(|| wrong_type("group", item, "tables: [[group]]"))?;
        if tables.len() > MOST_GROUPS {
            let problem = Problem::TooMuch { what: "groups of a taxonomy", most: MOST_GROUPS };
            return Err((start(item.span()), problem));
        }
        groups = tables.iter().map(|table| group(table, start(table.span()))).collect::<Result<_, _>>()?;
    }
    let mut names = HashSet::new();
    if let Some(DraftGroup { name, .. }) = groups.iter().find(|group| !names.insert(&group.name.text)) {
        return Err((name.at, Problem::Duplicate { what: "group", name: name.text.clone() }));
    }
    Ok(Draft {
        file: file.to_owned(),
        text: text.to_owned(),
        name,
        description: string(table, "description")?.ok_or_else(needed("description"))?.text,
        inherits: string(table, "inherits")?,
        other,
        groups,
    })
}

fn group(table: &dyn TableLike, at: usize) -> Found<DraftGroup> {
    let name = string(table, "name")?.ok_or((at, Problem::Missing { what: "a group", key: "name" }))?;
    check_value(&name)?;
    Ok(DraftGroup {
        name,
        description: string(table, "description")?.map(|stated| stated.text),
        inherits: string(table, "inherits")?,
        conditions: conditions(table, &["name", "description", "inherits"], MOST_LEVELS)?,
    })
}

/// The conditions of a table; all must hold.
fn conditions(table: &dyn TableLike, besides: &[&str], levels: usize) -> Found<Vec<Condition>> {
    let mut all = Vec::new();
    for (key, item) in table.iter().filter(|(key, _)| !besides.contains(key)) {
        let at = start(item.span());
        all.push(match key {
            "any" | "not" if levels == 0 => {
                return Err((at, Problem::TooMuch { what: "levels of any and not", most: MOST_LEVELS }));
            }
            "any" => Condition::Any(alternatives(item, at, levels - 1)?),
            "not" => {
                let table = item.as_table_like().ok_or_else(|| wrong_type("not", item, "a table: {..}"))?;
                Condition::Not(Box::new(Condition::All(some("not", table, at, levels - 1)?)))
            }
            _ => {
                let dimension = Dimension::ALL.iter().find(|known| known.as_str() == key && known.is_attribute());
                let dimension = *dimension.ok_or_else(|| {
                    let known = attributes(besides);
                    let what = if besides.is_empty() { "a condition" } else { "a group" };
                    (place_of_key(table, key), Problem::UnknownKey { what, key: key.to_owned(), known })
                })?;
                let comparison =
                    comparison(dimension, item).map_err(|(place, problem)| (place.unwrap_or(at), problem))?;
                Condition::Is(Attribute::new(dimension, comparison).map_err(|problem| (at, problem))?)
            }
        });
    }
    Ok(all)
}

fn alternatives(item: &Item, at: usize, levels: usize) -> Found<Vec<Condition>> {
    let wrong = || wrong_type("any", item, "a list of tables: [{..}, {..}]");
    let tables: Vec<&dyn TableLike> = if let Some(tables) = item.as_array_of_tables() {
        tables.iter().map(|table| table as &dyn TableLike).collect()
    } else {
        let values = item.as_array().ok_or_else(wrong)?;
        let tables = values.iter().map(|value| value.as_inline_table().map(|table| table as &dyn TableLike));
        tables.collect::<Option<_>>().ok_or_else(wrong)?
    };
    if tables.is_empty() {
        return Err((at, Problem::NoConditions("any")));
    }
    tables.into_iter().map(|table| Ok(Condition::All(some("any", table, at, levels)?))).collect()
}

/// The conditions of a table that must have one.
fn some(what: &'static str, table: &dyn TableLike, at: usize, levels: usize) -> Found<Vec<Condition>> {
    let all = conditions(table, &[], levels)?;
    if all.is_empty() { Err((at, Problem::NoConditions(what))) } else { Ok(all) }
}

/// A value or a list of values; a text may begin with an operator.
fn comparison(key: Dimension, item: &Item) -> Result<Comparison, (Option<usize>, Problem)> {
    const EXPECTED: &str = "a text, a number, true, false, or a list of them";
    if let Some(text) = item.as_str() {
        return match Comparison::read(text).map_err(|error| (None, error.into()))? {
            Some(comparison) => Ok(comparison),
            None => Ok(Comparison::with(vec![text.to_owned()])),
        };
    }
    let wrong = || (None, wrong_type(key.as_str(), item, EXPECTED).1);
    let Some(list) = item.as_array() else {
        return Ok(Comparison::with(vec![item.as_value().and_then(|value| word(key, value)).ok_or_else(wrong)?]));
    };
    if list.is_empty() {
        return Err((None, Problem::HoldsForNothing(format!("one of no values of {key}"))));
    }
    let mut values = Vec::new();
    for value in list {
        let word = word(key, value).ok_or_else(wrong)?;
        // Each value is checked where it is.
        Attribute::new(key, Comparison::with(vec![word.clone()]))
            .map_err(|problem| (value.span().map(|span| span.start), problem))?;
        values.push(word);
    }
    Ok(Comparison::with(values))
}

/// A value as keys write it: `lock = true` is `lock`, `false` is `none`.
fn word(key: Dimension, value: &Value) -> Option<String> {
    let is_flag = matches!(key, Dimension::Lock | Dimension::Rep | Dimension::Stack);
    match value {
        Value::String(text) => Some(text.value().clone()),
        Value::Integer(number) => Some(number.value().to_string()),
        Value::Boolean(yes) if is_flag => Some(if *yes.value() { key.as_str() } else { "none" }.to_owned()),
        _ => None,
    }
}

fn string(table: &dyn TableLike, key: &'static str) -> Found<Option<Stated>> {
    let Some(item) = table.get(key) else { return Ok(None) };
    match item.as_str() {
        Some(text) => Ok(Some(Stated { text: text.to_owned(), at: start(item.span()) })),
        None => Err(wrong_type(key, item, "a text")),
    }
}

fn check_key(name: &Stated) -> Found<()> {
    // Fields that rows of mixes and of comparisons have beside the keys asked for; `flops` is a key, too, and its number has another name then.
    const TAKEN: [&str; 12] = [
        "count",
        "share",
        "rows",
        "samples",
        "taken",
        "mispredicted",
        "bytes",
        "intensity",
        "before",
        "after",
        "change",
        "finding",
    ];
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let rule = if name.text.is_empty() || !name.text.chars().all(is_plain) {
        "it needs letters from a to z, digits and '-'"
    } else if Dimension::named(&name.text).is_some() || TAKEN.contains(&name.text.as_str()) {
        "it is that of a key of mix"
    } else {
        return Ok(());
    };
    Err((name.at, Problem::Name { name: name.text.clone(), rule }))
}

fn check_value(name: &Stated) -> Found<()> {
    let is_bad = |c: char| c.is_control() || c == ',' || c == '*';
    let rule = "filters must find it, so it is not empty and has no ',', '*' or line breaks";
    if name.text.trim().is_empty() || name.text.contains(is_bad) {
        return Err((name.at, Problem::Name { name: name.text.clone(), rule }));
    }
    Ok(())
}

fn attributes(besides: &[&str]) -> String {
    let attributes = Dimension::ALL.iter().filter(|key| key.is_attribute()).map(|key| key.as_str());
    besides.iter().copied().chain(["any", "not"]).chain(attributes).collect::<Vec<_>>().join(", ")
}

fn wrong_type(key: &str, item: &Item, expected: &'static str) -> (usize, Problem) {
    (start(item.span()), Problem::Type { key: key.to_owned(), found: item.type_name(), expected })
}

fn place_of_key(table: &dyn TableLike, key: &str) -> usize {
    start(table.key(key).and_then(toml_edit::Key::span))
}

fn start(span: Option<Range<usize>>) -> usize {
    span.map_or(0, |span| span.start)
}
