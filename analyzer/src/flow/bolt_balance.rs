//! Puts what flows through BOLT's blocks in balance, function by function.
//!
//! Blocks that code outside the function leads to, other than by coming back from a call, and those that lead out of it, have ways that
//! no edge of the function tells of: they stay as they are.

use std::collections::BTreeSet;

use crate::address::Svma;
use crate::code::BoltFunctions;
use crate::flow::balance::{Way, balance, whole_numbers};
use crate::flow::bolt_edges::BoltEdge;

/// Where an edge leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leads {
    /// To another block of the function.
    Within,
    /// Into a function that may come back.
    Calls,
    /// Elsewhere, or from elsewhere.
    Elsewhere,
}

/// What flows out of a block with a call may be that much less, as a part of what flows in and in executions more: the ends of branch
/// stacks. More than that are calls that did not come back.
const ENDS: (f64, f64) = (0.05, 4.0);

/// Puts what flows through the blocks of each function in balance. The edges are sorted, those of a function stand side by side.
pub(super) fn balance_functions(edges: &mut [BoltEdge], leads: &[Leads], functions: &BoltFunctions) {
    // Where something comes from outside that is no call coming back.
    let entered = edges.iter().zip(leads).filter(|(_, leads)| **leads != Leads::Within);
    let entered: BTreeSet<Svma> = entered.filter_map(|(edge, _)| edge.to).collect();
    let mut first = edges.partition_point(|edge| edge.from.is_none());
    while let Some(from) = edges.get(first).and_then(|edge| edge.from) {
        let function = functions.at(from);
        let end = function.map_or(from, |function| Svma(function.end.0 - 1));
        let count = edges[first..].partition_point(|edge| edge.from <= Some(end));
        let last = first + count;
        if let Some(function) = function {
            let entered = entered.range(function.start..=end).copied();
            balance_function(&mut edges[first..last], &leads[first..last], function.start, entered.collect());
        }
        first = last;
    }
}

/// The edges that begin in one function. `entered`: its places that something outside leads to.
fn balance_function(edges: &mut [BoltEdge], leads: &[Leads], function: Svma, entered: BTreeSet<Svma>) {
    let within = |index: &usize| leads[*index] == Leads::Within;
    let inside: Vec<usize> = (0..edges.len()).filter(within).collect();
    let targets = inside.iter().filter_map(|&index| edges[index].to);
    let starts: BTreeSet<Svma> = targets.chain(entered.iter().copied()).chain([function]).collect();
    let starts = Vec::from_iter(starts);
    let node_at = |at: Svma| starts.partition_point(|start| *start <= at) - 1;
    let ends = |edge: &BoltEdge| Some((node_at(edge.from?), node_at(edge.to?)));
    let mut ways = Vec::with_capacity(inside.len());
    let mut indexes = Vec::with_capacity(inside.len());
    for index in inside {
        if let Some((from, to)) = ends(&edges[index]) {
            ways.push(Way { from, to, count: edges[index].seen });
            indexes.push(index);
        }
    }
    let mut nodes = vec![Node::default(); starts.len()];
    for way in &ways {
        nodes[way.from].out += way.count;
        nodes[way.to].into += way.count;
    }
    for (edge, leads) in edges.iter().zip(leads) {
        let Some(from) = edge.from.map(node_at) else { continue };
        nodes[from].calls |= *leads == Leads::Calls;
        nodes[from].is_open |= *leads == Leads::Elsewhere;
    }
    let open = |(node, start): (&Node, &Svma)| {
        let lost = node.into - node.out;
        let does_not_return = node.calls && lost > ENDS.0 * node.into + ENDS.1;
        node.is_open
            || node.out == 0.0
            || node.into == 0.0
            || does_not_return
            || entered.contains(start)
            || *start == function
    };
    let open: Vec<bool> = nodes.iter().zip(&starts).map(open).collect();
    balance(&mut ways, &open);
    for (count, index) in whole_numbers(&ways, &open).into_iter().zip(indexes) {
        let edge = &mut edges[index];
        edge.count = count.max(1);
        edge.mispredicted = edge.mispredicted.min(edge.count);
    }
}

/// A block of BOLT's.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    into: f64,
    out: f64,
    calls: bool,
    /// It may lead out of the function.
    is_open: bool,
}
