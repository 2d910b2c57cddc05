//! Who calls whom, and what it costs.
//!
//! A call is a taken branch of a call instruction, or a jump from one function to the start of another. What a function and all that it
//! calls cost is shared out to its callers by what it executed when each had called it, as far as calling contexts show it; and to the calls of
//! one caller, and where no context shows any caller, by the numbers of calls, as gprof does. Functions that call each other in a cycle are one.

use std::collections::{BTreeMap, HashMap};

use analyzer::address::Svma;
use analyzer::code::{FunctionId, Terminator};
use analyzer::flow::{ExecutedModule, Flow};
use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;

use super::inclusive::InclusiveCosts;
use super::{name_of, unread_name};

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
    pub fn of(
        flow: &Flow,
        modules: &[ExecutedModule<'_>],
        costs: &[BTreeMap<Option<FunctionId>, f64>],
        inclusive: Option<&InclusiveCosts>,
    ) -> Self {
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
        let weights = weights(&all, modules, inclusive);
        let costs = costs_of_calls(&all, &weights, costs);
        let mut calls: HashMap<Site, Vec<Callee>> = HashMap::new();
        for (((from, (_, at)), (_, callee, count)), cost) in found.into_iter().zip(costs) {
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

/// How much each of these calls counts beside others of the same function: by what contexts show, and by numbers of calls. Both are 0 where there
/// is nothing.
fn weights(
    calls: &[(Function, Function, f64)],
    modules: &[ExecutedModule<'_>],
    inclusive: Option<&InclusiveCosts>,
) -> Vec<f64> {
    let Some(inclusive) = inclusive else { return vec![0.0; calls.len()] };
    let mut known: HashMap<Function, Option<usize>> = HashMap::new();
    let mut index = |function: Function| {
        *known.entry(function).or_insert_with(|| {
            let module = &modules[function.0];
            let path = &module.of.module.path;
            match (&module.code, function.1) {
                (Ok(executed), Some(id)) => inclusive.function(path, &name_of(executed, id)),
                _ => inclusive.function(path, &unread_name(path)),
            }
        })
    };
    let mut counts: HashMap<(Function, Function), f64> = HashMap::new();
    for (caller, callee, count) in calls {
        *counts.entry((*caller, *callee)).or_default() += count;
    }
    let weight = |&(caller, callee, count): &(Function, Function, f64)| {
        let of_pair =
            index(caller).zip(index(callee)).map_or(0.0, |(caller, callee)| inclusive.of_pair(caller, callee));
        let all = counts.get(&(caller, callee)).copied().unwrap_or_default();
        if all > 0.0 { of_pair * count / all } else { 0.0 }
    };
    calls.iter().map(weight).collect()
}

/// What these calls cost, in their order; nothing within a cycle.
fn costs_of_calls(
    calls: &[(Function, Function, f64)],
    weights: &[f64],
    costs: &[BTreeMap<Option<FunctionId>, f64>],
) -> Vec<f64> {
    let mut graph: DiGraph<f64, usize> = DiGraph::new();
    let mut nodes: BTreeMap<Function, NodeIndex> = BTreeMap::new();
    for (place, functions) in costs.iter().enumerate() {
        for (&function, &cost) in functions {
            nodes.insert((place, function), graph.add_node(cost));
        }
    }
    for (index, &(caller, callee, _)) in calls.iter().enumerate() {
        let [from, to] = [caller, callee].map(|function| *nodes.entry(function).or_insert_with(|| graph.add_node(0.0)));
        graph.add_edge(from, to, index);
    }
    // Callees come before their callers.
    let cycles = kosaraju_scc(&graph);
    let mut cycle_of = vec![0; graph.node_count()];
    for (index, cycle) in cycles.iter().enumerate() {
        cycle.iter().for_each(|node| cycle_of[node.index()] = index);
    }
    // By cycle: the sums of what its calls from outside weigh, by contexts and by numbers.
    let mut weight_in = vec![(0.0, 0.0); cycles.len()];
    let mut called_cycle = vec![None; calls.len()];
    for edge in graph.edge_references() {
        let [from, to] = [edge.source(), edge.target()].map(|node| cycle_of[node.index()]);
        if from != to {
            let call = *edge.weight();
            called_cycle[call] = Some(to);
            weight_in[to].0 += weights[call];
            weight_in[to].1 += calls[call].2;
        }
    }
    let part = |call: usize| {
        let (by_contexts, by_number) = called_cycle[call].map_or((0.0, 0.0), |cycle: usize| weight_in[cycle]);
        let (of_call, of_all) =
            if by_contexts > 0.0 { (weights[call], by_contexts) } else { (calls[call].2, by_number) };
        if of_all > 0.0 { of_call / of_all } else { 0.0 }
    };
    let mut costs_of_cycles = vec![0.0; cycles.len()];
    let cost_of = |call: usize, costs_of_cycles: &[f64]| {
        called_cycle[call].map_or(0.0, |cycle: usize| costs_of_cycles[cycle] * part(call))
    };
    for (index, cycle) in cycles.iter().enumerate() {
        let own: f64 = cycle.iter().map(|node| graph[*node]).sum();
        let called: f64 = cycle
            .iter()
            .flat_map(|node| graph.edges(*node))
            .map(|edge| cost_of(*edge.weight(), &costs_of_cycles))
            .sum();
        costs_of_cycles[index] = own + called;
    }
    (0..calls.len()).map(|call| cost_of(call, &costs_of_cycles)).collect()
}
