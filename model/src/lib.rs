//! Which source of counts to trust, per basic block.
//!
//! A block can be counted by event-based samples (EBS) and by branch stacks (LBR), and each is wrong in its own way (HBBP
//! section III). A [`Chooser`] sees the [`Features`] of one block and names the source to believe. It is a pure
//! function of those features: it knows neither recordings nor binaries.
//!
//! [`PublishedRule`] is the rule that HBBP section IV.B arrives at. A [`Model`] is a decision [`Tree`] that was trained on blocks
//! whose executions are known, for one [`SourcePair`], and what came of testing it on programs it was not trained on. [`Rules`] say who
//! decides for which pair.
//!
//! ```text
//! labelled blocks (CSV) -> training -> Model (JSON) -> Rules -> source per block
//! ```
#![forbid(unsafe_code)]

mod choice;
mod embedded;
mod evidence;
mod feature_list;
mod features;
mod model_file;
mod pair;
mod published_rule;
mod rules;
#[cfg(feature = "training")]
pub mod training;
mod tree;
mod tree_record;

pub use choice::{Chooser, Source};
pub use embedded::embedded;
pub use evidence::{Error, Errors, Evidence, LeftOut, Parameters, UnknownWeighting, Weighting};
pub use feature_list::{FEATURES, Feature, feature_index};
pub use features::{BlockEnd, Features};
pub use model_file::{Model, ModelError};
pub use pair::{SourcePair, UnknownPair};
pub use published_rule::PublishedRule;
pub use rules::{Rule, Rules};
pub use tree::{Decision, MOST_DEPTH, MOST_NODES, Node, Tree, TreeError};
