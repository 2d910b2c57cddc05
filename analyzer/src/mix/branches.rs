//! Taken branches of the instructions of a mix.

use std::ops::Range;

use crate::address::Svma;
use crate::flow::{AnalysedFlow, BranchCount, ModuleFlow};
use crate::{Analysis, CountedModule, Origin};

/// How often branches were taken.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Taken {
    /// Executions of branches that were taken: jumps, calls, returns, system calls.
    pub count: f64,
    /// How many of them were mispredicted; 0 where the recording does not say it.
    pub mispredicted: f64,
}

impl Taken {
    /// Adds others.
    pub fn add(&mut self, other: Taken) {
        self.count += other.count;
        self.mispredicted += other.mispredicted;
    }
}

/// The taken branches of a module, by address.
#[derive(Clone, Copy, Default)]
pub(super) struct Branches<'a>(&'a [BranchCount]);

impl<'a> Branches<'a> {
    /// None where the analysis has no flow, and where that does not tell several modules apart.
    pub fn of(analysis: &'a Analysis, module: &CountedModule) -> Self {
        let of = |flow: &'a AnalysedFlow| Some(&flow.flow().modules[flow.only_index_of(module.counts.module)?]);
        // In a recording, addresses that are no code of a file are offsets, beside the addresses of its code.
        let is_it = |of: &&ModuleFlow| analysis.origin != Origin::Recording || of.read == module.is_read();
        Branches(analysis.flow.as_ref().and_then(of).filter(is_it).map_or(&[], |of| &of.branches))
    }

    /// Says of which files branches and calls are not known, each once.
    pub fn not_known(analysis: &Analysis) -> Vec<String> {
        let Some(flow) = &analysis.flow else { return Vec::new() };
        let is_shared = |module: &&CountedModule| {
            let id = module.counts.module;
            flow.index_of(id).is_some() && flow.only_index_of(id).is_none()
        };
        let mut paths: Vec<&str> = analysis
            .counted
            .iter()
            .filter(is_shared)
            .map(|module| analysis.modules.get(module.counts.module).path.as_str())
            .collect();
        paths.dedup();
        match paths.as_slice() {
            [] => Vec::new(),
            paths => vec![format!(
                "{}: the same file, so which branches and calls are of which is not known",
                paths.join(", ")
            )],
        }
    }

    /// Those whose instruction is there.
    pub fn within(self, range: Range<Svma>) -> Taken {
        let first = self.0.partition_point(|branch| branch.from < range.start);
        let mut sum = Taken::default();
        for branch in self.0[first..].iter().take_while(|branch| branch.from < range.end) {
            sum.add(Taken { count: branch.count, mispredicted: branch.mispredicted });
        }
        sum
    }
}
