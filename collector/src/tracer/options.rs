//! The options of the software tracer.

use std::fmt;
use std::str::FromStr;

use formats::metadata::TracerMetadata;
use serde::Serialize;

/// Taken branches of a burst by breakpoints alone, unless asked for: those of the paper.
pub(crate) const BREAKPOINT_DEPTH: u64 = 16;
/// Instructions of a burst, unless asked for.
const INSTRUCTIONS: u64 = 10_000;

/// Whether to trace branches in software, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TracerChoice {
    /// By looking ahead, where there are no hardware branch records.
    #[default]
    Auto,
    /// This way or not at all.
    Kind(TracerKind),
    /// No branches are traced.
    None,
}

/// How a thread's path is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TracerKind {
    /// An interpreter runs the thread's code on a copy of its state; breakpoints only where it cannot follow.
    Lookahead,
    /// A breakpoint at every branch that is not decided by its bytes (*Break Dancing*, algorithm 1).
    Breakpoint,
    /// Both, one after the other from the same stop, and compared: a test of the tracer.
    Check,
}

/// Where a burst ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BurstSize {
    /// A burst has so many instructions at most.
    #[serde(rename = "burst_instructions", skip_serializing_if = "Option::is_none")]
    pub instructions: Option<u64>,
    /// A burst has so many taken branches at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u64>,
}

/// The options of the tracer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TracerOptions {
    /// Whether branches are traced, and how.
    pub kind: TracerChoice,
    /// Percent of the program's CPU time that recording may take.
    pub overhead: f64,
    /// Where a burst ends.
    pub size: BurstSize,
}

impl Default for TracerOptions {
    fn default() -> Self {
        Self { kind: TracerChoice::Auto, overhead: 1.0, size: BurstSize::default() }
    }
}

impl Default for BurstSize {
    /// 10,000 instructions: long enough that what is slow to start is not counted too often.
    fn default() -> Self {
        Self { instructions: Some(INSTRUCTIONS), depth: None }
    }
}

impl BurstSize {
    /// What is known of a tracer before it has done anything.
    pub(crate) fn metadata(self, kind: TracerKind, overhead_allowed: f64) -> TracerMetadata {
        TracerMetadata {
            kind: Some(kind.to_string()),
            burst_instructions: self.instructions,
            depth: self.depth,
            overhead_allowed: Some(overhead_allowed),
            ..TracerMetadata::default()
        }
    }

    /// Instructions at most, also where only a depth was asked for: code without branches must end, too.
    pub(crate) fn most_instructions(self) -> u64 {
        let with_depth = || self.depth.map_or(INSTRUCTIONS, |depth| depth.saturating_mul(1000));
        self.instructions.unwrap_or_else(with_depth).clamp(1, 10_000_000)
    }

    /// Taken branches at most.
    pub(crate) fn most_branches(self) -> u64 {
        self.depth.unwrap_or(u64::MAX).max(1)
    }
}

/// A word that names no way to trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is none of auto, lookahead, breakpoint, none")]
pub struct UnknownTracer(pub String);

impl FromStr for TracerChoice {
    type Err = UnknownTracer;

    fn from_str(text: &str) -> Result<Self, UnknownTracer> {
        Ok(match text {
            "auto" => Self::Auto,
            "none" => Self::None,
            "lookahead" => Self::Kind(TracerKind::Lookahead),
            "breakpoint" => Self::Kind(TracerKind::Breakpoint),
            "check" => Self::Kind(TracerKind::Check),
            other => return Err(UnknownTracer(other.to_owned())),
        })
    }
}

impl fmt::Display for TracerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lookahead => "lookahead",
            Self::Breakpoint => "breakpoint",
            Self::Check => "check",
        })
    }
}
