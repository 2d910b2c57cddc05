//! Event names as `perf record -e` takes them: `cycles`, `instructions:u`, `r20c4:pp`, `cpu/event=0xc4,umask=0x20/upp`.

use perf_event_open_sys::bindings as sys;

use crate::machine::Machine;
use crate::machine::cpu_list::CpuList;
use crate::machine::pmu::{EventCode, Pmu, TermError, number};
use crate::plan::catalogue::{branch_events, ebs_events};
use crate::plan::event_spec::{Levels, Period, Unit};
use crate::plan::microarchitecture::Microarchitecture;

/// An event the user named, on one PMU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedEvent {
    /// The name as it was given, without modifiers.
    pub name: String,
    /// The code that the kernel knows it by.
    pub code: EventCode,
    /// The CPUs that have it; `None`: all.
    pub cpus: Option<CpuList>,
    /// What it counts, if that is known.
    pub unit: Unit,
    /// Levels, if modifiers name any.
    pub levels: Option<Levels>,
    /// How precise its samples must be.
    pub precise: Precise,
    /// `period=` or `freq=` among the terms.
    pub period: Option<Period>,
    /// Whether it belongs to a core PMU, which may have branch records.
    pub on_core: bool,
    /// Whether the PMU takes `exclude_guest`.
    pub excludes_guests: bool,
}

/// `precise_ip` as asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precise {
    /// So many `p`, none included.
    Level(u8),
    /// `P`: as precise as the machine can.
    Most,
}

/// Why a name does not stand for an event of this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventNameError {
    /// No event by that name.
    #[error(
        "`{0}` is no event of this machine; `perf list` shows names, r20c4 and cpu/event=0xc4,umask=0x20/ are codes"
    )]
    Unknown(String),
    /// The machine has no PMU of that name.
    #[error("`{name}`: this machine has no PMU `{pmu}`; it has {known}")]
    NoPmu {
        /// The name as it was given.
        name: String,
        /// The PMU that it names.
        pmu: String,
        /// The PMUs that it has, joined by commas.
        known: String,
    },
    /// A raw code where there is no core PMU to count it.
    #[error("`{0}`: this machine has no PMU that counts hardware events")]
    NoHardware(String),
    /// A term that the PMU does not have.
    #[error("`{name}`: {source}")]
    Term {
        /// The name as it was given.
        name: String,
        /// What is wrong with it.
        source: TermError,
    },
    /// A modifier that is not u, k, h, p or P.
    #[error("`{name}`: modifier `{modifier}` is not one of u, k, h, p (up to three times), P")]
    Modifier {
        /// The name as it was given.
        name: String,
        /// The modifier that is not known.
        modifier: char,
    },
}

const HARDWARE: &[(&str, u32)] = &[
    ("cycles", sys::PERF_COUNT_HW_CPU_CYCLES),
    ("cpu-cycles", sys::PERF_COUNT_HW_CPU_CYCLES),
    ("instructions", sys::PERF_COUNT_HW_INSTRUCTIONS),
    ("cache-references", sys::PERF_COUNT_HW_CACHE_REFERENCES),
    ("cache-misses", sys::PERF_COUNT_HW_CACHE_MISSES),
    ("branches", sys::PERF_COUNT_HW_BRANCH_INSTRUCTIONS),
    ("branch-instructions", sys::PERF_COUNT_HW_BRANCH_INSTRUCTIONS),
    ("branch-misses", sys::PERF_COUNT_HW_BRANCH_MISSES),
    ("bus-cycles", sys::PERF_COUNT_HW_BUS_CYCLES),
    ("stalled-cycles-frontend", sys::PERF_COUNT_HW_STALLED_CYCLES_FRONTEND),
    ("stalled-cycles-backend", sys::PERF_COUNT_HW_STALLED_CYCLES_BACKEND),
    ("ref-cycles", sys::PERF_COUNT_HW_REF_CPU_CYCLES),
];

const SOFTWARE: &[(&str, u32)] = &[
    ("cpu-clock", sys::PERF_COUNT_SW_CPU_CLOCK),
    ("task-clock", sys::PERF_COUNT_SW_TASK_CLOCK),
    ("page-faults", sys::PERF_COUNT_SW_PAGE_FAULTS),
    ("faults", sys::PERF_COUNT_SW_PAGE_FAULTS),
    ("context-switches", sys::PERF_COUNT_SW_CONTEXT_SWITCHES),
    ("cs", sys::PERF_COUNT_SW_CONTEXT_SWITCHES),
    ("cpu-migrations", sys::PERF_COUNT_SW_CPU_MIGRATIONS),
    ("migrations", sys::PERF_COUNT_SW_CPU_MIGRATIONS),
    ("minor-faults", sys::PERF_COUNT_SW_PAGE_FAULTS_MIN),
    ("major-faults", sys::PERF_COUNT_SW_PAGE_FAULTS_MAJ),
    ("alignment-faults", sys::PERF_COUNT_SW_ALIGNMENT_FAULTS),
    ("emulation-faults", sys::PERF_COUNT_SW_EMULATION_FAULTS),
];

/// The events `text` stands for on `machine`: one, or one per kind of core where the name leaves that open.
///
/// # Errors
/// A name, PMU, term or modifier that this machine does not have.
pub fn parse_event_name(text: &str, machine: &Machine) -> Result<Vec<NamedEvent>, EventNameError> {
    if let Some((pmu, rest)) = text.split_once('/') {
        let (terms, modifiers) = rest.rsplit_once('/').unwrap_or((rest, ""));
        return Ok(vec![with_terms(text, pmu, terms, modifiers.trim_start_matches(':'), machine)?]);
    }
    if let Some(events) = listed_name(text, machine)? {
        return Ok(events);
    }
    let (name, modifiers) = text.split_once(':').unwrap_or((text, ""));
    if let Some(&(_, config)) = SOFTWARE.iter().find(|(known, _)| *known == name) {
        let unit = if name.ends_with("-clock") { Unit::Nanoseconds } else { Unit::Other };
        let event = event(name.to_owned(), EventCode::new(sys::PERF_TYPE_SOFTWARE, config.into()), unit);
        return Ok(vec![modified(text, modifiers, NamedEvent { on_core: false, excludes_guests: false, ..event })?]);
    }
    if let Some(&(_, config)) = HARDWARE.iter().find(|(known, _)| *known == name) {
        let unit = match config {
            sys::PERF_COUNT_HW_INSTRUCTIONS => Unit::Instructions,
            sys::PERF_COUNT_HW_BRANCH_INSTRUCTIONS => Unit::Branches,
            _ => Unit::Other,
        };
        return per_core(text, name, modifiers, machine, |pmu, hybrid| {
            let extended = if hybrid { u64::from(pmu.kind) << 32 } else { 0 };
            Some((EventCode::new(sys::PERF_TYPE_HARDWARE, u64::from(config) | extended), unit))
        });
    }
    if let Some(code) = name.strip_prefix('r').and_then(|hex| u64::from_str_radix(hex, 16).ok()) {
        return per_core(text, name, modifiers, machine, |pmu, _| {
            Some((EventCode::new(pmu.kind, code), unit_of(code, pmu, machine)))
        });
    }
    let events = per_core(text, name, modifiers, machine, |pmu, _| {
        pmu.events.get(name)?;
        let code = pmu.encode(name, &mut |_, _| true).ok()?;
        Some((code, unit_of(code.config[0], pmu, machine)))
    });
    match events {
        Err(EventNameError::NoHardware(_)) => Err(EventNameError::Unknown(text.to_owned())),
        other => other,
    }
}

fn event(name: String, code: EventCode, unit: Unit) -> NamedEvent {
    NamedEvent {
        name,
        code,
        cpus: None,
        unit,
        levels: None,
        precise: Precise::Level(0),
        period: None,
        on_core: true,
        excludes_guests: true,
    }
}

/// Reads an event of the form `pmu/terms/modifiers`.
fn with_terms(
    text: &str,
    pmu_name: &str,
    terms: &str,
    modifiers: &str,
    machine: &Machine,
) -> Result<NamedEvent, EventNameError> {
    let pmu = machine.pmu(pmu_name).ok_or_else(|| EventNameError::NoPmu {
        name: text.to_owned(),
        pmu: pmu_name.to_owned(),
        known: machine.pmus.iter().map(|pmu| pmu.name.as_str()).collect::<Vec<_>>().join(", "),
    })?;
    let mut name = format!("{pmu_name}/{terms}/");
    let mut period = None;
    let mut bad_number = None;
    let code = pmu.encode(terms, &mut |term, value| {
        let mut set = |make: fn(u64) -> Period| match number(value) {
            Ok(number) => period = Some(make(number)),
            Err(error) => bad_number = Some(error),
        };
        match term {
            "period" => set(Period::Every),
            "freq" => set(Period::Frequency),
            "name" => name = value.to_owned(),
            _ => return false,
        }
        true
    });
    let code = bad_number.map_or(code, Err).map_err(|source| EventNameError::Term { name: text.to_owned(), source })?;
    let on_core = machine.core_pmus().any(|core| core.name == pmu.name);
    let unit = match pmu_name {
        // Bit 19, cnt_ctl: operations rather than cycles.
        "ibs_op" if code.config[0] & 1 << 19 != 0 => Unit::Operations,
        _ if on_core => unit_of(code.config[0], pmu, machine),
        _ => Unit::Other,
    };
    let cpus = pmu.cpus.clone();
    modified(text, modifiers, NamedEvent { cpus, period, on_core, excludes_guests: on_core, ..event(name, code, unit) })
}

/// One event for each core PMU that has it.
fn per_core(
    text: &str,
    name: &str,
    modifiers: &str,
    machine: &Machine,
    code: impl Fn(&Pmu, bool) -> Option<(EventCode, Unit)>,
) -> Result<Vec<NamedEvent>, EventNameError> {
    let hybrid = machine.core_pmus().count() > 1;
    let mut events = Vec::new();
    for pmu in machine.core_pmus() {
        let Some((code, unit)) = code(pmu, hybrid) else { continue };
        let name = if hybrid { format!("{}/{name}/", pmu.name) } else { name.to_owned() };
        events.push(modified(text, modifiers, NamedEvent { cpus: pmu.cpus.clone(), ..event(name, code, unit) })?);
    }
    if events.is_empty() { Err(EventNameError::NoHardware(text.to_owned())) } else { Ok(events) }
}

/// A name of the catalogue, in either case, with `.` or `:` between its parts.
fn listed_name(text: &str, machine: &Machine) -> Result<Option<Vec<NamedEvent>>, EventNameError> {
    let matches = |name: &str| {
        let start = text.get(..name.len())?;
        let same = start.replacen(':', ".", 1).eq_ignore_ascii_case(name);
        let rest = &text[name.len()..];
        (same && (rest.is_empty() || rest.starts_with(':'))).then(|| rest.trim_start_matches(':').to_owned())
    };
    let in_catalogue = |pmu: &Pmu| {
        let core = Microarchitecture::of(&machine.cpu, pmu);
        let all = ebs_events(core).into_iter().chain(branch_events(core));
        all.filter(|listed| !listed.generic).find_map(|listed| Some((listed, matches(listed.name)?)))
    };
    let Some((listed, modifiers)) = machine.core_pmus().find_map(in_catalogue) else { return Ok(None) };
    let events = per_core(text, listed.name, &modifiers, machine, |pmu, hybrid| {
        let (listed, _) = in_catalogue(pmu)?;
        Some((listed.code(pmu.kind, hybrid), listed.unit))
    })?;
    Ok(Some(events))
}

/// What a raw code counts, if it is in the catalogue.
fn unit_of(config: u64, pmu: &Pmu, machine: &Machine) -> Unit {
    let core = Microarchitecture::of(&machine.cpu, pmu);
    let all = ebs_events(core).into_iter().chain(branch_events(core));
    let known = all.filter(|listed| !listed.generic).find(|listed| listed.config == config);
    match (known, config, core) {
        (Some(listed), ..) => listed.unit,
        // Architectural, on every Intel core.
        (None, 0x00c0, core) if core != Microarchitecture::Unknown => Unit::Instructions,
        (None, 0x00c4, core) if core != Microarchitecture::Unknown => Unit::Branches,
        _ => Unit::Other,
    }
}

fn modified(text: &str, modifiers: &str, mut event: NamedEvent) -> Result<NamedEvent, EventNameError> {
    let (mut user, mut kernel, mut precise) = (false, false, 0);
    for modifier in modifiers.chars() {
        match modifier {
            'u' => user = true,
            'k' | 'h' => kernel = true,
            'p' if precise < 3 => precise += 1,
            'P' => event.precise = Precise::Most,
            _ => return Err(EventNameError::Modifier { name: text.to_owned(), modifier }),
        }
    }
    event.levels = match (user, kernel) {
        (false, false) => None,
        (true, false) => Some(Levels::User),
        (false, true) => Some(Levels::Kernel),
        (true, true) => Some(Levels::All),
    };
    if precise > 0 {
        event.precise = Precise::Level(precise);
    }
    Ok(event)
}
