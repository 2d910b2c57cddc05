//! `--filter key=value`.

use std::collections::BTreeSet;
use std::fmt;

use model::Source;

use crate::TRACED;
use crate::mix::comparison::{Comparison, ComparisonError, matches, split_values};
use crate::mix::function_name::bare_names;
use crate::mix::{Dimension, Key, Taxonomies, UnknownKey};

/// Keeps what has values that pass a comparison.
#[derive(Clone, Debug)]
pub struct Filter {
    /// The key whose values are compared.
    pub key: Key,
    comparison: Comparison,
    /// Functions that are named by a part of their names: see [`Self::resolve`].
    functions: Vec<String>,
}

/// What a filter names, and nothing has.
#[derive(Clone, Debug, PartialEq)]
pub struct Unmatched {
    /// The key of the filter.
    pub key: Key,
    /// The value, as it was given; or the comparison, with its operator.
    pub value: String,
    /// Whether it is a comparison.
    pub is_comparison: bool,
    /// The values that there are, in order.
    pub existing: Vec<String>,
}

/// A filter that cannot be read.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum FilterError {
    /// There is no operator.
    #[error("the filter {0:?} has no operator: write key=value, key=one,other, key!=value, key~regex or key>=number")]
    NoOperator(String),
    /// The part before the operator is no key.
    #[error(transparent)]
    Key(#[from] UnknownKey),
    /// The part after the operator is not what it compares with.
    #[error(transparent)]
    Comparison(#[from] ComparisonError),
    /// The operator compares numbers.
    #[error("{0} has no numbers to compare; keys that have are {list}", list = numeric_keys())]
    NoNumbers(Key),
}

impl Filter {
    /// Keeps what has one of the values that these texts name, each as after `key=`.
    pub fn any_of(key: Dimension, texts: &[String]) -> Self {
        let values = texts.iter().flat_map(|text| split_values(text)).collect();
        Filter { key: Key::Dimension(key), comparison: Comparison::with(values), functions: Vec::new() }
    }

    /// Whether a value passes.
    pub fn keeps(&self, value: &str) -> bool {
        let is_function = || self.functions.binary_search_by(|name| name.as_str().cmp(value)).is_ok();
        let is_in_group =
            || self.comparison.patterns().is_some_and(|named| named.iter().any(|name| self.has(name, value)));
        (self.comparison.names(value) || is_function() || is_in_group()) != self.comparison.is_negated()
    }

    /// Whether a value is what is named. A control group has the groups in it, as it has for `hbbp record --cgroup`, `perf record --cgroup` and
    /// systemd's slices.
    fn has(&self, named: &str, value: &str) -> bool {
        let is_in =
            |group: &str| value.strip_prefix(group).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let is_group = self.key == Dimension::Cgroup && !named.is_empty() && !named.contains('*');
        matches(named, value) || (is_group && is_in(named.trim_end_matches('/')))
    }

    /// Looks for the values among those that there are, and returns those that nothing has. A value that is no function's whole name, and has
    /// no `*`, stands for all functions that have it as their [bare name](bare_names).
    pub fn resolve(&mut self, existing: &BTreeSet<String>) -> Vec<Unmatched> {
        let unmatched = |value: String, is_comparison: bool| {
            let existing = existing.iter().cloned().collect();
            Unmatched { key: self.key.clone(), value, is_comparison, existing }
        };
        let Some(values) = self.comparison.patterns() else {
            let is_named = existing.iter().any(|name| self.comparison.names(name));
            let comparison = || self.comparison.to_string().trim_start_matches('!').to_owned();
            return if is_named { Vec::new() } else { vec![unmatched(comparison(), true)] };
        };
        let mut not_found = Vec::new();
        for value in values {
            if existing.iter().any(|name| self.has(value, name)) {
                continue;
            }
            let before = self.functions.len();
            if self.key == Dimension::Function && !value.contains('*') {
                let named = existing.iter().filter(|name| bare_names(name).contains(value));
                self.functions.extend(named.cloned());
            }
            if self.functions.len() == before {
                not_found.push(unmatched(value.clone(), false));
            }
        }
        self.functions.sort_unstable();
        not_found
    }

    /// Reads a filter: a key, an operator and what to compare with.
    ///
    /// # Errors
    /// One of them cannot be read, or they do not go together.
    pub fn read(text: &str, taxonomies: &Taxonomies) -> Result<Self, FilterError> {
        let no_operator = || FilterError::NoOperator(text.to_string());
        let (key, rest) = Comparison::split(text).ok_or_else(no_operator)?;
        let key = Key::named(key, taxonomies)?;
        let mut comparison = Comparison::read(rest)?.ok_or_else(no_operator)?;
        if key == Dimension::Chosen {
            // As tables have it.
            comparison.rename(TRACED, Source::Lbr.as_str());
        }
        if comparison.needs_numbers() && !key.is_numeric() {
            return Err(FilterError::NoNumbers(key));
        }
        Ok(Filter { key, comparison, functions: Vec::new() })
    }
}

/// As it is read.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.key, self.comparison)
    }
}

fn numeric_keys() -> String {
    let numeric = Dimension::ALL.iter().filter(|key| key.is_numeric());
    numeric.map(|key| key.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_group_has_the_groups_in_it() {
        let existing = ["/", "/a", "/a/b", "/a/b/c", "/ab", "c0ffee", "unknown"];
        let check = |filter: &str, kept: &[&str]| {
            let mut filter = Filter::read(filter, &Taxonomies::default()).unwrap();
            assert_eq!(filter.resolve(&existing.map(str::to_owned).into()), []);
            let found: Vec<&str> = existing.into_iter().filter(|name| filter.keeps(name)).collect();
            assert_eq!(found, kept, "{filter}");
        };
        check("cgroup=/a", &["/a", "/a/b", "/a/b/c"]);
        check("cgroup=/a/", &["/a", "/a/b", "/a/b/c"]);
        check("cgroup=/a/b,c0ffee", &["/a/b", "/a/b/c", "c0ffee"]);
        check("cgroup!=/a", &["/", "/ab", "c0ffee", "unknown"]);
        check("cgroup=/", &["/", "/a", "/a/b", "/a/b/c", "/ab"]);
        check("cgroup=/a/*", &["/a/b", "/a/b/c"]);
        check("cgroup~^/a$", &["/a"]);
        let mut nowhere = Filter::read("cgroup=/a/b/d,,b", &Taxonomies::default()).unwrap();
        let unmatched = nowhere.resolve(&existing.map(str::to_owned).into());
        assert_eq!(unmatched.iter().map(|unmatched| unmatched.value.as_str()).collect::<Vec<_>>(), ["/a/b/d", "", "b"]);
    }

    #[test]
    fn functions_are_found_without_their_arguments() {
        let existing: BTreeSet<String> =
            ["matmul(int)", "matmul(long)", "f", "f(int)", "g(int)"].map(str::to_owned).into();
        let check = |filter: &str, kept: &[&str], unmatched: &[&str]| {
            let mut filter = Filter::read(filter, &Taxonomies::default()).unwrap();
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
        check("function~^mat.*g\\)$", &["matmul(long)"], &[]);
        check("function~^matmull", &[], &["~^matmull"]);
        check("function!~^matmull", &["f", "f(int)", "g(int)", "matmul(int)", "matmul(long)"], &["~^matmull"]);
    }

    #[test]
    fn a_wrong_filter_says_what_is_wrong() {
        let wrong = |filter: &str| Filter::read(filter, &Taxonomies::default()).unwrap_err().to_string();
        let check = |filter: &str, part: &str| assert!(wrong(filter).contains(part), "{}", wrong(filter));
        check("mov", "has no operator");
        check("mnemonic!mov", "has no operator");
        check("colour=red", "the keys are function, ");
        check("length>long", "\"long\" is no whole number");
        check("packing>=2", "packing has no numbers to compare; keys that have are loop-depth, width, vector-width, ");
        check("mnemonic~[", "unclosed character class");
    }
}
