//! What an event counts, and so what its samples can be used for.

use std::fmt;

use perfdata::{BranchSampleType, EventDescription, SampleFormat};

/// What one tick of an event's counter stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// Instructions retired: EBS counts are executions.
    Instructions,
    /// Taken branches retired: the streams of its stacks count executions.
    TakenBranches,
    /// CPU cycles: where time goes, in cycles.
    Cycles,
    /// A clock (`task-clock`, `cpu-clock`): where time goes, in nanoseconds.
    Clock,
    /// Anything else that overflows.
    Other,
    /// Counts nothing and never samples (`dummy`), or carries a trace instead of samples.
    Silent,
}

impl EventKind {
    /// Classifies an event by its generic number, its raw code, or its name.
    ///
    /// Raw codes are those of INST_RETIRED and BR_INST_RETIRED.NEAR_TAKEN (Intel SDM volume 3B, performance monitoring
    /// events) and of the matching AMD events; names are what `perf` and libpfm4 call them.
    pub fn of(event: &EventDescription) -> Self {
        const HARDWARE: u32 = 0;
        const SOFTWARE: u32 = 1;
        let attr = &event.attr;
        match (attr.kind, attr.config & 0xffff_ffff) {
            (SOFTWARE, 0 | 1) => return EventKind::Clock,
            (SOFTWARE, 9) => return EventKind::Silent,
            (HARDWARE, 0) => return EventKind::Cycles,
            (HARDWARE, 1) => return EventKind::Instructions,
            _ => {}
        }
        let name = event.name.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        if has(&["intel_pt", "intel_bts", "cs_etm", "arm_spe", "dummy"]) {
            EventKind::Silent
        } else if has(&[
            "near_taken",
            "br_inst_exec:taken",
            "br_inst_exec.taken",
            "brn_tkn",
            "branch-brs",
            "taken_branch",
        ]) {
            EventKind::TakenBranches
        } else if has(&["inst_retired", "ex_ret_instr", "instructions"]) && !has(&["br_inst", "branch"]) {
            EventKind::Instructions
        } else if has(&["cycles", "clk_unhalted"]) {
            EventKind::Cycles
        } else if has(&["task-clock", "cpu-clock"]) {
            EventKind::Clock
        } else {
            Self::of_raw_code(attr.kind, attr.config)
        }
    }

    fn of_raw_code(kind: u32, config: u64) -> Self {
        const RAW: u32 = 4;
        if kind != RAW {
            return EventKind::Other;
        }
        match config & 0xffff {
            0x00c0 | 0x01c0 | 0x0100 => EventKind::Instructions,
            0x20c4 | 0x4088 => EventKind::TakenBranches,
            0x003c | 0x0200 => EventKind::Cycles,
            _ => EventKind::Other,
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EventKind::Instructions => "instructions",
            EventKind::TakenBranches => "taken branches",
            EventKind::Cycles => "cycles",
            EventKind::Clock => "nanoseconds",
            EventKind::Other => "events",
            EventKind::Silent => "nothing",
        })
    }
}

/// What the branch stacks of an event hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackUse {
    /// The event records none.
    None,
    /// Every taken branch (of the recorded privilege levels): consecutive entries bound a stream.
    Streams,
    /// LBR call-stack mode: returns pop their calls, so neighbours in the stack are callers, not predecessors.
    CallStack,
    /// Only branches of some kinds: between two entries there may be unrecorded taken branches.
    Filtered,
}

impl StackUse {
    /// Tells the use from `branch_sample_type` (perf_event_open(2), `PERF_SAMPLE_BRANCH_*`).
    pub fn of(event: &EventDescription) -> Self {
        let filter = event.attr.branch_sample_type;
        if !event.attr.sample_format.contains(SampleFormat::BRANCH_STACK) {
            StackUse::None
        } else if filter.contains(BranchSampleType::CALL_STACK) {
            StackUse::CallStack
        } else if filter.contains(BranchSampleType::ANY) || !names_branch_kinds(filter) {
            StackUse::Streams
        } else {
            StackUse::Filtered
        }
    }
}

/// Traces turned into stacks by `perf inject` carry no branch kinds at all in their filter; they hold every taken branch.
fn names_branch_kinds(filter: BranchSampleType) -> bool {
    [
        BranchSampleType::ANY_CALL,
        BranchSampleType::ANY_RETURN,
        BranchSampleType::IND_CALL,
        BranchSampleType::COND,
        BranchSampleType::IND_JUMP,
        BranchSampleType::CALL,
        BranchSampleType::IN_TX,
        BranchSampleType::ABORT_TX,
    ]
    .into_iter()
    .any(|kind| filter.contains(kind))
}
