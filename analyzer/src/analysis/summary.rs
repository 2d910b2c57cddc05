//! What the head of every report says: what was recorded, what is weak in it, and what is missing.

use formats::metadata::Metadata;
use model::Rule;
use perfdata::RecordType;
use serde::{Deserialize, Serialize};

use super::{CountedModule, Options};
use crate::code::Bitness;
use crate::counting::{BrokenStreams, Code, Decider, Located};
use crate::estimation::Estimate;
use crate::recording::{CodeKind, Module, ModuleKind, ModuleTable, RecordCounts, Sources, StackStatistics, Tracer};

/// What the head of every report says.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Records by kind, lost samples, damage.
    pub records: RecordCounts,
    /// What the branch stacks held.
    pub stacks: StackStatistics,
    /// All streams, broken ones included.
    pub streams: u64,
    /// How many counts of blocks there would be by process, at least: up to 2^18. Known with calling contexts alone, as pages have them.
    pub least_by_process: u64,
    /// Streams that were used for nothing.
    pub broken: BrokenStreams,
    /// What is weaker than it could be, in sentences: how it was recorded, and what the events can tell.
    pub degradations: Vec<String>,
    /// What is missing or damaged, in sentences.
    pub shortcomings: Vec<String>,
    /// Who chose between the sources, or why nobody did.
    pub choice: String,
    /// Events whose samples served for nothing, and how many they have.
    pub unused_events: Vec<(String, u64)>,
    /// What the software tracer said of itself.
    #[serde(skip)] // Its own serialization is for reports, and lacks a part.
    pub tracer: Option<Tracer>,
    /// How bursts were weighted that a clock started.
    pub estimate: Option<Estimate>,
}

impl Summary {
    /// Whether the recording has the trace of a processor, which may tell nothing.
    pub fn has_trace(&self) -> bool {
        self.records.by_type.contains_key(&RecordType::AUXTRACE_INFO)
    }
}

/// What is said of a recording whose recorder never came to complete it. `hbbp record` writes what is kept of code in the end.
pub(super) fn cut_off(metadata: &Metadata) -> String {
    let said = "cut off: the recorder was killed, or could not write on; what it recorded last is missing";
    let in_the_end =
        if metadata.events.is_empty() { "" } else { ", and if kernel or JIT code ran, its bytes or its names" };
    format!("{said}{in_the_end}")
}

/// `has_32_bits`: some of the code has 32 bits.
pub(super) fn explain_choice(decider: &Decider<'_>, has_32_bits: bool) -> String {
    match (&decider.sources.ebs, &decider.sources.lbr) {
        (Some(ebs), Some(lbr)) => {
            if let Some(only) = decider.scale.only {
                return format!("{only} everywhere: they have no common unit");
            }
            let outside = |kind| ebs.sees(kind) && !lbr.sees(kind);
            let place = match (outside(CodeKind::Kernel), has_32_bits && outside(CodeKind::User(Bitness::Bits32))) {
                (true, true) => "outside the kernel and 32-bit code",
                (true, false) => "outside the kernel",
                (false, true) => "outside 32-bit code",
                (false, false) => "everywhere",
            };
            match decider.rule {
                Some(Rule::Ask(chooser)) => chooser.describe(),
                Some(Rule::One { source, why }) => format!("{source} {place}: {why}"),
                None => format!("lbr {place}: {} does not count instructions", ebs.name),
            }
        }
        (Some(_), None) => "ebs everywhere: there are no streams".into(),
        (None, Some(lbr)) if lbr.is_trace => "lbr everywhere: it is a trace of all branches".into(),
        (None, Some(_)) => "lbr everywhere: there are no event-based samples".into(),
        (None, None) => "nothing to choose from: the recording has no samples".into(),
    }
}

/// How many modules without code are named, largest first.
const UNREAD_MODULES_NAMED: usize = 4;
/// Smaller parts of the samples that count for nothing are not worth a sentence, %.
const LEAST_UNCOUNTED: f64 = 0.5;

/// Says how much of what ran is in code that was not read, and how much of that counts for nothing.
pub(crate) fn describe_unread_code(summary: &mut Summary, counted: &[CountedModule], modules: &ModuleTable) {
    let total: f64 = counted.iter().map(CountedModule::instructions).sum();
    let all_samples: u64 = counted.iter().map(|module| module.counts.ebs_samples()).sum();
    let notes = &mut summary.shortcomings;
    let mut unread: Vec<(f64, &CountedModule, &str)> = counted
        .iter()
        .filter_map(|module| match &module.counts.code {
            Code::Unread { why, .. } => Some((module.instructions(), module, why.as_str())),
            Code::Read(_) => None,
        })
        .collect();
    unread.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.counts.module.cmp(&b.1.counts.module)));
    let (unread, uncounted) = unread.split_at(unread.partition_point(|(instructions, ..)| *instructions > 0.0));
    let (named, others) = unread.split_at(unread.len().min(UNREAD_MODULES_NAMED));
    for (instructions, module, why) in named {
        let name = &modules.get(module.counts.module).path;
        notes.push(format!(
            "{:.2} % of the instructions (estimated) are in unread code of {name}: {why}",
            100.0 * instructions / total
        ));
    }
    if !others.is_empty() {
        let rest: f64 = others.iter().map(|(instructions, ..)| instructions).sum();
        let (count, share) = (others.len(), 100.0 * rest / total);
        let modules = if count == 1 { "module" } else { "modules" };
        notes
            .push(format!("{share:.2} % of the instructions (estimated) are in unread code of {count} more {modules}"));
    }
    for (_, module, why) in uncounted {
        let share = 100.0 * module.counts.ebs_samples() as f64 / all_samples as f64;
        if share >= LEAST_UNCOUNTED {
            let name = &modules.get(module.counts.module).path;
            notes.push(format!(
                "{share:.1} % of the samples are in unread code of {name}, which has no branch records and counts 0: {why}"
            ));
        }
    }
}

/// Says how much of what ran is code that only the clock counts beside bursts.
pub(super) fn describe_32_bit_code(
    counted: &[CountedModule],
    modules: &ModuleTable,
    sources: &Sources,
) -> Option<String> {
    let kind = CodeKind::User(Bitness::Bits32);
    let ebs = sources.ebs.as_ref().filter(|ebs| ebs.sees(kind))?;
    sources.lbr.as_ref().filter(|lbr| !lbr.sees(kind))?;
    let is_of_kind = |module: &&CountedModule| module.counts.code_kind(modules.get(module.counts.module)) == kind;
    let part: f64 = counted.iter().filter(is_of_kind).map(CountedModule::instructions).sum();
    let total: f64 = counted.iter().map(CountedModule::instructions).sum();
    (part > 0.0).then(|| {
        format!(
            "{:.2} % of the instructions (estimated) are 32-bit code, which bursts do not follow: samples of {} count it, as if all \
             instructions took the same time: its ± is the wider for it",
            100.0 * part / total,
            ebs.name
        )
    })
}

pub(super) fn describe_what_is_missing(
    summary: &mut Summary,
    located: &Located,
    counted: &[CountedModule],
    modules: &ModuleTable,
    options: &Options<'_>,
) {
    summary.shortcomings.extend(summary.records.damage_in_words());
    describe_unread_code(summary, counted, modules);
    let notes = &mut summary.shortcomings;
    for module in counted {
        let recorded = modules.get(module.counts.module);
        if let Code::Read(code) = &module.counts.code {
            notes.extend(code.binary.other_build.clone());
            let (strange, branches) = module.counts.strange_branches;
            if strange > 0 && strange as f64 > 0.05 * branches as f64 {
                notes.push(format!(
                    "{} does not look like the recorded {}: {strange} of {branches} recorded branches are no branches in it",
                    code.binary.file.display(),
                    recorded.path
                ));
            }
        }
    }
    if located.unmapped_samples + located.unmapped_branches > 0 {
        notes.push(format!(
            "no mapping explains {} samples and {} branch ends",
            located.unmapped_samples, located.unmapped_branches
        ));
    }
    let hit: Vec<&Module> = counted.iter().map(|module| modules.get(module.counts.module)).collect();
    let unused = options.search.unused(&hit).into_iter().map(|given| {
        let names: Vec<&str> =
            hit.iter().filter(|module| module.kind == ModuleKind::File).map(|module| module.path.as_str()).collect();
        format!(
            "--binary {}: no module with samples has that build id or name (there are: {}); say --binary RECORDED=FILE",
            given.file.display(),
            names.join(", ")
        )
    });
    // Before what is weaker because of it.
    notes.splice(0..0, unused);
}
