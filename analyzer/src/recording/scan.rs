//! Reads a recording: once for what happened to processes, once for the samples.
//!
//! Records of different CPUs are not sorted by time in the file, so where a sample belongs is known only when all mappings,
//! forks and execs have been seen. The second reading is shared by all threads, each adding up whole chunks on its own.

use std::collections::{BTreeMap, HashSet};
use std::ops::{Range, RangeInclusive};

use formats::burst_data::DataUses;
use formats::burst_weight::BurstWeight;
use formats::cgroup_mark::CgroupMark;
use formats::made_code::MadeCode;
use formats::metadata::Metadata;
use formats::phase_mark::PhaseMark;
use perfdata::{
    Avma, Chunk, CpuMode, Error, EventDescription, MappedFile, Mmap, RawRecord, Record, RecordType, Recording, Sample,
};
use serde::{Deserialize, Serialize};

use crate::build_id::BuildId;
use crate::processor_trace::TraceParts;
use crate::progress::{Progress, Step};
use crate::recording::cgroups::Cgroups;
use crate::recording::made_code::Made;
use crate::recording::modules::{VDSO, VDSO_32};
use crate::recording::programs::mark_modules_of_32_bits;
use crate::recording::{
    Aggregate, BurstCounter, BurstPiece, Context, ContextId, EpochId, FirstPiece, FirstPieces, IpHits, KERNEL,
    KERNEL_HALF, KERNEL_PID, KernelPlace, LoadedAt, MadeCodes, Mapping, ModuleKind, ModuleTable, PathSelection,
    PhaseId, Phases, SourceEvents, Sources, StackUse, Subset, TaskEvent, Timeline, Totals, samples_by_threads, shown,
    weight_of,
};
use crate::uncertainty::{SliceSums, Slicing};

/// Whether the threads of a process are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// Threads of one process are added up.
    Process,
    /// Threads are told apart.
    Thread,
}

/// Which samples are added up, and which of them together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Whether threads are told apart.
    pub granularity: Granularity,
    /// Whether phases are told apart.
    pub phases: bool,
    /// All samples or half of them.
    pub subset: Subset,
    /// Instructions of a burst that nothing ends, where a clock starts bursts: those that end at system calls show less than they stand for.
    pub full_burst: Option<u64>,
}

/// What the first reading finds.
#[derive(Debug, Default)]
pub struct Tasks {
    /// What happened to processes and threads, in order of time.
    pub timeline: Timeline,
    /// The phases that were marked in them.
    pub phases: Phases,
    /// The modules they mapped.
    pub modules: ModuleTable,
    /// The first pieces of bursts of several samples.
    pub first_pieces: FirstPieces,
    /// The slice of each sample.
    pub slicing: Slicing,
    /// Where traces of the processor are.
    pub trace: TraceParts,
    /// How many records of which kind there are, and what was lost.
    pub records: RecordCounts,
}

/// What a recording held, and what of it was lost or could not be used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordCounts {
    /// How many records of each type there are.
    pub by_type: BTreeMap<RecordType, u64>,
    /// Samples by event, readable or not.
    pub samples: Vec<u64>,
    /// Bursts by event: one has as many samples as its branches need.
    pub bursts: Vec<u64>,
    /// Records the kernel had no room for (PERF_RECORD_LOST).
    pub lost: u64,
    /// Samples the hardware or its driver dropped (PERF_RECORD_LOST_SAMPLES).
    pub lost_by_hardware: u64,
    /// Lost samples as the counters themselves say at the end: the same ones as in `lost`, more or less.
    pub lost_by_counters: u64,
    /// How often the kernel throttled an event.
    pub throttled: u64,
    /// Records of types this version does not know.
    pub unknown: u64,
    /// Records that could not be read.
    pub malformed: u64,
    /// What is wrong with the first of them.
    pub first_malformed: Option<(u64, String)>,
    /// Where and why reading stopped before the end.
    pub damage: Option<String>,
    /// Samples without a time, put at the end of all times.
    pub timeless: u64,
    /// Samples without a process.
    pub processless: u64,
    /// Samples in agents of the tracer: they are left out.
    pub in_agents: u64,
    /// Blocks of code without a file that are left out: it changes too often to be kept.
    pub code_left_out: u64,
    /// Threads of the samples that count.
    pub threads: u64,
}

impl RecordCounts {
    /// What damage there is, in a sentence.
    pub fn damage_in_words(&self) -> Option<String> {
        self.damage.as_ref().map(|damage| format!("the recording is damaged: {damage}"))
    }

    /// Everything that was lost, each loss once.
    pub fn lost_in_all(&self) -> u64 {
        self.lost.max(self.lost_by_counters).saturating_add(self.lost_by_hardware)
    }

    /// Takes over what the recorder counted: it knows of losses after the last record.
    pub fn learn(&mut self, metadata: &Metadata) {
        self.lost = self.lost.max(metadata.lost.unwrap_or(0));
        self.lost_by_hardware = self.lost_by_hardware.max(metadata.lost_by_hardware.unwrap_or(0));
        self.throttled = self.throttled.max(metadata.throttled.unwrap_or(0));
    }

    fn malformed(&mut self, raw: &RawRecord<'_>, error: &Error) {
        self.malformed += 1;
        if self.first_malformed.as_ref().is_none_or(|(offset, _)| raw.offset < *offset) {
            self.first_malformed = Some((raw.offset, error.to_string()));
        }
    }

    fn add_samples(&mut self, other: RecordCounts) {
        self.malformed += other.malformed;
        self.timeless += other.timeless;
        self.processless += other.processless;
        self.in_agents += other.in_agents;
        self.first_malformed = [self.first_malformed.take(), other.first_malformed].into_iter().flatten().min();
    }
}

/// The second reading, with that many threads: the samples, added up with what was `traced`. Adds to the records of `tasks` what it finds.
///
/// # Errors
/// The recording cannot be read.
pub fn read_samples(
    recording: &Recording,
    tasks: &mut Tasks,
    sources: &Sources,
    selection: Selection,
    traced: Aggregate,
    threads: usize,
    progress: Progress<'_>,
) -> Result<Totals, Error> {
    let uses = event_uses(sources, recording.events());
    let shared: &Tasks = tasks;
    let worker = || Worker::new(recording, shared, &uses, &sources.agents, selection);
    let size = recording.data_size();
    let read = |position| progress(Step::Reading { done: size + position, of: 2 * size });
    let workers = samples_by_threads(recording, threads, &read, worker, Worker::add)?;
    let results: Vec<_> = workers.into_iter().map(|worker| (worker.aggregate, worker.counts, worker.threads)).collect();
    let mut sum = traced;
    let mut all_threads: HashSet<(u32, u32)> = HashSet::new();
    for (aggregate, counts, of_worker) in results {
        tasks.records.add_samples(counts);
        all_threads.extend(of_worker);
        // The first one is not copied.
        if sum.is_empty() { sum = aggregate } else { sum.merge(aggregate) }
    }
    tasks.records.threads = all_threads.len() as u64;
    Ok(sum.finish())
}

/// The first reading: everything but samples, of which only the events are looked at, and of bursts which ones belong together.
///
/// # Errors
/// The recording cannot be read.
pub fn read_tasks(recording: &Recording, metadata: &Metadata, progress: Progress<'_>) -> Result<Tasks, Error> {
    let mut records = RecordCounts { samples: vec![0; recording.events().len()], ..RecordCounts::default() };
    let mut bursts = BurstCounter::new(recording, metadata);
    let mut modules = ModuleTable::default();
    let mut events = Vec::new();
    let mut marks = Vec::new();
    let mut made_codes = MadeCodes::default();
    let mut trace = TraceParts::default();
    let mut cgroups = Cgroups::default();
    let mut kernel = None;
    let mut last_time = 0;
    let mut by_type: BTreeMap<RecordType, u64> = BTreeMap::new();
    let mut unreadable_samples = 0;
    let mut times = RangeInclusive::new(u64::MAX, 0);
    let mut chunk = Chunk::new();
    let mut reader = recording.chunks();
    while reader.next_into(&mut chunk)? {
        for raw in chunk.records() {
            if raw.record_type == RecordType::SAMPLE {
                let sample = recording.sample(&raw).ok();
                let time = sample.as_ref().and_then(|sample| sample.time);
                if let Some((pid, cgroup)) = sample.and_then(|sample| sample.pid.zip(sample.cgroup)) {
                    cgroups.sample(time.unwrap_or(u64::MAX), pid, cgroup);
                }
                times = time.into_iter().fold(times, |times, time| time.min(*times.start())..=time.max(*times.end()));
                match recording.event_of_sample(&raw) {
                    Ok(event) => {
                        if let Some(samples) = records.samples.get_mut(event) {
                            *samples += 1;
                        }
                        bursts.add(event, &raw);
                    }
                    Err(_) => unreadable_samples += 1, // What is wrong with it is said by the second reading.
                }
                continue;
            }
            *by_type.entry(raw.record_type).or_default() += 1;
            marks.extend(PhaseMark::of_record(raw.record_type.0, raw.body));
            if let Some(mark) = CgroupMark::of_record(raw.record_type.0, raw.body) {
                events.push((mark.time, TaskEvent::Cgroup { pid: mark.pid, path: mark.path.into() }));
            }
            if let Some(code) = MadeCode::of_record(raw.record_type.0, raw.body) {
                made_codes.add(code);
            }
            match recording.parse(&raw) {
                Ok(record) => {
                    if let Record::Mmap(mmap) | Record::Mmap2(mmap) = &record {
                        kernel = kernel.or_else(|| place_of_kernel(mmap));
                    }
                    match &record {
                        Record::Cgroup(cgroup) => cgroups.name(cgroup),
                        Record::AuxtraceInfo(info) => trace.info(info),
                        Record::Aux(aux) => trace.filled(aux),
                        Record::Auxtrace(copy) => trace.copied(copy, raw.end()),
                        Record::Other(other) if other.record_type == RecordType::AUXTRACE_ERROR => trace.not_decoded(),
                        _ => {}
                    }
                    made_codes.of_kernel(record_time(&record).unwrap_or(last_time), &record);
                    if let Some((time, event)) = task_event(&record, raw.misc, &mut modules, &mut records) {
                        // Old recordings have no times in these records: they hold from where they stand in the file.
                        last_time = time.unwrap_or(last_time);
                        events.push((last_time, event));
                    }
                }
                Err(error) => records.malformed(&raw, &error),
            }
        }
        progress(Step::Reading { done: reader.position(), of: 2 * recording.data_size() });
    }
    records.damage = reader.damage().map(ToString::to_string);
    let samples = records.samples.iter().sum::<u64>() + unreadable_samples;
    if samples > 0 {
        by_type.insert(RecordType::SAMPLE, samples);
    }
    records.by_type = by_type;
    records.bursts = bursts.bursts;
    let of_samples = || records.samples.iter().copied().max().unwrap_or(0);
    let bursts_or_samples = Some(records.bursts.iter().sum()).filter(|bursts| *bursts > 0).unwrap_or_else(of_samples);
    let slicing = Slicing::new(&times, recording.data_size(), bursts_or_samples);
    let first_pieces = bursts.first_pieces;
    let known = recording.features().build_ids.iter();
    modules.learn_build_ids(known.map(|entry| (entry.path.as_slice(), entry.build_id.as_slice())));
    if let Some(files) = &metadata.mapped_files {
        let by_path = files.by_path.iter().filter_map(|of| Some((of.path.as_bytes(), BuildId::from_hex(&of.id)?)));
        let by_path: Vec<(&[u8], BuildId)> = by_path.collect();
        modules.learn_build_ids(by_path.iter().map(|(path, id)| (*path, id.as_bytes())));
        modules.were_identified();
    }
    if let Some(place) = kernel {
        modules.has_kernel(&KernelPlace { release: recording.features().os_release.clone(), ..place });
    }
    mark_modules_of_32_bits(&mut modules, &events);
    place_modules_of_kernel(&mut modules, &events);
    let phases = Phases::new(&marks, &events);
    let Made { mapped, kernel, left_out } = made_codes.finish(&mut modules, &events);
    records.code_left_out = left_out;
    events.extend(mapped);
    events.extend(cgroups.events());
    let timeline = Timeline::new(events).with_kernel(kernel);
    Ok(Tasks { timeline, phases, modules, first_pieces, slicing, trace, records })
}

/// `PERF_RECORD_MISC_FORK_EXEC`: `perf record` made the FORK up for a process that was there before.
const FORK_EXEC: u16 = 1 << 13;

/// When the kernel said something of its own code.
fn record_time(record: &Record<'_>) -> Option<u64> {
    match record {
        Record::Ksymbol(symbol) => symbol.sample_id.time,
        Record::TextPoke(poke) => poke.sample_id.time,
        _ => None,
    }
}

/// What a record says about processes, with its time if it has one.
fn task_event(
    record: &Record<'_>,
    misc: u16,
    modules: &mut ModuleTable,
    counts: &mut RecordCounts,
) -> Option<(Option<u64>, TaskEvent)> {
    match record {
        Record::Mmap(mmap) | Record::Mmap2(mmap) => {
            if !mmap.is_executable() || matches!(mmap.cpu_mode, CpuMode::GuestKernel | CpuMode::GuestUser) {
                return None;
            }
            let (pid, mapping) = mapping_of(mmap, modules)?;
            Some((mmap.sample_id.time, TaskEvent::Map { pid, mapping }))
        }
        Record::Comm(comm) => {
            let name = String::from_utf8_lossy(comm.name).into_owned();
            Some((comm.sample_id.time, TaskEvent::Comm { pid: comm.pid, tid: comm.tid, exec: comm.exec, name }))
        }
        Record::Fork(task) if task.pid != task.ppid => {
            let inherits = misc & FORK_EXEC == 0;
            Some((Some(task.time), TaskEvent::Fork { pid: task.pid, ppid: task.ppid, inherits }))
        }
        Record::Exit(task) if task.pid == task.tid => Some((Some(task.time), TaskEvent::Exit { pid: task.pid })),
        Record::Ksymbol(symbol) if !symbol.unregister => {
            let module = modules.intern(symbol.name, None);
            let mapping = Mapping::new(symbol.addr, u64::from(symbol.len), symbol.addr.0, module)?;
            Some((symbol.sample_id.time, TaskEvent::Map { pid: KERNEL_PID, mapping }))
        }
        Record::Lost(lost) => {
            counts.lost = counts.lost.saturating_add(lost.lost);
            None
        }
        Record::LostSamples(lost) => {
            // `perf record` adds such records itself at the end, without a time.
            let sum = match lost.sample_id.time {
                None | Some(0) => &mut counts.lost_by_counters,
                Some(_) => &mut counts.lost_by_hardware,
            };
            *sum = sum.saturating_add(lost.lost);
            None
        }
        Record::Throttle(_) => {
            counts.throttled += 1;
            None
        }
        Record::Unknown(_) => {
            counts.unknown += 1;
            None
        }
        _ => None,
    }
}

/// Whether it is of the kernel itself, or of a module of it.
fn is_of_kernel(mmap: &Mmap<'_>) -> bool {
    mmap.pid == KERNEL_PID || mmap.cpu_mode == CpuMode::Kernel
}

/// What the mapping of the kernel says of where it was: in its name is a symbol, and its pgoff is the symbol's address.
fn place_of_kernel(mmap: &Mmap<'_>) -> Option<KernelPlace> {
    let symbol = mmap.path.strip_prefix(KERNEL.as_bytes()).filter(|_| is_of_kernel(mmap))?;
    let symbol = std::str::from_utf8(symbol).ok().filter(|symbol| !symbol.is_empty());
    let address = if symbol.is_some() { Avma(mmap.pgoff) } else { mmap.start };
    // Where addresses are hidden they are zero.
    (address.0 >> 63 == 1).then(|| KernelPlace { release: None, symbol: symbol.map(str::to_owned), address })
}

/// Where the modules of the kernel were in the end.
fn place_modules_of_kernel(modules: &mut ModuleTable, events: &[(u64, TaskEvent)]) {
    for (_, event) in events {
        if let TaskEvent::Map { pid: KERNEL_PID, mapping } = event {
            let base = Avma(mapping.start.0.wrapping_sub(mapping.pgoff));
            modules.was_loaded(mapping.module, LoadedAt { start: mapping.start, base });
        }
    }
}

fn mapping_of(mmap: &Mmap<'_>, modules: &mut ModuleTable) -> Option<(u32, Mapping)> {
    let is_kernel = is_of_kernel(mmap);
    if is_kernel && mmap.path.starts_with(KERNEL.as_bytes()) {
        // Its pgoff is the address of a reference symbol; kernel code is known by its addresses until its file is found.
        let module = modules.intern(KERNEL.as_bytes(), None);
        if let MappedFile::BuildId(id) = &mmap.file {
            modules.learn_build_ids([(KERNEL.as_bytes(), id.as_bytes())].into_iter());
        }
        return Some((KERNEL_PID, Mapping::new(mmap.start, mmap.len, mmap.start.0, module)?));
    }
    let build_id = match &mmap.file {
        MappedFile::BuildId(id) => Some(id.as_bytes()),
        _ => None,
    };
    let is_vdso = mmap.path == VDSO.as_bytes();
    // In processes of 64 bits it is near the stack, which is above.
    let is_32_bit_vdso = is_vdso && mmap.start.0 < 1 << 32;
    let module = modules.intern(if is_32_bit_vdso { VDSO_32.as_bytes() } else { mmap.path }, build_id);
    let pid = if is_kernel { KERNEL_PID } else { mmap.pid };
    // The kernel gives memory without a file its address as offset. The vDSO is an ELF file, the same in all processes of as many bits.
    let pgoff = if is_vdso { 0 } else { mmap.pgoff };
    let mapping = Mapping::new(mmap.start, mmap.len, pgoff, module)?;
    let is_anonymous = modules.get(module).kind == ModuleKind::Anonymous;
    Some((pid, if is_anonymous { mapping.anonymous() } else { mapping }))
}

/// The context of a sample without its place and its phase, and of a piece of a burst (which has a `weight`) whether it is the first one.
pub fn context_of(
    sample: &Sample<'_>,
    raw: &RawRecord<'_>,
    weight: Option<&BurstWeight>,
    granularity: Granularity,
    first_pieces: &FirstPieces,
) -> (Context, bool) {
    let plain = Context {
        event: sample.event as u32,
        pid: sample.pid.unwrap_or(0),
        place: EpochId::default(),
        tid: if granularity == Granularity::Thread { sample.tid.unwrap_or(0) } else { 0 },
        phase: PhaseId::default(),
        guest: matches!(raw.cpu_mode(), CpuMode::GuestKernel | CpuMode::GuestUser),
        start: Avma(0),
        after_call: false,
    };
    let Some(weight) = weight else { return (plain, false) };
    let this = FirstPiece { start: sample.ip, offset: raw.offset };
    let known = sample.time.and_then(|time| first_pieces.get(&(sample.event, sample.tid, time)));
    let first = known.unwrap_or(&this);
    (plain.starting_at(first.start.unwrap_or_default(), weight.after_call), *first == this)
}

/// What an event's samples are used for.
pub struct EventUse {
    pub ip: bool,
    pub stack: bool,
    /// Its stacks are pieces of bursts.
    pub burst: bool,
    /// Its stacks are LBR call stacks.
    pub call_stack: bool,
    /// Of samples that do not say theirs.
    pub period: u64,
}

impl EventUse {
    /// Whether a sample has addresses of a kernel whose code changed meanwhile: bursts have none.
    pub fn sees_kernel(&self, sample: &Sample<'_>, timeline: &Timeline) -> bool {
        if timeline.kernel().is_one() {
            return false;
        }
        let is_kernel = |at: Avma| at.0 >= KERNEL_HALF;
        let stack = sample.branch_stack.as_ref().filter(|_| self.stack);
        !self.burst
            && (sample.ip.is_some_and(is_kernel)
                || stack.is_some_and(|stack| stack.iter().any(|branch| is_kernel(branch.from) || is_kernel(branch.to))))
    }
}

/// What the samples of each event are used for.
pub fn event_uses(sources: &Sources, events: &[EventDescription]) -> Vec<EventUse> {
    let is_of = |source: &Option<SourceEvents>, event: usize| {
        source.as_ref().is_some_and(|source| source.events.contains(&event))
    };
    let has_bursts = sources.lbr.as_ref().is_some_and(|lbr| lbr.has_bursts);
    let event_use = |(index, event): (usize, &EventDescription)| {
        let stack = is_of(&sources.lbr, index);
        let period = event.attr.sample_period().unwrap_or(1);
        let call_stack = StackUse::of(event) == StackUse::CallStack;
        EventUse { ip: is_of(&sources.ebs, index), stack, burst: stack && has_bursts, call_stack, period }
    };
    events.iter().enumerate().map(event_use).collect()
}

/// One thread of the second reading.
struct Worker<'a> {
    recording: &'a Recording,
    tasks: &'a Tasks,
    uses: &'a [EventUse],
    agents: &'a Range<Avma>,
    selection: Selection,
    paths: PathSelection,
    aggregate: Aggregate,
    counts: RecordCounts,
    /// Process and thread of the samples so far.
    threads: HashSet<(u32, u32)>,
    last_thread: Option<(u32, u32)>,
    recent: [Option<RecentContext>; RECENT_CONTEXTS],
}

/// How many contexts a worker remembers.
const RECENT_CONTEXTS: usize = 64;

/// A context that was looked up, and for which samples it holds.
struct RecentContext {
    context: Context,
    sees_kernel: bool,
    times: Range<u64>,
    id: ContextId,
}

impl<'a> Worker<'a> {
    fn new(
        recording: &'a Recording,
        tasks: &'a Tasks,
        uses: &'a [EventUse],
        agents: &'a Range<Avma>,
        selection: Selection,
    ) -> Self {
        Worker {
            recording,
            tasks,
            uses,
            agents,
            selection,
            paths: PathSelection::of(tasks.records.bursts.iter().sum()),
            aggregate: Aggregate::default(),
            counts: RecordCounts::default(),
            threads: HashSet::new(),
            last_thread: None,
            recent: [const { None }; RECENT_CONTEXTS],
        }
    }

    #[inline]
    fn add(&mut self, raw: &RawRecord<'_>) {
        let sample = match self.recording.sample(raw) {
            Ok(sample) => sample,
            Err(error) => return self.counts.malformed(raw, &error),
        };
        if !self.selection.subset.keeps(&sample, raw) {
            return;
        }
        let event = sample.event;
        let Some(uses) = self.uses.get(event) else { return };
        let period = sample.period.unwrap_or(uses.period);
        let ip = sample.ip.filter(|_| uses.ip);
        let stack = sample.branch_stack.as_ref().filter(|_| uses.stack);
        if ip.is_none() && stack.is_none() {
            return;
        }
        if stack.is_none() && ip.is_some_and(|ip| self.agents.contains(&ip)) {
            self.counts.in_agents += 1;
            return;
        }
        self.counts.timeless += u64::from(sample.time.is_none());
        self.counts.processless += u64::from(sample.pid.is_none());
        let thread = Some((sample.pid.unwrap_or_default(), sample.tid.unwrap_or_default()));
        if self.last_thread != thread {
            self.threads.extend(thread);
            self.last_thread = thread;
        }
        let burst = uses.burst && stack.is_some();
        let weight = weight_of(&sample);
        let (context, is_first) =
            context_of(&sample, raw, burst.then_some(&weight), self.selection.granularity, &self.tasks.first_pieces);
        let sees_kernel = uses.sees_kernel(&sample, &self.tasks.timeline);
        let id = self.context_id(context, sample.time.unwrap_or(u64::MAX), sees_kernel);
        let slice = self.tasks.slicing.of(sample.time, raw.offset);
        if let Some(ip) = ip {
            let slices = SliceSums::one(slice, period);
            self.aggregate.add_ip(IpHits { context: id, ip, samples: 1, periods: u128::from(period), slices });
        }
        match stack {
            Some(stack) if burst => {
                let piece = BurstPiece {
                    start: sample.ip,
                    weight,
                    period,
                    shown: shown(period, &weight, self.selection.full_burst),
                    stack,
                    first: is_first,
                    slice,
                };
                self.aggregate.add_burst(id, &piece);
                if is_first && self.paths.keeps(&sample, raw) {
                    let time = sample.time.unwrap_or(u64::MAX);
                    self.aggregate.keep_path(id, time, &piece, DataUses::read(sample.raw.unwrap_or_default()));
                }
            }
            Some(stack) => self.aggregate.add_stack(id, slice, period, stack),
            None => {}
        }
    }

    /// The id of this context at this time; `context` comes without its place and its phase.
    #[inline]
    fn context_id(&mut self, context: Context, time: u64, sees_kernel: bool) -> ContextId {
        let slot = (context.pid ^ context.tid.rotate_left(3) ^ context.event.rotate_left(5)) as usize % RECENT_CONTEXTS;
        let mut slot = self.recent.get_mut(slot);
        if let Some(Some(recent)) = &slot
            && (recent.context, recent.sees_kernel) == (context, sees_kernel)
            && recent.times.contains(&time)
        {
            return recent.id;
        }
        let (place, times) = self.tasks.timeline.place_of_sample(context.pid, time, sees_kernel);
        let (phase, same_phase) = match self.selection.phases {
            true => self.tasks.phases.at(context.pid, time),
            false => (PhaseId::default(), 0..u64::MAX),
        };
        let times = times.start.max(same_phase.start)..times.end.min(same_phase.end);
        let id = self.aggregate.context(Context { place, phase, ..context });
        if let Some(recent) = &mut slot {
            **recent = Some(RecentContext { context, sees_kernel, times, id });
        }
        id
    }
}
