//! Which events of a recording serve as which source of counts.

use std::ops::Range;

use formats::metadata::Metadata;
use model::SourcePair;
use perfdata::{Avma, BranchSampleType, EventDescription, SampleFormat};
use serde::{Deserialize, Serialize};

use crate::code::Bitness;
use crate::recording::{BurstUnit, EventKind, StackUse, Vendor, burst_unit, is_simulated};

/// The events of one source: all of one kind, so that their sums have one unit (hybrid machines have one event per PMU).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceEvents {
    /// Indexes of the events in the recording.
    pub events: Vec<usize>,
    /// What one tick of their counters stands for.
    pub kind: EventKind,
    /// Their names, joined by commas.
    pub name: String,
    /// They see user code.
    pub covers_user: bool,
    /// They see kernel code.
    pub covers_kernel: bool,
    /// Their stacks are bursts, followed in software; where they are, `kind` is what the bursts stand for.
    pub has_bursts: bool,
    /// A simulated PMU made their samples.
    pub is_simulated: bool,
    /// They have no samples, but a trace of all branches (Intel PT).
    pub is_trace: bool,
}

/// Code, as far as sources differ in whether they see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeKind {
    /// The kernel's.
    Kernel,
    /// A program's.
    User(Bitness),
}

impl SourceEvents {
    /// Whether they see such code: bursts follow code of 64 bits only.
    pub fn sees(&self, code: CodeKind) -> bool {
        match code {
            CodeKind::Kernel => self.covers_kernel,
            CodeKind::User(Bitness::Bits32) => self.covers_user && !self.has_bursts,
            CodeKind::User(Bitness::Bits64) => self.covers_user,
        }
    }

    /// The sum of these numbers of its events, which are by index in the recording.
    pub fn sum_of(&self, numbers: &[u64]) -> u64 {
        self.events.iter().filter_map(|&event| numbers.get(event)).sum()
    }

    /// Whether the weights of the streams are numbers of executions. A stack of the hardware says how often it was taken only in
    /// taken branches; of a burst it is known how many instructions it executed.
    pub fn streams_count_executions(&self) -> bool {
        self.kind == if self.has_bursts { EventKind::Instructions } else { EventKind::TakenBranches }
    }
}

/// The sources of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources {
    /// Whose instruction pointers are used.
    pub ebs: Option<SourceEvents>,
    /// Whose branch stacks are used.
    pub lbr: Option<SourceEvents>,
    /// Where the tracer's agents were in the program's processes: nothing there is the program's. Empty without agents.
    pub agents: Range<Avma>,
    /// Events with samples that serve for nothing.
    pub unused: Vec<usize>,
    /// What is not as good as it could be, in sentences.
    pub degradations: Vec<String>,
}

impl Sources {
    /// The branch source, if it is bursts that a clock starts.
    pub fn bursts_of_clock(&self) -> Option<&SourceEvents> {
        self.lbr.as_ref().filter(|lbr| lbr.has_bursts && lbr.kind == EventKind::Clock)
    }

    /// Any event with stacks of taken branches can be the branch source, any event that samples the EBS source; of several that
    /// have samples the one is taken whose samples come nearest to counting executions. As in HBBP section V.A, the stacks of
    /// the EBS event and the instruction pointers of the branch event are not used; those of bursts are where they start, and no
    /// event-based samples either. `samples`: how many each event has; `trace`: the event whose data is a whole trace, which is better
    /// than any samples.
    pub fn of(
        events: &[EventDescription],
        vendor: Vendor,
        samples: &[u64],
        metadata: &Metadata,
        trace: Option<SourceEvents>,
    ) -> Self {
        let mut degradations = Vec::new();
        let sampled: Vec<Candidate<'_>> = events
            .iter()
            .zip(samples)
            .enumerate()
            .filter(|(_, (_, samples))| **samples > 0)
            .map(|(index, (event, _))| Candidate::of(index, event, vendor, metadata))
            .collect();
        let all = || {
            sampled.iter().filter(|event| event.kind.counts != EventKind::Silent || event.stacks == StackUse::Streams)
        };

        let lbr = trace.or_else(|| best(all().filter(|event| event.stacks == StackUse::Streams), lbr_rank));
        if lbr.is_none() {
            explain_missing_streams(events, &mut degradations);
        }
        let has_ip = |event: &&Candidate<'_>| event.event.attr.sample_format.contains(SampleFormat::IP);
        let is_for_branches = |event: &Candidate<'_>| {
            event.kind.is_burst || event.kind.counts == EventKind::TakenBranches && lbr.is_some()
        };
        let has_trace = lbr.as_ref().is_some_and(|lbr| lbr.is_trace);
        // A trace has all that ran: samples could only blur it.
        let ebs = best(all().filter(has_ip).filter(|event| !has_trace && !is_for_branches(event)), ebs_rank);

        let used = [&ebs, &lbr].into_iter().flatten().flat_map(|source| &source.events);
        for event in used.filter_map(|&index| events.get(index)) {
            let has_period = event.attr.sample_format.contains(SampleFormat::PERIOD);
            if !has_period && event.attr.sample_period().is_none() {
                degradations.push(format!(
                    "{} was sampled at a frequency and its samples do not say their period: each counts as 1",
                    event.name
                ));
            }
        }
        if let Some(ebs) = &ebs
            && ebs.kind != EventKind::Instructions
        {
            degradations.push(match ebs.kind {
                EventKind::Cycles | EventKind::Clock => {
                    format!("{} samples show where time goes ({}), not how often code ran", ebs.name, ebs.kind)
                }
                EventKind::Operations => {
                    format!(
                        "{} samples count micro-operations: code of several per instruction seems to run more",
                        ebs.name
                    )
                }
                _ => format!("{} samples show where that event happens, not how often code ran", ebs.name),
            });
        }
        if let Some(lbr) = &lbr
            && !lbr.streams_count_executions()
        {
            degradations.push(match (lbr.has_bursts, lbr.kind) {
                (true, EventKind::Clock) => "bursts start by the clock: how much each counts is an estimate".into(),
                (true, _) => {
                    format!("the bursts of {} do not stand for instructions: their counts are relative", lbr.name)
                }
                (false, _) => format!(
                    "the branch stacks were taken on {}, not on taken branches: their counts are relative",
                    lbr.name
                ),
            });
        }
        let without_a_word =
            |lbr: &&SourceEvents| !lbr.has_bursts && lbr.events.iter().any(|&event| is_of_software(events, event));
        if let Some(lbr) = lbr.as_ref().filter(without_a_word) {
            degradations.push(format!(
                "{} is an event of software, which has no branch records: these are bursts of hbbp, and another tool (perf inject?) has left out what \
                 its recorder noted; counts are wrong, read the recording itself",
                lbr.name
            ));
        }
        let is_used = |index: &usize| [&ebs, &lbr].into_iter().flatten().any(|source| source.events.contains(index));
        let unused = sampled.iter().map(|event| event.index).filter(|index| !is_used(index)).collect();
        let agents = metadata.tracer.as_ref().and_then(|tracer| tracer.agents.as_ref());
        let agents = agents.and_then(|agents| Some(Avma(agents.start?)..Avma(agents.end?))).unwrap_or_default();
        Sources { ebs, lbr, agents, unused, degradations }
    }

    /// What kind of pair the two sources are; `None` if there are not two, or of no kind that rules are made for: the samples
    /// of the one must show how often code ran or, beside bursts, where time goes.
    pub fn pair(&self) -> Option<SourcePair> {
        let (ebs, lbr) = (self.ebs.as_ref()?, self.lbr.as_ref()?);
        match (ebs.kind, lbr.has_bursts) {
            (EventKind::Instructions, _) if lbr.is_simulated => Some(SourcePair::Simulated),
            (EventKind::Instructions, _) => Some(SourcePair::Hardware),
            (EventKind::Clock, true) => Some(SourcePair::Software),
            _ => None,
        }
    }

    /// Whether a clock counts code of this kind, and bursts count other code beside it.
    pub fn only_clock_sees(&self, code: CodeKind) -> bool {
        let sees = |source: &Option<SourceEvents>| source.as_ref().is_some_and(|source| source.sees(code));
        self.pair() == Some(SourcePair::Software) && sees(&self.ebs) && !sees(&self.lbr)
    }
}

/// What an event's samples are. Events are one source only if this is the same of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SampleKind {
    counts: EventKind,
    is_burst: bool,
    is_simulated: bool,
}

impl SampleKind {
    /// The unit of bursts is what the tracer says; its event may be another that stands in for it.
    fn of(event: &EventDescription, vendor: Vendor, metadata: &Metadata) -> Self {
        let by_attr = EventKind::of(event, vendor);
        let is_simulated = is_simulated(metadata, &event.name);
        match burst_unit(metadata, &event.name) {
            None => SampleKind { counts: by_attr, is_burst: false, is_simulated },
            Some(unit) => {
                let counts = match (unit, by_attr) {
                    (BurstUnit::Instructions, _) => EventKind::Instructions,
                    (BurstUnit::Nanoseconds, _) | (BurstUnit::Unknown, EventKind::Clock) => EventKind::Clock,
                    (BurstUnit::Unknown, _) => EventKind::Other,
                };
                SampleKind { counts, is_burst: true, is_simulated }
            }
        }
    }
}

/// An event with samples.
struct Candidate<'a> {
    /// Its place among the events of the recording.
    index: usize,
    event: &'a EventDescription,
    kind: SampleKind,
    stacks: StackUse,
}

impl<'a> Candidate<'a> {
    fn of(index: usize, event: &'a EventDescription, vendor: Vendor, metadata: &Metadata) -> Self {
        Candidate { index, event, kind: SampleKind::of(event, vendor, metadata), stacks: StackUse::of(event) }
    }
}

/// The lowest rank is the best. Stacks that start at points in time over-represent code with long blocks, the more so the shorter
/// they are: bursts are long, and weighted by their instructions.
fn lbr_rank(kind: SampleKind) -> u8 {
    match (kind.counts, kind.is_burst) {
        (EventKind::TakenBranches, false) => 0,
        (EventKind::Instructions, true) => 1,
        (EventKind::Instructions, false) => 2,
        (EventKind::Operations, false) => 3,
        (_, true) => 4,
        (EventKind::Cycles, _) => 5,
        (EventKind::Other, _) => 6,
        (EventKind::Clock, _) => 7,
        (EventKind::Silent, _) => 8,
    }
}

fn ebs_rank(kind: SampleKind) -> u8 {
    match kind.counts {
        EventKind::Instructions => 0,
        EventKind::Operations => 1,
        EventKind::Cycles => 2,
        EventKind::Clock => 3,
        EventKind::Other => 4,
        EventKind::TakenBranches => 5,
        EventKind::Silent => 6,
    }
}

fn best<'a>(candidates: impl Iterator<Item = &'a Candidate<'a>>, rank: fn(SampleKind) -> u8) -> Option<SourceEvents> {
    let candidates: Vec<&Candidate<'_>> = candidates.collect();
    let kind = candidates.iter().map(|candidate| candidate.kind).min_by_key(|&kind| rank(kind))?;
    let mut of_kind: Vec<&Candidate<'_>> = candidates.into_iter().filter(|candidate| candidate.kind == kind).collect();
    of_kind.sort_by_key(|candidate| std::cmp::Reverse(candidate.event.attr.precise_ip()));
    let mut chosen: Vec<&Candidate<'_>> = Vec::new();
    for candidate in of_kind {
        // Different other events have different units, and events that see the same code would count it twice.
        let joins =
            kind.counts != EventKind::Other && chosen.iter().all(|other| are_disjoint(candidate.event, other.event));
        if chosen.is_empty() || joins {
            chosen.push(candidate);
        }
    }
    chosen.sort_unstable_by_key(|candidate| candidate.index);
    let names: Vec<&str> = chosen.iter().map(|candidate| candidate.event.name.as_str()).collect();
    let any = |sees: fn(&EventDescription) -> bool| chosen.iter().any(|candidate| sees(candidate.event));
    let (covers_user, covers_kernel) = (any(sees_user), any(sees_kernel));
    let SampleKind { counts, is_burst, is_simulated } = kind;
    let name = names.join(",");
    Some(SourceEvents {
        name,
        covers_user,
        covers_kernel,
        kind: counts,
        has_bursts: is_burst,
        is_simulated,
        events: chosen.iter().map(|candidate| candidate.index).collect(),
        is_trace: false,
    })
}

/// Whether the kernel counts the event by itself: it refuses such events branch stacks (`EOPNOTSUPP`, kernel/events/core.c).
fn is_of_software(events: &[EventDescription], index: usize) -> bool {
    const SOFTWARE: u32 = 1;
    events.get(index).is_some_and(|event| event.attr.kind == SOFTWARE)
}

/// Events of different PMUs (a hybrid machine's) never see the same instruction, nor do those of user and of kernel code.
fn are_disjoint(one: &EventDescription, other: &EventDescription) -> bool {
    pmu_of(one) != pmu_of(other) || !(sees_user(one) && sees_user(other) || sees_kernel(one) && sees_kernel(other))
}

/// The type number of the PMU that counts the event; generic events name theirs in the upper half of `config`.
fn pmu_of(event: &EventDescription) -> u64 {
    const CORE: u64 = 4;
    const HARDWARE: u32 = 0;
    const HW_CACHE: u32 = 3;
    match (event.attr.kind, event.attr.config >> 32) {
        (HARDWARE | HW_CACHE, 0) => CORE,
        (HARDWARE | HW_CACHE, pmu) => pmu,
        (kind, _) => u64::from(kind),
    }
}

fn sees_user(event: &EventDescription) -> bool {
    !event.attr.exclude_user() && !stacks_leave_out(event, BranchSampleType::USER)
}

fn sees_kernel(event: &EventDescription) -> bool {
    !event.attr.exclude_kernel() && !stacks_leave_out(event, BranchSampleType::KERNEL)
}

/// Whether the event's branch filter names levels, and not this one.
fn stacks_leave_out(event: &EventDescription, level: BranchSampleType) -> bool {
    let filter = event.attr.branch_sample_type;
    let names_levels = filter.contains(BranchSampleType::USER) || filter.contains(BranchSampleType::KERNEL);
    event.attr.sample_format.contains(SampleFormat::BRANCH_STACK) && names_levels && !filter.contains(level)
}

fn explain_missing_streams(events: &[EventDescription], degradations: &mut Vec<String>) {
    for event in events {
        match StackUse::of(event) {
            StackUse::CallStack => degradations.push(format!(
                "{} has LBR call stacks: they hold callers, not the path, so no block is counted by them; flame graphs show them",
                event.name
            )),
            StackUse::Filtered => degradations.push(format!(
                "{} has stacks of some branch kinds only ({}): the code between two of them is not known, they count nothing",
                event.name, event.attr.branch_sample_type
            )),
            StackUse::None | StackUse::Streams => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use perfdata::{AttrFlags, EventAttr};

    use super::*;

    fn event(kind: u32, config: u64, name: &str, flags: AttrFlags) -> EventDescription {
        let attr = EventAttr { kind, config, flags, sample_format: SampleFormat::IP, ..EventAttr::default() };
        EventDescription { attr, name: name.into(), ids: Vec::new() }
    }

    fn ebs_of(events: &[EventDescription], samples: &[u64]) -> Vec<usize> {
        Sources::of(events, Vendor::Other, samples, &Metadata::default(), None)
            .ebs
            .map(|source| source.events)
            .unwrap_or_default()
    }

    const PLAIN: AttrFlags = AttrFlags(0);

    #[test]
    fn events_that_see_the_same_code_are_not_added_up() {
        let user = AttrFlags::EXCLUDE_KERNEL;
        let kernel = AttrFlags::EXCLUDE_USER;
        let instructions = |flags| event(0, 1, "instructions", flags);
        assert_eq!(ebs_of(&[instructions(PLAIN), instructions(user)], &[5, 5]), [0]);
        assert_eq!(ebs_of(&[instructions(kernel), instructions(user)], &[5, 5]), [0, 1]);
        let hybrid = [
            event(0, 4 << 32 | 1, "cpu_core/instructions/", PLAIN),
            event(0, 10 << 32 | 1, "cpu_atom/instructions/", PLAIN),
        ];
        assert_eq!(ebs_of(&hybrid, &[5, 5]), [0, 1]);
        assert_eq!(ebs_of(&[event(1, 0, "cpu-clock", PLAIN), event(1, 1, "task-clock", PLAIN)], &[5, 5]), [0]);
    }

    /// As `perf inject` leaves a recording of bursts: without what the recorder noted of them.
    #[test]
    fn branch_stacks_of_software_are_said_to_be_wrong_without_a_word_of_the_recorder() {
        let said = |kind, config| {
            let mut of = event(kind, config, "burst:u", PLAIN);
            of.attr.sample_format = SampleFormat::IP | SampleFormat::BRANCH_STACK;
            let sources = Sources::of(&[of], Vendor::Other, &[5], &Metadata::default(), None);
            sources.degradations.iter().any(|sentence| sentence.contains("has left out what its recorder noted"))
        };
        assert!(said(1, 9) && said(1, 1));
        assert!(!said(0, 1) && !said(4, 0x20c4));
    }

    #[test]
    fn an_event_without_samples_is_no_source() {
        let events = [event(1, 1, "task-clock", PLAIN), event(1, 2, "page-faults", PLAIN)];
        assert_eq!(ebs_of(&events, &[0, 18]), [1]);
        let sources = Sources::of(&events, Vendor::Other, &[3, 18], &Metadata::default(), None);
        assert_eq!((sources.ebs.unwrap().events, sources.unused), (vec![0], vec![1]));
    }
}
