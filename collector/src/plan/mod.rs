//! From the machine and the user's options to the events to open: a pure function.

pub mod branch_filter;
pub mod catalogue;
mod chain_options;
pub mod choice;
pub mod event_name;
pub mod event_spec;
pub mod fallback_chain;
pub mod microarchitecture;
pub mod periods;
mod rate;
pub mod request;
pub mod rotation;
mod stacks;

use perfdata::BranchSampleType;

use crate::errno::Errno;
use crate::machine::Machine;
use crate::machine::pmu::Pmu;
use crate::plan::branch_filter::{branch_filter_text, kinds};
use crate::plan::chain_options::ChainOptions;
use crate::plan::event_name::{EventNameError, parse_event_name};
use crate::plan::event_spec::{Levels, Role};
use crate::plan::fallback_chain::{FallbackChain, catalogue_chain, clock_chain, ibs_attempts, named_chain};
use crate::plan::periods::RunTime;

/// What the user asked for; `default()` asks for what suits the machine best.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// The event for EBS.
    pub ebs: EventOption,
    /// The event for branch stacks.
    pub lbr: EventOption,
    /// Counts between EBS samples.
    pub ebs_period: Option<u64>,
    /// Counts between branch stacks.
    pub lbr_period: Option<u64>,
    /// Samples a second, for both.
    pub frequency: Option<u64>,
    /// Levels; `None`: all that are allowed.
    pub levels: Option<Levels>,
    /// Branch filter; `None`: any branch.
    pub filter: Option<BranchSampleType>,
    /// How long the program is expected to run.
    pub run_time: RunTime,
    /// All tasks of the CPUs, not chosen ones.
    pub system_wide: bool,
}

/// Which event for a role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EventOption {
    /// The best the machine has.
    #[default]
    Best,
    /// No event serves for it.
    None,
    /// This one or nothing.
    Named(String),
}

/// The events to open, each with what to fall back on.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// One per role and core PMU.
    pub chains: Vec<FallbackChain>,
    /// What is already known to be less than it could be, in sentences.
    pub degradations: Vec<String>,
    /// Whether the levels may be cut to user space if the kernel says no.
    pub levels_may_shrink: bool,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Both roles without event.
    #[error("--ebs-event none and --lbr-event none leave nothing to record")]
    NoEvents,
    /// A name that cannot be used.
    #[error(transparent)]
    Name(#[from] EventNameError),
    /// No branch records, but an event for them was named.
    #[error(
        "--lbr-event {0}: this machine has no branch records to sample; without --lbr-event it records what it can"
    )]
    NoBranchRecords(String),
    /// A software event has no branch records.
    #[error("--lbr-event {0}: only events of the core's PMU come with branch records")]
    NotOnCore(String),
    /// perf events are missing altogether.
    #[error("this kernel does not open perf events ({0}); it needs CONFIG_PERF_EVENTS; `--tracer timer` does without")]
    NoPerfEvents(Errno),
    /// Not allowed to open anything.
    #[error(
        "perf_event_open is not permitted here ({errno}): {}; `--tracer timer` does without",
        if *.container { "the container's seccomp profile must allow it" } else { "kernel.perf_event_paranoid or a security module forbids it" }
    )]
    Forbidden {
        /// What the kernel said.
        errno: Errno,
        /// Whether there are signs of a container.
        container: bool,
    },
    /// Kernel code was asked for, and `perf_event_paranoid` (the number) forbids it.
    #[error("sampling kernel code needs CAP_PERFMON or kernel.perf_event_paranoid at 1 or lower (it is {0})")]
    NoKernel(i32),
    /// All processes were asked for, and `perf_event_paranoid` (the number) forbids it.
    #[error("recording all processes needs CAP_PERFMON or kernel.perf_event_paranoid at 0 or lower (it is {0})")]
    NoSystemWide(i32),
    /// A control group was asked for, and `perf_event_paranoid` (the number) forbids it.
    #[error("recording a control group needs CAP_PERFMON or kernel.perf_event_paranoid at 0 or lower (it is {0})")]
    NoGroup(i32),
    /// A period that cannot be.
    #[error("period {period} of {role}: {rule}")]
    Period {
        /// The period that was asked for.
        period: u64,
        /// The option that states it: `--ebs-period`, `--lbr-period` or `--freq`.
        role: &'static str,
        /// The rule that it breaks, in words.
        rule: &'static str,
    },
    /// No attempt of a fallback chain opened.
    #[error("cannot open {name}: {errno}{}", hint(*.errno))]
    NothingOpens {
        /// The first event tried.
        name: String,
        /// What the kernel said of it.
        errno: Errno,
    },
}

fn hint(errno: Errno) -> &'static str {
    match errno {
        Errno::EBUSY => "; another profiler, the NMI watchdog or processor trace holds the counters",
        Errno::EACCES | Errno::EPERM => "; `hbbp doctor` says which permission is missing",
        Errno::EOPNOTSUPP | Errno::ENOENT | Errno::EINVAL | Errno::ENODEV => {
            "; `hbbp doctor` says what this machine has"
        }
        Errno::EMFILE => "; raise the limit of open files (ulimit -n)",
        _ => "",
    }
}

/// How a machine records branches, if it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchRecords {
    /// Intel LBR or AMD LBRv2: any event of the core.
    WithAnyEvent,
    /// AMD BRS: with the taken-branch event only, no filters, fixed periods above 16.
    WithTakenBranches,
}

/// The branch records of a core PMU, by what the kernel says of it and what opened.
pub fn branch_records(machine: &Machine, pmu: &Pmu) -> Option<BranchRecords> {
    if !machine.cpu.lbr_v2 && (machine.cpu.brs || pmu.events.contains_key("branch-brs")) {
        return Some(BranchRecords::WithTakenBranches);
    }
    match pmu.cap("branches") {
        Some(depth) => (depth > 0).then_some(BranchRecords::WithAnyEvent),
        None => machine.probes.branch_stack.works().then_some(BranchRecords::WithAnyEvent),
    }
}

/// Decides what to open.
///
/// # Errors
/// An option that this machine or this user's permissions cannot meet. Weaker sources than asked for by name are never taken.
pub fn plan(machine: &Machine, options: &Options) -> Result<Plan, PlanError> {
    if options.ebs == EventOption::None && options.lbr == EventOption::None {
        return Err(PlanError::NoEvents);
    }
    check_permissions(machine, options)?;
    let mut degradations = Vec::new();
    let levels = match options.levels {
        Some(levels) => levels,
        None if machine.may_sample_kernel() => Levels::All,
        None => {
            degradations.push(user_only_sentence(machine));
            Levels::User
        }
    };
    let chain = ChainOptions {
        options,
        levels,
        branch_levels: branch_levels(machine, options)?.unwrap_or(levels),
        rate_limit: machine.kernel.max_sample_rate,
    };
    let mut chains = Vec::new();
    match &options.ebs {
        EventOption::None => {}
        EventOption::Named(name) => {
            for event in parse_event_name(name, machine)? {
                chains.push(named_chain(machine, event, Role::Ebs, &chain)?);
            }
        }
        EventOption::Best if machine.counts_instructions() => {
            for pmu in machine.core_pmus() {
                let mut instructions = catalogue_chain(machine, pmu, Role::Ebs, &chain)?;
                if branch_records(machine, pmu).is_none() {
                    instructions.prefer(ibs_attempts(machine, &chain)?);
                }
                chains.push(instructions);
            }
        }
        EventOption::Best => {
            degradations.push(clock_sentence(machine));
            chains.push(clock_chain(&chain)?);
        }
    }
    plan_branches(machine, &chain, &mut chains, &mut degradations)?;
    Ok(Plan { chains, degradations, levels_may_shrink: options.levels.is_none() && levels == Levels::All })
}

/// The levels a named event for branch stacks has of its own: they hold for the branches too.
fn branch_levels(machine: &Machine, options: &Options) -> Result<Option<Levels>, PlanError> {
    let EventOption::Named(name) = &options.lbr else { return Ok(None) };
    Ok(parse_event_name(name, machine)?.first().and_then(|event| event.levels))
}

fn plan_branches(
    machine: &Machine,
    chain: &ChainOptions<'_>,
    chains: &mut Vec<FallbackChain>,
    degradations: &mut Vec<String>,
) -> Result<(), PlanError> {
    let with_records = || machine.core_pmus().filter(|pmu| branch_records(machine, pmu).is_some());
    match &chain.options.lbr {
        EventOption::None => return Ok(()),
        EventOption::Named(name) => {
            let events = parse_event_name(name, machine)?;
            if events.iter().any(|event| !event.on_core) {
                return Err(PlanError::NotOnCore(name.clone()));
            }
            if with_records().next().is_none() {
                return Err(PlanError::NoBranchRecords(name.clone()));
            }
            for event in events {
                chains.push(named_chain(machine, event, Role::Lbr, chain)?);
            }
        }
        EventOption::Best => {
            for pmu in with_records() {
                chains.push(catalogue_chain(machine, pmu, Role::Lbr, chain)?);
            }
        }
    }
    if with_records().next().is_none() && machine.counts_instructions() {
        degradations.push(no_records_sentence(machine));
    }
    if let Some(filter) = chain.options.filter
        && with_records().next().is_none()
        && kinds(filter) != BranchSampleType::ANY
    {
        degradations
            .push(format!("branch filter {} has no effect: no branches are recorded", branch_filter_text(filter)));
    }
    Ok(())
}

fn check_permissions(machine: &Machine, options: &Options) -> Result<(), PlanError> {
    use crate::machine::Probe::Fails;
    match machine.probes.dummy {
        Fails(errno) if errno.is_permission() => {
            return Err(PlanError::Forbidden { errno, container: machine.container.is_some() });
        }
        Fails(errno) => return Err(PlanError::NoPerfEvents(errno)),
        _ => {}
    }
    let paranoid = machine.kernel.perf_event_paranoid.unwrap_or(0);
    if options.levels == Some(Levels::Kernel) && !machine.may_sample_kernel() {
        return Err(PlanError::NoKernel(paranoid));
    }
    if options.system_wide && !machine.may_sample_system() {
        return Err(PlanError::NoSystemWide(paranoid));
    }
    Ok(())
}

pub(crate) fn user_only_sentence(machine: &Machine) -> String {
    let paranoid = machine.kernel.perf_event_paranoid.map_or("unknown".to_owned(), |level| level.to_string());
    format!("kernel code is not recorded: kernel.perf_event_paranoid is {paranoid} and this user has no CAP_PERFMON")
}

fn clock_sentence(machine: &Machine) -> String {
    let place = if machine.cpu.hypervisor { "this virtual machine has no PMU" } else { "no hardware event opens" };
    format!("{place}: samples come from the clock and show where time goes, not how often instructions run")
}

fn no_records_sentence(machine: &Machine) -> String {
    let why = if machine.cpu.hypervisor { " (the hypervisor does not pass them on)" } else { "" };
    format!("no branch records{why}: only event samples are recorded")
}
