//! Executions of the ways between the blocks of a module.

use std::collections::HashMap;

use crate::address::Svma;
use crate::counting::AnalysedModule;
use crate::flow::{AnalysedFlow, BranchCount, Flow, ModuleAddress, ModuleFlow};
use crate::recording::ModuleId;
use crate::{Analysis, CountedModule};

/// What a flow says of the ways into and out of the blocks of a module.
pub(super) struct Ways<'a> {
    of: &'a ModuleFlow,
    /// Executions of the straight way on, by the last instruction of the block.
    fallen: HashMap<Svma, f64>,
    arrivals: &'a [Arrival],
}

/// What the flow of an analysis says of the ways in all modules, if it was made.
pub(super) struct WaysOf<'a> {
    flow: Option<&'a AnalysedFlow>,
    arrivals: Arrivals,
}

impl<'a> WaysOf<'a> {
    pub fn new(analysis: &'a Analysis) -> Self {
        let flow = analysis.flow.as_ref();
        WaysOf { flow, arrivals: flow.map_or_else(Arrivals::default, |flow| Arrivals::of(flow.flow())) }
    }

    /// A module as one of the flow, and the ways of its blocks.
    pub fn module(&'a self, module: &CountedModule, code: &AnalysedModule) -> (Option<usize>, Option<Ways<'a>>) {
        let Some(flow) = self.flow else { return (None, None) };
        let index = flow.only_index_of(module.counts.module);
        (index, index.and_then(|index| Ways::of(flow.flow(), &self.arrivals, index, code)))
    }

    /// How often branches of other modules were seen to lead to an address; `None` if none was seen. Example: where system calls of bursts enter
    /// the kernel. In code that was not read nobody knows which branches of its own are calls.
    pub fn led_to(&self, module: ModuleId, at: Svma) -> Option<f64> {
        let index = self.flow?.only_index_of(module)?;
        let arrivals = equal(self.arrivals.0.get(index)?, |arrival| arrival.to, at).iter();
        let counts = arrivals.filter(|arrival| arrival.from.module != index).map(|arrival| arrival.count);
        counts.reduce(|sum, count| sum + count)
    }
}

/// The taken branches of a flow by module that they lead to, sorted by where they arrive, then by where they come from.
#[derive(Default)]
struct Arrivals(Vec<Vec<Arrival>>);

/// Executions of a taken branch to the module.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Arrival {
    pub to: Svma,
    pub from: ModuleAddress,
    pub count: f64,
}

impl Arrivals {
    fn of(flow: &Flow) -> Self {
        let mut arrivals: Vec<Vec<Arrival>> = vec![Vec::new(); flow.modules.len()];
        for (module, from) in flow.modules.iter().enumerate() {
            for branch in &from.branches {
                let from = ModuleAddress { module, at: branch.from };
                arrivals[branch.to.module].push(Arrival { to: branch.to.at, from, count: branch.count });
            }
        }
        arrivals.iter_mut().for_each(|of| of.sort_unstable_by_key(|arrival| (arrival.to, arrival.from)));
        Arrivals(arrivals)
    }
}

impl<'a> Ways<'a> {
    /// Of a module of a flow; `None` if no range of it is known.
    fn of(flow: &'a Flow, arrivals: &'a Arrivals, index: usize, code: &AnalysedModule) -> Option<Self> {
        let of = flow.modules.get(index).filter(|of| !of.ranges.is_empty())?;
        let fallen = code.fall_throughs(&of.ranges).into_iter().map(|way| (way.from, way.count)).collect();
        Some(Ways { of, fallen, arrivals: arrivals.0.get(index)? })
    }

    /// Where the branch at an address went, by target.
    pub fn taken(&self, from: Svma) -> &[BranchCount] {
        equal(&self.of.branches, |branch| branch.from, from)
    }

    /// Executions of the straight way on from a block with that last instruction.
    pub fn fallen(&self, last: Svma) -> f64 {
        self.fallen.get(&last).copied().unwrap_or(0.0)
    }

    /// The branches to an address.
    pub fn arrivals(&self, at: Svma) -> &[Arrival] {
        equal(self.arrivals, |arrival| arrival.to, at)
    }
}

/// Those of a sorted list with that key.
fn equal<T>(sorted: &[T], key: impl Fn(&T) -> Svma, at: Svma) -> &[T] {
    let first = sorted.partition_point(|one| key(one) < at);
    let after = sorted.partition_point(|one| key(one) <= at);
    &sorted[first..after]
}
