//! An order of blocks by the objective Ext-TSP: executions that fall through are worth most, short jumps a little.
//!
//! Each block begins as a chain of its own. The two chains whose merge gains most are merged, until none gains: one after the other, or
//! one inside the other, which is cut where an edge between the two suggests it. (A. Newell, S. Pupyrev, *Improved Basic Block
//! Reordering*, IEEE Transactions on Computers 69, 2020.)
//!
//! What executions are worth is as the paper has it, and LLVM's `CodeLayout.cpp`, but for one thing: there a fall-through of a block with one
//! way out is worth 1.05. LLVM also keeps chains below 512 blocks, and merges none that ran more than 100 times as much by byte as the other.
//! Here the work as a whole is bounded.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};

/// How far a jump may go forward to be worth something, in bytes.
const FORWARD: f64 = 1024.0;
/// The same of a jump backward.
const BACKWARD: f64 = 640.0;
/// What a jump over no distance at all is worth; a fall-through is worth 1.
const JUMP: f64 = 0.1;
/// Chains of more blocks are not cut.
const LONGEST_CUT: usize = 128;
/// How many edges are looked at, by edge and block of the function. Where that is used up, chains stay as they are: no function that
/// a person would write gets there.
const FUEL: usize = 2000;

/// A block that is to be placed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Node {
    /// Its size, in bytes: 1 at least, so that no two blocks are at one place.
    pub size: u64,
    /// How often it ran.
    pub count: f64,
}

/// Executions of the way from one block to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Edge {
    pub from: usize,
    pub to: usize,
    pub count: f64,
}

/// An order of blocks, of which the first stays first. The same blocks and edges have the same order.
pub(super) fn order(nodes: &[Node], edges: &[Edge]) -> Vec<usize> {
    let mut layout = Layout::of(nodes, edges);
    while let Some(best) = layout.best() {
        layout.merge(best);
    }
    layout.into_order()
}

/// What an order is worth.
#[cfg(test)]
pub(super) fn score(nodes: &[Node], edges: &[Edge], order: &[usize]) -> f64 {
    let mut starts = vec![0; nodes.len()];
    let mut at = 0;
    for &node in order {
        starts[node] = at;
        at += nodes[node].size;
    }
    edges.iter().map(|edge| worth(edge, starts[edge.from] + nodes[edge.from].size, starts[edge.to])).sum()
}

/// What an edge is worth whose block ends at `end`, if the next starts at `start`.
fn worth(edge: &Edge, end: u64, start: u64) -> f64 {
    let distance = end.abs_diff(start) as f64;
    let share = match start.cmp(&end) {
        Ordering::Equal => 1.0,
        Ordering::Greater => JUMP * (1.0 - distance / FORWARD).max(0.0),
        Ordering::Less => JUMP * (1.0 - distance / BACKWARD).max(0.0),
    };
    share * edge.count
}

/// Blocks that stay together.
#[derive(Default)]
struct Chain {
    blocks: Vec<usize>,
    size: u64,
    count: f64,
    /// The edges inside.
    inside: Vec<usize>,
    /// The edges to and from other chains, by chain.
    others: BTreeMap<usize, Vec<usize>>,
    /// Changes with each merge.
    version: u32,
}

/// How two chains become one: the first is cut at a block, which may be its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// First, second.
    After,
    /// Start of the first, second, rest of the first.
    Into(usize),
    /// Second, rest of the first, start of the first.
    BeforeSwapped(usize),
    /// Rest of the first, start of the first, second.
    AfterSwapped(usize),
}

/// A merge and what it gains.
#[derive(Clone, Copy, Debug)]
struct Merge {
    gain: f64,
    first: usize,
    second: usize,
    versions: (u32, u32),
    way: Way,
}

impl PartialEq for Merge {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Merge {}

impl PartialOrd for Merge {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Merge {
    /// By gain; of the same gain, the chains that were there first.
    fn cmp(&self, other: &Self) -> Ordering {
        let rest = |merge: &Self| Reverse((merge.first, merge.second, merge.way, merge.versions));
        self.gain.total_cmp(&other.gain).then_with(|| rest(self).cmp(&rest(other)))
    }
}

struct Layout<'a> {
    nodes: &'a [Node],
    edges: &'a [Edge],
    /// By the first block that was in it; empty ones are in others.
    chains: Vec<Chain>,
    /// By block, the chain that it is in, and where in that it starts, in bytes.
    places: Vec<(usize, u64)>,
    merges: BinaryHeap<Merge>,
    fuel: usize,
}

impl<'a> Layout<'a> {
    fn of(nodes: &'a [Node], edges: &'a [Edge]) -> Self {
        let chain = |(block, node): (usize, &Node)| Chain {
            blocks: vec![block],
            size: node.size,
            count: node.count,
            ..Chain::default()
        };
        let mut chains: Vec<Chain> = nodes.iter().enumerate().map(chain).collect();
        for (index, edge) in edges.iter().enumerate().filter(|(_, edge)| edge.from != edge.to) {
            chains[edge.from].others.entry(edge.to).or_default().push(index);
            chains[edge.to].others.entry(edge.from).or_default().push(index);
        }
        let places = (0..nodes.len()).map(|block| (block, 0)).collect();
        let fuel = FUEL * (nodes.len() + edges.len());
        let mut layout = Layout { nodes, edges, chains, places, merges: BinaryHeap::new(), fuel };
        for chain in 0..nodes.len() {
            layout.find_merges(chain, |other| other > chain);
        }
        layout
    }

    /// The merge that gains most.
    fn best(&mut self) -> Option<Merge> {
        if self.fuel == 0 {
            return None;
        }
        let chains = &self.chains;
        let is_current = |merge: &Merge| merge.versions == (chains[merge.first].version, chains[merge.second].version);
        std::iter::from_fn(|| self.merges.pop()).find(is_current)
    }

    /// Finds the best merge of a chain with each of its neighbours that are wanted.
    fn find_merges(&mut self, chain: usize, is_wanted: impl Fn(usize) -> bool) {
        let others: Vec<usize> = self.chains[chain].others.keys().copied().filter(|other| is_wanted(*other)).collect();
        for other in others {
            let best = [(chain, other), (other, chain)].into_iter().filter_map(|(a, b)| self.best_of(a, b)).max();
            self.merges.extend(best);
        }
    }

    /// The best way to merge two chains, the first of which may be cut, if any gains.
    fn best_of(&mut self, first: usize, second: usize) -> Option<Merge> {
        let (one, other) = (&self.chains[first], &self.chains[second]);
        let between = &one.others[&second];
        let mut ways = vec![Way::After];
        if one.blocks.len() <= LONGEST_CUT {
            let cut = |edge: &usize| {
                let Edge { from, to, .. } = self.edges[*edge];
                let is_from = self.places[from].0 == first;
                let block = if is_from { from } else { to };
                let at = self.places[block].1;
                one.blocks.partition_point(|inside| {
                    if is_from { self.places[*inside].1 <= at } else { self.places[*inside].1 < at }
                })
            };
            let mut cuts: Vec<usize> = between.iter().map(cut).collect();
            cuts.sort_unstable();
            cuts.dedup();
            let inner = cuts.into_iter().filter(|cut| (1..one.blocks.len()).contains(cut));
            ways.extend(inner.flat_map(|cut| [Way::Into(cut), Way::BeforeSwapped(cut), Way::AfterSwapped(cut)]));
        }
        let has_entry = |chain: &Chain| chain.blocks.first() == Some(&0);
        ways.retain(|way| match way {
            Way::After | Way::Into(_) => !has_entry(other),
            Way::BeforeSwapped(_) => !has_entry(one),
            Way::AfterSwapped(_) => !has_entry(one) && !has_entry(other),
        });
        let cost = between.len() * ways.len() + one.inside.len() * ways.len().saturating_sub(1) + 1;
        let Some(fuel) = self.fuel.checked_sub(cost) else {
            self.fuel = 0;
            return None;
        };
        let versions = (one.version, other.version);
        let gain = |way: Way| Merge { gain: self.gain(one, other, between, way), first, second, versions, way };
        let best = ways.into_iter().map(gain).max().filter(|merge| merge.gain > 1e-9);
        self.fuel = fuel;
        best
    }

    /// What the edges inside the first chain and between both gain.
    fn gain(&self, first: &Chain, second: &Chain, between: &[usize], way: Way) -> f64 {
        let cut = match way {
            Way::After => first.size,
            Way::Into(cut) | Way::BeforeSwapped(cut) | Way::AfterSwapped(cut) => self.places[first.blocks[cut]].1,
        };
        // Where the start of the first chain, the rest of it, and the second go.
        let (start, rest, other) = match way {
            Way::After => (0, 0, first.size),
            Way::Into(_) => (0, cut + second.size, cut),
            Way::BeforeSwapped(_) => (second.size + first.size - cut, second.size, 0),
            Way::AfterSwapped(_) => (first.size - cut, 0, first.size),
        };
        let own = self.places[first.blocks[0]].0;
        let place = |block: usize| {
            let (chain, at) = self.places[block];
            match chain == own {
                false => other + at,
                true if at < cut => start + at,
                true => rest + (at - cut),
            }
        };
        let edge_worth = |edge: &Edge| worth(edge, place(edge.from) + self.nodes[edge.from].size, place(edge.to));
        let all = |edges: &[usize]| -> f64 { edges.iter().map(|edge| edge_worth(&self.edges[*edge])).sum() };
        let before = |edge: &usize| {
            let edge = &self.edges[*edge];
            worth(edge, self.places[edge.from].1 + self.nodes[edge.from].size, self.places[edge.to].1)
        };
        match way {
            Way::After => all(between),
            _ => all(between) + all(&first.inside) - first.inside.iter().map(before).sum::<f64>(),
        }
    }

    fn merge(&mut self, Merge { first, second, way, .. }: Merge) {
        let mut other = std::mem::take(&mut self.chains[second]);
        let version = 1 + other.version.max(self.chains[first].version);
        self.chains[second].version = version;
        let chain = &mut self.chains[first];
        chain.version = version;
        chain.size += other.size;
        chain.count += other.count;
        chain.inside.append(&mut other.inside);
        chain.inside.extend(chain.others.remove(&second).unwrap_or_default());
        other.others.remove(&first);
        let mut blocks = std::mem::take(&mut chain.blocks);
        chain.blocks = match way {
            Way::After => [blocks, other.blocks].concat(),
            Way::Into(cut) => {
                let rest = blocks.split_off(cut);
                [blocks, other.blocks, rest].concat()
            }
            Way::BeforeSwapped(cut) => {
                let rest = blocks.split_off(cut);
                [other.blocks, rest, blocks].concat()
            }
            Way::AfterSwapped(cut) => {
                let rest = blocks.split_off(cut);
                [rest, blocks, other.blocks].concat()
            }
        };
        self.fuel = self.fuel.saturating_sub(chain.blocks.len());
        let mut at = 0;
        for &block in &chain.blocks {
            self.places[block] = (first, at);
            at += self.nodes[block].size;
        }
        for (neighbour, edges) in other.others {
            self.chains[first].others.entry(neighbour).or_default().extend(&edges);
            let there = &mut self.chains[neighbour].others;
            there.remove(&second);
            there.entry(first).or_default().extend(edges);
        }
        self.find_merges(first, |_| true);
    }

    /// The chain of the entry, then those that ran most by byte.
    fn into_order(self) -> Vec<usize> {
        let mut chains: Vec<Chain> = self.chains.into_iter().filter(|chain| !chain.blocks.is_empty()).collect();
        let is_entry = |chain: &Chain| chain.blocks.first() == Some(&0);
        let density = |chain: &Chain| chain.count / chain.size.max(1) as f64;
        chains.sort_by(|a, b| is_entry(b).cmp(&is_entry(a)).then_with(|| density(b).total_cmp(&density(a))));
        chains.into_iter().flat_map(|chain| chain.blocks).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(sizes: &[u64]) -> Vec<Node> {
        sizes.iter().map(|&size| Node { size, count: 1.0 }).collect()
    }

    fn edges(all: &[(usize, usize, f64)]) -> Vec<Edge> {
        all.iter().map(|&(from, to, count)| Edge { from, to, count }).collect()
    }

    #[test]
    fn the_way_that_ran_most_falls_through() {
        // 0 goes to 1 seldom and to 2 often; both go to 3, and 3 back to 0.
        let nodes = nodes(&[8; 4]);
        let edges = edges(&[(0, 1, 10.0), (0, 2, 90.0), (1, 3, 10.0), (2, 3, 90.0), (3, 0, 99.0)]);
        let order = order(&nodes, &edges);
        assert_eq!(order, [0, 2, 3, 1]);
        // Two ways fall through, 90 each; back over 24 bytes, forward over 16, back over 16 (end of 1 to start of 3).
        let expected = 180.0 + 9.9 * (1.0 - 24.0 / 640.0) + 1.0 * (1.0 - 16.0 / 1024.0) + 1.0 * (1.0 - 16.0 / 640.0);
        assert!((score(&nodes, &edges, &order) - expected).abs() < 1e-9);
    }

    #[test]
    fn a_loop_is_turned_so_that_it_falls_into_its_condition() {
        // 0 enters at the condition 2, which goes to the body 1 and out to 3.
        let edges = edges(&[(0, 2, 1.0), (1, 2, 1000.0), (2, 1, 1000.0), (2, 3, 1.0)]);
        assert_eq!(order(&nodes(&[4; 4]), &edges)[0], 0);
        let order = order(&nodes(&[4; 4]), &edges);
        let place = |block| order.iter().position(|placed| *placed == block).unwrap();
        assert_eq!(place(1).abs_diff(place(2)), 1);
    }

    #[test]
    fn the_entry_stays_first_whatever_runs() {
        let edges = edges(&[(1, 0, 1e9), (2, 1, 1e9), (0, 2, 1.0)]);
        assert_eq!(order(&nodes(&[4; 3]), &edges)[0], 0);
    }

    /// On small graphs the greedy order is nearly as good as the best of all orders.
    #[test]
    fn orders_are_nearly_the_best() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..200 {
            let count = random.usize(2..7);
            let nodes: Vec<Node> = (0..count).map(|_| Node { size: random.u64(1..200), count: 1.0 }).collect();
            let ways = random.usize(1..12);
            let edge =
                |_| Edge { from: random.usize(..count), to: random.usize(..count), count: random.u32(1..100).into() };
            let edges: Vec<Edge> = (0..ways).map(edge).collect();
            let found = order(&nodes, &edges);
            let mut sorted = found.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..count).collect::<Vec<_>>());
            assert_eq!(found[0], 0);
            let (mut rest, mut best) = ((1..count).collect::<Vec<_>>(), f64::MIN);
            permutations(&mut rest, 0, &mut |rest| {
                best = best.max(score(&nodes, &edges, &[&[0], rest].concat()));
            });
            let reached = score(&nodes, &edges, &found);
            assert!(reached >= 0.7 * best - 1e-9, "{reached} of {best}: {nodes:?} {edges:?}");
        }
    }

    fn permutations(all: &mut [usize], fixed: usize, visit: &mut impl FnMut(&[usize])) {
        if fixed == all.len() {
            return visit(all);
        }
        for next in fixed..all.len() {
            all.swap(fixed, next);
            permutations(all, fixed + 1, visit);
            all.swap(fixed, next);
        }
    }

    #[test]
    fn what_no_person_wrote_is_placed_in_time() {
        // Every block goes to a hub and comes from it.
        let count = 10_000;
        let edges: Vec<Edge> = (1..count)
            .flat_map(|block| [(0, block), (block, 0)])
            .map(|(from, to)| Edge { from, to, count: (from + to) as f64 })
            .collect();
        let nodes = vec![Node { size: 4, count: 1.0 }; count];
        let mut order = order(&nodes, &edges);
        order.sort_unstable();
        assert_eq!(order, (0..count).collect::<Vec<_>>());
    }
}
