//! Who decides for which kind of source pair.

use crate::{Chooser, Features, Model, PublishedRule, Source, SourcePair, embedded};

/// What is done where both sources can count a block.
pub enum Rule {
    /// A chooser is asked, block by block.
    Ask(Box<dyn Chooser>),
    /// One source is believed everywhere.
    One {
        /// The source that is believed.
        source: Source,
        /// Why, as the end of a sentence.
        why: String,
    },
}

impl Rule {
    /// A model is asked if it beats the best single source; that one is believed otherwise.
    pub fn of(model: Model) -> Self {
        if model.beats_best_single() {
            Rule::Ask(Box::new(model))
        } else {
            let why = "trees trained on such sources do not beat it".to_owned();
            Rule::One { source: model.evidence.best_single(), why }
        }
    }

    /// The source for a block.
    pub fn choose(&self, block: &Features) -> Source {
        match self {
            Rule::Ask(chooser) => chooser.choose(block),
            Rule::One { source, .. } => *source,
        }
    }

    /// Whether features that are known only from the block's instructions make a difference.
    pub fn needs_code(&self) -> bool {
        match self {
            Rule::Ask(chooser) => chooser.needs_code(),
            Rule::One { .. } => false,
        }
    }
}

/// A rule for every kind of source pair.
pub struct Rules {
    hardware: Rule,
    software: Rule,
    simulated: Rule,
}

impl Default for Rules {
    /// The models that come with the program; HBBP's published rule where there is none.
    fn default() -> Self {
        let rule = |pair| embedded(pair).map_or_else(|| Rule::Ask(Box::new(PublishedRule)), Rule::of);
        let [hardware, software, simulated] = SourcePair::ALL.map(rule);
        Rules { hardware, software, simulated }
    }
}

impl Rules {
    /// The rule for a kind of pair.
    pub fn of(&self, pair: SourcePair) -> &Rule {
        match pair {
            SourcePair::Hardware => &self.hardware,
            SourcePair::Software => &self.software,
            SourcePair::Simulated => &self.simulated,
        }
    }

    /// Puts another rule in its place.
    pub fn set(&mut self, pair: SourcePair, rule: Rule) {
        match pair {
            SourcePair::Hardware => self.hardware = rule,
            SourcePair::Software => self.software = rule,
            SourcePair::Simulated => self.simulated = rule,
        }
    }
}
