//! What is to be recorded, and where to.

use formats::calibration::Calibration;
use std::ffi::OsString;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::error::RecordError;
use crate::machine::cpu_list::CpuList;
use crate::plan::event_spec::Levels;
use crate::plan::rotation::Rotation;
use crate::plan::{EventOption, Options};
use crate::session::output::is_standard_output;
use crate::simulation::PmuSettings;
use crate::sys::control_group::ControlGroup;
use crate::tracer::{BurstSize, SearchedFiles, TracerChoice, TracerKind, TracerOptions};

/// A recording to be made.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The processes or threads that are recorded.
    pub target: Target,
    /// A command and its arguments. Where the target is another, recording lasts as long as the command.
    pub command: Vec<OsString>,
    /// The descriptor of this process that is the command's standard output; `None`: its own. Standard output is for the report.
    pub stdout: Option<RawFd>,
    /// The file to write.
    pub output: PathBuf,
    /// Several files, one after the other, of which `output` is the pattern.
    pub rotation: Option<Rotation>,
    /// Events, periods, levels, filters.
    pub options: Options,
    /// Branch stacks in software.
    pub tracer: TracerOptions,
    /// Let the simulated PMU make the samples.
    pub simulation: Option<SimulationOptions>,
    /// Leave out threads and processes started later.
    pub no_inherit: bool,
    /// Pages of each CPU's ring, a power of two; `None`: 512 KiB, less if the user may not have that much.
    pub ring_pages: Option<usize>,
    /// Only what runs on these CPUs.
    pub cpus: Option<CpuList>,
    /// Nothing is recorded until somebody switches it on.
    pub off: bool,
    /// End after this time.
    pub duration: Option<Duration>,
    /// The command line, for the recording.
    pub cmdline: Vec<String>,
    /// Files that only processes have are not copied.
    pub no_copies: bool,
    /// What was measured of the machine.
    pub calibration: Option<Calibration>,
    /// What earlier recordings found in the code of files, to which this one adds.
    pub searched: Arc<SearchedFiles>,
}

/// A simulated PMU in place of the machine's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SimulationOptions {
    /// What can be chosen of the PMU.
    pub pmu: PmuSettings,
    /// The program executes everything itself, one instruction at a time, instead of being interpreted: slow, to compare with.
    pub only_steps: bool,
}

/// Which processes or threads are recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// The request's command and what it starts, from its exec on.
    #[default]
    Command,
    /// Running processes, with all their threads.
    Processes(Vec<u32>),
    /// Threads that run already.
    Threads(Vec<u32>),
    /// Everything that runs on the CPUs.
    System,
    /// What is in a control group, or comes into it, while it is there.
    Group(ControlGroup),
}

impl Target {
    /// The word for it in the recording.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Processes(_) => "processes",
            Self::Threads(_) => "threads",
            Self::System => "system",
            Self::Group(_) => "cgroup",
        }
    }

    /// Whether its events are those of CPUs, not of threads.
    pub(crate) fn is_by_cpu(&self) -> bool {
        matches!(self, Self::System | Self::Group(_))
    }

    /// The control group, if it is one.
    pub(crate) fn group(&self) -> Option<&ControlGroup> {
        match self {
            Self::Group(group) => Some(group),
            _ => None,
        }
    }

    /// Processes or threads that must exist.
    pub(crate) fn ids(&self) -> &[u32] {
        match self {
            Self::Processes(ids) | Self::Threads(ids) => ids,
            Self::Command | Self::System | Self::Group(_) => &[],
        }
    }
}

impl Request {
    /// What tracing in software may take beside its budget: of a command alone, for what runs already has begun.
    pub fn start_credit(&self) -> Duration {
        if self.target == Target::Command { self.tracer.start_credit } else { Duration::ZERO }
    }

    /// Refuses what cannot be.
    pub(crate) fn check(&self) -> Result<(), RecordError> {
        let refuse = |reason: String| Err(RecordError::Request(reason));
        if self.target == Target::Command && self.command.is_empty() {
            return refuse("nothing to record: give a command, -p, -t, --cgroup or -a".to_owned());
        }
        if matches!(&self.target, Target::Processes(ids) | Target::Threads(ids) if ids.is_empty()) {
            return refuse("no process or thread given".to_owned());
        }
        if let Some(pages) = self.ring_pages.filter(|pages| !pages.is_power_of_two()) {
            return refuse(format!("-m {pages}: a ring has a power of two of pages"));
        }
        if let Some(rotation) = &self.rotation {
            self.check_rotation(rotation).map_or(Ok(()), refuse)?;
        }
        if !TracerOptions::allows(self.tracer.overhead) {
            return refuse(format!(
                "--overhead {}: it is a percentage above {} and up to {}",
                self.tracer.overhead,
                TracerOptions::LEAST_OVERHEAD,
                TracerOptions::MOST_OVERHEAD
            ));
        }
        if matches!(self.tracer.size, BurstSize::Instructions(0) | BurstSize::Branches(0)) {
            return refuse("a burst has one instruction and one branch at least".to_owned());
        }
        if self.target == Target::System
            && let TracerChoice::Kind(kind) = self.tracer.kind
        {
            if kind != TracerKind::Lookahead {
                return refuse(format!(
                    "--tracer {kind} cannot follow everything that runs: --tracer lookahead can, others go with a command, -p or -t"
                ));
            }
            if self.cpus.is_some() {
                return refuse("-C cannot be with --tracer lookahead and -a: its budget is of all CPUs".to_owned());
            }
        }
        if self.target.group().is_some() {
            let is_possible = match self.tracer.kind {
                TracerChoice::Auto | TracerChoice::None => true,
                TracerChoice::Kind(kind) => kind == TracerKind::Lookahead,
            };
            if !is_possible && self.check_agents().is_none() {
                return refuse(
                    "--cgroup goes with --tracer lookahead or none: its threads are stopped for bursts".to_owned(),
                );
            }
            if self.no_inherit {
                return refuse("-i cannot be with --cgroup: what starts in a control group is in it".to_owned());
            }
        }
        self.check_agents().map_or(Ok(()), |reason| refuse(reason.to_owned()))?;
        let Options { ebs, lbr, levels, frequency, filter, ebs_period, lbr_period, .. } = &self.options;
        let other_events = *ebs != EventOption::Best || *lbr != EventOption::Best || *levels == Some(Levels::Kernel);
        let rates = frequency.is_some() || ebs_period.is_some() || lbr_period.is_some() || filter.is_some();
        if self.tracer.kind == TracerChoice::Kind(TracerKind::Timer)
            && (other_events || rates || self.no_inherit || self.cpus.is_some())
        {
            return refuse(
                "--tracer timer has bursts of a command and all that it starts, and no events: no --ebs-event, --lbr-event, -F, -j, -k, -i, -C"
                    .to_owned(),
            );
        }
        if let Some(SimulationOptions { pmu, .. }) = &self.simulation {
            if self.target != Target::Command || self.no_inherit || self.cpus.is_some() {
                return refuse(
                    "the simulated PMU runs a command, all of it: no -p, -t, -a, --cgroup, -C, -i".to_owned(),
                );
            }
            let Options { ebs, lbr, frequency, levels, filter, .. } = &self.options;
            let other_events =
                *ebs != EventOption::Best || *lbr != EventOption::Best || frequency.is_some() || filter.is_some();
            if other_events || *levels == Some(Levels::Kernel) || matches!(self.tracer.kind, TracerChoice::Kind(_)) {
                return refuse(
                    "the simulated PMU has two events, of user code and with fixed periods: no --ebs-event, --lbr-event, -F, -k, -j, --tracer"
                        .to_owned(),
                );
            }
            if !(2..=64).contains(&pmu.depth) || !(0.0..=1.0).contains(&pmu.bias) {
                return refuse(
                    "a simulated stack has 2 to 64 entries, and a share of biased branches from 0 to 1".to_owned(),
                );
            }
        }
        if self.cpus.as_ref().is_some_and(CpuList::is_empty) {
            return refuse("no CPU given".to_owned());
        }
        Ok(())
    }

    /// Why there cannot be such files.
    fn check_rotation(&self, rotation: &Rotation) -> Option<String> {
        let Rotation { every, bytes, keep } = rotation;
        if is_standard_output(&self.output) {
            return Some("--rotate makes files: it cannot be with -o -".to_owned());
        }
        if self.simulation.is_some() {
            return Some("--rotate is not for the simulated PMU, which knows what it did in the end only".to_owned());
        }
        if every.is_none() && bytes.is_none() {
            return Some(
                "--keep says which files of --rotate are kept: say when a file ends (--rotate 60s)".to_owned(),
            );
        }
        if every.is_some_and(|every| every < Rotation::SHORTEST)
            || bytes.is_some_and(|bytes| bytes < Rotation::SMALLEST)
        {
            return Some("--rotate: a file has a second at least, and room for 64 KB".to_owned());
        }
        (keep.files == Some(0)).then(|| "--keep 0 would keep no file".to_owned())
    }

    /// Why agents cannot be where they are asked for.
    fn check_agents(&self) -> Option<&'static str> {
        let TracerOptions { kind, inject, .. } = self.tracer;
        let is_agent = kind == TracerChoice::Kind(TracerKind::Agent);
        match &self.target {
            target if kind == TracerChoice::Kind(TracerKind::Timer) && *target != Target::Command => {
                Some("--tracer timer is for commands that are started")
            }
            target if kind == TracerChoice::Kind(TracerKind::AgentCheck) && *target != Target::Command => {
                Some("--tracer agent-check is for commands that are started")
            }
            _ if inject && !is_agent && kind != TracerChoice::Auto => {
                Some("--inject puts agents into processes: it goes with --tracer agent, or without --tracer")
            }
            Target::Processes(_) if is_agent && !inject => {
                Some("--tracer agent puts agents into processes that run already if --inject is added")
            }
            Target::Threads(_) if is_agent || inject => Some(
                "agents are put into whole processes: use -p PID --inject, or leave --tracer agent and --inject out",
            ),
            Target::Command | Target::System | Target::Group(_) if inject => {
                Some("--inject is for processes that run already (-p): commands have agents without it")
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(request: Request, reason: &str) {
        let error = request.check().unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains(reason), "{error}");
    }

    #[test]
    fn requests_that_cannot_be() {
        check(Request::default(), "nothing to record");
        check(Request { target: Target::Processes(Vec::new()), ..Request::default() }, "no process");
        let system = Request { target: Target::System, ..Request::default() };
        assert!(system.check().is_ok());
        check(Request { ring_pages: Some(3), ..system.clone() }, "-m 3");
        check(Request { ring_pages: Some(0), ..system.clone() }, "-m 0");
        let simulation = Some(SimulationOptions::default());
        check(Request { simulation, ..system.clone() }, "simulated PMU");
        let traced = |target: &Target, kind: TracerChoice, inject: bool| Request {
            target: target.clone(),
            command: vec!["true".into()],
            tracer: TracerOptions { kind, inject, ..TracerOptions::default() },
            ..Request::default()
        };
        let (auto, agent) = (TracerChoice::Auto, TracerChoice::Kind(TracerKind::Agent));
        let (processes, threads) = (Target::Processes(vec![1]), Target::Threads(vec![1]));
        for kind in [auto, agent] {
            assert!(traced(&processes, kind, true).check().is_ok());
            check(traced(&Target::Command, kind, true), "--inject is for processes");
            check(traced(&threads, kind, true), "whole processes");
        }
        check(traced(&processes, agent, false), "--inject is added");
        check(traced(&threads, agent, false), "whole processes");
        check(traced(&Target::System, auto, true), "--inject is for processes");
        for kind in [TracerChoice::None, TracerChoice::Kind(TracerKind::Lookahead)] {
            check(traced(&processes, kind, true), "without --tracer");
        }
        let checked = TracerChoice::Kind(TracerKind::AgentCheck);
        for target in [&processes, &threads] {
            check(traced(target, checked, false), "agent-check is for commands");
        }
        assert!(traced(&Target::Command, checked, false).check().is_ok());
        let timed = TracerChoice::Kind(TracerKind::Timer);
        for target in [&processes, &threads] {
            check(traced(target, timed, false), "timer is for commands");
        }
        let command = traced(&Target::Command, timed, false);
        assert!(command.check().is_ok());
        let named = Options { ebs: EventOption::None, ..Options::default() };
        check(Request { options: named, ..command.clone() }, "no --ebs-event");
        check(Request { no_inherit: true, ..command }, "-i");
        check(Request { cpus: Some(CpuList::default()), ..system }, "no CPU");
    }
}
