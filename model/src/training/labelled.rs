//! Blocks whose executions are known.

use crate::{Features, Source, Weighting};

/// A block that was counted by both sources, and how often it really ran.
///
/// `ebs_count` and `lbr_count` of the features are in executions, too: where a recording's counts are relative, they are scaled so that
/// each source sees as many executed instructions of the program as the truth.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelledBlock {
    /// The program that ran.
    pub program: String,
    /// The file that holds the block.
    pub module: String,
    /// The function that holds it.
    pub function: String,
    /// Address of the first instruction, as the file states it.
    pub start: u64,
    /// What a chooser sees of it.
    pub features: Features,
    /// How often it ran.
    pub executions: f64,
}

impl LabelledBlock {
    /// The source that is nearer the truth; branch stacks where both are as near.
    pub fn label(&self) -> Source {
        if self.error(Source::Ebs) < self.error(Source::Lbr) { Source::Ebs } else { Source::Lbr }
    }

    /// The executions by one source.
    pub fn count(&self, source: Source) -> f64 {
        match source {
            Source::Ebs => self.features.ebs_count,
            Source::Lbr => self.features.lbr_count,
        }
    }

    /// Instructions executed in the block.
    pub fn weight(&self) -> f64 {
        self.executions * f64::from(self.features.instructions)
    }

    /// Instructions by which one source is wrong.
    pub fn error(&self, source: Source) -> f64 {
        (self.count(source) - self.executions).abs() * f64::from(self.features.instructions)
    }

    /// What it weighs in training; `program` is the weight of all blocks of its program.
    pub(super) fn training_weight(&self, weighting: Weighting, program: f64) -> f64 {
        match weighting {
            Weighting::Instructions => self.weight() / program,
            Weighting::Root => (self.weight() / program).sqrt(),
            Weighting::Equal => 1.0,
            Weighting::Cost => (self.error(Source::Ebs) - self.error(Source::Lbr)).abs() / program,
        }
    }
}
