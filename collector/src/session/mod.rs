//! A recording from beginning to end.

mod again;
pub(crate) mod build_id;
mod by_cpu;
mod cgroups;
pub(crate) mod command;
pub(crate) mod command_outcome;
mod family;
pub(crate) mod followed;
pub(crate) mod kernel_code;
mod kernel_events;
mod kernel_image;
pub(crate) mod last_thread;
mod lead;
pub(crate) mod limits;
pub(crate) mod live;
mod made_code;
mod mapped_files;
mod members;
pub(crate) mod metadata;
pub(crate) mod open;
pub(crate) mod output;
mod phases_standing;
mod placeholder;
mod producer;
pub(crate) mod record_layout;
pub(crate) mod recorder;
pub(crate) mod rotation;
mod setup;
#[cfg_attr(not(feature = "simulated-pmu"), path = "simulating_absent.rs")]
mod simulating;
mod standing;
pub(crate) mod synthesize;
pub(crate) mod tally;
mod time_order;
pub(crate) mod timing;
pub(crate) mod tracing;
mod vdso;

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};

use formats::made_code::{KERNEL_PID, MadeCode};
use formats::metadata::{EventMetadata, FEATURE, MappedFilesMetadata, Metadata, Provenance, RECORD_TYPE};
use perfdata::{BuildIdEntry, EventDescription, FeatureBit, Features, RecordType, Writer};

use crate::control::Control;
use crate::error::RecordError;
use crate::machine::Machine;
use crate::plan::PlanError;
use crate::plan::choice::{Choice, choose};
use crate::plan::event_spec::Levels;
use crate::plan::request::{Request, Target};
pub use crate::session::again::run_again;
use crate::session::build_id::build_ids;
use crate::session::command::{PreparedCommand, find_program};
use crate::session::command_outcome::CommandStatus;
use crate::session::family::Family;
use crate::session::followed::{Attached, PlannedFollower};
use crate::session::kernel_code::{BpfCode, KernelChanges, KernelCode, by_bpf};
use crate::session::kernel_events::KernelEvents;
use crate::session::limits::{check_files, open_files};
use crate::session::live::Live;
use crate::session::made_code::{MadeCodeRecords, SampledCode};
use crate::session::mapped_files::MappedFiles;
use crate::session::members::Members;
use crate::session::metadata::{features, metadata};
use crate::session::open::KernelOpener;
use crate::session::output::{Output, is_stream};
use crate::session::producer::Producer;
use crate::session::record_layout::RecordLayout;
use crate::session::recorder::{Ended, Recorder, RingSource, Stop};
use crate::session::rotation::Rotating;
use crate::session::setup::{cpus, open_all, tasks};
use crate::session::simulating::PlannedSimulation;
use crate::session::standing::Standing;
use crate::session::tally::{Counts, Tally};
use crate::session::timing::Timing;
use crate::session::tracing::Tracing;
use crate::session::vdso::{vdso, vsyscall};
use crate::simulation::SimulationStatistics;
use crate::sys::process::{all_processes, group_and_parent};
use crate::sys::{SignalFd, ignore_file_size_signal, is_ignored, own_cpu_time, raise_limits};
use crate::tracer::TracerStatistics;

/// A recording that is set up; nothing is recorded and nothing of the command runs yet.
pub struct Session<'a> {
    request: &'a Request,
    machine: &'a Machine,
    choice: Choice,
    live: Live,
    command: Option<PreparedCommand>,
    output: Option<Output>,
    /// Where there are several files, one after the other.
    rotating: Option<Rotating>,
    recorder: Recorder<BufWriter<File>>,
    /// By the clock of the machine, which may be set while it records.
    began: SystemTime,
    /// What is to be said when it begins.
    notes: Vec<String>,
    /// Whether what comes first is in the file.
    begun: Result<(), RecordError>,
}

/// What a recording came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Why the recording ended.
    pub stop: Stop,
    /// How the command ended; `None` without a command, or if it still runs.
    pub command: Option<CommandStatus>,
    /// What is in the file.
    pub summary: Summary,
}

/// What is in the file.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Where the recording is.
    pub path: PathBuf,
    /// Its size; of what went into a pipe, that of the records.
    pub bytes: u64,
    /// What it says of itself.
    pub metadata: Metadata,
    /// How many samples there are, and how many were lost.
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
        if let Some(group) = request.target.group().filter(|group| !group.is_there()) {
            return Err(RecordError::NoSuchGroup(group.name().to_owned()));
        }
        raise_limits();
        let files = open_files();
        check_files(files, cpus(request, machine).len())?;
        let (mut choice, mut follower) = plan(request, machine)?;
        let events = tasks(&request.target, choice.by_cpu) * cpus(request, machine).len() * choice.events.len();
        let own = follower.as_ref().map_or(0, |follower| follower.files());
        match check_files(files, events + own) {
            Err(error) if request.tracer.is_open() => {
                check_files(files, events)?;
                choice.degradations.push(format!("no branch stacks: {error}"));
                follower = None;
            }
            checked => checked?,
        }
        let own = follower.as_ref().map_or(0, |follower| follower.files());
        // One more of each CPU tells what the kernel does to its code, if there is room.
        let tells_of_kernel = choice.events.iter().any(|event| event.levels != Levels::User);
        let room_for_changes = tells_of_kernel
            .then(|| check_files(files, events + own + machine.online.len()).map_err(|error| error.to_string()));
        if let Some(program) = request.command.first() {
            find_program(program)?;
        }
        let signals = SignalFd::block(&signals_to_stop()).map_err(RecordError::system("blocking signals"))?;
        ignore_file_size_signal();
        let (mut output, mut rotating, mut notes) = (None, None, Vec::new());
        let file = match &request.rotation {
            Some(rotation) => {
                let (begun, file, said) = Rotating::begin(&request.output, rotation)?;
                (rotating, notes) = (Some(begun), said);
                file
            }
            None => {
                let (made, file) = Output::create(&request.output)?;
                output = Some(made);
                file
            }
        };
        match begin(request, machine, (&mut choice, room_for_changes), follower, signals, file) {
            Ok(Begun { live, command, mut recorder }) => {
                let (began, begun) = (SystemTime::now(), Ok(()));
                if rotating.is_some() {
                    recorder.standing = Some(Standing::new(RecordLayout::of_events(recorder.writer.events())));
                }
                let mut session =
                    Self { request, machine, choice, live, command, output, rotating, recorder, began, notes, begun };
                session.begun = session.begin_file();
                Ok(session)
            }
            Err(error) => {
                output.into_iter().for_each(Output::abandon);
                rotating.into_iter().for_each(Rotating::abandon);
                Err(error)
            }
        }
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
        self.introduction().tracer.is_some()
    }

    /// The recording ends, as if its time were up, once this is set.
    pub fn ends_when(&mut self, enough: Arc<AtomicBool>) {
        self.live.enough = Some(enough);
    }

    /// Starts the command and the events, records until there is a reason to stop, and completes the file. `say` hears what the user
    /// should know while it goes on.
    ///
    /// # Errors
    /// [`RecordError`]. If the command cannot be run there is no new file. If the file cannot be written on, the command goes on until
    /// the recording would have ended, the file can be read as far as it came, and the error is [`RecordError::Incomplete`].
    pub fn run(mut self, say: &mut dyn FnMut(&str)) -> Result<Outcome, RecordError> {
        std::mem::take(&mut self.notes).iter().for_each(|note| say(note));
        let by_exec = self.request.target == Target::Command;
        let begun = std::mem::replace(&mut self.begun, Ok(()));
        let synthesized = begun.and_then(|()| if by_exec { self.synthesize() } else { Ok(()) });
        let started = Instant::now();
        self.began = SystemTime::now();
        let enabled = if by_exec { Ok(()) } else { self.live.enable().map_err(RecordError::Enable) };
        let command = enabled.and_then(|()| Ok(self.command.take().map(PreparedCommand::start).transpose()?));
        match command {
            Ok(command) => self.live.command = command,
            Err(error) => {
                self.live.stop();
                drop(self.recorder);
                self.output.into_iter().for_each(Output::abandon);
                self.rotating.into_iter().for_each(Rotating::abandon);
                return Err(error);
            }
        }
        self.live.begin(self.request.duration);
        if let Some(group) = self.request.target.group().filter(|group| group.processes().is_empty()) {
            say(&format!("no process is in the control group {}: what comes into it is recorded", group.name()));
        }
        let settled = self.output.as_mut().map_or(Ok(()), Output::settle);
        let synthesized = settled.map_err(RecordError::from).and(synthesized);
        // Events that are running before `/proc` is read miss no mapping; those of a command begin with its exec.
        let synthesized = synthesized.and_then(|()| if by_exec { Ok(()) } else { self.synthesize() });
        let recorded = synthesized.and_then(|()| self.start_files()).and_then(|()| {
            let stop = self.run_in_files(say)?;
            if let Some(group) = self.request.target.group().filter(|_| stop == Stop::TargetsEnded) {
                say(&format!("the control group {} was removed: the recording ends", group.name()));
            }
            self.end_with_a_file(say)?;
            Ok(stop)
        });
        let duration = self.rotating.as_ref().filter(|all| all.number > 1).map_or(started, Rotating::begun).elapsed();
        let introduction = self.introduction();
        let Self { request, machine, choice, mut live, recorder, mut rotating, .. } = self;
        let safe = recorder.safe;
        let written = recorded.and_then(|stop| {
            let with_kernel = choice.events.iter().any(|event| event.levels != Levels::User);
            let own_time_before = rotating.as_ref().map_or(Duration::ZERO, |files| files.own_time);
            let of_file = OfFile { duration, own_time_before, is_last: true };
            let ended = recorder.ended();
            let ids = build_ids(&ended.tally.mapped, with_kernel);
            let mut summary = complete(request, machine, introduction, &mut live, ended, of_file, ids)?;
            if let Some(files) = &mut rotating {
                let (path, sentences) = files.finish()?;
                summary.path = path.unwrap_or_default();
                say(&summary.line_of_file());
                sentences.iter().for_each(|sentence| say(sentence));
            }
            Ok((stop, summary))
        });
        match written {
            Ok((stop, summary)) => {
                let command = end_command(&mut live, stop, say)?;
                Ok(Outcome { stop, command, summary })
            }
            Err(error) => {
                let cut = rotating.as_mut().and_then(|files| files.cut(safe));
                say(&format!("{error}; the recording ends here"));
                live.stop();
                let stop = live.wait_unrecorded().unwrap_or(Stop::CommandEnded);
                let ended = end_command(&mut live, stop, say).unwrap_or_default();
                let command = ended.filter(|_| stop != Stop::Duration);
                let none = || rotating.as_ref().map_or_else(|| request.output.clone(), |files| files.names().into());
                let path = cut.unwrap_or_else(none);
                Err(RecordError::Incomplete { path, source: Box::new(error), command })
            }
        }
    }

    /// The metadata, as far as it is known before anything is recorded.
    fn introduction(&self) -> Metadata {
        let mut metadata = metadata(&self.choice, self.machine, self.request.target.word(), self.began);
        metadata.cgroup = self.request.target.group().map(|group| group.name().to_owned());
        metadata.calibration.clone_from(&self.request.calibration);
        metadata.mapped_files = Some(MappedFilesMetadata::default());
        if let Some(files) = &self.rotating {
            metadata.file = Some(files.number);
            metadata.unwritten = Some(files.told).filter(|&samples| samples > 0);
        }
        self.live.producers.iter().for_each(|producer| producer.introduce(&mut metadata));
        metadata
    }

    /// Writes what is known of the recording now: a collector that is killed leaves a file that can be read, and says what it is.
    fn begin_file(&mut self) -> Result<(), RecordError> {
        let metadata = self.introduction();
        let writer = &mut self.recorder.writer;
        if let Some(body) = metadata.to_record_body() {
            writer.write_user_record(RecordType(RECORD_TYPE), &body)?;
        }
        // Elsewhere the kernel has another one.
        let vdso = vdso();
        for body in vdso.iter().flat_map(|file| MadeCode::Vdso(file).to_record_bodies()) {
            writer.write_user_record(RecordType(RECORD_TYPE), &body)?;
        }
        if let Some((at, page)) = vsyscall() {
            let code = MadeCode::Executed { time: 0, pid: KERNEL_PID, pieces: vec![(at, &page)] };
            for body in code.to_record_bodies() {
                writer.write_user_record(RecordType(RECORD_TYPE), &body)?;
            }
        }
        writer.write_event_names()?;
        Ok(writer.flush()?)
    }

    /// Writes what was there before the recording.
    fn synthesize(&mut self) -> Result<(), RecordError> {
        let kernel_wanted = self.choice.events.iter().any(|event| event.levels != Levels::User);
        let events = self.recorder.writer.events();
        let mut writer = Writer::of_records(Vec::new(), events)?;
        if kernel_wanted && !synthesize::kernel(&mut writer, &self.machine.kernel.release)? {
            self.choice.degradations.push(
                "kernel samples are of no named function: kernel.kptr_restrict hides where the kernel is".to_owned(),
            );
        }
        self.recorder.bpf.iter_mut().for_each(BpfCode::find);
        let pids = match &self.request.target {
            Target::Command => Vec::new(),
            Target::System => all_processes(),
            Target::Group(group) => group.processes(),
            Target::Processes(ids) | Target::Threads(ids) => ids.clone(),
        };
        for pid in pids {
            synthesize::process(&mut writer, pid)?;
        }
        self.recorder.write_found(writer.get_mut())?;
        Ok(self.recorder.writer.flush()?)
    }

    /// The first of several files begins to record.
    fn start_files(&mut self) -> Result<(), RecordError> {
        if self.rotating.is_none() {
            return Ok(());
        }
        let (before_records, first_bytes) = (self.before_records()?, self.recorder.writer.data_size());
        self.rotating.iter_mut().for_each(|files| files.start(before_records, first_bytes));
        Ok(())
    }

    /// Completes a file after which another one comes.
    fn finish_file(&mut self, ended: Ended<BufWriter<File>>) -> Result<Summary, RecordError> {
        let times = self.rotating.as_ref();
        let times = times.map_or_else(OfFile::default, |files| OfFile {
            duration: files.begun().elapsed(),
            own_time_before: files.own_time,
            is_last: false,
        });
        let with_kernel = self.choice.events.iter().any(|event| event.levels != Levels::User);
        let ids = build_ids(&ended.tally.mapped, with_kernel);
        complete(self.request, self.machine, self.introduction(), &mut self.live, ended, times, ids)
    }
}

/// Chooses the events that the kernel is to open, and what is to follow the program beside them.
fn plan(request: &Request, machine: &Machine) -> Result<(Choice, Option<Box<dyn PlannedFollower>>), RecordError> {
    if let Some(simulation) = &request.simulation {
        let (planned, choice) = PlannedSimulation::plan(simulation.pmu, simulation.only_steps, &request.options)?;
        return Ok((choice, Some(Box::new(planned))));
    }
    if Timing::wanted(request) {
        let (timing, choice) = Timing::plan(request, machine)?;
        return Ok((choice, Some(Box::new(timing))));
    }
    let choice = choose(machine, &request.options, &mut KernelOpener);
    let mut choice = choice.map_err(|error| match error {
        PlanError::NoSystemWide(level) if request.target.group().is_some() => PlanError::NoGroup(level),
        error => error,
    })?;
    let tracing = Tracing::plan(request, machine, &mut choice)?;
    Ok((choice, tracing.map(|tracing| Box::new(tracing) as Box<dyn PlannedFollower>)))
}

/// What is at work, and where its records go.
struct Begun {
    live: Live,
    command: Option<PreparedCommand>,
    recorder: Recorder<BufWriter<File>>,
}

/// Forks the command, opens the events, attaches what follows the program, and begins the file. `room_for_changes`: whether there is room for
/// the events that tell what the kernel does to its code, or why not; `None` if nobody asks.
fn begin(
    request: &Request,
    machine: &Machine,
    (choice, room_for_changes): (&mut Choice, Option<Result<(), String>>),
    follower: Option<Box<dyn PlannedFollower>>,
    signals: SignalFd,
    mut file: File,
) -> Result<Begun, RecordError> {
    let added = follower.as_ref().and_then(|follower| follower.environment());
    let (mut command, kernel) = open_all(request, machine, choice, &signals, added)?;
    let (mut followed, mut tracer) = (None, None);
    let first = kernel.as_ref().and_then(KernelEvents::first_attr);
    if let Some(follower) = follower {
        let pid = command.as_ref().map(PreparedCommand::pid);
        followed = follower.attach(request, pid, first, choice)?;
    }
    let first = kernel.as_ref().and_then(|kernel| kernel.events().first());
    let (changes, unseen_changes) = match (first, room_for_changes) {
        (Some(first), Some(Ok(()))) => KernelChanges::open(first, &machine.online),
        (_, Some(Err(why))) => {
            (None, Some(format!("what the kernel changes of its code is not in the recording: {why}")))
        }
        _ => (None, None),
    };
    let mut producers: Vec<Box<dyn Producer>> = Vec::new();
    producers.extend(kernel.map(|kernel| Box::new(kernel) as Box<dyn Producer>));
    if let Some(Attached { producer, shared, traces }) = followed {
        // Whoever is recorded, the command may be among them.
        if let (true, Some(command)) = (traces, &mut command) {
            command.leave_to(shared.clone());
        }
        tracer = Some(shared);
        producers.push(producer);
    }
    let tells_of_bpf = changes.is_some();
    producers.extend(changes.map(|changes| Box::new(changes) as Box<dyn Producer>));
    let made_code = tracer.as_ref().map(|tracer| tracer.shared_made_code()).unwrap_or_default();
    producers.push(Box::new(MadeCodeRecords::new(made_code.clone())));
    let mut introduction = Metadata::default();
    producers.iter().for_each(|producer| producer.introduce(&mut introduction));
    let events: Vec<EventDescription> = producers.iter().flat_map(|producer| producer.events()).cloned().collect();
    let is_burst = |event: &EventMetadata| event.provenance == Some(Provenance::Software);
    let burst = events.iter().zip(&introduction.events).find(|(_, event)| is_burst(event));
    let burst_id = burst.and_then(|(event, _)| event.ids.first().copied());
    let is_stream = is_stream(&mut file);
    let out = BufWriter::with_capacity(1 << 18, file);
    let writer = match is_stream {
        true => Writer::create_stream(out, &events)?,
        false => Writer::create(out, &events)?,
    };
    let roots: Vec<Option<u32>> = match &request.target {
        Target::Command => command.iter().map(|command| Some(command.pid())).collect(),
        Target::Processes(ids) | Target::Threads(ids) => {
            ids.iter().filter_map(|&id| Some(Some(group_and_parent(id)?.0))).collect()
        }
        // Who is in the group is not known before the end.
        Target::System | Target::Group(_) => vec![None],
    };
    let (mut control, nobody) = Control::new(RecordLayout::of_events(&events), request.off, &roots, burst_id)?;
    choice.degradations.extend(nobody);
    let mut recorder = Recorder::new(writer, burst_id);
    let mut live = Live::new(producers, signals, request.target.ids());
    live.messages = control.polled();
    live.group = request.target.group().cloned();
    tracer.into_iter().for_each(|tracer| control.tell(tracer));
    recorder.control = Some(control);
    recorder.sampled_code =
        Some(SampledCode::new(made_code, RecordLayout::of_events(recorder.writer.events()), burst_id));
    if let (true, Target::Processes(pids)) = (choice.by_cpu, &request.target) {
        let layout = RecordLayout::of_events(recorder.writer.events());
        recorder.family = Some(Family::new(layout, pids));
    }
    recorder.members = request.target.group().map(|group| Members::new(group.clone(), recorder.writer.events()));
    recorder.unseen_changes = unseen_changes;
    recorder.bpf = tells_of_bpf.then(|| BpfCode::new(RecordLayout::of_events(recorder.writer.events())));
    recorder.files = MappedFiles::new(RecordLayout::of_events(recorder.writer.events()), !request.no_copies);
    Ok(Begun { live, command, recorder })
}

/// What is known of a file besides its records.
#[derive(Clone, Copy, Debug, Default)]
struct OfFile {
    duration: Duration,
    /// CPU time of the collector before it began.
    own_time_before: Duration,
    /// No other comes after it.
    is_last: bool,
}

/// Writes what became of the recording, and completes the file. `metadata`: what it was introduced with.
fn complete(
    request: &Request,
    machine: &Machine,
    metadata: Metadata,
    live: &mut Live,
    ended: Ended<BufWriter<File>>,
    of_file: OfFile,
    build_ids: Vec<BuildIdEntry>,
) -> Result<Summary, RecordError> {
    let Ended { mut writer, mut tally, mapped_files, degradations, written, .. } = ended;
    written?;
    let counts = Counts { unwritten: metadata.unwritten.unwrap_or(0), ..tally.counts };
    let (path, duration) = (request.output.clone(), of_file.duration);
    let mut summary = Summary { path, bytes: 0, metadata, counts, duration, tracer: None, simulation: None };
    for (event, &samples) in summary.metadata.events.iter_mut().zip(&tally.samples) {
        event.samples = Some(samples);
    }
    let mut first = 0;
    for producer in &mut live.producers {
        let own = first..first + producer.events().len();
        first = own.end;
        if of_file.is_last {
            producer.conclude(own, &mut summary);
        } else {
            producer.conclude_file(own, &mut summary);
        }
    }
    // What it costs comes after all that was followed: it slows no program.
    let without_kernel = keep_kernel_code(&mut writer, &mut tally, &machine.kernel.release)?;
    summary.counted();
    summary.metadata.mapped_files = Some(mapped_files);
    summary.metadata.degradations.extend(degradations.into_iter().chain(without_kernel));
    summary.metadata.collector_cpu_ns = Some(nanoseconds(own_cpu_time().saturating_sub(of_file.own_time_before)));
    let mut features = features(machine, &summary.metadata, &request.cmdline, build_ids, tally.sample_time);
    leave_out(writer.too_large(&features)?, &mut summary.metadata, &mut features);
    let streamed = writer.data_size();
    let file = writer.finish(&features)?;
    let bytes = file.get_ref().metadata().ok().filter(|file| file.is_file()).map_or(streamed, |file| file.len());
    Ok(Summary { bytes, ..summary })
}

/// Writes the kernel code in which samples fell. Returns what is missing of it, in sentences.
fn keep_kernel_code(
    writer: &mut Writer<BufWriter<File>>,
    tally: &mut Tally,
    release: &str,
) -> Result<Vec<String>, RecordError> {
    let hits = std::mem::take(&mut tally.kernel);
    if hits.is_empty() {
        return Ok(Vec::new());
    }
    let KernelCode { modules, bodies, degradation, unclear_modules } = hits.copy(Path::new("/"), by_bpf, release);
    for module in &modules {
        synthesize::kernel_mapping(writer, module)?;
    }
    for body in bodies {
        writer.write_user_record(RecordType(RECORD_TYPE), &body)?;
    }
    Ok(degradation.into_iter().chain(unclear_modules).collect())
}

/// Says which features a stream has no room for. The metadata is one of them: a shorter one takes its place.
fn leave_out(too_large: Vec<FeatureBit>, metadata: &mut Metadata, features: &mut Features) {
    if too_large.is_empty() {
        return;
    }
    for bit in too_large.into_iter().filter(|&bit| bit != FeatureBit(FEATURE)) {
        metadata.degradations.push(format!(
            "{bit} is left out: in a stream a feature has at most 65,512 bytes; record to a file to keep it"
        ));
    }
    if let Some(text) = metadata.to_record_text() {
        features.other.insert(FeatureBit(FEATURE), text);
    }
}

impl Summary {
    /// What was written where, in a line.
    pub fn line(&self) -> String {
        let Self { path, counts, duration, bytes, .. } = self;
        let to: &dyn std::fmt::Display =
            if output::is_standard_output(path) { &"standard output" } else { &path.display() };
        let (seconds, kib) = (duration.as_secs_f64(), bytes.div_ceil(1024));
        format!("{} samples in {seconds:.2} s written to {to} ({kib} KiB)", counts.samples)
    }

    /// The same of one of several files, with what was lost.
    fn line_of_file(&self) -> String {
        let Counts { lost, lost_by_hardware, throttled, .. } = self.counts;
        let mut line = self.line();
        for (what, count) in [("records lost", lost + lost_by_hardware), ("times throttled", throttled)] {
            if count > 0 {
                line += &format!("; {what}: {count}");
            }
        }
        line
    }

    /// The metadata says what was counted.
    fn counted(&mut self) {
        if self.counts.unwritten > 0 {
            self.metadata.degradations.push(format!(
                "{} samples from before it began are lost: there was no room for a file (they count as lost)",
                self.counts.unwritten
            ));
        }
        let (counts, metadata) = (&self.counts, &mut self.metadata);
        metadata.samples = Some(counts.samples);
        metadata.lost = Some(counts.lost);
        metadata.lost_by_hardware = Some(counts.lost_by_hardware);
        metadata.throttled = Some(counts.throttled);
        metadata.late = Some(counts.late);
        metadata.before_first_burst = Some(counts.before_first_burst).filter(|&samples| samples > 0);
        metadata.switched_off = Some(counts.switched_off).filter(|&samples| samples > 0);
        metadata.phase_marks = Some(counts.phase_marks).filter(|&marks| marks > 0);
        metadata.duration_ns = Some(nanoseconds(self.duration));
    }
}

pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
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
    if live.wait_for_command(limit).map_err(RecordError::Waiting)?.is_some() {
        // A second signal: no more patience. A third one: none at all.
        if let Some(command) = &live.command {
            command.terminate();
        }
        live.wait_for_command(Instant::now().checked_add(GRACE)).map_err(RecordError::Waiting)?;
    }
    let status = live.command.as_mut().and_then(|command| command.status());
    if status.is_none() {
        say("the command goes on without being recorded");
    }
    Ok(status)
}
