//! From the trace of a processor (Intel PT) to the branches that a program took.
//!
//! ```text
//! AUX, AUXTRACE records -> bytes of each thread -> packets -> walk through its code -> streams       parts, packets, walk, code
//! ```
//!
//! A trace is complete where nothing was lost, and so are the counts. It has no addresses of direct branches: code that cannot be read ends
//! the walk, until the packets say again where the program is.

mod code;
mod packets;
mod parts;
mod walk;

use std::collections::{BTreeMap, HashMap};

use perfdata::{Error, EventDescription, Recording};

use crate::binaries::BinarySearch;
use crate::processor_trace::code::{Files, ProcessCode, Unknown};
use crate::processor_trace::packets::Reading;
use crate::processor_trace::parts::Area;
pub use crate::processor_trace::parts::TraceParts;
use crate::processor_trace::walk::{Around, Losses, Walk};
use crate::recording::{
    AddressSpace, Aggregate, Context, EpochId, EventKind, Granularity, ModuleTable, PhaseId, SourceEvents, Tasks,
};
use crate::uncertainty::CountKind;

/// How many modules are named whose code is missing.
const NAMED: usize = 3;

/// What was found in the traces.
#[derive(Debug, Default)]
pub(crate) struct Traced {
    /// The branches, as streams that were each executed so often.
    pub aggregate: Aggregate,
    /// Who has made them, if any were found.
    pub source: Option<SourceEvents>,
    /// Whether nothing was lost.
    is_complete: bool,
    /// What is missing, in sentences.
    pub shortcomings: Vec<String>,
}

impl Traced {
    /// What counts of it are: exact, if nothing was lost.
    pub fn kind_of_counts(&self) -> CountKind {
        if self.is_complete { CountKind::Exact } else { CountKind::Unknown }
    }
}

/// Whether an event is one whose data is a trace.
fn is_trace(event: &EventDescription) -> bool {
    event.name.starts_with("intel_pt")
}

/// Follows all threads of a recording by their traces.
///
/// # Errors
/// The recording cannot be read.
pub(crate) fn follow(
    recording: &Recording,
    tasks: &Tasks,
    search: &BinarySearch,
    granularity: Granularity,
    by_phases: bool,
) -> Result<Traced, Error> {
    let mut traced = Traced { shortcomings: tasks.trace.lost_by_perf().into_iter().collect(), ..Traced::default() };
    if !tasks.trace.is_there() {
        return Ok(traced);
    }
    if let Some(why) = tasks.trace.obstacle() {
        traced.shortcomings.push(format!(
            "the processor trace is not read, as {why}: give what perf inject --itrace=i100usle --strip -i FILE -o OUT makes of it"
        ));
        return Ok(traced);
    }
    let event = recording.events().iter().position(is_trace).unwrap_or_default();
    let mut files = Files::new(search, &tasks.modules);
    let mut spaces: HashMap<(u32, u32), Vec<AddressSpace>> = HashMap::new();
    let mut codes: HashMap<u32, (EpochId, ProcessCode)> = HashMap::new();
    let mut walks: BTreeMap<(u32, u32), Walk> = BTreeMap::new();
    let mut readings: BTreeMap<Area, (Reading, Vec<u64>)> = BTreeMap::new();
    let mut streams = 0_u64;
    for part in tasks.trace.parts() {
        let (mut bytes, mut is_cut) = (Vec::new(), false);
        for (at, size) in &part.pieces {
            is_cut |= read(recording, *at, *size, &mut bytes)?;
        }
        let (place, _) = tasks.timeline.place(part.pid, part.time);
        let of_process = spaces.entry((part.pid, place.incarnation)).or_insert_with(|| {
            let mut spaces = Vec::new();
            tasks.timeline.for_each_epoch(part.pid, place.incarnation, |_, space| spaces.push(space.clone()));
            spaces
        });
        let new = || (place, ProcessCode::new(of_process.get(place.epoch as usize).cloned().unwrap_or_default()));
        let (epoch, code) = codes.entry(part.pid).or_insert_with(new);
        let walk = walks.entry((part.pid, part.tid)).or_default();
        if *epoch != place {
            (*epoch, *code) = new();
            walk.has_other_code();
        }
        let phase = if by_phases { tasks.phases.at(part.pid, part.time).0 } else { PhaseId::default() };
        let tid = if granularity == Granularity::Thread { part.tid } else { 0 };
        let context = Context { event: event as u32, pid: part.pid, place, tid, phase, ..Context::default() };
        let context = traced.aggregate.context(context);
        let slice = tasks.slicing.of(Some(part.time), 0);
        let (reading, calls) = readings.entry(part.area).or_default();
        if part.has_gap {
            reading.forget();
            walk.gap(calls);
        }
        let aggregate = &mut traced.aggregate;
        let mut stream = |start, from, to| {
            streams += 1;
            aggregate.add_executed(context, slice, [start, from, to]);
        };
        let mut around = Around { calls, code, files: &mut files, stream: &mut stream };
        reading.packets(&bytes, &mut |packet| walk.take(packet, &mut around));
        if is_cut {
            reading.forget();
            walk.gap(calls);
        }
        if part.is_truncated {
            walk.overflow(calls);
        }
    }
    let mut losses = Losses::default();
    walks.into_values().for_each(|walk| losses.add(walk.finish()));
    let sum = |of: fn(&Reading) -> u64| readings.values().map(|(reading, _)| of(reading)).sum::<u64>();
    let unread = Unread { damaged: sum(|reading| reading.damaged), left_out: sum(|reading| reading.left_out) };
    traced.is_complete = unread == Unread::default() && losses.is_nothing();
    traced.shortcomings.extend(describe(&losses, &unread, &tasks.modules));
    traced.source =
        recording.events().get(event).filter(|_| streams > 0).map(|description| source_of(event, description));
    Ok(traced)
}

/// Bytes of traces that are no packets, or of which it is not known what they are.
#[derive(Debug, Default, PartialEq, Eq)]
struct Unread {
    damaged: u64,
    left_out: u64,
}

/// Adds bytes of the recording. Returns whether it ends before they do.
fn read(recording: &Recording, at: u64, size: u64, bytes: &mut Vec<u8>) -> Result<bool, Error> {
    match recording.aux_data(at, size) {
        Ok(piece) => bytes.extend(piece),
        Err(Error::Short { left, .. }) if left < size => {
            bytes.extend(recording.aux_data(at, left)?);
            return Ok(true);
        }
        Err(error) => return Err(error),
    }
    Ok(false)
}

fn source_of(event: usize, description: &EventDescription) -> SourceEvents {
    SourceEvents {
        events: vec![event],
        kind: EventKind::TakenBranches,
        name: description.name.clone(),
        covers_user: true,
        covers_kernel: !description.attr.flags.contains(perfdata::AttrFlags::EXCLUDE_KERNEL),
        has_bursts: false,
        is_simulated: false,
        is_trace: true,
    }
}

/// What is missing.
fn describe(losses: &Losses, unread: &Unread, modules: &ModuleTable) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut say = |number: u64, one: &str, many: &str, rest: &str| {
        if number > 0 {
            let what = if number == 1 { one } else { many };
            sentences.push(format!("the processor trace has {number} {what}: {rest}"));
        }
    };
    say(
        losses.overflows,
        "gap",
        "gaps",
        "packets were lost, and what ran there is not counted; record with more room: -m ,4M",
    );
    say(
        losses.missing,
        "place with bytes missing",
        "places with bytes missing",
        "the recording does not have them, or does not say whose they are",
    );
    say(
        unread.damaged,
        "place with bytes that are no packets",
        "places with bytes that are no packets",
        "what follows is not counted until a PSB",
    );
    say(
        unread.left_out,
        "byte after a loss",
        "bytes after losses",
        "they mean nothing before the next PSB, and are not counted",
    );
    say(
        losses.kernel,
        "part of the kernel's",
        "parts of the kernel's",
        "its code is not followed; record the program alone: -e intel_pt//u",
    );
    say(
        losses.contradictions,
        "place that does not fit the code",
        "places that do not fit the code",
        "are these the binaries that ran?",
    );
    say(
        losses.cut,
        "straight line that a signal or the like has ended",
        "straight lines that a signal or the like has ended",
        "they are not counted",
    );
    let mut unknown: Vec<(&Unknown, &u64)> = losses.unknown.iter().collect();
    unknown.sort_by_key(|(_, times)| std::cmp::Reverse(**times));
    for (place, times) in unknown.into_iter().take(NAMED) {
        let place = match place {
            Unknown::Unmapped => "addresses that no mapping explains".to_owned(),
            Unknown::Unread(module) => format!("code of {} that cannot be read", modules.get(*module).path),
        };
        let times = if *times == 1 { "once".to_owned() } else { format!("{times} times") };
        sentences.push(format!(
            "the processor trace went {times} to {place}: it is not counted there, and until the trace says again where it is"
        ));
    }
    sentences
}
