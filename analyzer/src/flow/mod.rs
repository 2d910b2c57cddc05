//! What ran, by module: executions of straight-line ranges and of taken branches. Compiler profiles, merges and comparisons are made from it.
//!
//! ```text
//! recording -> analyze() ---------> of_recording --+
//! exact counts ------------------> of_truth -------+-> Flow -> profiles, hbbp merge, hbbp diff
//! hbbp-flow/1 (`hbbp merge`) -----> document ------+
//! ```
//!
//! Unlike counts of blocks, a flow says which branch went where, and which blocks ran one after the other.

mod analysed;
mod as_analysis;
pub(crate) mod balance;
mod builder;
mod code;
mod comparison;
mod conservation;
mod counted;
mod document;
mod exact_count;
mod executed;
mod merge;
mod of_recording;
mod of_truth;
mod placing;
mod same_code;
mod source_lines;
mod suffixes;

pub use analysed::AnalysedFlow;
pub(crate) use analysed::ChosenCount;
pub use builder::{Evidence, ExactLeftOut, FlowBuilder};
pub use code::FallThrough;
pub use comparison::{BlockName, BlocksOfLine, Comparison, FileOfLines, FunctionName, InstructionKind, Moved, compare};
pub use counted::{Counted, CountedError, OF_MERGED};
pub use exact_count::ExactCount;
pub use executed::{ExecutedCode, ExecutedModule, executed_modules};
pub use merge::Merge;
pub(crate) use of_recording::{codes_of, of_recording};
pub use source_lines::SourceLine;

pub use formats::flow::{FlowDocumentError, LeftOut, MOST_COUNT, SCHEMA};

pub(crate) use suffixes::without_suffixes;

use serde::{Deserialize, Serialize};

use crate::address::Svma;
use crate::recording::Module;
use crate::uncertainty::{Slice, SliceSet};

/// What ran. The same input gives the same flow, for any number of threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// The counts are numbers of executions; otherwise they are only proportional to them (bursts of a clock) or to time (samples of
    /// a clock alone).
    pub executions: bool,
    /// How many recordings or exact counts it is the sum of.
    pub inputs: u64,
    /// How many streams were seen, those left out included; 0 of exact counts, and where it is not known. Where counts are only proportional to executions, all
    /// of them together stand for that many.
    pub seen: f64,
    /// Sorted by path and build id.
    pub modules: Vec<ModuleFlow>,
    /// What is in none of them.
    pub left_out: LeftOut,
}

/// What ran of one module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModuleFlow {
    /// Its path, build id (of the file that was read, or else as recorded) and kind.
    pub module: Module,
    /// Its code was read. If not, addresses are offsets in its file (of what has no file, as recorded), and nothing was
    /// checked against the code.
    pub read: bool,
    /// Sorted by both ends, each once.
    pub ranges: Vec<RangeCount>,
    /// Sorted by both ends, each once.
    pub branches: Vec<BranchCount>,
    /// Sorted by address, each once.
    pub samples: Vec<IpCount>,
    /// What slices of the recordings have of the ranges and samples, sorted: how they differ says how uncertain the counts are. Empty where that is
    /// not known, as in the flow of one recording, or nothing ran.
    #[serde(skip)]
    pub slices: Vec<SliceFlow>,
}

/// What a slice of the recordings has of a module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SliceFlow {
    /// Which one.
    pub slice: Slice,
    /// Sorted by both ends, each once.
    pub ranges: Vec<RangeCount>,
    /// Sorted by address, each once.
    pub samples: Vec<IpCount>,
}

/// Executions of a straight line: from a branch target, or where a burst started, to the next taken branch.
///
/// Example: of `A: test; je C; B: nop; C: ret`, called 10 times and the branch taken 4 times, the ranges are `A..je` 4, `A..ret` 6
/// and `C..ret` 4.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RangeCount {
    /// Address of the first instruction.
    pub first: Svma,
    /// Last instruction (its first byte): a taken branch, or the one before an interrupt.
    pub last: Svma,
    /// How often it was executed.
    pub count: f64,
}

/// Executions of a taken branch: a jump, call, return or system call.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BranchCount {
    /// Address of the branch instruction.
    pub from: Svma,
    /// The instruction it went to, in the same module or another.
    pub to: ModuleAddress,
    /// How often it was executed.
    pub count: f64,
    /// How many of them were mispredicted; 0 where the recording does not say it.
    pub mispredicted: f64,
}

/// A place in the code of any module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ModuleAddress {
    /// The module, as an index in [`Flow::modules`].
    pub module: usize,
    /// The address that the module's file states for it.
    pub at: Svma,
}

/// Event-based samples at an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IpCount {
    /// Address of the instruction.
    pub at: Svma,
    /// How many executed instructions the samples stand for, where the event counts instructions; else time or events, in the unit of
    /// the ranges where there are both. Samples spread over the instructions around: only sums over more code mean something.
    pub count: f64,
}

/// The count as profiles of other tools have it: to the nearest whole number, but 1 at least, for what was seen ran.
pub fn whole(count: f64) -> u64 {
    count.round().max(1.0) as u64
}

impl Flow {
    /// Executions of all ranges.
    pub fn range_total(&self) -> f64 {
        self.modules.iter().map(ModuleFlow::range_total).sum()
    }

    /// Executions of all taken branches.
    pub fn branch_total(&self) -> f64 {
        self.modules.iter().map(ModuleFlow::branch_total).sum()
    }

    /// The slices that have something of it.
    pub fn slices(&self) -> SliceSet {
        SliceSet::of(self.modules.iter().flat_map(|of| &of.slices).map(|of| of.slice))
    }

    /// Whether any branch is marked as mispredicted. Where none is, as in bursts, nothing is known of that.
    pub fn knows_mispredictions(&self) -> bool {
        self.modules.iter().flat_map(|of| &of.branches).any(|branch| branch.mispredicted > 0.0)
    }

    /// What all samples stand for.
    pub fn sample_total(&self) -> f64 {
        self.modules.iter().map(ModuleFlow::sample_total).sum()
    }

    /// What the samples stand for of modules that have no ranges, beside others that have: what is counted by ranges lacks them.
    pub fn sampled_only(&self) -> f64 {
        let without_ranges = self.modules.iter().filter(|of| of.range_total() <= 0.0);
        if self.range_total() > 0.0 { without_ranges.map(ModuleFlow::sample_total).sum() } else { 0.0 }
    }
}

impl ModuleFlow {
    /// Executions of its ranges.
    pub fn range_total(&self) -> f64 {
        self.ranges.iter().map(|range| range.count).sum()
    }

    /// Instructions that its ranges execute, where its code is not known: by the mean length of instructions.
    pub fn guessed_instructions(&self) -> f64 {
        const BYTES_PER_INSTRUCTION: f64 = 4.0;
        let instructions = |bytes: u64| (bytes as f64 / BYTES_PER_INSTRUCTION).floor() + 1.0;
        self.ranges.iter().map(|range| range.count * instructions(range.last.0.saturating_sub(range.first.0))).sum()
    }

    /// Executions of its taken branches.
    pub fn branch_total(&self) -> f64 {
        self.branches.iter().map(|branch| branch.count).sum()
    }

    /// What its samples stand for.
    pub fn sample_total(&self) -> f64 {
        self.samples.iter().map(|sample| sample.count).sum()
    }
}
