//! What an event counts, and so what its samples can be used for.

use std::fmt;

use perfdata::{BranchSampleType, EventDescription, SampleFormat};
use serde::{Deserialize, Serialize};

/// What one tick of an event's counter stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EventKind {
    /// Instructions retired: EBS counts are executions.
    Instructions,
    /// Micro-operations retired: nearly instructions, but some instructions are several.
    Operations,
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

/// Who made the CPU: the same raw code means different events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Vendor {
    /// AMD, or Hygon with AMD's design.
    Amd,
    /// Intel, or not recorded.
    #[default]
    Other,
}

impl Vendor {
    /// From the recording's CPUID feature: `AuthenticAMD,25,33,2`.
    pub fn of(cpuid: Option<&str>) -> Self {
        let amd = cpuid.is_some_and(|id| id.starts_with("AuthenticAMD") || id.starts_with("HygonGenuine"));
        if amd { Vendor::Amd } else { Vendor::Other }
    }
}

impl EventKind {
    /// Classifies an event by its generic number, its raw code, or its name.
    ///
    /// Raw codes are those of INST_RETIRED and BR_INST_RETIRED.NEAR_TAKEN (Intel SDM volume 3B, performance monitoring
    /// events) and of the matching AMD events; names are what `perf` and libpfm4 call them.
    pub fn of(event: &EventDescription, vendor: Vendor) -> Self {
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
        const RAW: u32 = 4;
        let by_code = if attr.kind == RAW { Self::of_raw_code(attr.config, vendor) } else { EventKind::Other };
        if by_code != EventKind::Other {
            return by_code;
        }
        let name = PlainName::of(&event.name);
        if name.is_one_of(&["intel_pt", "intel_bts", "cs_etm", "arm_spe_0", "dummy"]) {
            EventKind::Silent
        } else if name.is_one_of(&["ibs_op"]) {
            // IbsOpCtl[IbsOpCntCtl] (AMD64 Architecture Programmer's Manual, volume 2): count dispatched ops, not cycles.
            let counts_ops = event.name.contains("cnt_ctl=1") || attr.config & (1 << 19) != 0;
            if counts_ops { EventKind::Operations } else { EventKind::Cycles }
        } else if name.is_one_of(&TAKEN_BRANCHES) {
            EventKind::TakenBranches
        } else if name.is_one_of(&INSTRUCTIONS) {
            EventKind::Instructions
        } else if name.is_one_of(&CYCLES) {
            EventKind::Cycles
        } else if name.is_one_of(&["task-clock", "cpu-clock"]) {
            EventKind::Clock
        } else {
            EventKind::Other
        }
    }

    fn of_raw_code(config: u64, vendor: Vendor) -> Self {
        if vendor == Vendor::Amd {
            return match config & 0xf_0000_ffff {
                0xc0 => EventKind::Instructions,
                0xc4 => EventKind::TakenBranches,
                0x76 => EventKind::Cycles,
                _ => EventKind::Other,
            };
        }
        match config & 0xffff {
            0x00c0 | 0x01c0 | 0x0100 => EventKind::Instructions,
            0x20c4 | 0xc0c4 | 0x80c4 | 0x4088 => EventKind::TakenBranches,
            0x003c | 0x0200 => EventKind::Cycles,
            _ => EventKind::Other,
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EventKind::Instructions => "instructions",
            EventKind::Operations => "micro-operations",
            EventKind::TakenBranches => "taken branches",
            EventKind::Cycles => "cycles",
            EventKind::Clock => "nanoseconds",
            EventKind::Other => "events",
            EventKind::Silent => "nothing",
        })
    }
}

/// Whole names: `mem_inst_retired.all_loads` retires no instructions, `br_misp_retired.near_taken` counts no taken branches.
const INSTRUCTIONS: [&str; 6] = [
    "instructions",
    "inst_retired.any",
    "inst_retired.any_p",
    "inst_retired.prec_dist",
    "ex_ret_instr",
    "retired_instructions",
];
const TAKEN_BRANCHES: [&str; 8] = [
    "br_inst_retired.near_taken",
    "br_inst_retired.all_taken_branches",
    "br_inst_retired.taken_branches",
    "br_inst_exec.taken",
    "br_inst_exec.all_taken_branches",
    "ex_ret_brn_tkn",
    "branch-brs",
    "retired_taken_branch_instructions",
];
const CYCLES: [&str; 8] = [
    "cycles",
    "cpu-cycles",
    "cpu_clk_unhalted.thread",
    "cpu_clk_unhalted.thread_p",
    "cpu_clk_unhalted.core",
    "cpu_clk_unhalted.core_p",
    "cpu_clk_unhalted.distributed",
    "ls_not_halted_cyc",
];

/// An event's name without its PMU and modifiers: `cpu_core/instructions/pp`, `INST_RETIRED:PREC_DIST:u=0` and
/// `inst_retired.prec_dist:upp` are `instructions` and twice `inst_retired.prec_dist`; `ibs_op//` is `ibs_op`.
struct PlainName {
    first: String,
    first_two: String,
}

impl PlainName {
    fn of(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        let inner = match name.split('/').collect::<Vec<_>>()[..] {
            [pmu, "", ..] => pmu,
            [pmu, ..] if pmu == "ibs_op" || pmu.starts_with("intel_") || pmu == "cs_etm" => pmu,
            [_, inner, ..] => inner,
            _ => &name,
        };
        let inner = inner.split(',').next().unwrap_or_default();
        let mut parts = inner.split(['.', ':']);
        let first = parts.next().unwrap_or_default().to_string();
        let first_two = parts.next().map_or_else(|| first.clone(), |second| format!("{first}.{second}"));
        PlainName { first, first_two }
    }

    fn is_one_of(&self, names: &[&str]) -> bool {
        // The modifiers of perf-list(1).
        let modifiers = self.first_two[self.first.len()..].chars().all(|c| ".ukhgpsdweirb".contains(c));
        names.contains(&self.first_two.as_str()) || modifiers && names.contains(&self.first.as_str())
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

#[cfg(test)]
mod tests {
    use perfdata::EventAttr;

    use super::*;

    #[test]
    fn kinds_follow_number_name_and_code() {
        let check = |kind: u32, config: u64, name: &str, expected: EventKind| {
            let attr = EventAttr { kind, config, ..EventAttr::default() };
            let event = EventDescription { attr, name: name.into(), ids: Vec::new() };
            assert_eq!(EventKind::of(&event, Vendor::Other), expected, "{name}");
        };
        check(0, 1, "instructions:u", EventKind::Instructions);
        check(0, 1 << 32 | 1, "cpu_atom/instructions/", EventKind::Instructions);
        check(0, 4, "branches", EventKind::Other);
        check(1, 1, "task-clock", EventKind::Clock);
        check(1, 9, "dummy:u", EventKind::Silent);
        check(4, 0x1c0, "INST_RETIRED:PREC_DIST", EventKind::Instructions);
        check(4, 0x1c0, "raw 0x1c0", EventKind::Instructions);
        check(4, 0x20c4, "cpu/event=0xc4,umask=0x20/", EventKind::TakenBranches);
        check(4, 0xc4, "br_inst_retired.all_branches", EventKind::Other);
        check(4, 0x80c4, "br_inst_retired.all_taken_branches", EventKind::TakenBranches);
        check(4, 0xc0c4, "cpu_atom/event=0xc4,umask=0xc0/", EventKind::TakenBranches);
        check(4, 0x53_4088, "br_inst_exec:taken", EventKind::TakenBranches);
        check(4, 0xc4, "ex_ret_brn_tkn", EventKind::TakenBranches);
        check(4, 0xc4, "branch-brs", EventKind::TakenBranches);
        check(11, 1 << 19, "ibs_op/cnt_ctl=1/", EventKind::Operations);
        check(11, 0, "ibs_op//", EventKind::Cycles);
        check(8, 0, "intel_pt//", EventKind::Silent);
        check(10, 0x1c0, "cpu_core/instructions/pp", EventKind::Instructions);
        check(10, 0, "INST_RETIRED:PREC_DIST:u=0", EventKind::Instructions);
        check(10, 0, "br_inst_retired.near_taken:upp", EventKind::TakenBranches);
        check(10, 0, "cpu_atom/br_inst_retired.near_taken/u", EventKind::TakenBranches);
        check(10, 0x2c0, "inst_retired.nop", EventKind::Other);
        check(4, 0x81d0, "mem_inst_retired.all_loads", EventKind::Other);
        check(4, 0x20c5, "br_misp_retired.near_taken", EventKind::Other);
        check(4, 0xc3, "ex_ret_brn_tkn_misp", EventKind::Other);
        check(0, 9, "ref-cycles", EventKind::Other);
        check(0, 6, "bus-cycles", EventKind::Other);
        check(0, 7, "stalled-cycles-frontend", EventKind::Other);
        check(2, 100, "syscalls:sys_enter_read", EventKind::Other);
        check(4, 0x1cd, "MEM_TRANS_RETIRED.LOAD_LATENCY", EventKind::Other);
        check(4, 0xc4, "raw 0xc4", EventKind::Other);
        let attr = EventAttr { kind: 4, config: 0xc4, ..EventAttr::default() };
        let event = EventDescription { attr, name: "raw 0xc4".into(), ids: Vec::new() };
        assert_eq!(EventKind::of(&event, Vendor::of(Some("AuthenticAMD,25,17,1"))), EventKind::TakenBranches);
    }
}
