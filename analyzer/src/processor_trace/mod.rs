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
use crate::processor_trace::packets::for_each_packet;
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
    let (mut losses, mut streams, mut damaged) = (Losses::default(), 0_u64, 0_u64);
    for part in tasks.trace.parts() {
        let (mut bytes, mut is_incomplete) = (Vec::new(), part.is_incomplete);
        for (at, size) in &part.pieces {
            match recording.aux_data(*at, *size) {
                Ok(piece) => bytes.extend(piece),
                // The recording is cut off.
                Err(Error::Short { .. }) => is_incomplete = true,
                Err(error) => return Err(error),
            }
        }
        let (place, _) = tasks.timeline.place(part.pid, part.time);
        let of_process = spaces.entry((part.pid, place.incarnation)).or_insert_with(|| {
            let mut spaces = Vec::new();
            tasks.timeline.for_each_epoch(part.pid, place.incarnation, |_, space| spaces.push(space.clone()));
            spaces
        });
        let new = || (place, ProcessCode::new(of_process.get(place.epoch as usize).cloned().unwrap_or_default()));
        let (epoch, code) = codes.entry(part.pid).or_insert_with(new);
        if *epoch != place {
            (*epoch, *code) = new();
        }
        let phase = if by_phases { tasks.phases.at(part.pid, part.time).0 } else { PhaseId::default() };
        let tid = if granularity == Granularity::Thread { part.tid } else { 0 };
        let context = Context { event: event as u32, pid: part.pid, place, tid, phase, ..Context::default() };
        let context = traced.aggregate.context(context);
        let slice = tasks.slicing.of(Some(part.time), 0);
        let walk = walks.entry((part.pid, part.tid)).or_default();
        let aggregate = &mut traced.aggregate;
        let mut stream = |start, from, to| {
            streams += 1;
            aggregate.add_executed(context, slice, [start, from, to]);
        };
        let mut around = Around { code, files: &mut files, stream: &mut stream };
        let readable = for_each_packet(&bytes, &mut |packet| walk.take(packet, &mut around));
        damaged += readable.damaged;
        if is_incomplete {
            walk.gap();
        }
    }
    walks.into_values().for_each(|walk| losses.add(walk.finish()));
    traced.is_complete = damaged == 0 && losses.is_nothing();
    traced.shortcomings.extend(describe(&losses, damaged, &tasks.modules));
    traced.source =
        recording.events().get(event).filter(|_| streams > 0).map(|description| source_of(event, description));
    Ok(traced)
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
fn describe(losses: &Losses, damaged: u64, modules: &ModuleTable) -> Vec<String> {
    let mut sentences = Vec::new();
    if losses.overflows > 0 {
        let gaps = if losses.overflows == 1 { "1 gap".to_owned() } else { format!("{} gaps", losses.overflows) };
        sentences.push(format!(
            "the processor trace has {gaps}: packets were lost, and what ran there is not counted; record with more room: -m ,4M"
        ));
    }
    if damaged > 0 {
        sentences.push(format!(
            "bytes in {damaged} places of the processor trace are no packets: what follows them is not counted"
        ));
    }
    let mut unknown: Vec<(&Unknown, &u64)> = losses.unknown.iter().collect();
    unknown.sort_by_key(|(_, times)| std::cmp::Reverse(**times));
    for (place, times) in unknown.into_iter().take(NAMED) {
        let place = match place {
            Unknown::Unmapped => "addresses that no mapping explains".to_owned(),
            Unknown::Unread(module) => format!("code of {} that cannot be read", modules.get(*module).path),
        };
        sentences.push(format!(
            "the processor trace went {times} times to {place}: it is not counted there, and until the trace says again where it is"
        ));
    }
    if losses.contradictions > 0 {
        sentences.push(format!(
            "the processor trace does not fit the code in {} places: are these the binaries that ran?",
            losses.contradictions
        ));
    }
    sentences
}
