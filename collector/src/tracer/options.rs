//! The options of the software tracer.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use formats::metadata::TracerMetadata;
use serde::Serialize;

use crate::tracer::statistics::Agents;

/// Taken branches of a burst by breakpoints alone, unless asked for: those of the paper.
const BREAKPOINT_BRANCHES: u64 = 16;
/// Instructions of a burst for which only a number of taken branches was asked, per branch: code without branches must end, too.
const INSTRUCTIONS_PER_BRANCH: u64 = 1000;
/// Instructions of any burst, at most.
const MOST_INSTRUCTIONS: u64 = 10_000_000;

/// Whether to trace branches in software, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TracerChoice {
    /// Where there are no hardware branch records: by agents in commands, by looking ahead at what runs already.
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
    /// The same interpreter, run by the thread itself inside its process. Threads of processes where it cannot be are stopped for each burst.
    Agent,
    /// Agents that programs load by themselves, and timers of CPU time in place of perf events: it needs neither these nor ptrace.
    Timer,
    /// Agents, and after each burst the thread is compared with it: a test of the tracer.
    #[serde(rename = "agent-check")]
    AgentCheck,
    /// Both, one after the other from the same stop, and compared: a test of the tracer: lookahead and breakpoints.
    Check,
}

/// How long a burst is asked to be; 1 at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BurstSize {
    /// So many executed instructions.
    Instructions(u64),
    /// So many taken branches.
    Branches(u64),
}

/// Where a burst ends: what was asked for, with what the way of tracing adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum BurstEnd {
    /// After so many executed instructions.
    Instructions {
        /// 1 at least; no burst has more than 10,000,000.
        #[serde(rename = "burst_instructions")]
        instructions: u64,
    },
    /// After so many taken branches, or 1,000 times as many instructions.
    Branches {
        /// Taken branches, 1 at least.
        #[serde(rename = "depth")]
        branches: u64,
    },
    /// After so many of either, whichever comes first.
    Either {
        /// 1 at least; no burst has more than 10,000,000.
        #[serde(rename = "burst_instructions")]
        instructions: u64,
        /// Taken branches, 1 at least.
        #[serde(rename = "depth")]
        branches: u64,
    },
}

/// The options of the tracer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TracerOptions {
    /// Whether branches are traced, and how.
    pub kind: TracerChoice,
    /// Percent of the program's CPU time that recording may take.
    pub overhead: f64,
    /// What it may take on top of that in the first seconds of CPU time of a command, so that short ones have bursts, too.
    pub start_credit: Duration,
    /// How long a burst is to be.
    pub size: BurstSize,
    /// Put agents into processes that run already.
    pub inject: bool,
}

impl TracerOptions {
    /// The least that recording must be allowed to take is more than this, in percent of the program's CPU time.
    pub const LEAST_OVERHEAD: f64 = 0.0;
    /// The most that it can be: as much as the program itself.
    pub const MOST_OVERHEAD: f64 = 100.0;

    /// Whether so much overhead can be asked for, in percent.
    pub fn allows(overhead: f64) -> bool {
        overhead > Self::LEAST_OVERHEAD && overhead <= Self::MOST_OVERHEAD
    }

    /// Whether the tool chooses how branches are traced: what cannot be is a degradation then, and no error.
    pub(crate) fn is_open(&self) -> bool {
        self.kind == TracerChoice::Auto && !self.inject
    }

    /// Some hundred bursts in a command of one second: fewer say little of it (docs/results/2026-11-30-short-runs.md).
    pub const DEFAULT_START_CREDIT: Duration = Duration::from_millis(200);
}

impl Default for TracerOptions {
    fn default() -> Self {
        Self {
            kind: TracerChoice::Auto,
            overhead: 1.0,
            start_credit: Self::DEFAULT_START_CREDIT,
            size: BurstSize::default(),
            inject: false,
        }
    }
}

impl Default for BurstSize {
    fn default() -> Self {
        Self::Instructions(Self::DEFAULT_INSTRUCTIONS)
    }
}

impl BurstSize {
    /// Instructions of a burst, unless asked for: long enough that what is slow to start is not counted too often.
    pub const DEFAULT_INSTRUCTIONS: u64 = 10_000;

    /// Where a burst ends that is taken in this way. Breakpoints are slow: by them, a burst ends after 16 branches if no other number
    /// was asked for.
    pub(crate) fn end(self, kind: TracerKind) -> BurstEnd {
        match (self, kind) {
            (Self::Instructions(instructions), TracerKind::Breakpoint | TracerKind::Check) => {
                BurstEnd::Either { instructions, branches: BREAKPOINT_BRANCHES }
            }
            (Self::Instructions(instructions), _) => BurstEnd::Instructions { instructions },
            (Self::Branches(branches), _) => BurstEnd::Branches { branches },
        }
    }
}

impl BurstEnd {
    /// What is known of a tracer before it has done anything.
    pub(crate) fn metadata(self, kind: TracerKind, overhead_allowed: f64) -> TracerMetadata {
        let (burst_instructions, depth) = match self {
            Self::Instructions { instructions } => (Some(instructions), None),
            Self::Branches { branches } => (None, Some(branches)),
            Self::Either { instructions, branches } => (Some(instructions), Some(branches)),
        };
        TracerMetadata {
            kind: Some(kind.to_string()),
            burst_instructions,
            depth,
            overhead_allowed: Some(overhead_allowed),
            agents: kind.has_agents().then(Agents::place),
            ..TracerMetadata::default()
        }
    }

    /// Executed instructions at most.
    pub(crate) fn most_instructions(self) -> u64 {
        let asked = match self {
            Self::Instructions { instructions } | Self::Either { instructions, .. } => instructions,
            Self::Branches { branches } => branches.saturating_mul(INSTRUCTIONS_PER_BRANCH),
        };
        asked.clamp(1, MOST_INSTRUCTIONS)
    }

    /// Taken branches at most.
    pub(crate) fn most_branches(self) -> u64 {
        match self {
            Self::Instructions { .. } => u64::MAX,
            Self::Branches { branches } | Self::Either { branches, .. } => branches.max(1),
        }
    }

    /// The same for agents.
    pub(crate) fn limits(self) -> agent::Limits {
        agent::Limits { instructions: self.most_instructions(), branches: self.most_branches() }
    }
}

/// A word that names no way to trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is none of auto, agent, agent-check, timer, lookahead, breakpoint, none")]
pub struct UnknownTracer(pub String);

impl FromStr for TracerChoice {
    type Err = UnknownTracer;

    fn from_str(text: &str) -> Result<Self, UnknownTracer> {
        Ok(match text {
            "auto" => Self::Auto,
            "none" => Self::None,
            "lookahead" => Self::Kind(TracerKind::Lookahead),
            "breakpoint" => Self::Kind(TracerKind::Breakpoint),
            "agent" => Self::Kind(TracerKind::Agent),
            "timer" => Self::Kind(TracerKind::Timer),
            "agent-check" => Self::Kind(TracerKind::AgentCheck),
            "check" => Self::Kind(TracerKind::Check),
            other => return Err(UnknownTracer(other.to_owned())),
        })
    }
}

/// As it is read.
impl fmt::Display for TracerChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Kind(kind) => kind.fmt(f),
            Self::None => f.write_str("none"),
        }
    }
}

impl TracerKind {
    /// Whether bursts are taken inside the program.
    pub fn has_agents(self) -> bool {
        matches!(self, Self::Agent | Self::AgentCheck | Self::Timer)
    }
}

impl fmt::Display for TracerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lookahead => "lookahead",
            Self::Agent => "agent",
            Self::Timer => "timer",
            Self::AgentCheck => "agent-check",
            Self::Breakpoint => "breakpoint",
            Self::Check => "check",
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn what_was_asked_for_ends_a_burst_and_breakpoints_end_it_sooner() {
        use TracerKind::{Breakpoint, Check, Lookahead};
        let (default, long) = (BurstSize::default(), BurstSize::Instructions(70_000_000));
        for (asked, kind, stated, most) in [
            (default, Lookahead, (Some(10_000), None), (10_000, u64::MAX)),
            (default, Breakpoint, (Some(10_000), Some(16)), (10_000, 16)),
            (default, Check, (Some(10_000), Some(16)), (10_000, 16)),
            (BurstSize::Instructions(500), Breakpoint, (Some(500), Some(16)), (500, 16)),
            (BurstSize::Branches(300), Breakpoint, (None, Some(300)), (300_000, 300)),
            (BurstSize::Branches(300), Lookahead, (None, Some(300)), (300_000, 300)),
            (long, Lookahead, (Some(70_000_000), None), (10_000_000, u64::MAX)),
        ] {
            let end = asked.end(kind);
            let metadata = end.metadata(kind, 1.0);
            assert_eq!((metadata.burst_instructions, metadata.depth), stated, "{asked:?} {kind}");
            assert_eq!((end.most_instructions(), end.most_branches()), most, "{asked:?} {kind}");
            // `hbbp doctor` says the same.
            let fields = serde_json::to_value(end).unwrap();
            let said = ["burst_instructions", "depth"].map(|name| fields.get(name).cloned());
            assert_eq!(
                said,
                [stated.0, stated.1].map(|number: Option<u64>| number.map(Value::from)),
                "{asked:?} {kind}"
            );
        }
    }
}
