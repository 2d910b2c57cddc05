//! What values are compared with: the part of a filter after its key.

use std::fmt;

use regex_lite::{Regex, RegexBuilder};

/// A test that a value of a key passes or not: an operator and what is after it.
#[derive(Clone, Debug)]
pub struct Comparison {
    test: Test,
    negated: bool,
}

#[derive(Clone, Debug)]
enum Test {
    /// One of these; `*` stands for any text.
    Is(Vec<String>),
    Matches(Regex),
    Number(Order, u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Less,
    AtMost,
    More,
    AtLeast,
}

/// The operators, those first that begin with another one.
const OPERATORS: [&str; 8] = ["!=", "!~", "<=", ">=", "=", "~", "<", ">"];

/// Bytes that a compiled regular expression may have, some 30 for each letter: a file of a taxonomy can have thousands.
const REGEX_SIZE: usize = 1 << 16;

/// An operator with something after it that it cannot compare with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComparisonError {
    /// After `<` and the like.
    #[error("{value:?} is no whole number, and {operator} compares with one: {operator}8")]
    Number {
        /// The operator.
        operator: &'static str,
        /// What is after it.
        value: String,
    },
    /// After `~` and `!~`: what is there, and what is wrong with it.
    #[error("{value:?} cannot be used as a regular expression: {why}")]
    Regex {
        /// What is there.
        value: String,
        /// What is wrong with it.
        why: String,
    },
}

impl Comparison {
    /// With one of these values; `*` in a value stands for any text.
    pub(crate) fn with(values: Vec<String>) -> Self {
        Self { test: Test::Is(values), negated: false }
    }

    /// Splits a text before its first operator.
    pub(crate) fn split(text: &str) -> Option<(&str, &str)> {
        text.find(['=', '!', '~', '<', '>']).map(|at| text.split_at(at)).filter(|(_, rest)| operator(rest).is_some())
    }

    /// Reads an operator and what is after it: `=mov,lea`, `!=mov`, `~^v.*ps$`, `!~x`, `<8`, `<=8`, `>8`, `>=8`. `None` without an operator.
    ///
    /// # Errors
    /// There is no number, or no regular expression, where there must be one.
    pub(crate) fn read(text: &str) -> Result<Option<Self>, ComparisonError> {
        let Some(operator) = operator(text) else { return Ok(None) };
        let value = &text[operator.len()..];
        let number = |order| match value.trim().parse() {
            Ok(number) => Ok(Test::Number(order, number)),
            Err(_) => Err(ComparisonError::Number { operator, value: value.to_owned() }),
        };
        let test = match operator {
            "<" => number(Order::Less)?,
            "<=" => number(Order::AtMost)?,
            ">" => number(Order::More)?,
            ">=" => number(Order::AtLeast)?,
            "~" | "!~" => {
                let regex = RegexBuilder::new(value).size_limit(REGEX_SIZE).build();
                let failed = |error: regex_lite::Error| ComparisonError::Regex {
                    value: value.to_owned(),
                    why: error.to_string(),
                };
                Test::Matches(regex.map_err(failed)?)
            }
            _ => Test::Is(split_values(value)),
        };
        Ok(Some(Self { test, negated: operator.starts_with('!') }))
    }

    /// Whether a value passes.
    pub fn holds(&self, value: &str) -> bool {
        self.names(value) != self.negated
    }

    /// Whether a value is what the test names, be it to keep it or to leave it out.
    pub(crate) fn names(&self, value: &str) -> bool {
        match &self.test {
            Test::Is(patterns) => patterns.iter().any(|pattern| matches(pattern, value)),
            Test::Matches(regex) => regex.is_match(value),
            Test::Number(order, other) => value.parse::<u64>().is_ok_and(|number| match order {
                Order::Less => number < *other,
                Order::AtMost => number <= *other,
                Order::More => number > *other,
                Order::AtLeast => number >= *other,
            }),
        }
    }

    /// Whether it leaves out what it names.
    pub(crate) fn is_negated(&self) -> bool {
        self.negated
    }

    /// Whether it is about numbers.
    pub(crate) fn needs_numbers(&self) -> bool {
        matches!(self.test, Test::Number(..))
    }

    /// Takes one of the values that it names one by one for another.
    pub(crate) fn rename(&mut self, name: &str, other: &str) {
        if let Test::Is(values) = &mut self.test {
            values.iter_mut().filter(|value| *value == name).for_each(|value| other.clone_into(value));
        }
    }

    /// The values that it names one by one.
    pub(crate) fn patterns(&self) -> Option<&[String]> {
        match &self.test {
            Test::Is(patterns) => Some(patterns),
            _ => None,
        }
    }

    /// The numbers at which it changes, and those beside them: between them all numbers pass, or none. `None` if that is not known.
    pub(crate) fn landmarks(&self) -> Option<Vec<u64>> {
        let numbers: Vec<u64> = match &self.test {
            Test::Matches(_) => return None,
            Test::Is(patterns) if patterns.iter().any(|pattern| pattern.contains('*')) => return None,
            Test::Is(patterns) => patterns.iter().filter_map(|pattern| pattern.parse().ok()).collect(),
            Test::Number(_, number) => vec![*number],
        };
        let around = |number: u64| [number, number.saturating_sub(1), number.saturating_add(1)];
        Some(numbers.into_iter().flat_map(around).chain([0, u64::MAX]).collect())
    }

    fn operator(&self) -> &'static str {
        match (&self.test, self.negated) {
            (Test::Is(_), false) => "=",
            (Test::Is(_), true) => "!=",
            (Test::Matches(_), false) => "~",
            (Test::Matches(_), true) => "!~",
            (Test::Number(Order::Less, _), _) => "<",
            (Test::Number(Order::AtMost, _), _) => "<=",
            (Test::Number(Order::More, _), _) => ">",
            (Test::Number(Order::AtLeast, _), _) => ">=",
        }
    }
}

/// As it is read.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.operator())?;
        match &self.test {
            Test::Is(patterns) => f.write_str(&patterns.join(",")),
            Test::Matches(regex) => f.write_str(regex.as_str()),
            Test::Number(_, number) => write!(f, "{number}"),
        }
    }
}

fn operator(text: &str) -> Option<&'static str> {
    OPERATORS.into_iter().find(|operator| text.starts_with(operator))
}

/// Commas separate values, but not those inside brackets: demangled names are full of them.
pub(crate) fn split_values(text: &str) -> Vec<String> {
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
pub(crate) fn matches(pattern: &str, value: &str) -> bool {
    if !pattern.contains('*') {
        return pattern == value;
    }
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = value.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let last = pieces.pop().unwrap_or_default();
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
    fn comparisons_hold_as_they_say() {
        let check = |text: &str, passing: &[&str], failing: &[&str]| {
            let comparison = Comparison::read(text).unwrap().unwrap();
            assert_eq!(comparison.to_string(), text);
            passing.iter().for_each(|value| assert!(comparison.holds(value), "{text} {value}"));
            failing.iter().for_each(|value| assert!(!comparison.holds(value), "{text} {value}"));
        };
        check("=mov", &["mov"], &["movzx", ""]);
        check("=mov*,lea", &["movzx", "lea"], &["add"]);
        check("!=mov,lea", &["add"], &["mov", "lea"]);
        check("=f(int, char)", &["f(int, char)"], &["f(int"]);
        check("=*::fmt<*>::*", &["core::fmt<u8, i8>::go"], &["core::fmt"]);
        check("=*/libc.so*", &["/lib/libc.so.6"], &["/lib/libm.so.6"]);
        check("=*libc", &["libc"], &["/lib/libc.so.6"]);
        check("~^v?add[sp]d$", &["addsd", "vaddpd"], &["addss", "xaddsd"]);
        check("!~add,?", &["mov"], &["add", "xadd"]);
        check("~=", &["a=b"], &["ab"]);
        check("<16", &["8", "0"], &["16", "none", "[unreadable]", "-1", ""]);
        check("<=16", &["16"], &["17"]);
        check(">16", &["128"], &["16", "9"]);
        check(">=16", &["16", "128"], &["9", "unknown"]);
    }

    #[test]
    fn wrong_comparisons_say_what_is_wrong() {
        let wrong = |text: &str| Comparison::read(text).unwrap_err().to_string();
        assert_eq!(wrong(">=many"), "\"many\" is no whole number, and >= compares with one: >=8");
        assert!(wrong("~a(b").contains("open group without closing"), "{}", wrong("~a(b"));
        // One that would take all memory.
        assert!(wrong("~(((x{1000}){1000}){1000})").contains("size limit"), "{}", wrong("~(((x{1000}){1000}){1000})"));
        assert!(Comparison::read("mov").unwrap().is_none());
        // Lists of names are not large.
        let names: Vec<String> = (0..180).map(|number| format!("vpmadd{number:03}")).collect();
        let list = Comparison::read(&format!("~^({})$", names.join("|"))).unwrap().unwrap();
        assert!(list.holds("vpmadd179") && !list.holds("vpmadd180"));
    }
}
