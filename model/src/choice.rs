//! The decision and who makes it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Features;

/// A source of block counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Event-based samples: one instruction pointer per event overflow.
    Ebs,
    /// Branch stacks, of hardware branch records or of a tracer that makes the same.
    Lbr,
}

impl Source {
    /// The name used in tables, filters and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Source::Ebs => "ebs",
            Source::Lbr => "lbr",
        }
    }

    /// Branch stacks for EBS, and EBS for branch stacks.
    pub fn other(self) -> Self {
        match self {
            Source::Ebs => Source::Lbr,
            Source::Lbr => Source::Ebs,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Names the source to believe for a block that both sources can count.
pub trait Chooser: Send + Sync {
    /// The better source for a block with these features. The same features give the same answer.
    fn choose(&self, block: &Features) -> Source;

    /// Whether it looks at features that are known only from the block's instructions.
    fn needs_code(&self) -> bool {
        false
    }

    /// One line for reports: which rule this is.
    fn describe(&self) -> String;
}
