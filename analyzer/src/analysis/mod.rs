//! The whole analysis: a recording in, counted blocks out.

mod counted_module;
mod summary;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use model::{Rules, Source};
use perfdata::{EventDescription, Recording};
use simulated_core::Microarchitecture;

use crate::binaries::{Binary, BinarySearch, NoCode};
use crate::build_id::BuildId;
use crate::calls::{CallStackWalker, CallWalker, Calls, NamedCode};
use crate::code::Bitness;
use crate::counting::{
    Code, CountScale, Decider, Detail, Group, GroupBy, GroupId, Groups, KernelEntries, Located, LocatedStart,
    ModuleCounts, ModuleHits, Spots, StartId, TaskGroups, count_module, locate, mean_instruction_length,
};
use crate::estimation::{Estimate, RanOn, estimate};
use crate::flow::{AnalysedFlow, ChosenCount, of_recording};
use crate::kernel_files::place_kernel;
use crate::parallel::in_parallel;
use crate::paths::{BranchPaths, CodeMap, PathQuery, PathWalker, Wanted};
use crate::processor_trace::follow;
use crate::progress::{Progress, Step};
use crate::recording::{
    CodeKind, Context, ContextId, EventKind, Granularity, KnownFunctions, ModuleId, ModuleTable, RecordCounts,
    Selection, Sources, StackStatistics, StackUse, Subset, Totals, Tracer, Vendor, metadata_of, read_samples,
    read_tasks,
};
use crate::uncertainty::{CLOCKED, CountKind, Design, Replicates, Resampling, SLICES, Slice, made_up};
use crate::walks::{Reading, Spaces, Streams, Walked, WalkedCode};
use counted_module::decide_blocks;
pub(crate) use counted_module::sampled_rows;
use summary::{cut_off, describe_32_bit_code, describe_what_is_missing, explain_choice};

pub use counted_module::{CountedBlock, CountedModule, GroupCount};
pub use summary::Summary;
pub(crate) use summary::describe_unread_code;

/// What reports call branches that were traced in software.
pub const TRACED: &str = "traced";

/// What to do beyond the defaults.
pub struct Options<'a> {
    /// Where binaries are found.
    pub search: BinarySearch,
    /// All samples, or half of them.
    pub subset: Subset,
    /// Whose executions are told apart.
    pub group_by: GroupBy,
    /// Whether the flow is made.
    pub detail: Detail,
    /// The core on which code is taken to have run, not that of the recorded CPU.
    pub core: Option<Microarchitecture>,
    /// How many threads work; results do not depend on it.
    pub threads: usize,
    /// What decides between the sources, for every kind of source pair.
    pub rules: &'a Rules,
}

/// What an analysis was made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// A recording.
    #[default]
    Recording,
    /// Exact counts by instrumentation.
    Exact,
    /// A flow of which nothing more is known: a sum of recordings.
    Flow,
}

impl Origin {
    /// What its counts are.
    pub(crate) fn kind_of_counts(self) -> CountKind {
        match self {
            Origin::Recording => CountKind::Sampled,
            Origin::Exact => CountKind::Exact,
            Origin::Flow => CountKind::Unknown,
        }
    }
}

/// The finished result: everything a report is made from.
#[derive(Debug)]
pub struct Analysis {
    /// What it was made of.
    pub origin: Origin,
    /// All modules the recording names.
    pub modules: ModuleTable,
    /// The modules that were hit, by id.
    pub counted: Vec<CountedModule>,
    /// The groups executions are told apart by.
    pub groups: Groups,
    /// The events that serve as EBS and as branch stacks.
    pub sources: Sources,
    /// The common unit of the counts.
    pub scale: CountScale,
    /// What the replicates of counts mean.
    pub design: Design,
    /// The source of all counts of code that both sources see; `None` where it was chosen block by block, or there is none.
    pub one_source: Option<Source>,
    /// What the recording held and what was lost on the way.
    pub summary: Summary,
    /// Ranges and branches, with [`Detail::Branches`] or more.
    pub flow: Option<AnalysedFlow>,
    /// Calling contexts, with [`Detail::Calls`] and branch records.
    pub calls: Option<Calls>,
    /// What the order of branches tells, as far as it was asked for; see [`analyze_paths`].
    pub paths: Option<BranchPaths>,
    /// It was made before, and kept: see [`Findings`](crate::Findings).
    pub is_kept: bool,
}

/// Counts how often each block of a recorded program was executed.
///
/// # Errors
/// It cannot be read. What is damaged in it, and what is missing, is no error: the summary says it.
pub fn analyze(
    recording: &Recording,
    options: &Options<'_>,
    progress: Progress<'_>,
) -> Result<Analysis, perfdata::Error> {
    analyze_paths(recording, options, &PathQuery::default(), progress)
}

/// The same, with what the order of branches tells, which takes one more reading of the recording. Computed jumps close loops with
/// [`Detail::Branches`].
///
/// # Errors
/// It cannot be read.
pub fn analyze_paths(
    recording: &Recording,
    options: &Options<'_>,
    paths: &PathQuery,
    progress: Progress<'_>,
) -> Result<Analysis, perfdata::Error> {
    let metadata = metadata_of(recording)?;
    let tracer = Tracer::of(&metadata);
    let mut tasks = read_tasks(recording, &metadata, progress)?;
    let vendor = Vendor::of(recording.features().cpuid.as_deref());
    let mut machine = RanOn::of(recording.features(), metadata.calibration.as_ref(), options.core);
    let granularity =
        if options.group_by.tasks == TaskGroups::Thread { Granularity::Thread } else { Granularity::Process };
    let by_phases = options.group_by.phases;
    let traced = follow(recording, &tasks, &options.search, granularity, by_phases)?;
    let trace = traced.source.as_ref().map(|_| traced.kind_of_counts());
    let mut sources = Sources::of(recording.events(), vendor, &tasks.records.samples, &metadata, traced.source);
    tasks.records.learn(&metadata);
    let mut shortcomings: Vec<String> = recording.was_cut_off().then(|| cut_off(&metadata)).into_iter().collect();
    let mut degradations = metadata.degradations;
    degradations.append(&mut sources.degradations);
    shortcomings.extend(traced.shortcomings);
    let full_burst =
        sources.bursts_of_clock().and(metadata.tracer.as_ref()).and_then(|tracer| tracer.burst_instructions);
    let selection = Selection { granularity, phases: by_phases, subset: options.subset, full_burst };
    let totals = read_samples(recording, &mut tasks, &sources, selection, traced.aggregate, options.threads, progress)?;
    let mut modules = std::mem::take(&mut tasks.modules);
    let records = std::mem::take(&mut tasks.records);
    let search = options.search.among(modules.iter().map(|(_, module)| module));
    let opened = place_kernel(&mut tasks.timeline, &modules, &totals, &search);
    let groups = Groups::new(options.group_by, &totals, &tasks.timeline, &tasks.phases);
    let located = locate(&totals, &tasks.timeline, &mut modules, &sources, &groups, options.detail);
    let open = |id| opened.take(id).map_or_else(|| search.open(modules.get(id)), Ok);
    let names = |id| search.known_functions(modules.get(id));
    let mut counted = count_modules(&located, &totals.stacks, (open, names), (options.threads, progress));
    let estimate = estimate(&located, &counted, &modules, &sources, full_burst, &machine);
    if estimate.is_some() {
        degradations.append(&mut machine.degradations);
    }
    let unweighed = unweighed(&located.starts);
    for module in &mut counted {
        module.weigh_bursts(|start| match &estimate {
            Some(estimate) => (estimate.weights[start.0 as usize], &estimate.replicates[start.0 as usize]),
            None => (1.0, &unweighed),
        });
    }

    let bytes_per_instruction = mean_instruction_length(&counted);
    let samples = sources.ebs.as_ref().map_or(0, |ebs| ebs.sum_of(&records.samples));
    let scale = CountScale::of(&sources, samples, &counted, &modules, bytes_per_instruction);
    if let Some(only) = scale.only {
        let (of, others) = if only == Source::Ebs { ("samples", "branches") } else { ("branches", "samples") };
        shortcomings.push(format!(
            "no sample is in code whose branches were seen: all counts are of {of}, and what {others} alone saw counts nothing"
        ));
    }
    if let Some(lbr) = &sources.lbr
        && totals.stacks.impossible > 0
    {
        let impossible = totals.stacks.impossible;
        shortcomings
            .push(format!("{impossible} samples of {} claim fewer instructions than branches: left out", lbr.name));
    }
    let has_bursts = sources.lbr.as_ref().is_some_and(|lbr| lbr.has_bursts);
    let entries = match has_bursts && options.detail >= Detail::Branches {
        true => KernelEntries::of(counted.iter(), &modules),
        false => KernelEntries::default(),
    };
    let flow = (options.detail >= Detail::Branches)
        .then(|| of_recording(&located, &counted, &modules, estimate.as_ref(), &scale, &entries));
    let name_and_samples = |&event: &usize| (recording.events()[event].name.clone(), records.samples[event]);
    let unused_events = sources.unused.iter().map(name_and_samples).collect();
    let rule = sources.pair().map(|pair| options.rules.of(pair));
    let decider = Decider { sources: &sources, scale, rule };
    let one_source = decider.one_source();
    let has_32_bits =
        |module: &ModuleCounts| module.code_kind(modules.get(module.module)) == CodeKind::User(Bitness::Bits32);
    let choice = explain_choice(&decider, counted.iter().any(has_32_bits));
    let mut summary = Summary {
        records,
        stacks: totals.stacks,
        streams: located.streams,
        least_by_process: match options.detail {
            Detail::Calls => totals.least_blocks_of_processes(1 << 18) as u64,
            _ => 0,
        },
        broken: located.broken,
        degradations,
        shortcomings,
        choice,
        unused_events,
        tracer,
        estimate,
    };
    for module in &counted {
        summary.broken.add(&module.broken);
    }
    let resampling = scale.resampling(&sources, &counted, &modules, bytes_per_instruction);
    let counted: Vec<CountedModule> = counted
        .into_iter()
        .map(|mut counts| {
            let blocks = decide_blocks(&counts, &decider, modules.get(counts.module), bytes_per_instruction);
            let is_clocked = sources.only_clock_sees(counts.code_kind(modules.get(counts.module)));
            let sampled = sampled_rows(&counts, &blocks, &resampling, is_clocked.then_some(CLOCKED));
            counts.sliced = Vec::new();
            CountedModule { counts, blocks, sampled }
        })
        .collect();
    let design = match trace {
        Some(kind) => Design { kind, ..Design::default() },
        None => design(&resampling, &counted, &sources, &summary.records),
    };
    describe_what_is_missing(&mut summary, &located, &counted, &modules, options);
    summary.shortcomings.extend(describe_32_bit_code(&counted, &modules, &sources));
    let wants_calls = options.detail == Detail::Calls;
    let wants_paths = paths.trips || paths.hot || paths.history.is_some() || paths.cycles && totals.stacks.timed > 0;
    let spots = (wants_calls || wants_paths).then(|| Spots::new(&tasks.timeline, &mut modules));
    let factors = summary.estimate.as_ref().map(|estimate| factors_by_context(&totals, &located, estimate));
    let mut analysis = Analysis {
        origin: Origin::Recording,
        modules,
        counted,
        groups,
        sources,
        scale,
        design,
        one_source,
        summary,
        flow,
        calls: None,
        paths: None,
        is_kept: false,
    };
    let call_stacks = names_of_call_stacks(recording.events(), &analysis.sources);
    if let Some(spots) = spots.as_ref().filter(|_| analysis.sources.lbr.is_some()) {
        let (tasks, sources) = (&tasks, &analysis.sources);
        let (spaces, factors) = (&Spaces::of(&totals, tasks), &factors.unwrap_or_default());
        let reading = Reading { what: Walked::Streams, recording, tasks, sources, selection, spaces, factors };
        let code = WalkedCode::new(analysis.counted.iter().map(|module| &module.counts), bytes_per_instruction);
        let streams = || Streams::new(&code, spots, spaces.all(), &entries);
        let calls = if wants_calls {
            let walked = reading.walk(|| CallWalker::new(streams()), options.threads, progress)?;
            Some(Calls::of(&walked, &analysis.counted, &analysis.modules, analysis.scale.executions))
        } else {
            None
        };
        let found = if wants_paths {
            let map = &CodeMap::of(&analysis, bytes_per_instruction);
            let wanted = Wanted::of(paths, &analysis, options.threads);
            let walker = || PathWalker::new(streams(), map, paths, wanted.as_ref().and_then(|of| of.as_ref().ok()));
            let walked = reading.walk(walker, options.threads, progress)?;
            Some(BranchPaths::of(&walked.sums, paths, &analysis, map, wanted))
        } else {
            None
        };
        (analysis.calls, analysis.paths) = (calls, found);
    } else if let (true, Some(spots), Some(events)) = (wants_calls, &spots, call_stacks) {
        let (spaces, factors) = (&Spaces::of(&totals, &tasks), &HashMap::new());
        let (tasks, sources) = (&tasks, &analysis.sources);
        let reading = Reading { what: Walked::CallStacks, recording, tasks, sources, selection, spaces, factors };
        let code = NamedCode::new(&analysis.counted, &analysis.modules, &options.search, (spots, spaces.all()));
        let walked = reading.walk(|| CallStackWalker::new(&code), options.threads, progress)?;
        let of = (&analysis.counted[..], &analysis.modules);
        let calls = Calls::of_call_stacks(&walked, &code, of, events);
        analysis.calls = Some(calls);
    }
    Ok(analysis)
}

/// The events with LBR call stacks whose samples count, by name.
fn names_of_call_stacks(events: &[EventDescription], sources: &Sources) -> Option<String> {
    let counts = sources.ebs.iter().flat_map(|ebs| &ebs.events).filter_map(|&event| events.get(event));
    let names: Vec<&str> =
        counts.filter(|event| StackUse::of(event) == StackUse::CallStack).map(|event| event.name.as_str()).collect();
    (!names.is_empty()).then(|| names.join(","))
}

/// What the bursts of each context are multiplied by.
fn factors_by_context(totals: &Totals, located: &Located, estimate: &Estimate) -> HashMap<Context, f64> {
    let factor =
        |(context, start): &(ContextId, StartId)| (*totals.context(*context), estimate.weights[start.0 as usize]);
    located.start_of_context.iter().map(factor).collect()
}

fn count_modules(
    located: &Located,
    stacks: &StackStatistics,
    (open, names): (impl Fn(ModuleId) -> Result<Binary, NoCode> + Sync, impl Fn(ModuleId) -> KnownFunctions + Sync),
    (threads, progress): (usize, Progress<'_>),
) -> Vec<ModuleCounts> {
    let work: Vec<(ModuleId, &ModuleHits)> = located.modules.iter().map(|(id, hits)| (*id, hits)).collect();
    let (of, done) = (work.len(), AtomicUsize::new(0));
    let counted = in_parallel(work, threads, |(id, hits)| {
        let counts = count_module(id, hits, open(id), stacks);
        let counts: Vec<ModuleCounts> = counts.into_iter().map(|counts| counts.with_names(|| names(id))).collect();
        progress(Step::Counting { done: done.fetch_add(1, Ordering::Relaxed) + 1, of });
        counts
    });
    let mut counted: Vec<ModuleCounts> = counted.into_iter().flatten().collect();
    counted.sort_by_key(|counts| (counts.module, matches!(counts.code, Code::Unread { .. })));
    counted
}

/// What bursts weigh in the replicates that are not weighed by their costs: the others make up for those that are left out.
fn unweighed(starts: &[LocatedStart]) -> Replicates {
    let mut periods = [0; SLICES];
    starts.iter().for_each(|start| start.starts.periods_by_slice.add_to(&mut periods));
    let mut replicates = Replicates::of(1.0);
    Slice::all().zip(made_up(&periods)).for_each(|(slice, factor)| *replicates.without_mut(slice) = factor);
    replicates
}

/// Which slices have what counts rest on: those of branch stacks, if any count is of these.
fn design(resampling: &Resampling, counted: &[CountedModule], sources: &Sources, records: &RecordCounts) -> Design {
    let by_stacks = |block: &CountedBlock| block.count.chosen == Source::Lbr && block.count.count > 0.0;
    let [ebs, lbr] = resampling.seen;
    let uses_stacks = counted.iter().flat_map(|module| &module.blocks).any(by_stacks);
    let (slices, source) = if uses_stacks { (lbr, &sources.lbr) } else { (ebs, &sources.ebs) };
    let observations = source.as_ref().map_or(0, |source| {
        let numbers = if source.has_bursts { &records.bursts } else { &records.samples };
        source.sum_of(numbers)
    });
    Design { kind: CountKind::Sampled, slices, observations }
}

impl Analysis {
    /// The flow of an analysis that was made with [`Detail::Branches`], whose blocks ran as often as the source says that was chosen for each;
    /// nothing, where it was made without.
    pub fn into_flow_by_choice(mut self) -> AnalysedFlow {
        self.count_flow_by_choice();
        self.flow.unwrap_or_default()
    }

    /// The same of the flow within the analysis.
    pub fn count_flow_by_choice(&mut self) {
        let mut flow = self.flow.take().unwrap_or_default();
        flow.count_by_choice(self.counted.iter().map(|module| {
            let count = match &module.counts.code {
                Code::Read(code) => {
                    let mut counts = vec![0.0; code.blocks.blocks().len()];
                    module.blocks.iter().for_each(|block| counts[block.index as usize] = block.count.count);
                    ChosenCount::Blocks(counts)
                }
                Code::Unread { .. } => ChosenCount::Instructions(module.instructions()),
            };
            (module.counts.module, &module.counts.code, count)
        }));
        self.flow = Some(flow);
    }

    /// Executed instructions of all modules, or what the samples stand for where the counts are not executions.
    pub fn instructions(&self) -> f64 {
        // The sum of nothing is -0.
        self.counted.iter().map(CountedModule::instructions).sum::<f64>() + 0.0
    }

    /// Whether it has samples of time beside counts that are not made from them: of a clock or of cycles, beside branch stacks.
    pub fn tells_time(&self) -> bool {
        let is_time = |kind| matches!(kind, EventKind::Clock | EventKind::Cycles);
        let has_samples = self.sources.ebs.as_ref().is_some_and(|ebs| is_time(ebs.kind));
        has_samples && self.sources.lbr.is_some() && self.one_source == Some(Source::Lbr)
    }

    /// Whether the code of any module with counts was read.
    pub fn has_readable_code(&self) -> bool {
        self.counted.iter().any(|module| module.is_read() && !module.blocks.is_empty())
    }

    /// The source of the counts in one word: `ebs`, `lbr`, `hybrid` where both were chosen from, `none`; `exact`, or `flow` where they are no
    /// counts of one recording.
    pub fn source(&self) -> &'static str {
        match self.one_source {
            _ if self.origin == Origin::Exact => "exact",
            _ if self.origin == Origin::Flow => "flow",
            Some(source) => source.as_str(),
            None if self.sources.ebs.is_some() => "hybrid",
            None => "none",
        }
    }

    /// What a source is called in reports: branches that were traced in software are no LBR's.
    pub fn title_of(&self, source: Source) -> &'static str {
        match (source, &self.sources.lbr) {
            (Source::Lbr, Some(lbr)) if lbr.has_bursts => TRACED,
            _ => source.as_str(),
        }
    }

    /// The group of an id.
    pub fn group(&self, id: GroupId) -> &Group {
        self.groups.get(id)
    }

    /// Build id of a module: of the file that was read, or else as recorded.
    pub fn build_id<'a>(&'a self, module: &'a CountedModule) -> Option<&'a BuildId> {
        let read = match &module.counts.code {
            Code::Read(code) => code.binary.image.build_id(),
            Code::Unread { .. } => None,
        };
        read.or(self.modules.get(module.counts.module).build_id.as_ref())
    }
}
