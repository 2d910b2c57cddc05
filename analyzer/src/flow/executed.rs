//! The blocks of each module that ran.

use std::sync::Arc;

use crate::address::Svma;
use crate::binaries::{BinarySearch, NoCode};
use crate::code::instructions;
use crate::counting::AnalysedModule;
use crate::flow::{AnalysedFlow, ModuleFlow};
use crate::lines::{SourceIndex, joined};

/// A module in which something ran.
#[derive(Debug)]
pub struct ExecutedModule<'a> {
    /// Its index in the flow.
    pub index: usize,
    /// What ran in it: ranges, branches, samples.
    pub of: &'a ModuleFlow,
    /// Counts are executions. Otherwise they are what samples stand for.
    pub by_executions: bool,
    /// Its code, or why it cannot be read.
    pub code: Result<Box<ExecutedCode>, NoCode>,
    /// What ran of it all in all, where its code cannot be read: instructions, an estimate, or what its samples stand for.
    pub unread_count: f64,
}

/// Code with its counts.
#[derive(Debug)]
pub struct ExecutedCode {
    /// File, functions and blocks.
    pub code: Arc<AnalysedModule>,
    /// Executions of each block, or what its samples stand for.
    pub counts: Vec<f64>,
    /// Where the blocks come from that ran.
    pub source: SourceIndex,
    /// What is not in the counts because it does not fit the file, and what is wrong with the debug information, in sentences.
    pub notes: Vec<String>,
}

/// The modules of a flow in which something ran, one after the other: each is read when it is asked for. Where one has ranges, those without
/// are none of them: see [`Flow::sampled_only`](crate::flow::Flow::sampled_only). `threads` read the debug information.
pub fn executed_modules<'a>(
    flow: &'a AnalysedFlow,
    search: &'a BinarySearch,
    threads: usize,
) -> impl Iterator<Item = ExecutedModule<'a>> + use<'a> {
    let by_executions = flow.counts_executions();
    let modules = flow.flow().modules.iter().enumerate().filter(move |(index, _)| flow.has_counts(*index));
    modules.map(move |(index, of)| {
        let code = flow.code(index, search).map(|code| {
            let counts = flow.block_counts(index, &code);
            let mut notes = flow.misfits(index, &code);
            let ran = code.blocks.blocks().iter().zip(&counts).filter(|(_, count)| **count > 0.0);
            let ran = joined(ran.map(|(block, _)| block.start..block.end));
            let source = SourceIndex::read(&code.binary, &ran, threads);
            notes.extend(source.notes().iter().map(|note| format!("{}: {note}", code.binary.file.display())));
            Box::new(ExecutedCode { code, counts, source, notes })
        });
        ExecutedModule { index, of, by_executions, code, unread_count: flow.unread_count(index) }
    })
}

impl ExecutedModule<'_> {
    /// What instructions of a block of its code cost: each as much as it was executed, or where there are no ranges, as samples fell on it.
    pub fn costs(&self, executed: &ExecutedCode, block: usize) -> Vec<(Svma, f64)> {
        let (block, count) = (&executed.code.blocks.blocks()[block], executed.counts[block]);
        if count <= 0.0 {
            return Vec::new();
        }
        if self.by_executions {
            let all = instructions(&executed.code.binary.image, block);
            return all.map(|instruction| (Svma(instruction.ip()), count)).collect();
        }
        let samples = &self.of.samples;
        let first = samples.partition_point(|sample| sample.at < block.start);
        let inside = samples[first..].iter().take_while(|sample| sample.at < block.end);
        inside.filter(|sample| sample.count > 0.0).map(|sample| (sample.at, sample.count)).collect()
    }
}
