//! What ran of the compiler's blocks: executions of each, and of the ways between them.
//!
//! ```text
//! range             every block it runs through, and the fall-through from each to the next
//! jump              an edge, if it goes to the first byte of a block
//! call, tail call   a call, if it goes to the entry of a function; one of a stub of the procedure linkage table goes where that jumps
//! return            a fall-through, if the call was the last instruction of its block; otherwise nothing: a block goes on after calls.
//!                   What another module does is one, but where the unwinder goes to a landing pad, and where functions are entered
//! ```

use std::collections::BTreeMap;

use super::address_map::{MappedBlock, MappedFunction};
use crate::address::Svma;
use crate::code::{FunctionId, Origin, Terminator};
use crate::counting::{AnalysedModule, Executions, IntervalSum};
use crate::flow::Flow;

/// What ran of the functions of an address map.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// By function, how often each of its blocks ran.
    pub counts: Vec<Vec<f64>>,
    /// By function, executions of the ways between two of its blocks.
    pub edges: Vec<BTreeMap<(usize, usize), f64>>,
    /// Executions of calls and tail calls, by caller and function.
    pub calls: BTreeMap<(usize, usize), f64>,
    /// Executions of jumps inside functions.
    pub jumps: f64,
    /// Those of them that go to no first byte of a block, where no compiler lets them go.
    pub strange: f64,
    /// Executions of the ranges of the module.
    pub ranges: f64,
    /// Those of them that touch no function of the map.
    pub outside: f64,
}

/// A block with its function.
#[derive(Clone, Copy)]
struct Place<'a> {
    block: &'a MappedBlock,
    /// Its function, and which of that it is.
    function: usize,
    index: usize,
}

/// A stub of the procedure linkage table.
#[derive(Default)]
struct Stub {
    /// Executions of calls and tail calls of it, by caller.
    callers: BTreeMap<usize, f64>,
    /// Executions of its jumps to functions of the map.
    functions: BTreeMap<usize, f64>,
    /// Executions of all its jumps.
    jumps: f64,
}

/// All blocks by address; empty ones come before what follows them.
struct Places<'a>(Vec<Place<'a>>);

impl Places<'_> {
    /// The block that holds an address.
    fn holding(&self, at: Svma) -> Option<usize> {
        let index = self.0.partition_point(|place| place.block.start <= at).checked_sub(1)?;
        (at < self.0[index].block.end).then_some(index)
    }

    /// The first block that starts at an address.
    fn starting(&self, at: Svma) -> Option<usize> {
        let index = self.0.partition_point(|place| place.block.start < at);
        (self.0.get(index)?.block.start == at).then_some(index)
    }
}

impl Graph {
    /// What ran of the module with that index, whose code is `code`.
    pub fn of(functions: &[MappedFunction], flow: &Flow, module: usize, code: &AnalysedModule) -> Self {
        let places = functions.iter().enumerate().flat_map(|(function, of)| {
            of.blocks.iter().enumerate().map(move |(index, block)| Place { block, function, index })
        });
        let mut places = Places(places.collect());
        places.0.sort_by_key(|place| (place.block.start, place.block.end, place.function, place.index));
        let mut graph = Graph {
            counts: functions.iter().map(|of| vec![0.0; of.blocks.len()]).collect(),
            edges: vec![BTreeMap::new(); functions.len()],
            ..Graph::default()
        };
        graph.add_ranges(&places, flow, module);
        graph.add_branches(&places, functions, flow, module, code);
        graph
    }

    fn add_ranges(&mut self, places: &Places<'_>, flow: &Flow, module: usize) {
        let all = &places.0;
        let [mut touched, mut begun, mut fallen] = [(); 3].map(|()| IntervalSum::new(all.len()));
        for range in &flow.modules[module].ranges {
            let executions = Executions { count: range.count, intervals: 1 };
            let end = all.partition_point(|place| place.block.start <= range.last);
            // Padding before a block belongs to none.
            let mut first = all.partition_point(|place| place.block.start <= range.first);
            if first > 0 && range.first < all[first - 1].block.end {
                first -= 1;
            }
            self.ranges += range.count;
            if first >= end {
                self.outside += range.count;
                continue;
            }
            touched.add(first, end, executions);
            begun.add(if all[first].block.start < range.first { first + 1 } else { first }, end, executions);
            fallen.add(first, end - 1, executions);
        }
        // Ranges that all begin after calls of their blocks: no more is known than that these ran.
        touched.drain(|first, end, sum| {
            for place in &all[first..end] {
                self.counts[place.function][place.index] = sum.count.max(0.0);
            }
        });
        begun.drain(|first, end, sum| {
            for place in all[first..end].iter().filter(|_| sum.count > 0.0) {
                self.counts[place.function][place.index] = sum.count;
            }
        });
        fallen.drain(|first, end, sum| {
            for two in all[first..end + 1].windows(2).filter(|_| sum.count > 0.0) {
                self.add_edge(&two[0], &two[1], sum.count);
            }
        });
    }

    fn add_branches(
        &mut self,
        places: &Places<'_>,
        functions: &[MappedFunction],
        flow: &Flow,
        module: usize,
        code: &AnalysedModule,
    ) {
        let entries: BTreeMap<Svma, usize> =
            functions.iter().enumerate().map(|(index, of)| (of.entry, index)).collect();
        let ends_as = |at: Svma| {
            let block = &code.blocks.blocks()[code.blocks.block_at(at)?];
            (block.last == at).then_some(block.terminator)
        };
        let ends_with_call = |end: Svma| {
            let last = Svma(end.0.checked_sub(1)?);
            let block = &code.blocks.blocks()[code.blocks.block_at(last)?];
            Some(
                block.end == end
                    && matches!(block.terminator, Terminator::Call | Terminator::IndirectCall | Terminator::SystemCall),
            )
        };
        let stub_at = |at: Svma| code.functions.at(at).filter(|id| code.functions.get(*id).origin == Origin::Plt);
        let mut stubs: BTreeMap<FunctionId, Stub> = BTreeMap::new();
        let mut jumps: BTreeMap<usize, f64> = BTreeMap::new();
        for (index, of) in flow.modules.iter().enumerate() {
            let is_here = index == module;
            for branch in &of.branches {
                let to = branch.to.at;
                let enters = branch.to.module == module;
                if let Some(stub) = stub_at(branch.from).filter(|_| is_here) {
                    let stub = stubs.entry(stub).or_default();
                    stub.jumps += branch.count;
                    if let Some(function) = entries.get(&to).filter(|_| enters) {
                        *stub.functions.entry(*function).or_default() += branch.count;
                    }
                    continue;
                }
                if !enters {
                    continue;
                }
                // What comes from other modules comes back, or calls: neither is a way from one block to another.
                let terminator = if is_here { ends_as(branch.from) } else { Some(Terminator::Return) };
                let is_call = matches!(terminator, Some(Terminator::Call | Terminator::IndirectCall));
                if matches!(terminator, Some(Terminator::Return | Terminator::SystemCall)) {
                    if ends_with_call(to).unwrap_or(false) {
                        self.come_back(places, to, branch.count);
                    }
                    continue;
                }
                let Some(from) = places.holding(branch.from).map(|from| places.0[from]) else { continue };
                if let Some(stub) = stub_at(to) {
                    let callers = &mut stubs.entry(stub).or_default().callers;
                    *callers.entry(from.function).or_default() += branch.count;
                    continue;
                }
                let entered = entries.get(&to).copied();
                match (entered, places.starting(to)) {
                    (Some(function), _) if is_call || function != from.function => {
                        *self.calls.entry((from.function, function)).or_default() += branch.count;
                    }
                    _ if is_call => {}
                    (_, Some(target)) if places.0[target].function == from.function => {
                        self.jumps += branch.count;
                        *jumps.entry(target).or_default() += branch.count;
                        self.add_edge(&from, &places.0[target], branch.count);
                    }
                    _ => {
                        let function = places.holding(to).map(|to| places.0[to].function).or(entered);
                        if function == Some(from.function) {
                            self.jumps += branch.count;
                            self.strange += branch.count;
                        }
                    }
                }
            }
        }
        stubs.values().for_each(|stub| self.call_through(stub));
        self.run_through_empty(places, &jumps);
    }

    /// Which of its callers a jump of a stub was for is not seen, but they all go the same way once the linker has found the function.
    fn call_through(&mut self, stub: &Stub) {
        for (&function, &jumps) in stub.functions.iter().filter(|_| stub.jumps > 0.0) {
            for (&caller, &calls) in &stub.callers {
                *self.calls.entry((caller, function)).or_default() += calls * jumps / stub.jumps;
            }
        }
    }

    /// After a call that was the last instruction of its block, there may be padding before the next.
    fn come_back(&mut self, places: &Places<'_>, to: Svma, count: f64) {
        let next = places.0.partition_point(|place| place.block.start < to);
        let before = next.checked_sub(1).map(|before| places.0[before]).filter(|before| before.block.end == to);
        // What comes to a landing pad comes from the unwinder, though the call that threw may be right before it.
        let after = places.0.get(next).filter(|after| !after.block.is_landing_pad);
        if let (Some(before), Some(after)) = (before, after) {
            self.add_edge(&before, after, count);
        }
    }

    /// Empty blocks where jumps go were run through: `jumps` are executions by block. Each is looked at once, however many there are.
    fn run_through_empty(&mut self, places: &Places<'_>, jumps: &BTreeMap<usize, f64>) {
        let mut carried = 0.0;
        for (index, two) in places.0.windows(2).enumerate() {
            carried += jumps.get(&index).copied().unwrap_or(0.0);
            if two[0].block.start < two[0].block.end {
                carried = 0.0;
            } else if carried > 0.0 {
                self.counts[two[0].function][two[0].index] += carried;
                self.add_edge(&two[0], &two[1], carried);
            }
        }
    }

    fn add_edge(&mut self, from: &Place<'_>, to: &Place<'_>, count: f64) {
        if from.function == to.function {
            *self.edges[from.function].entry((from.index, to.index)).or_default() += count;
        }
    }
}
