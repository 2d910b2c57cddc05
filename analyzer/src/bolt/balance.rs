//! Puts what flows through BOLT's blocks in balance, function by function.
//!
//! Blocks that code outside the function leads to, other than by coming back from a call, those that lead out of it, and those in which more begins or
//! ends than a few branch stacks, have executions that no edge of the function tells of: they stay as they are.

use std::collections::BTreeSet;

use crate::address::Svma;
use crate::bolt::{BoltEdge, BoltFunctions};
use crate::flow::balance::{Edge, balance, whole_numbers};

/// Where an edge leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leads {
    /// To a block of the same function.
    Within,
    /// Into a function that may come back.
    Calls,
    /// Elsewhere, or from elsewhere.
    Elsewhere,
}

/// Where blocks start that no edge shows.
#[derive(Clone, Debug, Default)]
pub(super) struct Borders {
    /// What code outside the function leads to, other than by coming back from a call.
    pub entered: BTreeSet<Svma>,
    /// What comes after instructions that do not lead to it: returns and jumps.
    pub after: BTreeSet<Svma>,
}

/// What flows out of a block may differ from what flows in by that much, as a part of it and in executions more: the ends of branch
/// stacks. More than that went ways that are not known, such as calls that did not come back.
const ENDS: (f64, f64) = (0.05, 4.0);

/// Puts what flows through the blocks of each function in balance. The edges are sorted, those of a function stand side by side.
pub(super) fn balance_functions(edges: &mut [BoltEdge], leads: &[Leads], functions: &BoltFunctions, borders: &Borders) {
    let mut first = edges.partition_point(|edge| edge.from.is_none());
    while let Some(from) = edges.get(first).and_then(|edge| edge.from) {
        let function = functions.at(from);
        let last_byte = function.map_or(from, |function| Svma(function.end.0 - 1));
        let last = first + edges[first..].partition_point(|edge| edge.from <= Some(last_byte));
        if let Some(function) = function {
            let inside = function.start..=last_byte;
            let entered = [function.start].into_iter().chain(borders.entered.range(inside.clone()).copied()).collect();
            let after = borders.after.range(inside).copied().collect();
            balance_function(&mut edges[first..last], &leads[first..last], &Borders { entered, after });
        }
        first = last;
    }
}

/// The edges that begin in one function, and its borders.
fn balance_function(edges: &mut [BoltEdge], leads: &[Leads], borders: &Borders) {
    let inside: Vec<usize> = (0..edges.len()).filter(|&index| leads[index] == Leads::Within).collect();
    let targets = inside.iter().filter_map(|&index| edges[index].to);
    let starts: BTreeSet<Svma> = targets.chain(borders.entered.iter().chain(&borders.after).copied()).collect();
    let starts = Vec::from_iter(starts);
    // Before the first there is nothing: functions are entered where they start.
    let node_at = |at: Svma| starts.partition_point(|start| *start <= at).saturating_sub(1);
    let edge_within = |&index: &usize| {
        let edge = &edges[index];
        Some((index, Edge { from: node_at(edge.from?), to: node_at(edge.to?), count: edge.seen }))
    };
    let (indexes, mut inner): (Vec<usize>, Vec<Edge>) = inside.iter().filter_map(edge_within).unzip();
    let mut nodes = vec![Node::default(); starts.len()];
    for edge in &inner {
        nodes[edge.from].out += edge.count;
        nodes[edge.to].into += edge.count;
    }
    for (edge, leads) in edges.iter().zip(leads) {
        if let Some(from) = edge.from.filter(|_| *leads == Leads::Elsewhere) {
            nodes[node_at(from)].leaves = true;
        }
    }
    let open = |(node, start): (&Node, &Svma)| {
        let ends = (node.into - node.out).abs();
        node.leaves || ends > ENDS.0 * node.into.max(node.out) + ENDS.1 || borders.entered.contains(start)
    };
    let open: Vec<bool> = nodes.iter().zip(&starts).map(open).collect();
    balance(&mut inner, &open);
    for (count, index) in whole_numbers(&inner, &open).into_iter().zip(indexes) {
        let edge = &mut edges[index];
        edge.count = count;
        edge.mispredicted = edge.mispredicted.min(count);
    }
}

/// A block of BOLT's: executions of its edges within the function, and whether it leads out of that.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    into: f64,
    out: f64,
    leaves: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: u64, to: u64, seen: f64) -> BoltEdge {
        let (from, to, count) = (Some(Svma(from)), Some(Svma(to)), seen.round() as u64);
        BoltEdge { from, to, count, mispredicted: count, seen }
    }

    /// The counts of edges within a function that starts at 0.
    fn counts(edges: &mut [BoltEdge], after: &[u64]) -> Vec<u64> {
        let borders = Borders { entered: [Svma(0)].into(), after: after.iter().map(|&after| Svma(after)).collect() };
        balance_function(edges, &vec![Leads::Within; edges.len()], &borders);
        assert!(edges.iter().all(|edge| edge.mispredicted <= edge.count));
        edges.iter().map(|edge| edge.count).collect()
    }

    #[test]
    fn ends_of_stacks_are_put_right() {
        // A loop of two blocks: 2 to 5, and 6 to 9, which leads back or on to the return at 10.
        let mut edges = [edge(1, 2, 10.0), edge(5, 6, 1003.0), edge(9, 2, 990.0), edge(9, 10, 10.0)];
        let counts = counts(&mut edges, &[]);
        assert_eq!(counts[0] + counts[2], counts[1]);
        assert_eq!(counts[1], counts[2] + counts[3]);
        assert!(counts[1].abs_diff(1002) <= 2 && counts[0].abs_diff(10) <= 1, "{counts:?}");
    }

    /// A burst began in cold code after a return: it does not belong to the block of the return.
    #[test]
    fn a_stray_execution_changes_no_other() {
        // 0: to 8; 8: a branch to 30 that was never taken, or on to the return at 12; 20: cold code, which jumps back to 8.
        let mut edges = [edge(4, 8, 1e6), edge(9, 12, 1e6), edge(21, 8, 1.0)];
        let counts = counts(&mut edges, &[13, 22]);
        assert_eq!(counts[0] + counts[2], counts[1]);
        assert!(counts[0].abs_diff(1_000_000) <= 1 && counts[2] == 1, "{counts:?}");
    }

    #[test]
    fn what_does_not_come_back_is_left_as_it_is() {
        // The block at 2 calls something that throws in half of all cases.
        let mut edges = [edge(1, 2, 1000.0), edge(5, 6, 500.0), edge(7, 8, 500.0)];
        assert_eq!(counts(&mut edges, &[]), [1000, 500, 500]);
    }
}
