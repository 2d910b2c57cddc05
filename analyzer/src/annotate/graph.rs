//! The blocks of a function as a graph: which ways the code states, and which were seen.

use std::collections::{BTreeMap, HashMap};

use iced_x86::Instruction;

use crate::address::Svma;
use crate::annotate::ways::{Arrival, Ways};
use crate::code::{Block, Terminator};
use crate::counting::AnalysedModule;

/// The blocks of a function as nodes, in the order of their addresses.
pub(super) struct Graph<'a> {
    code: &'a AnalysedModule,
    ways: Option<&'a Ways<'a>>,
    /// The module as one of the flow.
    flow_index: Option<usize>,
    indices: &'a [usize],
    of: Vec<&'a Block>,
}

/// A way from one node to another.
pub(super) type Way = (usize, usize);

impl<'a> Graph<'a> {
    /// Of the blocks with these indices, by address: those of one function.
    pub fn new(code: &'a AnalysedModule, indices: &'a [usize], ways: (Option<usize>, Option<&'a Ways<'a>>)) -> Self {
        let all = code.blocks.blocks();
        let (flow_index, ways) = ways;
        Graph { code, ways, flow_index, indices, of: indices.iter().map(|index| &all[*index]).collect() }
    }

    /// The blocks, by node.
    pub fn blocks(&self) -> &[&'a Block] {
        &self.of
    }

    /// Indices of the blocks in their module, by node.
    pub fn indices(&self) -> &[usize] {
        self.indices
    }

    /// The node that a function with that symbol is entered at.
    pub fn entry(&self, symbol: Svma) -> usize {
        self.node_at(symbol).unwrap_or(0)
    }

    /// How often control came to the function's first instruction from elsewhere, by a call or a jump; `None` where that is not known.
    pub fn calls(&self, symbol: Svma) -> Option<f64> {
        self.ways?;
        self.node_at(symbol).map(|entry| self.arrived(entry))
    }

    /// The edges that the code states or that were seen, with their executions as far as these are known.
    /// `last`: the last instruction of a node's block.
    pub fn edges(&self, last: impl Fn(usize) -> Option<Instruction>) -> BTreeMap<Way, f64> {
        let mut edges: BTreeMap<Way, f64> = BTreeMap::new();
        for (from, block) in self.of.iter().enumerate() {
            let is_jump = matches!(block.terminator, Terminator::Conditional | Terminator::Jump);
            let stated = is_jump.then(|| last(from)).flatten().and_then(|last| stated_target(block, &last));
            if let Some(to) = stated.and_then(|at| self.node_at(at)) {
                edges.entry((from, to)).or_default();
            }
            if let Some(to) = self.next(from) {
                let fallen = self.ways.map_or(0.0, |ways| ways.fallen(block.last));
                *edges.entry((from, to)).or_default() += fallen;
            }
        }
        for (to, block) in self.of.iter().enumerate() {
            for arrival in self.arrivals(block) {
                if let Some(from) = self.origin(to, arrival) {
                    *edges.entry((from, to)).or_default() += arrival.count;
                }
            }
        }
        edges
    }

    /// How often control came to a block from outside of the function.
    pub fn arrived(&self, to: usize) -> f64 {
        let block = self.of[to];
        let arrived = self.arrivals(block).iter().filter(|arrival| self.origin(to, arrival).is_none());
        let fallen = || {
            let before = self.indices[to]
                .checked_sub(1)
                .filter(|before| self.code.blocks.following(*before) == Some(self.indices[to]))?;
            let is_outside = self.indices.binary_search(&before).is_err();
            is_outside.then(|| self.ways.map_or(0.0, |ways| ways.fallen(self.code.blocks.blocks()[before].last)))
        };
        arrived.map(|arrival| arrival.count).sum::<f64>() + fallen().unwrap_or(0.0)
    }

    fn arrivals(&self, block: &Block) -> &[Arrival] {
        self.ways.map_or(&[], |ways| ways.arrivals(block.start))
    }

    /// The block of the function from which a branch came to another one: that of the branch, or where control came
    /// back from a call, that of the call.
    fn origin(&self, to: usize, arrival: &Arrival) -> Option<usize> {
        let here = (Some(arrival.from.module) == self.flow_index).then_some(arrival.from.at);
        let from = here.and_then(|at| self.node_around(at)).filter(|from| {
            let jumps = [Terminator::Conditional, Terminator::Jump, Terminator::IndirectJump];
            jumps.contains(&self.of[*from].terminator)
        });
        let came_back = || {
            let before = to.checked_sub(1).filter(|before| self.next(*before) == Some(to))?;
            let calls = [Terminator::Call, Terminator::IndirectCall, Terminator::SystemCall];
            calls.contains(&self.of[before].terminator).then_some(before)
        };
        from.or_else(came_back)
    }

    /// Where control goes on after a block that does not jump, after a call when that comes back.
    fn next(&self, node: usize) -> Option<usize> {
        let calls = [Terminator::Call, Terminator::IndirectCall];
        let terminator = self.of[node].terminator;
        if !terminator.can_fall_through() && !calls.contains(&terminator) {
            return None;
        }
        let following = self.code.blocks.following(self.indices[node])?;
        self.indices.binary_search(&following).ok()
    }

    fn node_at(&self, at: Svma) -> Option<usize> {
        self.of.binary_search_by_key(&at, |block| block.start).ok()
    }

    fn node_around(&self, at: Svma) -> Option<usize> {
        let node = self.of.partition_point(|block| block.start <= at).checked_sub(1)?;
        (at < self.of[node].end).then_some(node)
    }
}

/// Where a direct branch goes when it is taken.
pub(super) fn stated_target(block: &Block, last: &Instruction) -> Option<Svma> {
    let is_direct = matches!(block.terminator, Terminator::Conditional | Terminator::Jump | Terminator::Call);
    let target = last.near_branch_target();
    (is_direct && last.ip() == block.last.0 && target != 0).then_some(Svma(target))
}

/// The blocks of the functions with these symbols, by index.
pub(super) fn blocks_by_symbol(
    code: &AnalysedModule,
    symbols: impl Iterator<Item = Svma>,
) -> HashMap<Svma, Vec<usize>> {
    let mut blocks: HashMap<Svma, Vec<usize>> = symbols.map(|symbol| (symbol, Vec::new())).collect();
    for (index, block) in code.blocks.blocks().iter().enumerate() {
        if let Some(of) = blocks.get_mut(&code.functions.get(block.function).symbol) {
            of.push(index);
        }
    }
    blocks
}
