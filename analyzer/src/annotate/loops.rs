//! Natural loops of a graph, and how they nest.
//!
//! An edge whose target dominates its source closes a loop: the target is the header, and what reaches the source
//! without passing the header is the body. No tree of dominators is needed: all that is walked backwards from the
//! source is below the header in a tree of a depth-first search exactly if the header dominates the source. Headers are
//! taken innermost first, and a finished loop counts as one node from then on (Havlak, "Nesting of reducible and
//! irreducible loops", 1997).

/// The loops of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Loops {
    /// Outer ones before those inside of them.
    pub loops: Vec<Loop>,
    /// By node: the innermost loop that it is in.
    pub innermost: Vec<Option<usize>>,
    /// By node: no way leads there from where the function is entered.
    pub apart: Vec<bool>,
    /// The edges that close loops, in order.
    closing: Vec<(usize, usize)>,
}

/// A loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loop {
    /// The node that every way into the loop passes.
    pub header: usize,
    /// The loop around it.
    pub parent: Option<usize>,
    /// 1 for an outermost loop.
    pub depth: usize,
    /// Its lowest node.
    pub first: usize,
    /// Its highest node.
    pub last: usize,
    /// How many nodes it has, those of loops inside of it included.
    pub nodes: usize,
}

/// When the search came to a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Order {
    /// Numbered from 0.
    number: usize,
    /// The highest number below the node.
    last: usize,
    /// The number of the root that it was reached from.
    root: usize,
}

/// Edges that are walked for each node and edge of a graph. What nests as programs do takes a few; code that jumps into
/// its loops in every way would take any number.
const FUEL: usize = 64;

impl Loops {
    /// Of a graph with these nodes, entered at `entry`. Nodes that are not reached from there are graphs of their own,
    /// each entered at the lowest that is not reached from lower ones. `None` if the graph is too entangled.
    pub fn of(nodes: usize, entry: usize, edges: impl Iterator<Item = (usize, usize)> + Clone) -> Option<Self> {
        let after = Neighbours::new(nodes, edges.clone());
        let before = Neighbours::new(nodes, edges.map(|(from, to)| (to, from)));
        let (visited, order) = depth_first(entry, &after);
        let apart = order.iter().map(|order| order.root != 0).collect();
        let mut fuel = FUEL * (nodes + before.all.len());
        let mut walk = Walk {
            before: &before,
            order: &order,
            outer: (0..nodes).collect(),
            bodies: vec![usize::MAX; nodes],
            tries: vec![0; nodes],
            tried: 0,
            headed: vec![None; nodes],
            found: Loops { apart, innermost: vec![None; nodes], ..Loops::default() },
        };
        for &node in visited.iter().rev() {
            walk.close(node, &mut fuel)?;
        }
        let mut found = walk.found;
        found.finish();
        Some(found)
    }

    /// Whether an edge closes a loop.
    pub fn repeats(&self, from: usize, to: usize) -> bool {
        self.closing.binary_search(&(from, to)).is_ok()
    }

    /// Outer loops first, and what follows from which loop is in which.
    fn finish(&mut self) {
        self.closing.sort_unstable();
        let all = self.loops.len();
        let turned = |index: usize| all - 1 - index;
        self.loops.reverse();
        self.loops.iter_mut().for_each(|one| one.parent = one.parent.map(turned));
        self.innermost.iter_mut().for_each(|innermost| *innermost = innermost.map(turned));
        for (node, innermost) in self.innermost.iter().enumerate() {
            let Some(one) = innermost.map(|innermost| &mut self.loops[innermost]) else { continue };
            (one.first, one.last, one.nodes) = (one.first.min(node), one.last.max(node), one.nodes + 1);
        }
        for index in (0..all).rev() {
            let Loop { first, last, nodes, parent, .. } = self.loops[index];
            let Some(around) = parent.map(|parent| &mut self.loops[parent]) else { continue };
            around.first = around.first.min(first);
            around.last = around.last.max(last);
            around.nodes += nodes;
        }
        for index in 0..all {
            self.loops[index].depth = self.loops[index].parent.map_or(0, |parent| self.loops[parent].depth) + 1;
        }
    }
}

impl Order {
    /// Whether the other node was reached through this one, or is this one.
    fn is_above(self, other: Self) -> bool {
        (self.number..=self.last).contains(&other.number)
    }
}

/// The neighbours of each node in one direction, sorted.
struct Neighbours {
    starts: Vec<usize>,
    all: Vec<usize>,
}

impl Neighbours {
    fn new(nodes: usize, edges: impl Iterator<Item = (usize, usize)>) -> Self {
        let mut edges: Vec<(usize, usize)> = edges.collect();
        edges.sort_unstable();
        edges.dedup();
        let starts = (0..=nodes).map(|node| edges.partition_point(|(from, _)| *from < node)).collect();
        Neighbours { starts, all: edges.into_iter().map(|(_, to)| to).collect() }
    }

    fn of(&self, node: usize) -> &[usize] {
        &self.all[self.starts[node]..self.starts[node + 1]]
    }
}

/// The nodes in the order in which the search came to them.
fn depth_first(entry: usize, after: &Neighbours) -> (Vec<usize>, Vec<Order>) {
    let nodes = after.starts.len() - 1;
    let mut order = vec![Order::default(); nodes];
    let mut visited = Vec::with_capacity(nodes);
    let mut is_visited = vec![false; nodes];
    let mut open: Vec<(usize, usize)> = Vec::new();
    for root in (entry < nodes).then_some(entry).into_iter().chain(0..nodes) {
        if is_visited[root] {
            continue;
        }
        let first = visited.len();
        open.push((root, 0));
        while let Some((node, next)) = open.last_mut() {
            let node = *node;
            if !is_visited[node] {
                is_visited[node] = true;
                order[node] = Order { number: visited.len(), last: visited.len(), root: first };
                visited.push(node);
            }
            match after.of(node).get(*next) {
                Some(&to) => {
                    *next += 1;
                    if !is_visited[to] {
                        open.push((to, 0));
                    }
                }
                None => {
                    order[node].last = visited.len() - 1;
                    open.pop();
                }
            }
        }
    }
    (visited, order)
}

struct Walk<'a> {
    before: &'a Neighbours,
    order: &'a [Order],
    /// By node: the header of a loop around it, or itself. Followed to its end, the outermost loop so far.
    outer: Vec<usize>,
    /// By node: the header whose body it was last put into.
    bodies: Vec<usize>,
    /// By node: the number of the last walk that came to it.
    tries: Vec<usize>,
    tried: usize,
    /// By node: the loop that it is the header of.
    headed: Vec<Option<usize>>,
    found: Loops,
}

impl Walk<'_> {
    /// Adds the loop of a header, if it is one; all headers inside of the loop have had their turn. `None` where there
    /// is no fuel left.
    fn close(&mut self, header: usize, fuel: &mut usize) -> Option<()> {
        let (before, order) = (self.before, self.order);
        let mut body: Vec<usize> = Vec::new();
        let closing = self.found.closing.len();
        for &from in before.of(header).iter().filter(|from| order[header].is_above(order[**from])) {
            if let Some(mut more) = self.walk(header, from, fuel)? {
                more.iter().for_each(|node| self.bodies[*node] = header);
                body.append(&mut more);
                self.found.closing.push((from, header));
            }
        }
        if self.found.closing.len() == closing {
            return Some(());
        }
        let index = self.found.loops.len();
        self.found.loops.push(Loop { header, parent: None, depth: 0, first: header, last: header, nodes: 0 });
        for inside in body {
            self.outer[inside] = header;
            match self.headed[inside] {
                Some(inner) => self.found.loops[inner].parent = Some(index),
                None => self.found.innermost[inside] = Some(index),
            }
        }
        self.headed[header] = Some(index);
        self.found.innermost[header] = Some(index);
        Some(())
    }

    /// The nodes that a loop gets by an edge to its header, finished loops for theirs; none if something comes to the
    /// edge past the header.
    fn walk(&mut self, header: usize, from: usize, fuel: &mut usize) -> Option<Option<Vec<usize>>> {
        let (before, order) = (self.before, self.order);
        self.tried += 1;
        let mut found: Vec<usize> = Vec::new();
        let mut next = 0;
        let first = [from];
        let mut came = first.iter();
        loop {
            for &from in came {
                *fuel = fuel.checked_sub(1)?;
                if order[from].root != order[header].root {
                    continue;
                }
                let from = self.outermost(from);
                if !order[header].is_above(order[from]) {
                    return Some(None);
                }
                if from != header && self.bodies[from] != header && self.tries[from] != self.tried {
                    self.tries[from] = self.tried;
                    found.push(from);
                }
            }
            let Some(&inside) = found.get(next) else { return Some(Some(found)) };
            next += 1;
            came = before.of(inside).iter();
        }
    }

    fn outermost(&mut self, node: usize) -> usize {
        let mut end = node;
        while self.outer[end] != end {
            end = self.outer[end];
        }
        let mut at = node;
        while self.outer[at] != end {
            at = std::mem::replace(&mut self.outer[at], end);
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use petgraph::algo::dominators::simple_fast;
    use petgraph::graph::{DiGraph, NodeIndex};
    use proptest::prelude::*;

    use super::*;

    fn loops(nodes: usize, edges: &[(usize, usize)]) -> Loops {
        Loops::of(nodes, 0, edges.iter().copied()).unwrap()
    }

    /// Header, depth, first, last, nodes.
    fn shapes(loops: &Loops) -> Vec<[usize; 5]> {
        loops.loops.iter().map(|one| [one.header, one.depth, one.first, one.last, one.nodes]).collect()
    }

    #[test]
    fn loops_nest() {
        // for { for { } self: while {} }
        let found = loops(7, &[(0, 1), (1, 2), (2, 3), (3, 2), (3, 4), (4, 4), (4, 5), (5, 1), (1, 6)]);
        assert_eq!(shapes(&found), [[1, 1, 1, 5, 5], [2, 2, 2, 3, 2], [4, 2, 4, 4, 1]]);
        assert_eq!(found.innermost, [None, Some(0), Some(1), Some(1), Some(2), Some(0), None]);
        assert!(found.repeats(3, 2) && found.repeats(4, 4) && found.repeats(5, 1));
        assert!(!found.repeats(1, 2) && !found.repeats(0, 1) && !found.repeats(1, 6));
    }

    #[test]
    fn what_is_entered_in_two_places_is_no_loop() {
        let found = loops(4, &[(0, 1), (0, 2), (1, 2), (2, 1), (2, 3)]);
        assert_eq!(shapes(&found), [[0; 5]; 0]);
        // But the one around it is.
        let found = loops(4, &[(0, 1), (0, 2), (1, 2), (2, 1), (2, 0), (2, 3)]);
        assert_eq!(shapes(&found), [[0, 1, 0, 2, 3]]);
    }

    #[test]
    fn code_that_nothing_reaches_has_loops_of_its_own() {
        // 3 is a landing pad that leads back into the loop of 1 and 2; 4 loops.
        let found = loops(5, &[(0, 1), (1, 2), (2, 1), (3, 2), (4, 4)]);
        assert_eq!(shapes(&found), [[4, 1, 4, 4, 1], [1, 1, 1, 2, 2]].into_iter().rev().collect::<Vec<_>>());
    }

    #[test]
    fn nothing_has_no_loops() {
        assert_eq!(loops(0, &[]).loops, []);
        assert_eq!(Loops::of(1, 7, [(0, 0)].into_iter()).unwrap().loops.len(), 1);
    }

    #[test]
    fn deep_and_entangled_graphs_take_bounded_time() {
        let deep = 100_000;
        let nested =
            (0..deep).flat_map(|node| [(node, node + 1), (deep + node, deep + node + 1), (deep + node, deep - node)]);
        let found = Loops::of(2 * deep + 1, 0, nested).unwrap();
        assert_eq!(found.loops.len(), deep);
        // Every node jumps back to half of those before it, and into the middle.
        let side = 600;
        let tangle = (0..side)
            .flat_map(|from| (0..side).filter(move |to| (from * 7 + to * 13) % 5 < 2).map(move |to| (from, to)));
        let _ = Loops::of(side, 0, tangle);
    }

    proptest! {
        #[test]
        fn loops_are_those_of_the_dominators(edges in proptest::collection::vec((0_usize..9, 0_usize..9), 0..24)) {
            let found = loops(9, &edges);
            let mut graph = DiGraph::<(), ()>::new();
            (0..9).for_each(|_| { graph.add_node(()); });
            edges.iter().for_each(|&(from, to)| { graph.add_edge(NodeIndex::new(from), NodeIndex::new(to), ()); });
            let dominators = simple_fast(&graph, NodeIndex::new(0));
            let is_reached = |node: usize| node == 0 || dominators.immediate_dominator(NodeIndex::new(node)).is_some();
            let dominates = |above: usize, node: usize| {
                is_reached(node) && dominators.dominators(NodeIndex::new(node)).unwrap().any(|one| one.index() == above)
            };
            let mut expected: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
            for &(from, header) in edges.iter().filter(|(from, to)| dominates(*to, *from)) {
                let body = expected.entry(header).or_default();
                body.insert(header);
                let mut open = vec![from];
                while let Some(node) = open.pop() {
                    if is_reached(node) && body.insert(node) {
                        open.extend(edges.iter().filter(|(_, to)| *to == node).map(|(from, _)| *from));
                    }
                }
            }
            let mut bodies: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
            for node in (0..9).filter(|node| is_reached(*node)) {
                let mut around = found.innermost[node];
                while let Some(index) = around {
                    bodies.entry(found.loops[index].header).or_default().insert(node);
                    around = found.loops[index].parent;
                }
            }
            prop_assert_eq!(bodies, expected);
        }
    }
}
