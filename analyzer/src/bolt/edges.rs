//! Executions of the edges of BOLT's control flow graph.
//!
//! BOLT knows a fall-through between two blocks only if the profile states it, and its blocks are not ours:
//!
//! ```text
//!         ours                     BOLT's
//! call    ends a block             ends one only if something branches to what comes after it
//! jne L   a block                  one block, unless something branches to the jmp
//! jmp M   a block
//! ret     a branch                 left out
//! ```

use std::collections::{BTreeMap, BTreeSet};

use crate::address::Svma;
use crate::bolt::balance::{Borders, Leads, balance_functions};
use crate::bolt::{BoltEdge, BoltFunctions};
use crate::code::{Block, Terminator, instructions};
use crate::counting::AnalysedModule;
use crate::flow::{Flow, whole};

/// The edges of the module with that index, whose code is `code`, sorted: taken branches, and fall-throughs between blocks of BOLT's,
/// so that what flows into a block flows out of it. Counts are in units of so many executions of the flow.
pub fn bolt_edges(
    flow: &Flow,
    module: usize,
    code: &AnalysedModule,
    functions: &BoltFunctions,
    unit: f64,
) -> Vec<BoltEdge> {
    let image = &code.binary.image;
    let block_ending_at = |at: Svma| {
        let block = code.blocks.block_at(at).map(|index| &code.blocks.blocks()[index]);
        block.filter(|block| block.last == at)
    };
    let function_of = |at: Svma| functions.at(at).map(|function| function.start);
    let mut edges: BTreeMap<(Option<Svma>, Option<Svma>), (f64, f64)> = BTreeMap::new();
    let mut add = |from, to, count, mispredicted| {
        let edge = edges.entry((from, to)).or_default();
        edge.0 += count;
        edge.1 += mispredicted;
    };
    // What is branched to in BOLT's eyes.
    let mut labels: BTreeSet<Svma> = BTreeSet::new();
    // Where calls come back to, or code of other modules goes; and where other functions of this module jump to, and their own other parts.
    let mut came_back: BTreeMap<Svma, f64> = BTreeMap::new();
    let mut entered: BTreeSet<Svma> = BTreeSet::new();
    for (index, of) in flow.modules.iter().enumerate() {
        for branch in &of.branches {
            let from = (index == module).then_some(branch.from);
            let to = (branch.to.module == module).then_some(branch.to.at);
            let is_return = from.and_then(block_ending_at).is_some_and(|block| block.terminator == Terminator::Return);
            if let Some(to) = to {
                if is_return || from.is_none() {
                    *came_back.entry(to).or_default() += branch.count;
                } else if from.and_then(function_of) != function_of(to) {
                    entered.insert(to);
                } else {
                    labels.insert(to);
                }
            }
            if (from.is_some() || to.is_some()) && !is_return {
                add(from, to, branch.count, branch.mispredicted);
            }
        }
    }
    let stated_target = |block: &Block| {
        let is_direct = matches!(block.terminator, Terminator::Conditional | Terminator::Jump | Terminator::Call);
        let last = instructions(image, block).last().filter(|_| is_direct)?;
        (last.ip() == block.last.0).then(|| Svma(last.near_branch_target()))
    };
    labels.extend(code.blocks.blocks().iter().filter_map(stated_target));

    for way in code.fall_throughs(&flow.modules[module].ranges) {
        let next = code.blocks.block_at(way.to).map(|index| &code.blocks.blocks()[index]);
        let is_lone_jump = next.is_some_and(|next| next.terminator == Terminator::Jump && next.instructions == 1);
        let stays = || {
            let target = block_ending_at(way.from).and_then(stated_target);
            target.and_then(function_of) == function_of(way.from)
        };
        let is_edge = match way.terminator {
            Terminator::Conditional => labels.contains(&way.to) || !is_lone_jump || !stays(),
            _ => labels.contains(&way.to),
        };
        if is_edge {
            add(Some(way.from), Some(way.to), way.count, 0.0);
        }
    }
    // Control came back from a call: no range runs through it.
    for block in code.blocks.blocks() {
        let is_call = matches!(block.terminator, Terminator::Call | Terminator::IndirectCall);
        let returned = came_back.get(&block.end).filter(|_| is_call && labels.contains(&block.end));
        if let Some(&returned) = returned {
            add(Some(block.last), Some(block.end), returned, 0.0);
        }
    }
    let edge = |((from, to), (count, mispredicted)): ((_, _), (f64, f64))| {
        let (count, seen) = (whole(count / unit), count / unit);
        let mispredicted = ((mispredicted / unit).round() as u64).min(count);
        BoltEdge { from, to, count, mispredicted, seen }
    };
    let mut edges: Vec<BoltEdge> = edges.into_iter().map(edge).collect();
    let calls = |block: &Block| {
        matches!(block.terminator, Terminator::Call | Terminator::IndirectCall | Terminator::SystemCall)
    };
    let leads = |edge: &BoltEdge| {
        let call = edge.from.and_then(block_ending_at).filter(|block| calls(block));
        let is_same = edge.from.and_then(function_of) == edge.to.and_then(function_of);
        match call {
            Some(call) if !is_same || edge.to != Some(call.end) => Leads::Calls,
            _ if is_same => Leads::Within,
            _ => Leads::Elsewhere,
        }
    };
    let leads: Vec<Leads> = edges.iter().map(leads).collect();
    let blocks = || code.blocks.blocks().iter();
    let after_calls: BTreeSet<Svma> = blocks().filter(|block| calls(block)).map(|block| block.end).collect();
    entered.extend(came_back.into_keys().filter(|at| !after_calls.contains(at)));
    let goes_on = |block: &Block| calls(block) || block.terminator.can_fall_through();
    let after = blocks().filter(|block| !goes_on(block)).map(|block| block.end).collect();
    balance_functions(&mut edges, &leads, functions, &Borders { entered, after });
    edges
}
