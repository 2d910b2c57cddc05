//! Which source of counts to trust, per basic block.
//!
//! A block can be counted by event-based samples (EBS) and by branch stacks (LBR), and each is wrong in its own way (HBBP
//! section III). A [`Chooser`] sees the [`Features`] of one block and names the source to believe. It is a pure
//! function of those features: it knows neither recordings nor binaries.
//!
//! [`PublishedRule`] is the rule that HBBP section IV.B arrives at; a trained tree implements the same trait.
#![forbid(unsafe_code)]

mod choice;
mod features;
mod published_rule;

pub use choice::{Chooser, Source};
pub use features::Features;
pub use published_rule::PublishedRule;
