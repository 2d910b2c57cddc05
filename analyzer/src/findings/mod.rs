//! What an analysis found, to be kept, and put together with the code again.
//!
//! ```text
//! Analysis --of--> Findings --serde--> bytes ... bytes --serde--> Findings --into_analysis--> Analysis
//!    code of the files: what was seen of it, and which files         the files are found and compared again
//! ```
//!
//! Code is not kept: files are large, and are looked at anyway. Where its functions and blocks are is kept. Replicates are most of what was
//! found, so they are read beside the rest, as lists of [`Sampled`]. Which format the bytes have, and where they are, is not decided here.

mod code;
mod searched;
mod sound;

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::SystemTime;

use model::Source;
use perfdata::Recording;
use serde::{Deserialize, Serialize};

use crate::binaries::BinarySearch;
use crate::calls::Calls;
use crate::counting::{BlockSums, BrokenStreams, CountScale, GroupId, Groups};
use crate::flow::{AnalysedFlow, Flow, codes_of};
use crate::parallel::in_parallel;
use crate::recording::{ModuleId, ModuleTable, Sources, Tracer, metadata_of};
use crate::uncertainty::{Design, Sampled};
use crate::{Analysis, CountedBlock, CountedModule, Origin, Summary};
use code::CodeFindings;
pub use searched::Searched;

/// What an analysis found, but for the code that is in files.
#[derive(Serialize, Deserialize)]
pub struct Findings<'a> {
    modules: Cow<'a, ModuleTable>,
    counted: Vec<ModuleFindings<'a>>,
    groups: Cow<'a, Groups>,
    sources: Cow<'a, Sources>,
    scale: CountScale,
    design: Design,
    one_source: Option<Source>,
    summary: Cow<'a, Summary>,
    flow: Option<FlowFindings<'a>>,
    calls: Option<Cow<'a, Calls>>,
}

/// What was counted in a module.
#[derive(Serialize, Deserialize)]
struct ModuleFindings<'a> {
    module: ModuleId,
    code: CodeFindings<'a>,
    sums: Cow<'a, [(GroupId, u32, BlockSums)]>,
    biased: Cow<'a, [u32]>,
    broken: BrokenStreams,
    strange_branches: (u64, u64),
    blocks: Cow<'a, [CountedBlock]>,
}

#[derive(Serialize, Deserialize)]
struct FlowFindings<'a> {
    flow: Cow<'a, Flow>,
    indexes: Cow<'a, HashMap<ModuleId, usize>>,
}

/// Of each of these modules, in the order of [`Analysis::counted`], whether it is what is no code of the one before it: where a module was read,
/// that comes after it.
fn are_rests(modules: impl Iterator<Item = ModuleId>) -> Vec<bool> {
    let mut before = None;
    modules.map(|module| before.replace(module) == Some(module)).collect()
}

impl<'a> Findings<'a> {
    /// Of an analysis that began at that time. `None` where a later change of a file could not be told: it changed just before, or is none; or
    /// where names come from more files than are compared: in LBR call stacks are callers in which nothing was counted.
    pub fn of(analysis: &'a Analysis, began: SystemTime) -> Option<Self> {
        if analysis.calls.as_ref().is_some_and(|calls| calls.events.is_some()) {
            return None;
        }
        let counted: Option<Vec<_>> = analysis.counted.iter().map(|module| ModuleFindings::of(module, began)).collect();
        let flow = analysis.flow.as_ref();
        let flow =
            flow.map(|flow| FlowFindings { flow: Cow::Borrowed(flow.flow()), indexes: Cow::Borrowed(flow.indexes()) });
        Some(Findings {
            modules: Cow::Borrowed(&analysis.modules),
            counted: counted?,
            groups: Cow::Borrowed(&analysis.groups),
            sources: Cow::Borrowed(&analysis.sources),
            scale: analysis.scale,
            design: analysis.design,
            one_source: analysis.one_source,
            summary: Cow::Borrowed(&analysis.summary),
            flow,
            calls: analysis.calls.as_ref().map(Cow::Borrowed),
        })
    }

    /// The replicates of an analysis: a list for each of its modules.
    pub fn replicates(analysis: &'a Analysis) -> Vec<&'a [Sampled]> {
        analysis.counted.iter().map(|module| &module.sampled[..]).collect()
    }

    /// The analysis again, as [`analyze`](crate::analyze) would make it of that recording with the options that these findings were made with.
    /// `None` if any file of the code is missing, was not there before, or is another one than before, and if the findings contradict
    /// themselves or the code. `replicates`: gives the lists of [`Self::replicates`]; it is called last.
    pub fn into_analysis(
        self,
        recording: &Recording,
        search: &BinarySearch,
        threads: usize,
        replicates: impl FnOnce() -> Option<Vec<Vec<Sampled>>>,
    ) -> Option<Analysis> {
        if !self.is_sound() {
            return None;
        }
        let mut analysis = self.without_replicates(recording, search, threads)?;
        let lengths = analysis.counted.iter().map(|module| module.counts.sums.len());
        let read = replicates().filter(|lists| lists.iter().map(Vec::len).eq(lengths))?;
        for (module, sampled) in analysis.counted.iter_mut().zip(read) {
            module.sampled = sampled;
        }
        Some(analysis)
    }

    fn without_replicates(self, recording: &Recording, search: &BinarySearch, threads: usize) -> Option<Analysis> {
        let Findings { modules, counted, groups, sources, scale, design, one_source, summary, flow, calls } = self;
        let modules = modules.into_owned();
        let search = search.among(modules.iter().map(|(_, module)| module));
        let is_rest = are_rests(counted.iter().map(|module| module.module));
        let work: Vec<_> = counted.into_iter().zip(is_rest).collect();
        let counted: Option<Vec<CountedModule>> =
            in_parallel(work, threads, |(module, is_rest)| module.with_code(is_rest, &modules, &search))
                .into_iter()
                .collect();
        let counted = counted?;
        let mut summary = summary.into_owned();
        summary.tracer = Tracer::of(&metadata_of(recording).ok()?);
        let flow = flow.map(|FlowFindings { flow, indexes }| {
            let codes = codes_of(counted.iter().map(|module| &module.counts));
            AnalysedFlow::of_recording(flow.into_owned(), indexes.into_owned(), &codes)
        });
        Some(Analysis {
            origin: Origin::Recording,
            modules,
            counted,
            groups: groups.into_owned(),
            sources: sources.into_owned(),
            scale,
            design,
            one_source,
            summary,
            flow,
            calls: calls.map(Cow::into_owned),
            paths: None,
            is_kept: true,
        })
    }
}
