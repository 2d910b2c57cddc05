//! What of each module ran, block by block.

use crate::binaries::{Binary, BinarySearch};
use crate::flow::{Flow, FlowCode, ModuleFlow};

/// A module in which something ran.
#[derive(Debug)]
pub struct ExecutedModule<'a> {
    /// Its index in the flow.
    pub index: usize,
    /// Its flow.
    pub of: &'a ModuleFlow,
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
    /// What is not in the counts because it does not fit the file, as a sentence.
    pub misfit: Option<String>,
}

/// The modules of a flow in which something ran, one after the other: each is read when it is asked for. Where one has ranges, those without
/// are none of them: see [`Flow::sampled_only`].
pub fn executed_modules<'a>(
    flow: &'a Flow,
    search: &'a BinarySearch,
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
            let misfit = code.misfit(of, has_ranges);
            Box::new(ExecutedCode { binary, code, counts, misfit })
        });
        ExecutedModule { index, of, code }
    })
}
