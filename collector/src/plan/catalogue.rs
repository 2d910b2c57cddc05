//! The events each kind of core has for the two roles, best first.
//!
//! Codes are those of the makers' event lists (Intel's perfmon JSON files, AMD's processor programming references) as Linux carries
//! them in `tools/perf/pmu-events`; the constraints are those of `arch/x86/events/intel/{core,ds}.c` and `arch/x86/events/amd/`.

use perf_event_open_sys::bindings as sys;

use crate::machine::pmu::EventCode;
use crate::plan::event_spec::Unit;
use crate::plan::microarchitecture::Microarchitecture;

/// An event of a CPU's maker that is known to serve as a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name in the maker's list.
    pub name: &'static str,
    /// Event code in bits 0-7, umask in bits 8-15; or, when `generic`, the kernel's number of the event.
    pub config: u64,
    /// Whether `config` is a `PERF_COUNT_HW_*` number.
    pub generic: bool,
    /// What one step of its counter is.
    pub unit: Unit,
    /// `precise_ip` it is best used with.
    pub precise: u8,
    /// The least `precise_ip` it makes sense with.
    pub least_precise: u8,
    /// What there is to say against it.
    pub caveat: Option<&'static str>,
}

const fn listed(name: &'static str, config: u64, unit: Unit, precise: u8) -> Listed {
    Listed { name, config, generic: false, unit, precise, least_precise: 0, caveat: None }
}

/// PREC_DIST is about the distribution of precise samples: without PEBS the plain event does as well.
const fn prec_dist(config: u64) -> Listed {
    Listed { least_precise: 1, ..listed("inst_retired.prec_dist", config, Unit::Instructions, 2) }
}

/// Instructions, by the kernel's own choice of code.
const INSTRUCTIONS: Listed =
    Listed { generic: true, ..listed("instructions", sys::PERF_COUNT_HW_INSTRUCTIONS as u64, Unit::Instructions, 2) };

/// All branches, by the kernel's own choice of code.
const BRANCHES: Listed = Listed {
    generic: true,
    caveat: Some("it counts branches that are not taken as well, so its period is not one of taken branches"),
    ..listed("branch-instructions", sys::PERF_COUNT_HW_BRANCH_INSTRUCTIONS as u64, Unit::Branches, 0)
};

/// Taken branches of Intel's large cores.
const NEAR_TAKEN: Listed = listed("br_inst_retired.near_taken", 0x20c4, Unit::TakenBranches, 2);

/// Taken branches of Intel's small cores before Gracemont. Their precise events share one counter up to Goldmont, and the EBS event needs
/// it: the ip of a branch-stack sample is not used.
const ALL_TAKEN: Listed = listed("br_inst_retired.all_taken_branches", 0x80c4, Unit::TakenBranches, 0);

/// The same code where Intel's list of the model's events has no taken branches: Tremont, Knights Landing and Mill.
const UNLISTED_TAKEN: Listed = Listed {
    caveat: Some(
        "Intel documents no event of taken branches for this CPU; the code is that of related cores, and its counts may be wrong",
    ),
    ..ALL_TAKEN
};

/// Retired instructions of Intel's small cores; level 3 asks for reduced skid.
const fn any_p(precise: u8) -> Listed {
    listed("inst_retired.any_p", 0x00c0, Unit::Instructions, precise)
}

/// AMD's retired instructions.
const EX_RET_INSTR: Listed = Listed {
    caveat: Some("AMD has no precise event for instructions: ips are some instructions late"),
    ..listed("ex_ret_instr", 0x00c0, Unit::Instructions, 0)
};

/// AMD's retired taken branches, the only event BRS goes with.
const EX_RET_BRN_TKN: Listed = listed("ex_ret_brn_tkn", 0x00c4, Unit::TakenBranches, 0);

/// Events for event-based samples, the best first.
pub fn ebs_events(core: Microarchitecture) -> Vec<Listed> {
    use Microarchitecture as M;
    match core {
        M::Nehalem => vec![listed("inst_retired.any_p", 0x01c0, Unit::Instructions, 2), INSTRUCTIONS],
        M::SandyBridge => vec![prec_dist(0x01c0), INSTRUCTIONS],
        // 00/01 is known since Linux 5.13; before, the kernel had Ice Lake's PREC_DIST as c0/01.
        M::IceLake => vec![prec_dist(0x0100), prec_dist(0x01c0), INSTRUCTIONS],
        M::Bonnell | M::Silvermont | M::KnightsLanding | M::Goldmont => vec![any_p(2), INSTRUCTIONS],
        M::GoldmontPlus | M::Tremont | M::Gracemont => vec![any_p(3), INSTRUCTIONS],
        M::Amd => vec![EX_RET_INSTR, Listed { precise: 0, ..INSTRUCTIONS }],
        M::Unknown => vec![INSTRUCTIONS],
    }
}

/// Events for branch stacks.
pub fn branch_events(core: Microarchitecture) -> Vec<Listed> {
    use Microarchitecture as M;
    match core {
        // Executed, not retired; not a PEBS event.
        M::Nehalem => vec![
            Listed {
                caveat: Some("it counts executed branches, which includes some on wrong paths"),
                ..listed("br_inst_exec.taken", 0x4088, Unit::TakenBranches, 0)
            },
            BRANCHES,
        ],
        M::SandyBridge | M::IceLake => vec![NEAR_TAKEN, BRANCHES],
        M::Bonnell => vec![listed("br_inst_retired.taken", 0x0cc4, Unit::TakenBranches, 0), BRANCHES],
        M::Silvermont | M::Goldmont => vec![ALL_TAKEN, BRANCHES],
        M::KnightsLanding => vec![UNLISTED_TAKEN, BRANCHES],
        M::GoldmontPlus => vec![Listed { precise: 2, ..ALL_TAKEN }, BRANCHES],
        M::Tremont => vec![Listed { precise: 2, ..UNLISTED_TAKEN }, BRANCHES],
        M::Gracemont => vec![Listed { config: 0xc0c4, ..NEAR_TAKEN }, BRANCHES],
        M::Amd => vec![EX_RET_BRN_TKN, BRANCHES],
        M::Unknown => vec![BRANCHES],
    }
}

impl Listed {
    /// Its code on the PMU of type `pmu_kind`; `hybrid`: the machine has several core PMUs, and the code must say which.
    pub fn code(&self, pmu_kind: u32, hybrid: bool) -> EventCode {
        match (self.generic, hybrid) {
            (false, _) => EventCode::new(pmu_kind, self.config),
            (true, false) => EventCode::new(sys::PERF_TYPE_HARDWARE, self.config),
            // PERF_PMU_TYPE_SHIFT.
            (true, true) => EventCode::new(sys::PERF_TYPE_HARDWARE, self.config | u64::from(pmu_kind) << 32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Microarchitecture; 12] = {
        use Microarchitecture as M;
        [
            M::Nehalem,
            M::SandyBridge,
            M::IceLake,
            M::Bonnell,
            M::Silvermont,
            M::KnightsLanding,
            M::Goldmont,
            M::GoldmontPlus,
            M::Tremont,
            M::Gracemont,
            M::Amd,
            M::Unknown,
        ]
    };

    #[test]
    fn every_core_ends_with_the_generic_event() {
        for core in ALL {
            assert!(ebs_events(core).last().unwrap().generic, "{core:?}");
            assert!(branch_events(core).last().unwrap().generic, "{core:?}");
        }
    }

    /// Where precise events share counter 0, only one of the two roles may ask for it.
    #[test]
    fn one_precise_event_where_there_is_one_precise_counter() {
        use Microarchitecture as M;
        for core in [M::Bonnell, M::Silvermont, M::KnightsLanding, M::Goldmont] {
            assert!(
                ebs_events(core)[0].precise > 0 && branch_events(core).iter().all(|event| event.precise == 0),
                "{core:?}"
            );
        }
    }

    /// c4/80 is in Intel's lists of Silvermont, Goldmont and Goldmont Plus, and in no other's.
    #[test]
    fn a_code_that_is_not_documented_has_a_caveat() {
        for core in ALL {
            use Microarchitecture as M;
            for event in branch_events(core).iter().filter(|event| event.config == ALL_TAKEN.config) {
                let documented = matches!(core, M::Silvermont | M::Goldmont | M::GoldmontPlus);
                assert_eq!(event.caveat.is_none(), documented, "{core:?}");
            }
        }
    }

    #[test]
    fn generic_codes_name_the_pmu_on_hybrid_machines() {
        assert_eq!(INSTRUCTIONS.code(4, false), EventCode::new(0, 1));
        assert_eq!(INSTRUCTIONS.code(10, true), EventCode::new(0, 10 << 32 | 1));
        assert_eq!(NEAR_TAKEN.code(4, true), EventCode::new(4, 0x20c4));
    }
}
