//! Who calls whom, and what it costs.
//!
//! A call is a taken branch of a call instruction, or a jump from one function to the start of another. What a function and all that it
//! calls cost is shared out to its callers by their numbers of calls, as gprof does: branch records do not say which call cost how much.
//! Functions that call each other in a cycle are one.

use std::collections::{BTreeMap, HashMap};

use analyzer::address::Svma;
use analyzer::code::{FunctionId, Terminator};
use analyzer::flow::{ExecutedModule, Flow};
use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;

/// Calls by where they come from.
pub struct CallGraph {
    calls: HashMap<Site, Vec<Callee>>,
}

/// Calls from one place to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Callee {
    /// Place of its module.
    pub module: usize,
    /// `None` in code that was not read.
    pub function: Option<FunctionId>,
    /// Where the call went.
    pub at: Svma,
    /// How often the call was made.
    pub count: f64,
    /// What the calls cost, with all that was called from there.
    pub cost: f64,
}

/// A function: the place of its module, and which one.
type Function = (usize, Option<FunctionId>);

/// The place of a module, and an address in it.
type Site = (usize, Svma);

impl CallGraph {
    /// `costs`: of each module what each function cost by itself.
    pub fn of(flow: &Flow, modules: &[ExecutedModule<'_>], costs: &[BTreeMap<Option<FunctionId>, f64>]) -> Self {
        let places: HashMap<usize, usize> =
            modules.iter().enumerate().map(|(place, module)| (module.index, place)).collect();
        let mut found: BTreeMap<(Site, Site), (Function, Function, f64)> = BTreeMap::new();
        for (place, module) in modules.iter().enumerate() {
            let Ok(executed) = &module.code else { continue };
            for branch in &flow.modules[module.index].branches {
                let blocks = &executed.code.blocks;
                let block = blocks.block_at(branch.from).map(|index| &blocks.blocks()[index]);
                let (Some(block), Some(&to)) = (block, places.get(&branch.to.module)) else { continue };
                let caller = (place, Some(block.function));
                let (callee, starts) = match &modules[to].code {
                    Ok(executed) => {
                        let Some(id) = executed.code.functions.at(branch.to.at) else { continue };
                        ((to, Some(id)), executed.code.functions.get(id).start == branch.to.at)
                    }
                    Err(_) => ((to, None), true),
                };
                let is_call = match block.terminator {
                    Terminator::Call | Terminator::IndirectCall => true,
                    Terminator::Jump | Terminator::IndirectJump | Terminator::Conditional => starts && caller != callee,
                    _ => false,
                };
                if is_call {
                    let ends = ((place, branch.from), (to, branch.to.at));
                    found.entry(ends).or_insert((caller, callee, 0.0)).2 += branch.count;
                }
            }
        }
        let all: Vec<(Function, Function, f64)> = found.values().copied().collect();
        let cost_of_call = costs_of_calls(&all, costs);
        let mut calls: HashMap<Site, Vec<Callee>> = HashMap::new();
        for ((from, (_, at)), (caller, callee, count)) in found {
            let cost = count * cost_of_call(caller, callee);
            let (module, function) = callee;
            calls.entry(from).or_default().push(Callee { module, function, at, count, cost });
        }
        CallGraph { calls }
    }

    /// The calls that a branch instruction of the module at that place makes, by target.
    pub fn calls_from(&self, place: usize, from: Svma) -> &[Callee] {
        self.calls.get(&(place, from)).map_or(&[], Vec::as_slice)
    }
}

/// What one call of a function by another costs; nothing within a cycle.
fn costs_of_calls(
    calls: &[(Function, Function, f64)],
    costs: &[BTreeMap<Option<FunctionId>, f64>],
) -> impl Fn(Function, Function) -> f64 + use<> {
    let mut graph: DiGraph<f64, f64> = DiGraph::new();
    let mut nodes: BTreeMap<Function, NodeIndex> = BTreeMap::new();
    for (place, functions) in costs.iter().enumerate() {
        for (&function, &cost) in functions {
            nodes.insert((place, function), graph.add_node(cost));
        }
    }
    for &(caller, callee, count) in calls {
        let [from, to] = [caller, callee].map(|function| *nodes.entry(function).or_insert_with(|| graph.add_node(0.0)));
        graph.add_edge(from, to, count);
    }
    // Callees come before their callers.
    let cycles = kosaraju_scc(&graph);
    let mut cycle_of = vec![0; graph.node_count()];
    for (index, cycle) in cycles.iter().enumerate() {
        cycle.iter().for_each(|node| cycle_of[node.index()] = index);
    }
    let mut called = vec![0.0; cycles.len()];
    for edge in graph.edge_indices() {
        let (from, to) = graph.edge_endpoints(edge).unwrap_or_default();
        if cycle_of[from.index()] != cycle_of[to.index()] {
            called[cycle_of[to.index()]] += graph[edge];
        }
    }
    let mut per_call = vec![0.0; cycles.len()];
    for (index, cycle) in cycles.iter().enumerate() {
        let mut cost: f64 = cycle.iter().map(|node| graph[*node]).sum();
        for edge in cycle.iter().flat_map(|node| graph.edges(*node)) {
            let callee = cycle_of[edge.target().index()];
            if callee != index {
                cost += edge.weight() * per_call[callee];
            }
        }
        per_call[index] = if called[index] > 0.0 { cost / called[index] } else { 0.0 };
    }
    move |caller, callee| {
        let [from, to] = [caller, callee].map(|function| nodes.get(&function).map(|node| cycle_of[node.index()]));
        if from == to { 0.0 } else { to.map_or(0.0, |to| per_call[to]) }
    }
}
