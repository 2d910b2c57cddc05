//! What must hold for an instruction to be in a group.

use std::borrow::Cow;
use std::fmt;

use crate::mix::comparison::{Comparison, matches};
use crate::mix::kind::Kind;
use crate::mix::{Dimension, Values};
use instructions::OperandKind;

use super::error::Problem;

/// A condition on the attributes of an instruction.
#[derive(Clone, Debug)]
pub(super) enum Condition {
    Is(Attribute),
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
}

/// The value of one key passes a comparison.
#[derive(Clone, Debug)]
pub(super) struct Attribute {
    key: Dimension,
    comparison: Comparison,
    extent: Extent,
}

/// Which values pass.
#[derive(Clone, Debug)]
enum Extent {
    /// Of a key whose values are words: a bit for each that does.
    Words(Vec<u64>),
    /// Of a key whose values are numbers and words: those around which that changes, and all words.
    Numbers(Vec<Cow<'static, str>>),
    /// It is not known.
    Unknown,
}

impl Attribute {
    /// A comparison of values that the key can have.
    pub fn new(key: Dimension, comparison: Comparison) -> Result<Self, Problem> {
        if comparison.needs_numbers() && !key.is_numeric() {
            return Err(Problem::NoNumbers(key));
        }
        for pattern in comparison.patterns().unwrap_or_default() {
            if !is_possible(key, pattern) {
                return Err(Problem::NoSuchValue { key, value: pattern.clone() });
            }
        }
        let bits = |words: &[&str]| {
            words.iter().enumerate().fold(0, |bits, (at, word)| bits | u64::from(comparison.holds(word)) << at)
        };
        let extent = match (key.values(), comparison.landmarks()) {
            (Values::Words(words), _) => Extent::Words(words.chunks(64).map(bits).collect()),
            (Values::Numbers(words), Some(landmarks)) => {
                let landmarks = landmarks.into_iter().map(|number| Cow::Owned(number.to_string()));
                Extent::Numbers(landmarks.chain(words.iter().copied().map(Cow::Borrowed)).collect())
            }
            _ => Extent::Unknown,
        };
        let holds_for_nothing = match &extent {
            Extent::Words(passing) => passing.iter().all(|bits| *bits == 0),
            Extent::Numbers(around) => !around.iter().any(|value| comparison.holds(value)),
            Extent::Unknown => false,
        };
        if holds_for_nothing {
            return Err(Problem::HoldsForNothing(format!("{key}{comparison}")));
        }
        Ok(Self { key, comparison, extent })
    }

    /// Whether it is known that every value that passes the other one passes this.
    fn covers(&self, other: &Attribute) -> bool {
        let passes_too = |value: &Cow<'static, str>| !other.comparison.holds(value) || self.comparison.holds(value);
        self.key == other.key
            && match (&self.extent, &other.extent) {
                (Extent::Words(own), Extent::Words(other)) => {
                    own.iter().zip(other).all(|(own, other)| other & !own == 0)
                }
                (Extent::Numbers(own), Extent::Numbers(other)) => other.iter().chain(own).all(passes_too),
                _ => self.comparison.to_string() == other.comparison.to_string(),
            }
    }
}

impl Condition {
    /// Whether it holds for instructions of a kind.
    pub fn holds(&self, kind: &Kind) -> bool {
        match self {
            Condition::Is(Attribute { key, comparison, .. }) => {
                kind.value(*key).is_some_and(|value| comparison.holds(&value))
            }
            Condition::All(all) => all.iter().all(|condition| condition.holds(kind)),
            Condition::Any(any) => any.iter().any(|condition| condition.holds(kind)),
            Condition::Not(not) => !not.holds(kind),
        }
    }

    /// Whether one of the keys is of the form of instructions.
    pub fn needs_form(&self) -> bool {
        match self {
            Condition::Is(Attribute { key, .. }) => key.is_of_form(),
            Condition::All(several) | Condition::Any(several) => several.iter().any(Condition::needs_form),
            Condition::Not(not) => not.needs_form(),
        }
    }

    /// How many comparisons there are in it.
    pub fn size(&self) -> usize {
        match self {
            Condition::Is(_) => 1,
            Condition::All(several) | Condition::Any(several) => several.iter().map(Condition::size).sum(),
            Condition::Not(not) => not.size(),
        }
    }

    /// Whether it can be seen that this holds wherever the other one does. `false` does not say that it cannot.
    pub fn covers(&self, other: &Condition) -> bool {
        match (self, other) {
            (Condition::All(all), _) => all.iter().all(|own| own.covers(other)),
            (_, Condition::Any(any)) => any.iter().all(|other| self.covers(other)),
            (Condition::Is(own), Condition::Is(other)) => own.covers(other),
            (Condition::Not(own), Condition::Not(other)) => other.covers(own),
            (Condition::Any(any), Condition::All(all)) => {
                any.iter().any(|own| own.covers(other)) || all.iter().any(|other| self.covers(other))
            }
            (Condition::Any(any), _) => any.iter().any(|own| own.covers(other)),
            (_, Condition::All(all)) => all.iter().any(|other| self.covers(other)),
            (Condition::Is(_), Condition::Not(_)) | (Condition::Not(_), Condition::Is(_)) => false,
        }
    }
}

/// `mnemonic=div* and (memory=read or lock=lock) and not (isa=base)`.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |several: &[Condition], word: &str| {
            several.iter().map(Condition::to_string).collect::<Vec<_>>().join(&format!(" {word} "))
        };
        match self {
            Condition::Is(Attribute { key, comparison, .. }) => write!(f, "{key}{comparison}"),
            Condition::All(all) => f.write_str(&joined(all, "and")),
            Condition::Any(any) => write!(f, "({})", joined(any, "or")),
            Condition::Not(not) => write!(f, "not ({not})"),
        }
    }
}

/// Whether a key can have a value; `*` in it stands for any text.
fn is_possible(key: Dimension, pattern: &str) -> bool {
    match key.values() {
        Values::Words(words) => words.iter().any(|word| matches(pattern, word)),
        Values::Numbers(words) => {
            let is_number = !pattern.is_empty() && pattern.chars().all(|c| c.is_ascii_digit() || c == '*');
            is_number || words.iter().any(|word| matches(pattern, word))
        }
        Values::Text => {
            let is_kind = |part: &str| part.contains('*') || part.parse::<OperandKind>().is_ok();
            key != Dimension::Operands || pattern == "none" || pattern.split('-').all(is_kind)
        }
    }
}
