//! What of each module ran, block by block.

use crate::address::Svma;
use crate::binaries::{Binary, BinarySearch};
use crate::code::instructions;
use crate::flow::{Flow, FlowCode, ModuleFlow};
use crate::lines::{SourceIndex, joined};

/// A module in which something ran.
#[derive(Debug)]
pub struct ExecutedModule<'a> {
    /// Its index in the flow.
    pub index: usize,
    /// Its flow.
    pub of: &'a ModuleFlow,
    /// The flow has ranges: counts are executions. Otherwise they are what samples stand for.
    pub by_ranges: bool,
    /// Its code, or why it cannot be read.
    pub code: Result<Box<ExecutedCode>, String>,
}

/// Code with its counts.
#[derive(Debug)]
pub struct ExecutedCode {
    /// The file.
    pub binary: Binary,
    /// Functions and blocks.
    pub code: FlowCode,
    /// Executions of each block; where the flow has no ranges at all, what its samples stand for.
    pub counts: Vec<f64>,
    /// Where the blocks come from that ran.
    pub source: SourceIndex,
    /// What is not in the counts because it does not fit the file, and what is wrong with the debug information, in sentences.
    pub notes: Vec<String>,
}

/// The modules of a flow in which something ran, one after the other: each is read when it is asked for. Where one has ranges, those without
/// are none of them: see [`Flow::sampled_only`]. `threads` read the debug information.
pub fn executed_modules<'a>(
    flow: &'a Flow,
    search: &'a BinarySearch,
    threads: usize,
) -> impl Iterator<Item = ExecutedModule<'a>> + use<'a> {
    let has_ranges = flow.range_total() > 0.0;
    let ran = move |of: &ModuleFlow| if has_ranges { !of.ranges.is_empty() } else { !of.samples.is_empty() };
    let modules = flow.modules.iter().enumerate().filter(move |(_, of)| ran(of));
    modules.map(move |(index, of)| {
        let binary = match of.read {
            true => search.open(&of.module),
            false => Err("its code was not read when the flow was made".into()),
        };
        let code = binary.map(|binary| {
            let code = FlowCode::of(&[(flow, index)], &binary);
            let counts = if has_ranges { code.executions(of) } else { code.sampled(of) };
            let mut notes = Vec::from_iter(code.misfit(of, has_ranges));
            let ran = code.blocks.blocks().iter().zip(&counts).filter(|(_, count)| **count > 0.0);
            let source = SourceIndex::read(&binary, &joined(ran.map(|(block, _)| block.start..block.end)), threads);
            notes.extend(source.notes().iter().map(|note| format!("{}: {note}", binary.file.display())));
            Box::new(ExecutedCode { binary, code, counts, source, notes })
        });
        ExecutedModule { index, of, by_ranges: has_ranges, code }
    })
}

impl ExecutedModule<'_> {
    /// What instructions of a block of its code cost: each as much as it was executed, or where there are no ranges, as samples fell on it.
    pub fn costs(&self, executed: &ExecutedCode, block: usize) -> Vec<(Svma, f64)> {
        let (block, count) = (&executed.code.blocks.blocks()[block], executed.counts[block]);
        if count <= 0.0 {
            return Vec::new();
        }
        if self.by_ranges {
            let all = instructions(&executed.binary.image, block);
            return all.map(|instruction| (Svma(instruction.ip()), count)).collect();
        }
        let samples = &self.of.samples;
        let first = samples.partition_point(|sample| sample.at < block.start);
        let inside = samples[first..].iter().take_while(|sample| sample.at < block.end);
        inside.filter(|sample| sample.count > 0.0).map(|sample| (sample.at, sample.count)).collect()
    }
}
