//! Adding up a flow: equal ranges, branches and samples of one module become one.

use std::collections::{BTreeMap, HashMap};

use crate::address::Svma;
use crate::build_id::BuildId;
use crate::flow::{BranchCount, Flow, IpCount, LeftOut, ModuleAddress, ModuleFlow, RangeCount};
use crate::recording::Module;

/// A flow that grows. Sums depend on the order in which counts are added, in their last digits.
#[derive(Debug, Default)]
pub struct FlowBuilder {
    modules: Vec<Growing>,
    indexes: HashMap<Identity, usize>,
    /// How many streams were seen.
    pub seen: f64,
    /// What is in no module.
    pub left_out: LeftOut,
}

/// Modules of one build id are one, whatever their path; without a build id, those of one path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Identity {
    BuildId(BuildId, bool),
    Path(String, bool),
}

#[derive(Debug)]
struct Growing {
    module: Module,
    read: bool,
    ranges: BTreeMap<(Svma, Svma), f64>,
    branches: BTreeMap<(Svma, ModuleAddress), (f64, f64)>,
    samples: BTreeMap<Svma, f64>,
}

impl FlowBuilder {
    /// The index of a module, added if it is new. Of several paths with one build id, the alphabetically first is kept.
    pub fn module(&mut self, module: &Module, read: bool) -> usize {
        let identity = match &module.build_id {
            Some(build_id) => Identity::BuildId(build_id.clone(), read),
            None => Identity::Path(module.path.clone(), read),
        };
        let next = self.modules.len();
        let index = *self.indexes.entry(identity).or_insert(next);
        if index == next {
            let (ranges, branches, samples) = Default::default();
            self.modules.push(Growing { module: module.clone(), read, ranges, branches, samples });
        }
        let known = &mut self.modules[index].module;
        if module.path < known.path {
            known.clone_from(module);
        }
        index
    }

    /// Adds executions of a range of a module.
    pub fn add_range(&mut self, module: usize, range: RangeCount) {
        *self.modules[module].ranges.entry((range.first, range.last)).or_default() += range.count;
    }

    /// Adds executions of a branch in a module.
    pub fn add_branch(&mut self, module: usize, branch: BranchCount) {
        let (count, mispredicted) = self.modules[module].branches.entry((branch.from, branch.to)).or_default();
        *count += branch.count;
        *mispredicted += branch.mispredicted;
    }

    /// Adds samples in a module.
    pub fn add_sample(&mut self, module: usize, sample: IpCount) {
        *self.modules[module].samples.entry(sample.at).or_default() += sample.count;
    }

    /// The sums, of one input. `executions`: they are numbers of executions.
    pub fn finish(self, executions: bool) -> Flow {
        self.finish_with_places(executions).0
    }

    /// The same, and by the index that a module had here the one that it has in the flow.
    pub(super) fn finish_with_places(mut self, executions: bool) -> (Flow, Vec<usize>) {
        let mut order: Vec<usize> = (0..self.modules.len()).collect();
        order.sort_by_key(|&index| {
            let Growing { module, read, .. } = &self.modules[index];
            (&module.path, &module.build_id, !read)
        });
        let mut places = vec![0; order.len()];
        for (new, &old) in order.iter().enumerate() {
            places[old] = new;
        }
        let finished = order.iter().map(|&index| self.modules[index].finish(&places)).collect();
        (Flow { executions, inputs: 1, seen: self.seen, modules: finished, left_out: self.left_out }, places)
    }
}

impl Growing {
    /// `places`: where each module is in the finished flow.
    fn finish(&mut self, places: &[usize]) -> ModuleFlow {
        let range = |((first, last), count)| RangeCount { first, last, count };
        let branch = |((from, to), (count, mispredicted)): ((Svma, ModuleAddress), (f64, f64))| {
            let to = ModuleAddress { module: places[to.module], at: to.at };
            BranchCount { from, to, count, mispredicted }
        };
        let mut branches: Vec<BranchCount> = std::mem::take(&mut self.branches).into_iter().map(branch).collect();
        branches.sort_unstable_by_key(|branch| (branch.from, branch.to));
        ModuleFlow {
            module: self.module.clone(),
            read: self.read,
            ranges: std::mem::take(&mut self.ranges).into_iter().map(range).collect(),
            branches,
            samples: std::mem::take(&mut self.samples).into_iter().map(|(at, count)| IpCount { at, count }).collect(),
        }
    }
}
