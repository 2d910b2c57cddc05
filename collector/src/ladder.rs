//! For each event, what to open instead when the kernel refuses it, best first, and what each step down loses.

use perf_event_open_sys::bindings as sys;
use perfdata::BranchSampleType;

use crate::branch_filter::{LEVELS, branch_filter_text};
use crate::catalogue::{Listed, branch_events, ebs_events};
use crate::event_name::{NamedEvent, Precise};
use crate::event_spec::{EventSpec, Levels, Period, Role, Unit};
use crate::machine::Machine;
use crate::microarchitecture::Microarchitecture;
use crate::periods::{Periods, prime_from};
use crate::plan::{BranchRecords, EventWish, PlanError, Wishes, branch_records};
use crate::pmu::{EventCode, Pmu};

/// One event with its fallbacks.
#[derive(Clone, Debug, PartialEq)]
pub struct Ladder {
    /// What it is for.
    pub role: Role,
    /// Best first; the first that opens is used.
    pub rungs: Vec<Rung>,
    /// Whether the recording can do without it; otherwise it is an error if no rung opens.
    pub optional: bool,
}

/// One way to open an event.
#[derive(Clone, Debug, PartialEq)]
pub struct Rung {
    /// The event.
    pub spec: EventSpec,
    /// What it lacks against the best, in sentences.
    pub losses: Vec<String>,
    /// What there is to say against the event itself, even where it is the best.
    pub caveats: Vec<String>,
}

/// What all ladders of a plan share.
pub(crate) struct LadderWish<'a> {
    pub(crate) wishes: &'a Wishes,
    pub(crate) levels: Levels,
    /// Levels of the branches, where the filter does not name any. The same for all events: the hardware has one filter.
    pub(crate) branch_levels: Levels,
    /// The kernel's limit of samples a second.
    pub(crate) rate_limit: Option<u64>,
}

impl Ladder {
    /// Puts better rungs on top; those below then stand in for the first of them.
    pub(crate) fn prefer(&mut self, better: Vec<Rung>) {
        let Some(top) = better.first().map(|rung| rung.spec.base_name.clone()) else { return };
        for rung in &mut self.rungs {
            let name = rung.spec.name();
            rung.losses.insert(0, format!("{name} stands in for {top}: its ips are some instructions late"));
        }
        self.rungs.splice(0..0, better);
    }
}

/// The best events the catalogue has for `role` on `pmu`.
pub(crate) fn catalogue_ladder(
    machine: &Machine,
    pmu: &Pmu,
    role: Role,
    wish: &LadderWish<'_>,
) -> Result<Ladder, PlanError> {
    let core = Microarchitecture::of(&machine.cpu, pmu);
    let hybrid = machine.core_pmus().count() > 1;
    let records = branch_records(machine, pmu);
    let events = if role == Role::Ebs { ebs_events(core) } else { branch_events(core) };
    let stacks = stacks(role, records, wish);
    let period = period(role, records, wish)?;
    let mut rungs: Vec<Rung> = Vec::new();
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
                    levels: wish.levels,
                    excludes_guests: true,
                    branches: stack,
                };
                let mut losses = Vec::new();
                losses.extend(substitution(listed, &events[0], &spec, &top_name));
                if precise < events[0].precise {
                    losses.push(imprecise(&spec, events[0].precise));
                }
                losses.extend(stack_loss(&spec, &stacks, records, wish));
                let caveat = listed.caveat.map(|caveat| format!("{}: {caveat}", spec.name()));
                let caveats = caveat.into_iter().chain(period.loss.clone()).collect();
                rungs.push(Rung { spec, losses, caveats });
            }
        }
    }
    // Nothing is like the call stack mode: who asks for it gets it or an error.
    let replaceable = !wish.wishes.filter.is_some_and(|filter| filter.contains(BranchSampleType::CALL_STACK));
    Ok(Ladder { role, rungs, optional: role == Role::Lbr && replaceable })
}

/// An event the user named: no other stands in for it.
pub(crate) fn named_ladder(
    machine: &Machine,
    event: NamedEvent,
    role: Role,
    wish: &LadderWish<'_>,
) -> Result<Ladder, PlanError> {
    let pmu = event
        .on_core
        .then(|| machine.core_pmus().find(|pmu| pmu.kind == event.code.kind).or_else(|| machine.core_pmus().next()));
    let pmu = pmu.flatten();
    let records = pmu.and_then(|pmu| branch_records(machine, pmu));
    let stacks = stacks(role, records.filter(|_| event.on_core), wish);
    let asked = period(role, records, wish)?;
    let explicit = wish.wishes.frequency.is_some() || own_period(role, wish.wishes).is_some();
    let value = match event.period {
        Some(period) if !explicit => period,
        _ => asked.value,
    };
    let value = match (event.unit, event.code.kind, value) {
        (Unit::Nanoseconds, ..) if event.period.is_none() => clock_period(wish)?,
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
    let mut rungs = Vec::new();
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
                levels: event.levels.unwrap_or(wish.levels),
                excludes_guests: event.excludes_guests,
                branches: stack,
            };
            let mut losses: Vec<String> = stack_loss(&spec, &stacks, records, wish).into_iter().collect();
            if precise < precisions[0] {
                losses.push(imprecise(&spec, precisions[0]));
            }
            let caveats = asked.loss.iter().filter(|_| event.on_core).cloned().collect();
            rungs.push(Rung { spec, losses, caveats });
        }
    }
    Ok(Ladder { role, rungs, optional: false })
}

/// The clock of a task, or of a CPU when all its tasks are recorded.
pub(crate) fn clock_ladder(wish: &LadderWish<'_>) -> Result<Ladder, PlanError> {
    let period = clock_period(wish)?;
    let clock = |name: &str, config: u32| EventSpec {
        role: Role::Ebs,
        unit: Unit::Nanoseconds,
        base_name: name.to_owned(),
        code: EventCode::new(sys::PERF_TYPE_SOFTWARE, config.into()),
        cpus: None,
        period,
        precise: 0,
        levels: wish.levels,
        excludes_guests: false,
        branches: None,
    };
    let task =
        Rung { spec: clock("task-clock", sys::PERF_COUNT_SW_TASK_CLOCK), losses: Vec::new(), caveats: Vec::new() };
    let cpu = Rung { spec: clock("cpu-clock", sys::PERF_COUNT_SW_CPU_CLOCK), losses: Vec::new(), caveats: Vec::new() };
    if wish.wishes.system_wide {
        return Ok(Ladder { role: Role::Ebs, rungs: vec![cpu], optional: false });
    }
    let stand_in = Rung { losses: vec!["cpu-clock stands in for task-clock".to_owned()], ..cpu };
    Ok(Ladder { role: Role::Ebs, rungs: vec![task, stand_in], optional: false })
}

/// AMD's instruction-based sampling, precise but in micro-operations; it leaves out levels only with `swfilt` (since Linux 6.14).
pub(crate) fn ibs_rungs(machine: &Machine, wish: &LadderWish<'_>) -> Result<Vec<Rung>, PlanError> {
    let Some(ibs) = machine.pmu("ibs_op") else { return Ok(Vec::new()) };
    let filtered = wish.levels != Levels::All;
    let terms = if filtered { "cnt_ctl=1,swfilt=1" } else { "cnt_ctl=1" };
    let Ok(code) = ibs.encode(terms, &mut |_, _| false) else { return Ok(Vec::new()) };
    let period = match period(Role::Ebs, None, wish)?.value {
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
        levels: wish.levels,
        excludes_guests: false,
        branches: None,
    };
    let caveats = vec![format!("{}: it samples micro-operations, so instructions of several count more", spec.name())];
    Ok(vec![Rung { spec, losses: Vec::new(), caveats }])
}

/// IBS ignores the low four bits.
fn ibs_period(count: u64) -> u64 {
    (count & !0xf).max(0x10)
}

fn display_name(listed: &Listed, pmu: &Pmu, hybrid: bool) -> String {
    if hybrid { format!("{}/{}/", pmu.name, listed.name) } else { listed.name.to_owned() }
}

/// The branches asked for.
fn asked(wish: &LadderWish<'_>) -> BranchSampleType {
    let filter = wish.wishes.filter.unwrap_or(BranchSampleType::ANY);
    if filter.intersects(LEVELS) {
        return filter;
    }
    filter
        | match wish.branch_levels {
            Levels::All => BranchSampleType::USER | BranchSampleType::KERNEL,
            Levels::User => BranchSampleType::USER,
            Levels::Kernel => BranchSampleType::KERNEL,
        }
}

/// The branch stacks to try, best first. The two events must ask the hardware for the same filter, or they cannot count at the same time.
fn stacks(role: Role, records: Option<BranchRecords>, wish: &LadderWish<'_>) -> Vec<Option<BranchSampleType>> {
    let asked = asked(wish);
    // In place of a filter the hardware does not have: all branches, at the levels asked for.
    let plain = BranchSampleType(asked.0 & LEVELS.0) | BranchSampleType::ANY;
    let replaceable = asked != plain && !asked.contains(BranchSampleType::CALL_STACK);
    let filters = if replaceable { vec![Some(asked), Some(plain)] } else { vec![Some(asked)] };
    match (role, records) {
        (Role::Lbr, Some(BranchRecords::WithTakenBranches)) => vec![Some(plain)],
        (Role::Lbr, _) => filters,
        (Role::Ebs, Some(BranchRecords::WithAnyEvent)) if wish.wishes.lbr != EventWish::None => {
            filters.into_iter().chain([None]).collect()
        }
        (Role::Ebs, _) => vec![None],
    }
}

fn stack_loss(
    spec: &EventSpec,
    stacks: &[Option<BranchSampleType>],
    records: Option<BranchRecords>,
    wish: &LadderWish<'_>,
) -> Option<String> {
    let asked = asked(wish);
    match spec.branches {
        None if stacks[0].is_some() => Some(format!("{}: its samples come without branch stacks", spec.name())),
        Some(stack) if stack != asked => {
            let who = if records == Some(BranchRecords::WithTakenBranches) { "BRS" } else { "this CPU" };
            Some(format!(
                "{who} does not filter by {}: all taken branches are recorded",
                branch_filter_text(asked.difference(LEVELS))
            ))
        }
        _ => None,
    }
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

/// A period, and what it is not.
struct ChosenPeriod {
    value: Period,
    loss: Option<String>,
}

fn own_period(role: Role, wishes: &Wishes) -> Option<u64> {
    if role == Role::Ebs { wishes.ebs_period } else { wishes.lbr_period }
}

fn period(role: Role, records: Option<BranchRecords>, wish: &LadderWish<'_>) -> Result<ChosenPeriod, PlanError> {
    let Periods { ebs, lbr, .. } = wish.wishes.run_time.periods();
    let table = if role == Role::Ebs { ebs } else { lbr };
    let option = if role == Role::Ebs { "--ebs-period" } else { "--lbr-period" };
    let brs = role == Role::Lbr && records == Some(BranchRecords::WithTakenBranches);
    match (own_period(role, wish.wishes), wish.wishes.frequency) {
        (Some(period), _) if brs && period <= 16 => {
            Err(PlanError::Period { period, role: option, rule: "BRS needs more than its 16 entries" })
        }
        (Some(0), _) | (None, Some(0)) => {
            Err(PlanError::Period { period: 0, role: option, rule: "it must be 1 or more" })
        }
        (Some(period), _) => Ok(ChosenPeriod { value: Period::Every(period), loss: None }),
        (None, Some(_)) if brs => Ok(ChosenPeriod {
            value: Period::Every(table),
            loss: Some(format!("BRS has no sampling by frequency: branch stacks come every {table} taken branches")),
        }),
        (None, Some(frequency)) => {
            Ok(ChosenPeriod { value: Period::Frequency(capped(frequency, wish)), loss: cap_loss(frequency, wish) })
        }
        (None, None) => Ok(ChosenPeriod { value: Period::Every(table), loss: None }),
    }
}

/// Clocks have a period in nanoseconds whichever way the rate is given, and a prime one unless the user chose it.
fn clock_period(wish: &LadderWish<'_>) -> Result<Period, PlanError> {
    let rule = "a clock takes 10,000 ns or more";
    match (wish.wishes.ebs_period, wish.wishes.frequency) {
        (Some(period), _) if period < 10_000 => Err(PlanError::Period { period, role: "--ebs-period", rule }),
        (Some(period), _) => Ok(Period::Every(period)),
        (None, Some(0)) => Err(PlanError::Period { period: 0, role: "--freq", rule: "it must be 1 or more" }),
        (None, Some(frequency)) => Ok(Period::Every(prime_from((1_000_000_000 / capped(frequency, wish)).max(10_000)))),
        (None, None) => Ok(Period::Every(wish.wishes.run_time.periods().clock)),
    }
}

/// The kernel refuses frequencies above its limit.
fn capped(frequency: u64, wish: &LadderWish<'_>) -> u64 {
    wish.rate_limit.map_or(frequency, |limit| frequency.min(limit.max(1)))
}

fn cap_loss(frequency: u64, wish: &LadderWish<'_>) -> Option<String> {
    let limit = wish.rate_limit.filter(|&limit| frequency > limit)?;
    Some(format!("{limit} samples a second instead of {frequency}: kernel.perf_event_max_sample_rate is {limit}"))
}
