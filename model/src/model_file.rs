//! Models as files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use serde::{Deserialize, Serialize};

use crate::tree_record::TreeRecord;
use crate::{Chooser, Evidence, FEATURES, Features, Source, SourcePair, Tree, TreeError};

/// A trained tree, what it is for, and what speaks for it.
///
/// As a file it is JSON of the schema `hbbp-model/1`:
/// ```json
/// {"schema":"hbbp-model/1", "for":"software", "verdict":{"best_single":"lbr","beats_best_single":true},
///  "features":["instructions"],
///  "nodes":[{"feature":0,"threshold":18.5,"left":1,"right":2,"samples":1100,"weight":1.0,"gini":0.42},
///           {"source":"lbr","samples":900,"weight":0.7,"gini":0.2},
///           {"source":"ebs","samples":200,"weight":0.3,"gini":0.3}],
///  "training":{"blocks":1100, "parameters":{..}, "leave_one_out":[{"program":"gzip","blocks":120,"errors":{..}}]}}
/// ```
/// A split goes left where the feature is at most the threshold.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The sources it was trained on.
    pub pair: SourcePair,
    /// The tree that chooses.
    pub tree: Tree,
    /// How it was made and tested.
    pub evidence: Evidence,
}

/// Why a file is no model.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// It is too long to be one.
    #[error("it has {0} bytes; a model has at most {MOST_BYTES}")]
    TooLong(usize),
    /// It is not the JSON that models are.
    #[error("it is no model: {0}")]
    Json(#[from] serde_json::Error),
    /// It is of another version.
    #[error("its schema is {0:?}; this version reads {SCHEMA:?}")]
    Schema(String),
    /// Its nodes are no tree.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// Errors or parameters that cannot be.
    #[error("its training has a number that is negative or infinite")]
    Evidence,
    /// It says something else of itself than its training does.
    #[error("its verdict ({0} is the best single source, beaten: {1}) is not what its leave-one-out errors say")]
    Verdict(Source, bool),
}

const SCHEMA: &str = "hbbp-model/1";

/// The most bytes of a model's file.
const MOST_BYTES: usize = 4 << 20;

#[derive(Serialize, Deserialize)]
struct Record {
    schema: String,
    #[serde(rename = "for")]
    pair: SourcePair,
    verdict: Verdict,
    #[serde(flatten)]
    tree: TreeRecord,
    training: Evidence,
}

#[derive(Serialize, Deserialize)]
struct Verdict {
    best_single: Source,
    beats_best_single: bool,
}

/// The one part that is read before the rest is believed.
#[derive(Deserialize)]
struct Schema {
    schema: String,
}

impl Model {
    /// Reads a document of the schema `hbbp-model/1`.
    ///
    /// # Errors
    /// What is wrong with it. Any bytes give a model or an error.
    pub fn read(json: &[u8]) -> Result<Self, ModelError> {
        if json.len() > MOST_BYTES {
            return Err(ModelError::TooLong(json.len()));
        }
        let Schema { schema } = serde_json::from_slice(json)?;
        if schema != SCHEMA {
            return Err(ModelError::Schema(schema));
        }
        let Record { pair, verdict, tree, training: evidence, .. } = serde_json::from_slice(json)?;
        if !evidence.is_sound() {
            return Err(ModelError::Evidence);
        }
        let model = Model { pair, tree: tree.try_into()?, evidence };
        let said = (verdict.best_single, verdict.beats_best_single);
        if said != (model.evidence.best_single(), model.beats_best_single()) {
            return Err(ModelError::Verdict(said.0, said.1));
        }
        Ok(model)
    }

    /// The file: indented JSON with a line end. The same model gives the same bytes.
    pub fn to_json(&self) -> String {
        let verdict = Verdict { best_single: self.evidence.best_single(), beats_best_single: self.beats_best_single() };
        let (tree, training) = (TreeRecord::from(&self.tree), self.evidence.clone());
        let record = Record { schema: SCHEMA.into(), pair: self.pair, verdict, tree, training };
        let mut json = serde_json::to_string_pretty(&record).expect("plain data is JSON");
        json.push('\n');
        json
    }

    /// Whether it is better than one source for every block. A tree that names one source only is not.
    pub fn beats_best_single(&self) -> bool {
        self.tree.only().is_none() && self.evidence.beats_best_single()
    }

    /// What came of the test, in one sentence.
    pub fn verdict(&self) -> String {
        let (mean, single) = (self.evidence.mean(), self.evidence.best_single());
        let percent = |error: f64| format!("{:.2} %", 100.0 * error);
        let programs = self.evidence.leave_one_out.len();
        if let Some(source) = self.tree.only() {
            return format!(
                "the tree trained on {programs} programs is a leaf: {source} for every block, no better than {source} alone"
            );
        }
        let (tree, by_single) = (percent(mean.tree.blocks), percent(mean.of(single).blocks));
        let (better, worse) = self.evidence.better_and_worse();
        let relation = if self.beats_best_single() { "beats" } else { "does not beat" };
        format!(
            "the tree {relation} {single} for every block: mean block error {tree} against {by_single}, on programs \
             it was not trained on; better on {better}, worse on {worse} of {programs}"
        )
    }
}

impl Chooser for Model {
    fn choose(&self, block: &Features) -> Source {
        self.tree.choose(block)
    }

    fn needs_code(&self) -> bool {
        self.tree.features().iter().filter_map(|&feature| FEATURES.get(feature)).any(|feature| feature.needs_code)
    }

    fn describe(&self) -> String {
        let (mean, single) = (self.evidence.mean(), self.evidence.best_single());
        format!(
            "trained model for {} sources ({} leaves; block error {:.1} % against {:.1} % of {single} alone)",
            self.pair,
            self.tree.leaves(),
            100.0 * mean.tree.blocks,
            100.0 * mean.of(single).blocks,
        )
    }
}
