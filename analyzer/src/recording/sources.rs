//! Which events of a recording serve as which source of counts.

use perfdata::{BranchSampleType, EventDescription, SampleFormat};

use crate::recording::{EventKind, StackUse, Vendor};

/// The events of one source: all of one kind, so that their sums have one unit (hybrid machines have one event per PMU).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceEvents {
    /// Indexes of the events in the recording.
    pub events: Vec<usize>,
    /// What they count.
    pub kind: EventKind,
    /// Their names, joined by commas.
    pub name: String,
    /// They see kernel code too.
    pub covers_kernel: bool,
}

/// The sources of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Whose instruction pointers are used.
    pub ebs: Option<SourceEvents>,
    /// Whose branch stacks are used.
    pub lbr: Option<SourceEvents>,
    /// What is not as good as it could be, in sentences.
    pub degradations: Vec<String>,
}

impl Sources {
    /// Any event with stacks of taken branches can be the branch source, any event that samples the EBS source; of several the
    /// one is taken whose samples come nearest to counting executions. As in HBBP section V.A, the stacks of the EBS event
    /// and the instruction pointers of the branch event are not used.
    pub fn of(events: &[EventDescription], vendor: Vendor) -> Self {
        let mut degradations = Vec::new();
        let kinds: Vec<EventKind> = events.iter().map(|event| EventKind::of(event, vendor)).collect();
        let stacks: Vec<StackUse> = events.iter().map(StackUse::of).collect();
        let can_sample = |index: &usize| kinds[*index] != EventKind::Silent || stacks[*index] == StackUse::Streams;
        let all = || (0..events.len()).filter(can_sample);

        let lbr = best(all().filter(|&index| stacks[index] == StackUse::Streams), &kinds, lbr_rank, events);
        if lbr.is_none() {
            explain_missing_streams(events, &stacks, &mut degradations);
        }
        let has_ip = |index: &usize| events[*index].attr.sample_format.contains(SampleFormat::IP);
        let is_for_branches = |index: usize| kinds[index] == EventKind::TakenBranches && lbr.is_some();
        let ebs = best(all().filter(has_ip).filter(|&index| !is_for_branches(index)), &kinds, ebs_rank, events);

        for event in [&ebs, &lbr].into_iter().flatten().flat_map(|source| &source.events).map(|&index| &events[index]) {
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
            && lbr.kind != EventKind::TakenBranches
        {
            degradations.push(format!(
                "the branch stacks were taken on {}, not on taken branches: their counts are relative",
                lbr.name
            ));
        }
        Sources { ebs, lbr, degradations }
    }
}

/// The lowest rank is the best.
fn lbr_rank(kind: EventKind) -> u8 {
    match kind {
        EventKind::TakenBranches => 0,
        EventKind::Instructions => 1,
        EventKind::Operations => 2,
        EventKind::Cycles => 3,
        EventKind::Other => 4,
        EventKind::Clock => 5,
        EventKind::Silent => 6,
    }
}

fn ebs_rank(kind: EventKind) -> u8 {
    match kind {
        EventKind::Instructions => 0,
        EventKind::Operations => 1,
        EventKind::Cycles => 2,
        EventKind::Clock => 3,
        EventKind::Other => 4,
        EventKind::TakenBranches => 5,
        EventKind::Silent => 6,
    }
}

fn best(
    candidates: impl Iterator<Item = usize>,
    kinds: &[EventKind],
    rank: fn(EventKind) -> u8,
    events: &[EventDescription],
) -> Option<SourceEvents> {
    let candidates: Vec<usize> = candidates.collect();
    let kind = candidates.iter().map(|&index| kinds[index]).min_by_key(|&kind| rank(kind))?;
    let mut chosen: Vec<usize> = candidates.into_iter().filter(|&index| kinds[index] == kind).collect();
    if kind == EventKind::Other {
        chosen.truncate(1); // Different other events have different units.
    }
    let names: Vec<&str> = chosen.iter().map(|&index| events[index].name.as_str()).collect();
    let covers_kernel = chosen.iter().any(|&index| sees_kernel(&events[index]));
    Some(SourceEvents { name: names.join(","), covers_kernel, kind, events: chosen })
}

fn sees_kernel(event: &EventDescription) -> bool {
    let filter = event.attr.branch_sample_type;
    let filtered = event.attr.sample_format.contains(SampleFormat::BRANCH_STACK)
        && filter.contains(BranchSampleType::USER)
        && !filter.contains(BranchSampleType::KERNEL);
    !event.attr.exclude_kernel() && !filtered
}

fn explain_missing_streams(events: &[EventDescription], stacks: &[StackUse], degradations: &mut Vec<String>) {
    for (event, stack) in events.iter().zip(stacks) {
        match stack {
            StackUse::CallStack => degradations.push(format!(
                "{} has LBR call stacks: they hold callers, not the path, and count nothing",
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
