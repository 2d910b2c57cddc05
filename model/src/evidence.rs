//! What came of testing a tree on programs it was not trained on.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Source;

/// How a tree was made, and how trees made in the same way did on each program without having seen it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Labelled blocks it was made from.
    pub blocks: u64,
    /// How it was made.
    pub parameters: Parameters,
    /// One per program, by name.
    pub leave_one_out: Vec<LeftOut>,
}

/// What the search for a tree varies (HBBP section IV.B: "the number of leaves, .. and the weights on different variables").
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    /// What a block weighs.
    pub weighting: Weighting,
    /// The most leaves that the tree may have.
    pub leaves: usize,
    /// Most splits from the root to a leaf.
    pub depth: usize,
    /// The least part of the weight of all blocks in a leaf.
    pub min_weight: f64,
}

/// What a block weighs in training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Weighting {
    /// Its executed instructions, as a part of its program's: hot blocks matter.
    Instructions,
    /// The square root of that.
    Root,
    /// The same as any other.
    Equal,
    /// What the wrong choice costs: the difference of both errors, in instructions, as a part of its program's instructions.
    Cost,
}

impl Weighting {
    /// All weightings, in the order in which training tries them.
    pub const ALL: [Self; 4] = [Self::Instructions, Self::Root, Self::Equal, Self::Cost];

    /// The name used in files and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::Root => "root",
            Self::Equal => "equal",
            Self::Cost => "cost",
        }
    }
}

impl fmt::Display for Weighting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text that names no weighting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no weighting is called {0:?}; there are {known}", known = Weighting::ALL.map(Weighting::as_str).join(", "))]
pub struct UnknownWeighting(pub String);

impl FromStr for Weighting {
    type Err = UnknownWeighting;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|weighting| weighting.as_str() == name);
        found.ok_or_else(|| UnknownWeighting(name.to_owned()))
    }
}

/// How the choosers did on one program. The tree was made from the other programs' blocks, its parameters chosen by them too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The program that was left out.
    pub program: String,
    /// How many labelled blocks it has.
    pub blocks: u64,
    /// The errors of its blocks, by who chose.
    pub errors: Errors,
}

/// Errors of one kind by who chooses, as parts of the executed instructions: 0.02 is 2 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Errors {
    /// EBS for every block.
    pub ebs: Error,
    /// Branch stacks for every block.
    pub lbr: Error,
    /// HBBP's published rule: branch stacks up to 18 instructions, EBS for longer blocks.
    pub published: Error,
    /// The error of the tree.
    pub tree: Error,
    /// The source that is nearer the truth, block by block: no chooser does better.
    pub perfect: Error,
}

/// How far counts are from the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Error {
    /// Sum over blocks of |count - executions| x instructions, by the sum of executions x instructions.
    pub blocks: f64,
    /// The same over kinds of instructions (those that features count) instead of blocks, where errors of blocks cancel out.
    pub kinds: f64,
}

impl Errors {
    /// By name, in the order of tables.
    pub fn by_chooser(&self) -> [(&'static str, Error); 5] {
        let Errors { ebs, lbr, published, tree, perfect } = *self;
        [("ebs", ebs), ("lbr", lbr), ("published", published), ("tree", tree), ("perfect", perfect)]
    }

    /// The error of one source for every block.
    pub fn of(&self, source: Source) -> Error {
        match source {
            Source::Ebs => self.ebs,
            Source::Lbr => self.lbr,
        }
    }

    fn numbers(&mut self) -> impl Iterator<Item = &mut f64> {
        let Errors { ebs, lbr, published, tree, perfect } = self;
        [ebs, lbr, published, tree, perfect].into_iter().flat_map(|error| [&mut error.blocks, &mut error.kinds])
    }
}

impl Evidence {
    /// Means over the programs.
    pub fn mean(&self) -> Errors {
        let mut mean = Errors::default();
        for program in &self.leave_one_out {
            let mut errors = program.errors;
            mean.numbers().zip(errors.numbers()).for_each(|(mean, error)| *mean += *error);
        }
        let programs = self.leave_one_out.len().max(1) as f64;
        mean.numbers().for_each(|mean| *mean /= programs);
        mean
    }

    /// The source whose mean block error is lower; branch stacks where both are the same.
    pub fn best_single(&self) -> Source {
        let mean = self.mean();
        if mean.ebs.blocks < mean.lbr.blocks { Source::Ebs } else { Source::Lbr }
    }

    /// Whether the tree does better than the best single source: its mean block error is lower, and it is better on more programs than it
    /// is worse, so that one program alone does not decide.
    pub fn beats_best_single(&self) -> bool {
        let (mean, single) = (self.mean(), self.best_single());
        let (better, worse) = self.better_and_worse();
        mean.tree.blocks < mean.of(single).blocks && better > worse
    }

    /// On how many programs the tree is better, and worse, than the best single source.
    pub fn better_and_worse(&self) -> (usize, usize) {
        let single = self.best_single();
        let count = |better: fn(f64, f64) -> bool| {
            let errors = self.leave_one_out.iter().map(|program| program.errors);
            errors.filter(|errors| better(errors.tree.blocks, errors.of(single).blocks)).count()
        };
        (count(|tree, single| tree < single), count(|tree, single| tree > single))
    }

    /// Whether all numbers are in range.
    pub(crate) fn is_sound(&self) -> bool {
        let sound = |number: f64| number.is_finite() && number >= 0.0;
        let errors = |errors: &Errors| errors.by_chooser().iter().all(|(_, e)| sound(e.blocks) && sound(e.kinds));
        sound(self.parameters.min_weight) && self.leave_one_out.iter().all(|program| errors(&program.errors))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(programs: &[(f64, f64, f64)]) -> Evidence {
        let error = |blocks| Error { blocks, kinds: 0.0 };
        let left_out = |&(ebs, lbr, tree): &(f64, f64, f64)| LeftOut {
            program: String::new(),
            blocks: 1,
            errors: Errors { ebs: error(ebs), lbr: error(lbr), tree: error(tree), ..Errors::default() },
        };
        let parameters = Parameters { weighting: Weighting::Equal, leaves: 2, depth: 1, min_weight: 0.0 };
        Evidence { blocks: 9, parameters, leave_one_out: programs.iter().map(left_out).collect() }
    }

    #[test]
    fn a_tree_must_be_better_on_the_mean_and_on_most_programs() {
        let check = |programs: &[(f64, f64, f64)], single, beats| {
            let evidence = evidence(programs);
            assert_eq!((evidence.best_single(), evidence.beats_best_single()), (single, beats), "{programs:?}");
        };
        check(&[(0.3, 0.2, 0.1), (0.3, 0.2, 0.1)], Source::Lbr, true);
        check(&[(0.1, 0.2, 0.1), (0.1, 0.2, 0.1)], Source::Ebs, false);
        check(&[(0.3, 0.2, 0.3), (0.3, 0.2, 0.0)], Source::Lbr, false);
        check(&[(0.3, 0.9, 0.1), (0.3, 0.1, 0.4), (0.3, 0.1, 0.3)], Source::Ebs, false);
        check(&[], Source::Lbr, false);
    }
}
