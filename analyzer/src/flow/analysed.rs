//! A flow, the code that it ran through, and how often each block of that ran.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::binaries::{Binary, BinarySearch, NoCode};
use crate::counting::{AnalysedModule, Code};
use crate::flow::{Flow, ModuleFlow};
use crate::recording::ModuleId;

/// A flow with the code that was read when it was made. Everything that counts by block asks it.
///
/// Blocks ran as often as ranges run through them; where the flow has no ranges at all, samples count. Of a recording that was counted by
/// both sources, the counts of the source that was chosen for each block can stand for both: [`Analysis::into_flow_by_choice`](crate::Analysis::into_flow_by_choice).
#[derive(Debug, Default)]
pub struct AnalysedFlow {
    flow: Flow,
    /// It has ranges: otherwise samples count.
    has_ranges: bool,
    /// Of each module of the recording, which of the flow it is.
    indexes: HashMap<ModuleId, usize>,
    /// By module of the flow: whether it is several modules of the recording.
    is_shared: Vec<bool>,
    /// By module of the flow; `None` where its code was not read, or is that of several modules of the recording.
    code: Vec<Option<Arc<AnalysedModule>>>,
    chosen: Option<Vec<ChosenCounts>>,
}

/// What was counted in a module of the recording by the chosen source.
pub(crate) enum ChosenCount {
    /// Executions of each block of the module's [`BlockMap`](crate::code::BlockMap), by index.
    Blocks(Vec<f64>),
    /// Executed instructions, an estimate.
    Instructions(f64),
}

/// What was counted in a module of a flow by the chosen source.
#[derive(Debug, Default)]
struct ChosenCounts {
    /// Executions by block, of each module of the recording that it is.
    read: Vec<(Arc<AnalysedModule>, Vec<f64>)>,
    /// Executed instructions of code that was not read, an estimate.
    unread: f64,
}

impl From<Flow> for AnalysedFlow {
    fn from(flow: Flow) -> Self {
        let has_ranges = flow.range_total() > 0.0;
        AnalysedFlow { code: vec![None; flow.modules.len()], flow, has_ranges, ..AnalysedFlow::default() }
    }
}

impl AnalysedFlow {
    /// `codes`: the code of each module of the recording that was read.
    pub(crate) fn of_recording(
        flow: Flow,
        indexes: HashMap<ModuleId, usize>,
        codes: &BTreeMap<ModuleId, Option<&Arc<AnalysedModule>>>,
    ) -> Self {
        let mut parts: Vec<Vec<&Arc<AnalysedModule>>> = vec![Vec::new(); flow.modules.len()];
        for (id, code) in codes {
            if let (Some(&index), Some(code)) = (indexes.get(id), code) {
                parts[index].push(code);
            }
        }
        // One file at two paths was cut by what was seen at each of them: it is cut anew.
        let only = |parts: Vec<&Arc<AnalysedModule>>| match parts[..] {
            [code] => Some(code.clone()),
            _ => None,
        };
        let is_shared = shared(&indexes, flow.modules.len());
        let has_ranges = flow.range_total() > 0.0;
        AnalysedFlow { code: parts.into_iter().map(only).collect(), flow, has_ranges, indexes, is_shared, chosen: None }
    }

    /// Counts blocks as often as the chosen source says: `counts` are the code of the modules of the recording, and of each how often each block
    /// ran, or all the instructions of code that was not read.
    pub(crate) fn count_by_choice<'a>(&mut self, counts: impl Iterator<Item = (ModuleId, &'a Code, ChosenCount)>) {
        let mut chosen: Vec<ChosenCounts> = self.code.iter().map(|_| ChosenCounts::default()).collect();
        for (module, code, count) in counts {
            let Some(&index) = self.indexes.get(&module) else { continue };
            match (code, count) {
                (Code::Read(code), ChosenCount::Blocks(counts)) => chosen[index].read.push((code.clone(), counts)),
                // Samples at addresses that are no code of a file that was read are in no module.
                (Code::Unread { .. }, ChosenCount::Instructions(all)) if !self.flow.modules[index].read => {
                    chosen[index].unread += all;
                }
                _ => {}
            }
        }
        self.chosen = Some(chosen);
    }

    /// Ranges, branches and samples.
    pub fn flow(&self) -> &Flow {
        &self.flow
    }

    /// Which module of the flow a module of the recording is; `None` if it is none.
    pub(crate) fn index_of(&self, module: ModuleId) -> Option<usize> {
        self.indexes.get(&module).copied()
    }

    /// The same, where that is the only module of the recording that it is. Of one file at two paths, the flow does not tell what ran of
    /// which.
    pub(crate) fn only_index_of(&self, module: ModuleId) -> Option<usize> {
        self.index_of(module).filter(|index| self.is_shared.get(*index) != Some(&true))
    }

    /// Says which module of the flow each module of an analysis is that was made of it.
    pub(super) fn set_indexes(&mut self, indexes: HashMap<ModuleId, usize>) {
        self.is_shared = shared(&indexes, self.flow.modules.len());
        self.indexes = indexes;
    }

    /// Of each module of the recording, which of the flow it is.
    pub(crate) fn indexes(&self) -> &HashMap<ModuleId, usize> {
        &self.indexes
    }

    /// The flow without the code that it was analysed with.
    pub fn into_flow(self) -> Flow {
        self.flow
    }

    /// Blocks are counted by executions. Otherwise by what samples stand for.
    pub fn counts_executions(&self) -> bool {
        self.chosen.is_some() || self.has_ranges
    }

    /// The counts are those of the source that was chosen for each block.
    pub fn is_by_choice(&self) -> bool {
        self.chosen.is_some()
    }

    /// Whether blocks of a module have counts. Where one has ranges, those without have none: see [`Flow::sampled_only`].
    pub fn has_counts(&self, index: usize) -> bool {
        let of = &self.flow.modules[index];
        match &self.chosen {
            Some(chosen) => chosen[index].ran(),
            None if self.has_ranges => !of.ranges.is_empty(),
            None => !of.samples.is_empty(),
        }
    }

    /// The code of a module: what it was counted in, or else that of its file, cut where the flow shows that blocks start and end.
    ///
    /// # Errors
    /// Its code cannot be read.
    pub fn code(&self, index: usize, search: &BinarySearch) -> Result<Arc<AnalysedModule>, NoCode> {
        if let Some(code) = &self.code[index] {
            return Ok(code.clone());
        }
        let of = &self.flow.modules[index];
        if !of.read {
            return Err(NoCode::NotReadBefore);
        }
        let search = search.among(self.flow.modules.iter().map(|of| &of.module));
        Ok(Arc::new(AnalysedModule::of_flows(&[(&self.flow, index)], search.open(&of.module)?)))
    }

    /// The code that a module was counted in, where it is a copy of what ran: the recording has it, or a copy of the kernel beside it.
    pub(super) fn copied_code(&self, index: usize) -> Option<&Binary> {
        let binary = &self.code.get(index)?.as_ref()?.binary;
        let is_core = self.flow.modules[index].module.kind.is_kernel() && binary.image.is_core();
        (binary.is_recorded || is_core).then_some(binary)
    }

    /// Why there is no code of a module, where [`Self::code`] says so.
    pub fn why_unread(&self, index: usize, why: NoCode, search: &BinarySearch) -> NoCode {
        let of = &self.flow.modules[index];
        // What was not read when the flow was made cannot be read now, either: this says why.
        if of.read { why } else { search.open(&of.module).err().unwrap_or(why) }
    }

    /// How often each block of a module ran, or what its samples stand for. `code` may have been cut by more than this flow shows.
    pub fn block_counts(&self, index: usize, code: &Arc<AnalysedModule>) -> Vec<f64> {
        let of = &self.flow.modules[index];
        match &self.chosen {
            Some(chosen) => chosen[index].in_blocks_of(code),
            None if self.has_ranges => code.executions(&of.ranges),
            None => code.sampled(&of.samples),
        }
    }

    /// Instructions executed in a module whose code is not known, an estimate, or what its samples stand for.
    pub fn unread_count(&self, index: usize) -> f64 {
        let of = &self.flow.modules[index];
        match &self.chosen {
            Some(chosen) => chosen[index].unread,
            None if self.has_ranges => of.guessed_instructions(),
            None => of.sample_total(),
        }
    }

    /// That the file of a module is of another build, and how much of the module does not fit its code and is in no count, in sentences.
    pub fn misfits(&self, index: usize, code: &AnalysedModule) -> Vec<String> {
        let of: &ModuleFlow = &self.flow.modules[index];
        let misfit = if self.chosen.is_some() { None } else { code.misfit(of, self.has_ranges) };
        self.other_build(index, code).into_iter().chain(misfit).collect()
    }

    /// That the file of a module is of another build, as a sentence; not where the analysis that the flow is of says it.
    pub fn other_build(&self, index: usize, code: &AnalysedModule) -> Option<String> {
        if self.code[index].is_some() { None } else { code.binary.other_build.clone() }
    }
}

/// By module of a flow, of which there are so many: whether several modules of the recording are it.
fn shared(indexes: &HashMap<ModuleId, usize>, modules: usize) -> Vec<bool> {
    let mut parts = vec![0_usize; modules];
    indexes.values().for_each(|index| parts[*index] += 1);
    parts.into_iter().map(|parts| parts > 1).collect()
}

impl ChosenCounts {
    fn ran(&self) -> bool {
        self.unread > 0.0 || self.read.iter().any(|(_, counts)| counts.iter().any(|count| *count > 0.0))
    }

    /// A block that was cut in another way ran as often as the one that holds its last instruction.
    fn in_blocks_of(&self, code: &Arc<AnalysedModule>) -> Vec<f64> {
        if let [(same, counts)] = &self.read[..]
            && Arc::ptr_eq(same, code)
        {
            return counts.clone();
        }
        let count_at = |last| -> f64 {
            let count =
                |(of, counts): &(Arc<AnalysedModule>, Vec<f64>)| of.blocks.block_at(last).map(|block| counts[block]);
            self.read.iter().filter_map(count).sum()
        };
        code.blocks.blocks().iter().map(|block| count_at(block.last)).collect()
    }
}
