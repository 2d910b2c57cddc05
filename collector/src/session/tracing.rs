//! Whether a session traces branches in software, and how.

use std::ops::Range;
use std::time::Duration;

use agent::ImageError;
use formats::metadata::{EventMetadata, Metadata, TracerMetadata};
use perf_event_open_sys::bindings as sys;
use perfdata::{BranchSampleType, EventAttr, EventDescription, SampleFormat};

use crate::error::RecordError;
use crate::machine::cpu_list::CpuList;
use crate::machine::pmu::EventCode;
use crate::machine::{EventOpener, Machine};
use crate::plan::EventOption;
use crate::plan::choice::Choice;
use crate::plan::event_spec::{EventSpec, Levels, Period, Provenance, Role, Unit};
use crate::plan::periods::prime_from;
use crate::plan::request::{Request, Target};
use crate::session::by_cpu::by_cpu;
use crate::session::followed::{Attached, Followed, Follows, PlannedFollower, agreeing};
use crate::session::metadata::{count_event, event_metadata};
use crate::session::open::{KernelOpener, Totals};
use crate::session::placeholder::{placeholder, tracking};
use crate::session::setup::tasks;
use crate::session::{Summary, nanoseconds};
use crate::sys::{EventFd, own_cpu_time};
use crate::tracer::budget::stop_cost::{SAMPLE, SAMPLE_SHARE, SAMPLE_SHARE_BESIDE_AGENTS, UNSEEN_SHARE};
use crate::tracer::{
    BurstEvent, BurstSize, ByCpu, Clock, Running, Settings, TraceError, Tracer, TracerChoice, TracerKind,
    TracerOptions, TracerStatistics, obstacle,
};

/// Tracing that is to be done.
pub(crate) struct Tracing {
    settings: Settings,
    spec: EventSpec,
    /// The CPUs that are there.
    cpus: CpuList,
    /// How many threads there are, or one where a command begins.
    tasks: usize,
    /// Keeps the id of the bursts' event from being given to another one.
    id: (EventFd, u64),
    /// Samples of clocks in the files before this one, with those that were left out.
    sampled: u64,
}

impl Tracing {
    /// Decides by the request and by what the hardware gives. Sampling beside the bursts becomes rarer where the user left it open.
    ///
    /// # Errors
    /// The user wants it, and it cannot be.
    pub(crate) fn plan(request: &Request, machine: &Machine, choice: &mut Choice) -> Result<Option<Self>, RecordError> {
        let Some(kind) = wanted(request, machine, choice) else {
            sample_within(request, 1.0, choice);
            return Ok(None);
        };
        sample_less(request, kind, choice);
        let by_cpu = if kind == TracerKind::Lookahead { started_by_cpu(request, machine, choice) } else { None };
        let samples = !choice.events.is_empty();
        if !samples {
            // Something has to tell of mappings, names, forks and exits.
            choice.events.push(tracking());
        }
        let is_agent = kind.has_agents();
        let group = request.target.group().cloned();
        // Those who come into a group later can be visited, but not be traced all the time.
        let by_instructions = machine.counts_instructions() && !is_agent && group.is_none() && by_cpu.is_none();
        let clock = if by_instructions { Clock::Instructions } else { Clock::Time };
        let options = &request.tracer;
        let settings = Settings {
            kind,
            end: options.size.end(kind),
            overhead: options.overhead,
            start_credit: request.start_credit(),
            burst_share: 1.0 - unseen_share(kind) - if samples { sample_share(kind) } else { 0.0 },
            inherit: !request.no_inherit,
            command: None,
            waited_for: None,
            by_cpu,
            group,
            clock,
            searched: request.searched.clone(),
        };
        let id = placeholder()?;
        let spec = spec(clock, options.overhead);
        let cpus = machine.online.clone();
        Ok(Some(Self { settings, spec, cpus, tasks: tasks(&request.target, choice.by_cpu), id, sampled: 0 }))
    }

    /// The event of the bursts, which agrees with `first` in all that readers expect events to agree in.
    fn description(&self, first: &EventAttr) -> EventDescription {
        let shared = SampleFormat(first.sample_format.0 & !SampleFormat::BRANCH_STACK.0);
        let attr = agreeing(&self.spec, first, with_burst(shared));
        EventDescription { attr, name: self.spec.name(), ids: vec![self.id.1] }
    }
}

impl PlannedFollower for Tracing {
    /// The records of forks and execs have an event on each CPU.
    fn files(&self) -> usize {
        let clocks = if self.settings.by_cpu.is_some() { self.cpus.len() } else { 0 };
        if self.settings.visits() { self.tasks * self.cpus.len() + clocks } else { 0 }
    }

    /// If the tracer was the tool's choice and cannot attach, that is a degradation.
    fn attach(
        mut self: Box<Self>,
        request: &Request,
        command: Option<u32>,
        first: Option<&EventAttr>,
        choice: &mut Choice,
    ) -> Result<Option<Attached>, RecordError> {
        let Some(first) = first else { return Ok(None) };
        let (ids, whole) = match &request.target {
            Target::Command => (command.into_iter().collect(), false),
            Target::Processes(ids) => (ids.clone(), true),
            Target::Threads(ids) => (ids.clone(), false),
            Target::System | Target::Group(_) => (Vec::new(), false),
        };
        self.settings.waited_for = command.map(|pid| pid as i32);
        if request.target == Target::Command {
            self.settings.command = self.settings.waited_for;
        }
        let burst = self.description(first);
        let event = BurstEvent { attr: burst.attr.clone(), id: self.id.1 };
        let is_open = request.tracer.is_open();
        // Threads are stopped by ptrace, for a burst or for the agent, later.
        let visit = |settings: &Settings, choice: &mut Choice| {
            let may_trace = KernelOpener.try_trace();
            may_trace.map_err(|errno| TraceError::of(settings.kind, format!("ptrace: {errno}")))?;
            Tracer::by_visits(settings.clone(), event.clone(), self.cpus.clone(), running(&request.target, choice)?)
        };
        let mut attached = None;
        if self.settings.kind.has_agents() {
            match visit(&self.settings, choice) {
                Err(error) if is_open => {
                    choice.degradations.push(format!("bursts cost more than they could: {error}"));
                    self.settings.kind = TracerKind::Lookahead;
                    self.settings.burst_share -= unseen_share(TracerKind::Lookahead);
                    self.settings.end = request.tracer.size.end(TracerKind::Lookahead);
                }
                made => attached = Some(made),
            }
        }
        let attached = match attached {
            Some(attached) => attached,
            None if self.settings.visits() => visit(&self.settings, choice),
            None => Tracer::attach(self.settings.clone(), event.clone(), &ids, whole).map_err(TraceError::from),
        };
        match attached {
            Ok(tracer) => Ok(Some(Followed::attached(*self, vec![burst], tracer))),
            Err(error) if is_open => {
                let sentence = format!(
                    "no branch stacks: {error}. The clock samples as rarely as beside them; --tracer none samples more often"
                );
                choice.degradations.push(sentence);
                Ok(None)
            }
            Err(error) => Err(RecordError::Trace(error)),
        }
    }
}

/// Whose bursts clocks of CPUs start. Those of processes are sampled by clocks of CPUs, too, then.
fn started_by_cpu(request: &Request, machine: &Machine, choice: &mut Choice) -> Option<ByCpu> {
    match &request.target {
        Target::Processes(_) => {
            choice.events = by_cpu(request, machine, &choice.events)?;
            choice.by_cpu = true;
            Some(ByCpu::Family)
        }
        // One that the kernel does not count as a whole is looked into, to know who uses the CPU time.
        Target::Group(group) if request.cpus.is_none() => group.cpu_time().map(|_| ByCpu::Group),
        Target::System => Some(ByCpu::Everything),
        Target::Group(_) | Target::Command | Target::Threads(_) => None,
    }
}

/// Those of these processes or threads that may be traced; of the others the degradations say so.
///
/// # Errors
/// There are none.
fn open_to_tracing(ids: &[u32], what: &str, choice: &mut Choice) -> Result<Vec<u32>, TraceError> {
    let (mut open, mut obstacles) = (Vec::new(), Vec::new());
    for &id in ids {
        match obstacle(id) {
            None => open.push(id),
            Some(why) => obstacles.push(format!("{what} {id} {why}")),
        }
    }
    if open.is_empty() {
        return Err(TraceError::Obstacle(obstacles.join("; ")));
    }
    choice.degradations.extend(obstacles.iter().map(|obstacle| format!("no bursts: {obstacle}")));
    Ok(open)
}

/// What runs already and may be traced; nothing, if a command is recorded.
///
/// # Errors
/// Nothing of it may be.
fn running(target: &Target, choice: &mut Choice) -> Result<Running, TraceError> {
    let numbers = |ids: Vec<u32>| ids.into_iter().map(|id| id as i32).collect();
    Ok(match target {
        Target::Processes(ids) => Running::Processes(numbers(open_to_tracing(ids, "process", choice)?)),
        Target::Threads(ids) => Running::Threads(numbers(open_to_tracing(ids, "thread", choice)?)),
        Target::Group(group) => Running::of_group(group),
        Target::Command | Target::System => Running::Processes(Vec::new()),
    })
}

/// Adds the event of bursts to the metadata, and how they are taken.
pub(crate) fn introduce(spec: &EventSpec, settings: &Settings, metadata: &mut Metadata) {
    let provenance = Some(Provenance::Software);
    metadata.events.push(EventMetadata { provenance, ..event_metadata(spec) });
    metadata.tracer = Some(settings.metadata());
}

impl Follows for Tracing {
    type Statistics = TracerStatistics;

    /// Without these, readers would take bursts for stacks of the hardware.
    fn introduce(&self, metadata: &mut Metadata) {
        introduce(&self.spec, &self.settings, metadata);
    }

    fn conclude_file(&mut self, own: Range<usize>, summary: &Summary) {
        self.sampled += sampled(&own, summary);
    }

    fn conclude(&self, done: Option<TracerStatistics>, own: Range<usize>, summary: &mut Summary) {
        conclude(done, own, self.sampled, summary);
    }
}

/// Samples of clocks before the bursts' event, with those that were left out.
fn sampled(own: &Range<usize>, summary: &Summary) -> u64 {
    let clocks = summary.metadata.events[..own.start].iter().filter(|event| event.unit == Some(Unit::Nanoseconds));
    let counts = &summary.counts;
    let left_out = counts.before_first_burst + counts.switched_off - counts.bursts_switched_off;
    clocks.filter_map(|event| event.samples).sum::<u64>() + left_out
}

/// Completes a summary with what a tracer did. `own`: the place of the bursts' event. `before`: samples of clocks in the files before this
/// one.
pub(crate) fn conclude(done: Option<TracerStatistics>, own: Range<usize>, before: u64, summary: &mut Summary) {
    let samples = before + sampled(&own, summary);
    let metadata = &mut summary.metadata;
    let files = metadata.file.filter(|&file| file > 1);
    let mut application = Duration::ZERO;
    match done {
        None => metadata.degradations.push("bursts end early: the tracer failed, which is a bug".to_owned()),
        Some(mut tracer) => {
            tracer.complete(samples, own_cpu_time());
            application = tracer.time.application;
            metadata.degradations.extend(tracer.degradations());
            metadata.tracer = Some(TracerMetadata { of_files: files, ..tracer.metadata() });
            summary.tracer = Some(tracer);
        }
    }
    if files.is_some() {
        // What it was in this one is not known.
        return;
    }
    let nanoseconds = nanoseconds(application);
    let totals = Totals { counted: nanoseconds, enabled_ns: nanoseconds, running_ns: nanoseconds, lost: 0 };
    metadata.events[own].iter_mut().for_each(|event| count_event(event, &totals));
}

/// What would trace a command without options, if it can be; the choice becomes what would be opened beside it.
pub(crate) fn by_default(machine: &Machine, choice: &mut Choice) -> Option<(TracerKind, TracerOptions)> {
    let request = Request::default();
    let kind = wanted(&request, machine, choice)?;
    sample_less(&request, kind, choice);
    Some((kind, request.tracer))
}

/// With what samples of bursts have.
pub(crate) fn with_burst(fields: SampleFormat) -> SampleFormat {
    fields | SampleFormat::RAW | SampleFormat::BRANCH_STACK | SampleFormat::WEIGHT
}

fn unseen_share(kind: TracerKind) -> f64 {
    if kind.has_agents() { 0.0 } else { UNSEEN_SHARE }
}

fn sample_share(kind: TracerKind) -> f64 {
    if kind.has_agents() { SAMPLE_SHARE_BESIDE_AGENTS } else { SAMPLE_SHARE }
}

/// Makes event samples so rare that bursts have most of the budget, where the user left it open.
fn sample_less(request: &Request, kind: TracerKind, choice: &mut Choice) {
    for event in clocks_of_open_rate(request, choice) {
        event.period = Period::Every(period_within(request, sample_share(kind)));
    }
}

/// Makes samples of clocks no more frequent than this part of the budget allows, where the user left it open.
fn sample_within(request: &Request, share: f64, choice: &mut Choice) {
    for event in clocks_of_open_rate(request, choice) {
        if let Period::Every(period) = &mut event.period {
            *period = (*period).max(period_within(request, share));
        }
    }
}

fn clocks_of_open_rate<'a>(request: &Request, choice: &'a mut Choice) -> impl Iterator<Item = &'a mut EventSpec> {
    let rate_is_open = request.options.ebs_period.is_none() && request.options.frequency.is_none();
    choice.events.iter_mut().filter(move |event| rate_is_open && event.unit == Unit::Nanoseconds)
}

/// The period of a clock, ns, whose samples take this part of the budget.
fn period_within(request: &Request, share: f64) -> u64 {
    let period = SAMPLE.as_nanos() as f64 / (share * request.tracer.overhead / 100.0);
    prime_from((period as u64).clamp(1_000_000, 1_000_000_000))
}

fn wanted(request: &Request, machine: &Machine, choice: &mut Choice) -> Option<TracerKind> {
    if request.simulation.is_some() {
        return None;
    }
    match request.tracer.kind {
        TracerChoice::None => None,
        TracerChoice::Kind(kind) => Some(kind),
        TracerChoice::Auto if request.tracer.inject => Some(TracerKind::Agent),
        TracerChoice::Auto => {
            let has_stacks = choice.events.iter().any(|event| event.role == Role::Lbr);
            let unwanted = request.options.lbr == EventOption::None || request.options.levels == Some(Levels::Kernel);
            if has_stacks || unwanted {
                return None;
            }
            if request.target == Target::System {
                let sentence =
                    "no branch stacks: --tracer lookahead traces branches of everything that runs in software";
                choice.degradations.push(sentence.to_owned());
                return None;
            }
            if has_agents(request, machine) {
                return Some(TracerKind::Agent);
            }
            if request.target == Target::Command
                && let Err(error @ ImageError::Static) = agent::Image::possible()
            {
                choice.degradations.push(format!("bursts are taken by stops, which cost more: {error}"));
            }
            Some(TracerKind::Lookahead)
        }
    }
}

/// Whether agents are the better way: they are put into commands, and their clock counts time, which instructions do better where the
/// machine counts them. They need the kernel to go on after system calls, and have no room for longer bursts.
fn has_agents(request: &Request, machine: &Machine) -> bool {
    let has_room = match request.tracer.size {
        BurstSize::Instructions(most) | BurstSize::Branches(most) => most <= agent::Burst::BRANCHES as u64,
    };
    let is_possible = agent::Image::possible().is_ok() && agent::Image::follows_system_calls();
    request.target == Target::Command && !machine.counts_instructions() && has_room && is_possible
}

/// The event of bursts.
pub(crate) fn spec(clock: Clock, overhead: f64) -> EventSpec {
    let (unit, kind, config, period) = match clock {
        Clock::Time => {
            (Unit::Nanoseconds, sys::PERF_TYPE_SOFTWARE, sys::PERF_COUNT_SW_TASK_CLOCK, 25_000_000.0 / overhead)
        }
        Clock::Instructions => {
            (Unit::Instructions, sys::PERF_TYPE_HARDWARE, sys::PERF_COUNT_HW_INSTRUCTIONS, 50_000_000.0 / overhead)
        }
    };
    EventSpec {
        role: Role::Lbr,
        unit,
        base_name: "burst".to_owned(),
        code: EventCode { kind, config: [u64::from(config), 0, 0, 0] },
        cpus: None,
        // What it starts with.
        period: Period::Every((period as u64).max(1)),
        precise: 0,
        levels: Levels::User,
        excludes_guests: false,
        branches: Some(BranchSampleType::USER | BranchSampleType::ANY),
    }
}
