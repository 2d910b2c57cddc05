//! For each event, what to open instead when the kernel refuses it, best first, and what each step down loses.

use perf_event_open_sys::bindings as sys;
use perfdata::BranchSampleType;

use crate::machine::Machine;
use crate::machine::pmu::{EventCode, Pmu};
use crate::plan::catalogue::{Listed, branch_events, ebs_events};
use crate::plan::chain_options::ChainOptions;
use crate::plan::event_name::{NamedEvent, Precise};
use crate::plan::event_spec::{EventSpec, Levels, Period, Role, Unit};
use crate::plan::microarchitecture::Microarchitecture;
use crate::plan::rate::{clock_period, ibs_period, own_period, period};
use crate::plan::stacks::{stack_loss, stacks};
use crate::plan::{PlanError, branch_records};

/// One event with its fallbacks.
#[derive(Clone, Debug, PartialEq)]
pub struct FallbackChain {
    /// What it is for.
    pub role: Role,
    /// Best first; the first that opens is used.
    pub attempts: Vec<Attempt>,
    /// Whether the recording can do without it; otherwise it is an error if no attempt opens.
    pub optional: bool,
}

/// One way to open an event.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// The event to try.
    pub spec: EventSpec,
    /// What it lacks against the best, in sentences.
    pub losses: Vec<String>,
    /// What there is to say against the event itself, even where it is the best.
    pub caveats: Vec<String>,
}

impl FallbackChain {
    /// Puts better attempts on top; those below then stand in for the first of them.
    pub(crate) fn prefer(&mut self, better: Vec<Attempt>) {
        let Some(top) = better.first().map(|attempt| attempt.spec.base_name.clone()) else { return };
        for attempt in &mut self.attempts {
            let name = attempt.spec.name();
            attempt.losses.insert(0, format!("{name} stands in for {top}: its ips are some instructions late"));
        }
        self.attempts.splice(0..0, better);
    }
}

/// The best events the catalogue has for `role` on `pmu`.
pub(crate) fn catalogue_chain(
    machine: &Machine,
    pmu: &Pmu,
    role: Role,
    chain: &ChainOptions<'_>,
) -> Result<FallbackChain, PlanError> {
    let core = Microarchitecture::of(&machine.cpu, pmu);
    let hybrid = machine.core_pmus().count() > 1;
    let records = branch_records(machine, pmu);
    let events = if role == Role::Ebs { ebs_events(core) } else { branch_events(core) };
    let stacks = stacks(role, records, chain);
    let period = period(role, records, chain)?;
    let mut attempts: Vec<Attempt> = Vec::new();
    let top_name = display_name(&events[0], pmu, hybrid);
    for &stack in &stacks {
        for listed in &events {
            for precise in (listed.least_precise..=listed.precise).rev() {
                if pmu.cap("max_precise").is_some_and(|most| u32::from(precise) > most) {
                    continue;
                }
                let spec = EventSpec {
                    role,
                    unit: listed.unit,
                    base_name: display_name(listed, pmu, hybrid),
                    code: listed.code(pmu.kind, hybrid),
                    cpus: pmu.cpus.clone(),
                    period: period.value,
                    precise,
                    levels: chain.levels,
                    excludes_guests: true,
                    branches: stack,
                };
                let mut losses = Vec::new();
                losses.extend(substitution(listed, &events[0], &spec, &top_name));
                if precise < events[0].precise {
                    losses.push(imprecise(&spec, events[0].precise));
                }
                losses.extend(stack_loss(&spec, &stacks, records, chain));
                let caveat = listed.caveat.map(|caveat| format!("{}: {caveat}", spec.name()));
                let caveats = caveat.into_iter().chain(period.loss.clone()).collect();
                attempts.push(Attempt { spec, losses, caveats });
            }
        }
    }
    // Nothing is like the call stack mode: who asks for it gets it or an error.
    let replaceable = !chain.options.filter.is_some_and(|filter| filter.contains(BranchSampleType::CALL_STACK));
    Ok(FallbackChain { role, attempts, optional: role == Role::Lbr && replaceable })
}

/// An event the user named: no other stands in for it.
pub(crate) fn named_chain(
    machine: &Machine,
    event: NamedEvent,
    role: Role,
    chain: &ChainOptions<'_>,
) -> Result<FallbackChain, PlanError> {
    let pmu = event
        .on_core
        .then(|| machine.core_pmus().find(|pmu| pmu.kind == event.code.kind).or_else(|| machine.core_pmus().next()));
    let pmu = pmu.flatten();
    let records = pmu.and_then(|pmu| branch_records(machine, pmu));
    let stacks = stacks(role, records.filter(|_| event.on_core), chain);
    let asked = period(role, records, chain)?;
    let explicit = chain.options.frequency.is_some() || own_period(role, chain.options).is_some();
    let value = match event.period {
        Some(period) if !explicit => period,
        _ => asked.value,
    };
    let value = match (event.unit, event.code.kind, value) {
        (Unit::Nanoseconds, ..) if event.period.is_none() => clock_period(chain)?,
        (Unit::Operations, _, Period::Every(count)) => Period::Every(ibs_period(count)),
        // Page faults and the like are rare: every one is a sample.
        (Unit::Other, sys::PERF_TYPE_SOFTWARE, _) if !explicit && event.period.is_none() => Period::Every(1),
        (_, _, value) => value,
    };
    let precisions = match event.precise {
        Precise::Level(level) => vec![level],
        Precise::Most => (0..=3)
            .rev()
            .filter(|&level| pmu.and_then(|pmu| pmu.cap("max_precise")).is_none_or(|most| level <= most as u8))
            .collect(),
    };
    let mut attempts = Vec::new();
    for &stack in &stacks {
        for &precise in &precisions {
            let spec = EventSpec {
                role,
                unit: event.unit,
                base_name: event.name.clone(),
                code: event.code,
                cpus: event.cpus.clone(),
                period: value,
                precise,
                levels: event.levels.unwrap_or(chain.levels),
                excludes_guests: event.excludes_guests,
                branches: stack,
            };
            let mut losses: Vec<String> = stack_loss(&spec, &stacks, records, chain).into_iter().collect();
            if precise < precisions[0] {
                losses.push(imprecise(&spec, precisions[0]));
            }
            let caveats = asked.loss.iter().filter(|_| event.on_core).cloned().collect();
            attempts.push(Attempt { spec, losses, caveats });
        }
    }
    Ok(FallbackChain { role, attempts, optional: false })
}

/// The clock of a task, or of a CPU when all its tasks are recorded.
pub(crate) fn clock_chain(chain: &ChainOptions<'_>) -> Result<FallbackChain, PlanError> {
    let period = clock_period(chain)?;
    let clock = |name: &str, config: u32| EventSpec {
        role: Role::Ebs,
        unit: Unit::Nanoseconds,
        base_name: name.to_owned(),
        code: EventCode::new(sys::PERF_TYPE_SOFTWARE, config.into()),
        cpus: None,
        period,
        precise: 0,
        levels: chain.levels,
        excludes_guests: false,
        branches: None,
    };
    let task =
        Attempt { spec: clock("task-clock", sys::PERF_COUNT_SW_TASK_CLOCK), losses: Vec::new(), caveats: Vec::new() };
    let cpu =
        Attempt { spec: clock("cpu-clock", sys::PERF_COUNT_SW_CPU_CLOCK), losses: Vec::new(), caveats: Vec::new() };
    if chain.options.system_wide {
        return Ok(FallbackChain { role: Role::Ebs, attempts: vec![cpu], optional: false });
    }
    let stand_in = Attempt { losses: vec!["cpu-clock stands in for task-clock".to_owned()], ..cpu };
    Ok(FallbackChain { role: Role::Ebs, attempts: vec![task, stand_in], optional: false })
}

/// AMD's instruction-based sampling, precise but in micro-operations; it leaves out levels only with `swfilt` (since Linux 6.14).
pub(crate) fn ibs_attempts(machine: &Machine, chain: &ChainOptions<'_>) -> Result<Vec<Attempt>, PlanError> {
    let Some(ibs) = machine.pmu("ibs_op") else { return Ok(Vec::new()) };
    let filtered = chain.levels != Levels::All;
    let terms = if filtered { "cnt_ctl=1,swfilt=1" } else { "cnt_ctl=1" };
    let Ok(code) = ibs.encode(terms, &mut |_, _| false) else { return Ok(Vec::new()) };
    let period = match period(Role::Ebs, None, chain)?.value {
        Period::Every(count) => Period::Every(ibs_period(count)),
        frequency => frequency,
    };
    let spec = EventSpec {
        role: Role::Ebs,
        unit: Unit::Operations,
        base_name: format!("ibs_op/{terms}/"),
        code,
        cpus: None,
        period,
        precise: 0,
        levels: chain.levels,
        excludes_guests: false,
        branches: None,
    };
    let caveats = vec![format!("{}: it samples micro-operations, so instructions of several count more", spec.name())];
    Ok(vec![Attempt { spec, losses: Vec::new(), caveats }])
}

fn display_name(listed: &Listed, pmu: &Pmu, hybrid: bool) -> String {
    if hybrid { format!("{}/{}/", pmu.name, listed.name) } else { listed.name.to_owned() }
}

fn substitution(listed: &Listed, best: &Listed, spec: &EventSpec, best_name: &str) -> Option<String> {
    if listed.name != best.name {
        return Some(format!("{} stands in for {best_name}", spec.name()));
    }
    (listed.config != best.config)
        .then(|| format!("{}: code {:#x} stands in for {:#x}", spec.name(), listed.config, best.config))
}

fn imprecise(spec: &EventSpec, best: u8) -> String {
    let effect = if spec.role == Role::Ebs { "ips may be late" } else { "stacks may be taken late" };
    format!("{}: precise level {} instead of {best}, so {effect}", spec.name(), spec.precise)
}
