//! What a session with the simulated PMU consists of.
//!
//! The events are chosen as for a machine with a PMU of that kind, by the same plan, and described in the recording as they would be
//! there; only their names, and the provenance in the metadata, are those of a simulation. What the kernel is asked for is an event that
//! never happens, for the records that come with any.

use std::ops::Range;

use formats::metadata::{EventMetadata, Metadata, SimulationMetadata};
use perf_event_open_sys::bindings as sys;
use perfdata::{EventAttr, EventDescription, SampleFormat};

use crate::errno::Errno;
use crate::error::RecordError;
use crate::machine::pmu::Pmu;
use crate::machine::{Cpu, EventOpener, Machine, Probe, Probes};
use crate::plan::Options;
use crate::plan::choice::{Choice, CountsFrom, choose};
use crate::plan::event_spec::{EventSpec, Levels, Period, Provenance};
use crate::plan::request::Request;
use crate::session::Summary;
use crate::session::followed::{Attached, Followed, Follows, PlannedFollower, agreeing};
use crate::session::metadata::{count_event, event_metadata};
use crate::session::open::Totals;
use crate::session::placeholder::{placeholder, tracking};
use crate::simulation::pmu::{Capture, SampledEvents, Sampling};
use crate::simulation::{PmuSettings, SimulatedCore, SimulationSettings, SimulationStatistics};
use crate::sys::EventFd;
use crate::tracer::{BurstEvent, Follower, TraceError};

/// The first words of every report.
const SENTENCE: &str =
    "the samples were made by a simulated PMU that models no real one: they are no measurement of hardware";

/// A simulation that is to be begun.
pub(crate) struct PlannedSimulation {
    pmu: PmuSettings,
    only_steps: bool,
    events: SampledEvents,
    /// Of instructions, and of taken branches.
    specs: [EventSpec; 2],
    /// Keep the ids of the events from being given to others.
    ids: [(EventFd, u64); 2],
}

impl PlannedSimulation {
    /// Chooses its events. Returns it with the events that the kernel is to open.
    ///
    /// # Errors
    /// Periods that cannot be, or the kernel opens no events.
    pub(crate) fn plan(pmu: PmuSettings, only_steps: bool, options: &Options) -> Result<(Self, Choice), RecordError> {
        let options = Options { levels: Some(Levels::User), ..options.clone() };
        let simulated = choose(&machine(pmu), &options, &mut OpensAll)?;
        let Ok([ebs, lbr]) = <[EventSpec; 2]>::try_from(simulated.events) else {
            return Err(RecordError::Request(
                "the simulated PMU has one event for EBS and one for branch stacks".to_owned(),
            ));
        };
        let events = SampledEvents { instructions: sampling(&ebs), taken_branches: sampling(&lbr) };
        let named = |spec: EventSpec| EventSpec { base_name: format!("simulated/{}/", spec.base_name), ..spec };
        let ids = [placeholder()?, placeholder()?];
        let choice = Choice {
            by_cpu: false,
            source: CountsFrom::BranchRecords,
            events: vec![tracking()],
            degradations: vec![SENTENCE.to_owned()],
        };
        Ok((Self { pmu, only_steps, events, specs: [named(ebs), named(lbr)], ids }, choice))
    }

    /// Its events, which agree with `first` in all that readers expect events to agree in.
    fn descriptions(&self, first: &EventAttr) -> [EventDescription; 2] {
        [0, 1].map(|event| {
            let (spec, (_, id)) = (&self.specs[event], &self.ids[event]);
            let attr = agreeing(spec, first, first.sample_format | SampleFormat::BRANCH_STACK);
            EventDescription { attr, name: spec.name(), ids: vec![*id] }
        })
    }
}

impl PlannedFollower for PlannedSimulation {
    fn attach(
        self: Box<Self>,
        _: &Request,
        command: Option<u32>,
        first: Option<&EventAttr>,
        _: &mut Choice,
    ) -> Result<Option<Attached>, RecordError> {
        // A request without a command is refused before.
        let (Some(command), Some(first)) = (command, first) else { return Ok(None) };
        let events = self.descriptions(first);
        let settings = SimulationSettings {
            pmu: self.pmu,
            sampled: self.events,
            command: command as i32,
            events: [0, 1].map(|event| BurstEvent { attr: events[event].attr.clone(), id: self.ids[event].1 }),
            only_steps: self.only_steps,
        };
        let simulation = Follower::simulate(settings).map_err(TraceError::from)?;
        Ok(Some(Followed::attached(*self, events.to_vec(), simulation)))
    }
}

impl Follows for PlannedSimulation {
    type Statistics = SimulationStatistics;

    fn introduce(&self, metadata: &mut Metadata) {
        let provenance = Some(Provenance::Simulated);
        let events = self.specs.iter().map(|spec| EventMetadata { provenance, ..event_metadata(spec) });
        metadata.events.extend(events);
        let PmuSettings { core, depth, bias, seed } = self.pmu;
        metadata.branch_depth = u32::try_from(depth).ok();
        metadata.simulation = Some(SimulationMetadata {
            core: Some(core.as_str().to_owned()),
            depth: Some(depth as u64),
            bias: Some(bias),
            seed: Some(seed),
            ..SimulationMetadata::default()
        });
    }

    fn conclude(&self, done: Option<SimulationStatistics>, own: Range<usize>, summary: &mut Summary) {
        let metadata = &mut summary.metadata;
        let counted = done.as_ref().map_or([0, 0], |done| [done.instructions, done.taken_branches]);
        for (event, counted) in metadata.events[own].iter_mut().zip(counted) {
            count_event(event, &Totals { counted, ..Totals::default() });
        }
        match &done {
            None => metadata.degradations.push("samples end early: the simulation failed, which is a bug".to_owned()),
            Some(done) => {
                metadata.degradations.extend(done.degradations());
                metadata.simulation = Some(done.metadata());
            }
        }
        summary.simulation = done;
    }
}

/// How an event samples on the machine that is simulated.
fn sampling(spec: &EventSpec) -> Sampling {
    let (Period::Every(period) | Period::Frequency(period)) = spec.period;
    let capture = match (spec.precise, spec.base_name.as_str()) {
        (0, _) => Capture::Interrupt,
        (_, "inst_retired.prec_dist") => Capture::Distributed,
        _ => Capture::Precise,
    };
    Sampling { period, capture }
}

/// The machine that is simulated, as far as its events matter.
fn machine(pmu: PmuSettings) -> Machine {
    let caps = [("branches", pmu.depth.to_string()), ("max_precise", "3".to_owned())];
    let core = Pmu {
        name: "cpu".to_owned(),
        kind: sys::PERF_TYPE_RAW,
        caps: caps.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        ..Pmu::default()
    };
    let works = Probe::Works;
    Machine {
        cpu: Cpu { vendor: "GenuineIntel".to_owned(), family: 6, model: model(pmu.core), ..Cpu::default() },
        pmus: vec![core],
        probes: Probes { dummy: works, instructions: works, branches: works, branch_stack: works, ..Probes::default() },
        ..Machine::default()
    }
}

/// The simulated machine opens what it has.
struct OpensAll;

impl EventOpener for OpensAll {
    fn try_open(&mut self, _: &EventAttr, _: Option<u32>, _: bool) -> Result<(), Errno> {
        Ok(())
    }

    fn try_control_group(&mut self, _: &EventAttr, _: u32) -> Result<(), Errno> {
        Ok(())
    }

    fn try_trace(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    fn try_timer(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    fn try_kernel_memory(&mut self) -> Result<(), Errno> {
        Err(Errno::EPERM)
    }
}

/// Its model number in Intel's family 6.
fn model(core: SimulatedCore) -> u32 {
    match core {
        SimulatedCore::IvyBridge => 0x3e,
        SimulatedCore::Westmere => 0x2c,
    }
}
