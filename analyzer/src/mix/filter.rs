//! `--filter key=value`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::mix::function_name::bare_names;
use crate::mix::{Dimension, UnknownDimension};

/// Keeps what has (or has not) one of the given values. `*` in a value stands for anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The dimension whose values are compared.
    pub key: Dimension,
    values: Vec<String>,
    negated: bool,
    /// Functions that are named by a part of their names: see [`Self::resolve`].
    functions: Vec<String>,
}

/// A value of a filter that nothing has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched {
    /// The key of the filter.
    pub key: Dimension,
    /// The value, as it was given.
    pub value: String,
    /// The values that there are, in order.
    pub existing: Vec<String>,
}

/// A filter that cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// There is no `=`.
    #[error("the filter {0:?} has no '=': write key=value, key=one,other or key!=value")]
    NoEquals(String),
    /// The part before `=` is no key.
    #[error(transparent)]
    Key(#[from] UnknownDimension),
}

impl Filter {
    /// Keeps what has one of the values that these texts name, each as behind `key=`.
    pub fn any_of(key: Dimension, texts: &[String]) -> Self {
        let values = texts.iter().flat_map(|text| split_values(text)).collect();
        Filter { key, values, negated: false, functions: Vec::new() }
    }

    /// Whether a value passes.
    pub fn keeps(&self, value: &str) -> bool {
        let is_one = self.values.iter().any(|pattern| matches(pattern, value));
        (is_one || self.functions.binary_search_by(|name| name.as_str().cmp(value)).is_ok()) != self.negated
    }

    /// Looks for the values among those that there are, and returns those that nothing has. A value that is no function's whole name, and has
    /// no `*`, stands for all functions that have it as their [bare name](bare_names).
    pub(crate) fn resolve(&mut self, existing: &BTreeSet<String>) -> Vec<Unmatched> {
        let mut unmatched = Vec::new();
        for value in &self.values {
            if existing.iter().any(|name| matches(value, name)) {
                continue;
            }
            let before = self.functions.len();
            if self.key == Dimension::Function && !value.contains('*') {
                let named = existing.iter().filter(|name| bare_names(name).contains(value));
                self.functions.extend(named.cloned());
            }
            if self.functions.len() == before {
                let existing = existing.iter().cloned().collect();
                unmatched.push(Unmatched { key: self.key, value: value.clone(), existing });
            }
        }
        self.functions.sort_unstable();
        unmatched
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (key, value) = text.split_once('=').ok_or_else(|| FilterError::NoEquals(text.to_string()))?;
        let (key, negated) = match key.strip_suffix('!') {
            Some(key) => (key, true),
            None => (key, false),
        };
        Ok(Filter { key: key.parse()?, values: split_values(value), negated, functions: Vec::new() })
    }
}

/// As it is read.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.key, if self.negated { "!=" } else { "=" }, self.values.join(","))
    }
}

/// Commas separate values, but not those inside brackets: demangled names are full of them.
fn split_values(text: &str) -> Vec<String> {
    let mut values = vec![String::new()];
    let mut depth = 0_i32;
    for c in text.chars() {
        match c {
            '(' | '<' | '[' | '{' => depth += 1,
            ')' | '>' | ']' | '}' => depth -= 1,
            _ => {}
        }
        match values.last_mut() {
            Some(value) if c != ',' || depth > 0 => value.push(c),
            _ => values.push(String::new()),
        }
    }
    values
}

/// Glob match with `*` only; linear for each star.
fn matches(pattern: &str, value: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = value.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return rest.is_empty() };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_keep_what_they_say() {
        let check = |filter: &str, value: &str, expected: bool| {
            let filter: Filter = filter.parse().unwrap();
            assert_eq!(filter.keeps(value), expected, "{filter:?} {value}");
        };
        check("mnemonic=mov", "mov", true);
        check("mnemonic=mov", "movzx", false);
        check("mnemonic=mov*", "movzx", true);
        check("mnemonic=mov,lea", "lea", true);
        check("mnemonic!=mov,lea", "lea", false);
        check("mnemonic!=mov,lea", "add", true);
        check("function=f(int, char)", "f(int, char)", true);
        check("function=*::fmt<*>::*", "core::fmt<u8, i8>::go", true);
        check("module=*/libc.so*", "/lib/libc.so.6", true);
        check("module=*libc", "/lib/libc.so.6", false);
    }

    #[test]
    fn functions_are_found_without_their_arguments() {
        let existing: BTreeSet<String> =
            ["matmul(int)", "matmul(long)", "f", "f(int)", "g(int)"].map(str::to_owned).into();
        let check = |filter: &str, kept: &[&str], unmatched: &[&str]| {
            let mut filter: Filter = filter.parse().unwrap();
            let nothing: Vec<String> = filter.resolve(&existing).into_iter().map(|unmatched| unmatched.value).collect();
            let found: Vec<&String> = existing.iter().filter(|name| filter.keeps(name)).collect();
            assert_eq!(
                (found, nothing),
                (
                    kept.iter().map(|name| existing.get(*name).unwrap()).collect(),
                    unmatched.iter().map(|value| value.to_string()).collect()
                ),
                "{filter:?}"
            );
        };
        check("function=matmul", &["matmul(int)", "matmul(long)"], &[]);
        check("function=matmul(int)", &["matmul(int)"], &[]);
        check("function=f", &["f"], &[]);
        check("function=g,matmull", &["g(int)"], &["matmull"]);
        check("function!=g,f", &["f(int)", "matmul(int)", "matmul(long)"], &[]);
        check("function!=h", &["f", "f(int)", "g(int)", "matmul(int)", "matmul(long)"], &["h"]);
        check("function=mat*", &["matmul(int)", "matmul(long)"], &[]);
        check("module=matmul", &[], &["matmul"]);
    }

    #[test]
    fn a_wrong_filter_says_what_is_wrong() {
        assert!("mov".parse::<Filter>().unwrap_err().to_string().contains("no '='"));
        assert!("colour=red".parse::<Filter>().unwrap_err().to_string().contains("mnemonic"));
    }
}
