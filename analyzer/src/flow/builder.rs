//! Adding up a flow: equal ranges, branches and samples of one module become one.

use std::collections::{BTreeMap, HashMap};

use crate::address::Svma;
use crate::build_id::BuildId;
use crate::flow::{BranchCount, ExactCount, Flow, IpCount, LeftOut, ModuleAddress, ModuleFlow, RangeCount, SliceFlow};
use crate::recording::Module;
use crate::uncertainty::Slice;

/// A flow that grows. Its sums do not depend on the order in which counts are added.
#[derive(Debug, Default)]
pub struct FlowBuilder {
    modules: Vec<Growing>,
    indexes: HashMap<Identity, usize>,
    /// How many streams were seen.
    pub seen: ExactCount,
    /// What is in no module.
    pub left_out: ExactLeftOut,
}

/// What is in no module's flow, while it is added up: see [`LeftOut`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExactLeftOut {
    /// Streams that the code cannot have run along.
    pub streams: ExactCount,
    /// Branches from what is no branch.
    pub branches: ExactCount,
    /// What samples stand for at addresses that are no code.
    pub samples: ExactCount,
}

/// What was seen running in a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// A straight line, from its first instruction to its last.
    Range(Svma, Svma),
    /// A taken branch, from its instruction. The module is an index of the builder.
    Branch(Svma, ModuleAddress),
    /// Samples at an instruction.
    Sample(Svma),
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
    counts: Counts,
    branches: BTreeMap<(Svma, ModuleAddress), (ExactCount, ExactCount)>,
    slices: BTreeMap<Slice, Counts>,
}

/// Ranges and samples.
#[derive(Debug, Default)]
struct Counts {
    ranges: BTreeMap<(Svma, Svma), ExactCount>,
    samples: BTreeMap<Svma, ExactCount>,
}

impl FlowBuilder {
    /// The index of a module, added if it is new; the first has 0. Of several paths with one build id, the alphabetically first is kept.
    pub fn module(&mut self, module: &Module, read: bool) -> usize {
        let identity = match &module.build_id {
            Some(build_id) => Identity::BuildId(build_id.clone(), read),
            None => Identity::Path(module.path.clone(), read),
        };
        let next = self.modules.len();
        let index = *self.indexes.entry(identity).or_insert(next);
        if index == next {
            let (counts, branches, slices) = Default::default();
            self.modules.push(Growing { module: module.clone(), read, counts, branches, slices });
        }
        let known = &mut self.modules[index].module;
        if name_of(module) < name_of(known) {
            known.clone_from(module);
        }
        index
    }

    /// All modules and whether their code was read, by index.
    pub fn modules(&self) -> impl Iterator<Item = (&Module, bool)> {
        self.modules.iter().map(|of| (&of.module, of.read))
    }

    /// All that was seen, by index of the module and then in order, each once: how often, and how many of that were mispredicted.
    pub fn sums(&self) -> impl Iterator<Item = (usize, Evidence, ExactCount, ExactCount)> {
        let none = ExactCount::default();
        self.modules.iter().enumerate().flat_map(move |(index, of)| {
            let range = move |(&(first, last), &count)| (index, Evidence::Range(first, last), count, none);
            let branch =
                move |(&(from, to), &(count, mispredicted))| (index, Evidence::Branch(from, to), count, mispredicted);
            let sample = move |(&at, &count)| (index, Evidence::Sample(at), count, none);
            let Counts { ranges, samples } = &of.counts;
            ranges.iter().map(range).chain(of.branches.iter().map(branch)).chain(samples.iter().map(sample))
        })
    }

    /// Adds what was seen so often in a module. `mispredicted` is of branches.
    pub fn add(&mut self, module: usize, seen: Evidence, count: ExactCount, mispredicted: ExactCount) {
        let of = &mut self.modules[module];
        match seen {
            Evidence::Range(first, last) => of.counts.add_range((first, last), count),
            Evidence::Branch(from, to) => {
                let sums = of.branches.entry((from, to)).or_default();
                sums.0 += count;
                sums.1 += mispredicted;
            }
            Evidence::Sample(at) => of.counts.add_sample(at, count),
        }
    }

    /// Says that a slice has so much of what was seen in a module, as [`Self::add`] added it. Of branches no slice has anything.
    pub fn add_in_slice(&mut self, slice: Slice, module: usize, seen: Evidence, count: ExactCount) {
        let slices = &mut self.modules[module].slices;
        match seen {
            Evidence::Range(first, last) => slices.entry(slice).or_default().add_range((first, last), count),
            Evidence::Sample(at) => slices.entry(slice).or_default().add_sample(at, count),
            Evidence::Branch(..) => {}
        }
    }

    /// Adds executions of a range of a module.
    pub fn add_range(&mut self, module: usize, range: RangeCount) {
        self.add(module, Evidence::Range(range.first, range.last), ExactCount::of(range.count), ExactCount::default());
    }

    /// Adds executions of a branch in a module.
    pub fn add_branch(&mut self, module: usize, branch: BranchCount) {
        let [count, mispredicted] = [branch.count, branch.mispredicted].map(ExactCount::of);
        self.add(module, Evidence::Branch(branch.from, branch.to), count, mispredicted);
    }

    /// Adds samples in a module.
    pub fn add_sample(&mut self, module: usize, sample: IpCount) {
        self.add(module, Evidence::Sample(sample.at), ExactCount::of(sample.count), ExactCount::default());
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
        (
            Flow { executions, inputs: 1, seen: self.seen.to_f64(), modules: finished, left_out: self.left_out.into() },
            places,
        )
    }
}

/// What decides which of several names of one module is kept.
fn name_of(module: &Module) -> (&str, Option<&[u8]>) {
    (&module.path, module.build_id.as_ref().map(BuildId::as_bytes))
}

impl ExactLeftOut {
    /// Adds what another flow left out, so many times.
    pub fn add(&mut self, other: &LeftOut, weight: f64) {
        self.streams += other.streams * weight;
        self.branches += other.branches * weight;
        self.samples += other.samples * weight;
    }
}

impl From<LeftOut> for ExactLeftOut {
    fn from(LeftOut { streams, branches, samples }: LeftOut) -> Self {
        let [streams, branches, samples] = [streams, branches, samples].map(ExactCount::of);
        Self { streams, branches, samples }
    }
}

impl From<ExactLeftOut> for LeftOut {
    fn from(ExactLeftOut { streams, branches, samples }: ExactLeftOut) -> Self {
        let [streams, branches, samples] = [streams, branches, samples].map(ExactCount::to_f64);
        Self { streams, branches, samples }
    }
}

impl Growing {
    /// `places`: where each module is in the finished flow.
    fn finish(&mut self, places: &[usize]) -> ModuleFlow {
        let branch = |((from, to), (count, mispredicted)): ((Svma, ModuleAddress), (ExactCount, ExactCount))| {
            let to = ModuleAddress { module: places[to.module], at: to.at };
            BranchCount { from, to, count: count.to_f64(), mispredicted: mispredicted.to_f64() }
        };
        let mut branches: Vec<BranchCount> = std::mem::take(&mut self.branches).into_iter().map(branch).collect();
        branches.sort_unstable_by_key(|branch| (branch.from, branch.to));
        let (ranges, samples) = std::mem::take(&mut self.counts).finish();
        let slice = |(slice, counts): (Slice, Counts)| {
            let (ranges, samples) = counts.finish();
            SliceFlow { slice, ranges, samples }
        };
        let slices = std::mem::take(&mut self.slices).into_iter().map(slice).collect();
        ModuleFlow { module: self.module.clone(), read: self.read, ranges, branches, samples, slices }
    }
}

impl Counts {
    fn add_range(&mut self, range: (Svma, Svma), count: ExactCount) {
        *self.ranges.entry(range).or_default() += count;
    }

    fn add_sample(&mut self, at: Svma, count: ExactCount) {
        *self.samples.entry(at).or_default() += count;
    }

    fn finish(self) -> (Vec<RangeCount>, Vec<IpCount>) {
        let range = |((first, last), count): (_, ExactCount)| RangeCount { first, last, count: count.to_f64() };
        let sample = |(at, count): (Svma, ExactCount)| IpCount { at, count: count.to_f64() };
        (self.ranges.into_iter().map(range).collect(), self.samples.into_iter().map(sample).collect())
    }
}
