//! A recording from beginning to end.

pub(crate) mod build_id;
pub(crate) mod command;
mod kernel_image;
mod lead;
pub(crate) mod limits;
pub(crate) mod live;
pub(crate) mod metadata;
pub(crate) mod open;
pub(crate) mod output;
pub(crate) mod record_layout;
pub(crate) mod recorder;
mod setup;
pub(crate) mod stacks;
mod synthesize;
pub(crate) mod tally;
mod time_order;

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use formats::metadata::{EventMetadata, Metadata, RECORD_TYPE};
use perfdata::{EventAttr, RecordType, Writer};

use crate::error::RecordError;
use crate::machine::Machine;
use crate::plan::choice::{Choice, choose};
use crate::plan::event_spec::{EventSpec, Levels, Unit};
use crate::plan::request::{Request, Target};
use crate::session::build_id::build_ids;
use crate::session::command::{CommandStatus, PreparedCommand, find_program};
use crate::session::limits::{check_files, open_files};
use crate::session::live::Live;
use crate::session::metadata::{counted_event, features, metadata, multiplexed, own_cpu_time};
use crate::session::open::KernelOpener;
use crate::session::output::{Output, is_stream};
use crate::session::recorder::{Recorder, Stop};
use crate::session::setup::{cpus, open_all, tasks};
use crate::session::tally::Counts;
use crate::simulation::SimulationStatistics;
use crate::simulation::planned::PlannedSimulation;
use crate::sys::process::{all_processes, group_and_parent};
use crate::sys::{SignalFd, ignore_file_size_signal, is_ignored, raise_limits};
use crate::tracer::TracerStatistics;
use crate::tracer::tracing::{Tracing, burst_metadata, burst_totals};

/// A recording that is set up; nothing is recorded and nothing of the command runs yet.
pub struct Session<'a> {
    request: &'a Request,
    machine: &'a Machine,
    choice: Choice,
    attrs: Vec<EventAttr>,
    live: Live,
    command: Option<PreparedCommand>,
    output: Output,
    recorder: Recorder<BufWriter<File>>,
    /// How branches are traced in software, if they are.
    tracing: Option<Tracing>,
    simulation: Option<PlannedSimulation>,
    /// Whether what comes first is in the file.
    begun: Result<(), RecordError>,
}

/// What a recording came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Why it ended.
    pub stop: Stop,
    /// How the command ended; `None` without a command, or if it still runs.
    pub command: Option<CommandStatus>,
    /// What is in the file.
    pub summary: Summary,
}

/// What is in the file.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The file.
    pub path: PathBuf,
    /// Its size; of what went into a pipe, that of the records.
    pub bytes: u64,
    /// What it says of itself.
    pub metadata: Metadata,
    /// Samples and losses.
    pub counts: Counts,
    /// Time from start to stop.
    pub duration: Duration,
    /// What the software tracer did, if it was used.
    pub tracer: Option<TracerStatistics>,
    /// What the simulated PMU did, if it made the samples.
    pub simulation: Option<SimulationStatistics>,
}

/// How long a command is waited for that was told to end because the time was up, or by a second signal.
const GRACE: Duration = Duration::from_secs(10);

impl<'a> Session<'a> {
    /// Chooses events, makes the file, and opens the events. If it fails there is no new file, and no command has run.
    ///
    /// SIGINT and SIGTERM, and SIGHUP and SIGQUIT unless they are ignored, are blocked in the calling thread from here to the end of
    /// the session, which takes them as reasons to stop; other threads of the process should block them. SIGXFSZ is ignored from here
    /// on: a file that may not grow ends the recording, not the process. Limits of open files and of address space are raised as far as they
    /// may be. The command finds signals and limits as this process found them.
    ///
    /// # Errors
    /// [`RecordError`], which says what is missing.
    pub fn prepare(request: &'a Request, machine: &'a Machine) -> Result<Self, RecordError> {
        request.check()?;
        for &id in request.target.ids() {
            group_and_parent(id).ok_or(RecordError::NoSuchTask(id))?;
        }
        raise_limits();
        let files = open_files();
        check_files(files, cpus(request, machine).len())?;
        let (simulation, mut choice) = match &request.simulation {
            None => (None, choose(machine, &request.wishes, &mut KernelOpener)?),
            Some(wish) => {
                let (planned, choice) = PlannedSimulation::plan(wish.pmu, wish.only_steps, &request.wishes)?;
                (Some(planned), choice)
            }
        };
        check_files(files, tasks(&request.target) * cpus(request, machine).len() * choice.events.len())?;
        if let Some(program) = request.command.first() {
            find_program(program)?;
        }
        let signals = SignalFd::block(&signals_to_stop()).map_err(RecordError::system("blocking signals"))?;
        ignore_file_size_signal();
        let (output, file) = Output::create(&request.output)?;
        let prepared = Self::open(request, machine, &mut choice, simulation.as_ref(), signals, file);
        match prepared {
            Ok((attrs, live, command, recorder, tracing)) => {
                let begun = Ok(());
                let mut session = Self {
                    request,
                    machine,
                    choice,
                    attrs,
                    live,
                    command,
                    output,
                    recorder,
                    tracing,
                    simulation,
                    begun,
                };
                session.begun = session.begin_file();
                Ok(session)
            }
            Err(error) => {
                output.abandon();
                Err(error)
            }
        }
    }

    /// Forks the command, opens the events, attaches the tracer, and begins the file.
    #[allow(clippy::type_complexity)] // the parts of a session
    fn open(
        request: &Request,
        machine: &Machine,
        choice: &mut Choice,
        simulation: Option<&PlannedSimulation>,
        signals: SignalFd,
        mut file: File,
    ) -> Result<(Vec<EventAttr>, Live, Option<PreparedCommand>, Recorder<BufWriter<File>>, Option<Tracing>), RecordError>
    {
        let tracing = Tracing::plan(request, machine, choice)?;
        let (mut command, opened, attrs) =
            open_all(request, machine, choice, &signals, tracing.is_some() || simulation.is_some())?;
        let mut descriptions = opened.descriptions(&choice.events, &attrs);
        let mut tracer = None;
        if let (Some(tracing), Some(first)) = (&tracing, attrs.first()) {
            let burst = tracing.description(first);
            let pid = command.as_ref().map(PreparedCommand::pid);
            tracer = tracing.attach(request, pid, &burst.attr, choice)?;
            if let (Some(tracer), Some(command), Target::Command) = (&tracer, &mut command, &request.target) {
                command.leave_to(tracer.shared());
            }
            if tracer.is_some() {
                descriptions.push(burst);
            }
        }
        let mut simulating = None;
        if let (Some(planned), Some(first), Some(command)) = (simulation, attrs.first(), &mut command) {
            let events = planned.descriptions(first);
            let simulation = planned.begin(command.pid(), &events)?;
            command.leave_to(simulation.shared());
            descriptions.extend(events);
            simulating = Some(simulation);
        }
        let tracing = tracing.filter(|_| tracer.is_some());
        let burst_id = tracing.as_ref().and(descriptions.last()).and_then(|event| event.ids.first().copied());
        let is_stream = is_stream(&mut file);
        let out = BufWriter::with_capacity(1 << 18, file);
        let writer = match is_stream {
            true => Writer::create_stream(out, &descriptions)?,
            false => Writer::create(out, &descriptions)?,
        };
        let recorder = Recorder::new(writer, burst_id);
        let live = Live::new(opened, signals, request.target.ids(), tracer, simulating);
        Ok((attrs, live, command, recorder, tracing))
    }

    /// What is less than it could be, in sentences.
    pub fn degradations(&self) -> &[String] {
        &self.choice.degradations
    }

    /// The events that will be recorded.
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// Whether branches will be traced in software.
    pub fn traces_branches(&self) -> bool {
        self.tracing.is_some()
    }

    /// Starts the command and the events, records until there is a reason to stop, and completes the file. `say` hears what the user
    /// should know while it goes on.
    ///
    /// # Errors
    /// [`RecordError`]. If the command cannot be run there is no new file. If the file cannot be written on, the command is let run to
    /// its end, the file can be read as far as it came, and the error is [`RecordError::Incomplete`].
    pub fn run(mut self, say: &mut dyn FnMut(&str)) -> Result<Outcome, RecordError> {
        let by_exec = self.request.target == Target::Command;
        let begun = std::mem::replace(&mut self.begun, Ok(()));
        let synthesized = begun.and_then(|()| if by_exec { self.synthesize() } else { Ok(()) });
        let started = Instant::now();
        let enabled = if by_exec { Ok(()) } else { self.live.opened.enable().map_err(RecordError::Enable) };
        let command = enabled.and_then(|()| Ok(self.command.take().map(PreparedCommand::start).transpose()?));
        match command {
            Ok(command) => self.live.command = command,
            Err(error) => {
                self.live.end_tracing();
                drop(self.recorder);
                self.output.abandon();
                return Err(error);
            }
        }
        if let Some(tracer) = &self.live.tracer {
            tracer.start();
        }
        self.live.begin(self.request.duration);
        let synthesized = self.output.settle().map_err(RecordError::from).and(synthesized);
        // Events that are running before `/proc` is read miss no mapping; those of a command begin with its exec.
        let synthesized = synthesized.and_then(|()| if by_exec { Ok(()) } else { self.synthesize() });
        let recorded = synthesized.and_then(|()| Ok(self.recorder.run(&mut self.live)?));
        let duration = started.elapsed();
        let written = recorded.and_then(|stop| {
            Ok((
                stop,
                Self::complete(
                    self.request,
                    self.machine,
                    &self.choice,
                    &self.attrs,
                    &self.live,
                    self.recorder,
                    duration,
                    self.tracing.as_ref(),
                    self.simulation.as_ref(),
                )?,
            ))
        });
        match written {
            Ok((stop, summary)) => {
                let command = end_command(&mut self.live, stop, say)?;
                Ok(Outcome { stop, command, summary })
            }
            Err(error) => {
                say(&format!("{error}; the recording ends here"));
                self.live.opened.disable();
                self.live.end_tracing();
                let command = end_command(&mut self.live, Stop::CommandEnded, say).unwrap_or_default();
                let path = self.request.output.clone();
                Err(RecordError::Incomplete { path, source: Box::new(error), command })
            }
        }
    }

    /// Writes what is known of the recording now: a collector that is killed leaves a file that can be read, and says what it is.
    fn begin_file(&mut self) -> Result<(), RecordError> {
        let mut metadata = metadata(&self.choice, self.machine, self.request.target.word());
        if let Some(tracing) = &self.tracing {
            metadata.events.push(burst_metadata(&tracing.spec));
            metadata.tracer = Some(tracing.metadata());
        }
        if let Some(simulation) = &self.simulation {
            metadata.events.extend(simulation.metadata());
            metadata.simulation = Some(simulation.settings());
        }
        let writer = &mut self.recorder.writer;
        if let Some(body) = metadata.to_record_body() {
            writer.write_user_record(RecordType(RECORD_TYPE), &body)?;
        }
        writer.write_event_names()?;
        Ok(writer.flush()?)
    }

    /// Writes what was there before the recording.
    fn synthesize(&mut self) -> Result<(), RecordError> {
        let kernel_wanted = self.choice.events.iter().any(|event| event.levels != Levels::User);
        let Recorder { writer, tally, .. } = &mut self.recorder;
        if kernel_wanted && !synthesize::kernel(writer, &self.machine.kernel.release)? {
            self.choice
                .degradations
                .push("kernel samples cannot be resolved: kernel.kptr_restrict hides where the kernel is".to_owned());
        }
        let pids = match &self.request.target {
            Target::Command => Vec::new(),
            Target::System => all_processes(),
            Target::Processes(ids) | Target::Threads(ids) => ids.clone(),
        };
        for pid in pids {
            synthesize::process(writer, tally, pid)?;
        }
        Ok(writer.flush()?)
    }

    #[allow(clippy::too_many_arguments)] // the parts of a session
    fn complete(
        request: &Request,
        machine: &Machine,
        choice: &Choice,
        attrs: &[EventAttr],
        live: &Live,
        recorder: Recorder<BufWriter<File>>,
        duration: Duration,
        tracing: Option<&Tracing>,
        simulation: Option<&PlannedSimulation>,
    ) -> Result<Summary, RecordError> {
        let totals = live.opened.totals(attrs, request.target != Target::System);
        let tally = &recorder.tally;
        let mut metadata = metadata(choice, machine, request.target.word());
        let mut events: Vec<EventMetadata> = std::mem::take(&mut metadata.events);
        let mut all_totals = totals.clone();
        let mut traced = live.traced.clone();
        if let Some(tracing) = tracing {
            let is_clock = |event: &&EventSpec| event.unit == Unit::Nanoseconds;
            let clocks = choice.events.iter().zip(&tally.samples).filter(|(event, _)| is_clock(event));
            let clock_samples: u64 = clocks.map(|(_, samples)| samples).sum();
            if let Some(tracer) = &mut traced {
                tracer.complete(clock_samples + tally.counts.before_first_burst);
            }
            // Without these, readers would take bursts for stacks of the hardware.
            events.push(burst_metadata(&tracing.spec));
            all_totals.push(burst_totals(traced.as_ref()));
        }
        if let Some(simulation) = simulation {
            events.extend(simulation.metadata());
            all_totals.extend(PlannedSimulation::totals(live.simulated.as_ref()));
        }
        let samples = tally.samples.iter().copied().chain(std::iter::repeat(0));
        let counted = events.into_iter().zip(samples).zip(all_totals);
        metadata.events = counted.map(|((event, samples), totals)| counted_event(event, samples, totals)).collect();
        if request.cpus.is_none() && choice.events.iter().all(|event| event.cpus.is_none()) {
            let of_all_cpus = choice.events.iter().zip(&totals);
            metadata.degradations.extend(of_all_cpus.filter_map(|(spec, totals)| multiplexed(spec, totals, machine)));
        }
        // What is lost in a ring is told in the next record that finds room, if one does; the events' own counts miss nothing.
        let lost_samples = totals.iter().map(|totals| totals.lost).sum();
        if tracing.is_some() && traced.is_none() {
            metadata.degradations.push("bursts end early: the tracer failed, which is a bug".to_owned());
        }
        metadata.degradations.extend(traced.as_ref().and_then(TracerStatistics::degradation));
        metadata.tracer = traced.as_ref().map(TracerStatistics::metadata);
        if let Some(wish) = &request.simulation {
            metadata.branch_depth = u32::try_from(wish.pmu.depth).ok();
            match &live.simulated {
                Some(done) => metadata.degradations.extend(done.degradations()),
                None => {
                    metadata.degradations.push("samples end early: the simulation failed, which is a bug".to_owned())
                }
            }
            metadata.simulation = live.simulated.as_ref().map(SimulationStatistics::metadata);
        }
        let mut counts = tally.counts;
        counts.lost = counts.lost.max(lost_samples);
        metadata.samples = Some(counts.samples);
        metadata.lost = Some(counts.lost);
        metadata.lost_by_hardware = Some(counts.lost_by_hardware);
        metadata.throttled = Some(counts.throttled);
        metadata.late = Some(counts.late);
        metadata.before_first_burst = Some(counts.before_first_burst).filter(|&samples| samples > 0);
        metadata.duration_ns = Some(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
        let with_kernel = choice.events.iter().any(|event| event.levels != Levels::User);
        let ids = build_ids(&tally.mapped, with_kernel);
        metadata.collector_cpu_ns = Some(u64::try_from(own_cpu_time().as_nanos()).unwrap_or(u64::MAX));
        let features = features(machine, &metadata, &request.cmdline, ids, tally.sample_time);
        let streamed = recorder.writer.data_size();
        let file = recorder.finish(&features)?;
        let bytes = file.get_ref().metadata().ok().filter(|file| file.is_file()).map_or(streamed, |file| file.len());
        let (tracer, simulation) = (traced, live.simulated.clone());
        Ok(Summary { path: request.output.clone(), bytes, metadata, counts, duration, tracer, simulation })
    }
}

/// SIGHUP comes when a terminal is lost. It and SIGQUIT may be ignored, by `nohup` and by shells for what they run in the background;
/// blocked, an ignored signal would still reach the descriptor.
fn signals_to_stop() -> Vec<i32> {
    let unless_ignored = [libc::SIGHUP, libc::SIGQUIT].into_iter().filter(|&signal| !is_ignored(signal));
    [libc::SIGINT, libc::SIGTERM].into_iter().chain(unless_ignored).collect()
}

/// Passes the reason to stop on to the command, and waits for it.
fn end_command(live: &mut Live, stop: Stop, say: &mut dyn FnMut(&str)) -> Result<Option<CommandStatus>, RecordError> {
    let Some(command) = &mut live.command else { return Ok(None) };
    if let Some(status) = command.status() {
        return Ok(Some(status));
    }
    let mut limit = None;
    match stop {
        Stop::CommandEnded => {}
        Stop::Interrupt { from_terminal: true } => {}
        Stop::Interrupt { from_terminal: false } => command.interrupt(),
        Stop::Terminate => command.terminate(),
        Stop::Duration | Stop::TargetsEnded => {
            command.terminate();
            limit = Instant::now().checked_add(GRACE);
        }
    }
    let waiting = RecordError::system("waiting for the command");
    if live.wait_for_command(limit).map_err(&waiting)?.is_some() {
        // A second signal: no more patience. A third one: none at all.
        if let Some(command) = &live.command {
            command.terminate();
        }
        live.wait_for_command(Instant::now().checked_add(GRACE)).map_err(&waiting)?;
    }
    let status = live.command.as_mut().and_then(|command| command.status());
    if status.is_none() {
        say("the command goes on without being recorded");
    }
    Ok(status)
}
