//! Puts the executions of edges in balance: what flows into a block flows out of it.
//!
//! Branch stacks begin and end somewhere, so a few of the blocks that were seen have more edges in than out, or fewer. The corrections
//! x of the counts c that mend it and whose sum of x²/c is least (a count is known the less, the smaller it is) are the currents of a
//! network of resistors of 1/c, whose voltages the method of conjugate gradients finds (Hestenes and Stiefel 1952).

use std::ops::Range;

use petgraph::unionfind::UnionFind;

/// Executions of the edge from one node to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    /// Number of the node that it leaves.
    pub from: usize,
    /// Number of the node that it enters; it may be the same.
    pub to: usize,
    /// How often it was taken.
    pub count: f64,
}

/// An imbalance that is left, as a part of the largest there was.
const GOOD_ENOUGH: f64 = 1e-6;
/// Nodes and edges that are looked at, all steps together: some seconds. What is not balanced by then, whole numbers are.
const MOST_WORK: usize = 500_000_000;

/// Corrects the counts of all edges, so that as much leads to every node as leads on from it, but for `open` ones, which have edges that
/// are not known. No count becomes negative.
pub fn balance(edges: &mut [Edge], open: &[bool]) {
    let network = Network::new(edges, open);
    let voltages = network.voltages();
    for edge in edges {
        let current = edge.count * (voltages[edge.from] - voltages[edge.to]);
        edge.count = f64::max(edge.count + current, 0.0);
    }
}

/// The counts in whole numbers from 1 on, as much in balance as they are: those of a spanning tree of the edges that were taken most follow from the
/// others, which are rounded.
pub fn whole_numbers(edges: &[Edge], open: &[bool]) -> Vec<u64> {
    let outside = open.len();
    let node = |node: usize| if open[node] { outside } else { node };
    let ends = |index: usize| (node(edges[index].from), node(edges[index].to));
    let mut most_first: Vec<usize> = (0..edges.len()).collect();
    most_first.sort_by(|left, right| edges[*right].count.total_cmp(&edges[*left].count));
    let mut connected = UnionFind::new(outside + 1);
    let mut counts = vec![0.0; edges.len()];
    let mut excess = vec![0.0; outside + 1];
    let mut edges_of_tree: Vec<Vec<usize>> = vec![Vec::new(); outside + 1];
    for index in most_first {
        let (from, to) = ends(index);
        if connected.union(from, to) {
            edges_of_tree[from].push(index);
            edges_of_tree[to].push(index);
        } else {
            counts[index] = edges[index].count.round().max(1.0);
            excess[to] += counts[index];
            excess[from] -= counts[index];
        }
    }
    // From the leaves to the roots, of which the outside is the first.
    let mut reached: Vec<(usize, Option<usize>)> = Vec::with_capacity(outside + 1);
    let mut is_reached = vec![false; outside + 1];
    for root in (0..=outside).rev() {
        let mut waiting = vec![(root, None)];
        while let Some((at, by)) = waiting.pop() {
            if std::mem::replace(&mut is_reached[at], true) {
                continue;
            }
            reached.push((at, by));
            for &index in &edges_of_tree[at] {
                let (from, to) = ends(index);
                waiting.push((if from == at { to } else { from }, Some(index)));
            }
        }
    }
    for &(at, by) in reached.iter().rev() {
        let Some(index) = by else { continue };
        let (from, to) = ends(index);
        counts[index] = f64::max(if from == at { excess[at] } else { -excess[at] }, 1.0);
        excess[to] += counts[index];
        excess[from] -= counts[index];
    }
    counts.into_iter().map(|count| count as u64).collect()
}

/// The resistors between nodes that are to be balanced; the others have no voltage.
struct Network<'a> {
    edges: &'a [Edge],
    open: &'a [bool],
    /// By node: what flows in and not out, and the sum of what its resistors conduct.
    excess: Vec<f64>,
    conductance: Vec<f64>,
}

impl<'a> Network<'a> {
    fn new(edges: &'a [Edge], open: &'a [bool]) -> Self {
        let mut network = Network { edges, open, excess: vec![0.0; open.len()], conductance: vec![0.0; open.len()] };
        for edge in edges.iter().filter(|edge| edge.from != edge.to) {
            network.excess[edge.to] += edge.count;
            network.excess[edge.from] -= edge.count;
            network.conductance[edge.to] += edge.count;
            network.conductance[edge.from] += edge.count;
        }
        for node in network.nodes() {
            if open[node] {
                network.excess[node] = 0.0;
            }
        }
        network
    }

    fn nodes(&self) -> Range<usize> {
        0..self.open.len()
    }

    /// Solves currents(voltages) = excess. In a part without an open node the equations depend on each other, but agree: what is too
    /// much in one node is missing in another.
    fn voltages(&self) -> Vec<f64> {
        let mut voltages = vec![0.0; self.open.len()];
        let mut rest = self.excess.clone();
        let mut scaled = self.by_conductance(&rest);
        let mut direction = scaled.clone();
        let mut length = product(&rest, &scaled);
        let enough = largest(&rest) * GOOD_ENOUGH;
        // Exact arithmetic would need as many steps as there are nodes.
        let steps = self.open.len().min(MOST_WORK / (self.open.len() + self.edges.len()).max(1));
        for _ in 0..steps {
            let currents = self.currents(&direction);
            let step = length / product(&direction, &currents);
            if !step.is_finite() || largest(&rest) <= enough {
                break;
            }
            for node in self.nodes() {
                voltages[node] += step * direction[node];
                rest[node] -= step * currents[node];
            }
            scaled = self.by_conductance(&rest);
            let new_length = product(&rest, &scaled);
            for node in self.nodes() {
                direction[node] = scaled[node] + new_length / length * direction[node];
            }
            length = new_length;
        }
        voltages
    }

    /// What flows out of each node at these voltages.
    fn currents(&self, voltages: &[f64]) -> Vec<f64> {
        let mut currents = vec![0.0; voltages.len()];
        for edge in self.edges {
            let current = edge.count * (voltages[edge.from] - voltages[edge.to]);
            currents[edge.from] += current;
            currents[edge.to] -= current;
        }
        for node in self.nodes() {
            if self.open[node] {
                currents[node] = 0.0;
            }
        }
        currents
    }

    fn by_conductance(&self, values: &[f64]) -> Vec<f64> {
        let scaled = |(value, conductance): (&f64, &f64)| if *conductance > 0.0 { value / conductance } else { 0.0 };
        values.iter().zip(&self.conductance).map(scaled).collect()
    }
}

fn product(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most, value| f64::max(most, value.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(of: &[(usize, usize, f64)]) -> Vec<Edge> {
        of.iter().map(|&(from, to, count)| Edge { from, to, count }).collect()
    }

    /// What flows into each node, less what flows out.
    fn excess(edges: &[Edge], nodes: usize) -> Vec<f64> {
        let of = |node| {
            let sum = |end: fn(&Edge) -> usize| -> f64 {
                edges.iter().filter(|edge| end(edge) == node).map(|edge| edge.count).sum()
            };
            sum(|edge| edge.to) - sum(|edge| edge.from)
        };
        (0..nodes).map(of).collect()
    }

    #[test]
    fn what_is_in_balance_stays_so() {
        let before = edges(&[(0, 1, 5.0), (1, 2, 40.0), (2, 1, 35.0), (2, 3, 5.0)]);
        let mut after = before.clone();
        balance(&mut after, &[true, false, false, true]);
        assert_eq!(after, before);
    }

    /// A stack ended in the loop that another one began in: one round more or less, shared by both edges of the loop.
    #[test]
    fn a_loop_that_was_left_in_its_middle_is_closed() {
        let mut around = edges(&[(0, 1, 1000.0), (1, 0, 999.0)]);
        balance(&mut around, &[false, false]);
        assert!(excess(&around, 2).iter().all(|excess| excess.abs() < 1e-3), "{around:?}");
        assert!((around[0].count - 999.5).abs() < 1e-3);
    }

    /// An if in a loop, of which many rounds were seen and few entries: the edges that were taken most take most of the correction.
    #[test]
    fn corrections_are_the_larger_the_more_often_a_way_was_taken() {
        let mut some =
            edges(&[(0, 1, 10.0), (1, 2, 900.0), (1, 3, 108.0), (2, 3, 903.0), (3, 1, 1000.0), (3, 4, 10.0)]);
        let before = some.clone();
        balance(&mut some, &[true, false, false, false, true]);
        assert!(excess(&some, 5)[1..4].iter().all(|excess| excess.abs() < 1e-3), "{some:?}");
        for (after, before) in some.iter().zip(&before) {
            assert!((after.count - before.count).abs() <= 3.0 && after.count >= 0.0);
        }
        let moved = |index: usize| (some[index].count - before[index].count).abs();
        assert!(moved(0) < 0.2 && moved(5) < 0.2, "{some:?}");
    }

    /// A switch with six cases, each of which would be rounded down.
    #[test]
    fn whole_numbers_are_in_balance_too() {
        let mut switch = edges(&[(0, 1, 152.4), (8, 0, 300.0), (1, 0, 0.4)]);
        for case in 2..8 {
            switch.push(Edge { from: 1, to: case, count: 25.333 });
            switch.push(Edge { from: case, to: 8, count: 25.333 });
        }
        let mut open = [false; 9];
        (open[0], open[8]) = (true, true);
        let counts = whole_numbers(&switch, &open);
        for (edge, count) in switch.iter_mut().zip(counts) {
            assert!((edge.count - count as f64).abs() <= 3.0, "{edge:?}: {count}");
            edge.count = count as f64;
        }
        assert_eq!(excess(&switch, 9)[1..8], [0.0; 7]);
    }

    /// A switch of 200 cases, of which each was seen less than once in the unit of the counts.
    #[test]
    fn many_rare_ways_do_not_make_a_frequent_one_rare() {
        let mut switch = edges(&[(0, 1, 60.0), (202, 0, 60.0)]);
        for case in 2..202 {
            switch.extend(edges(&[(1, case, 0.3), (case, 202, 0.3)]));
        }
        let mut open = [false; 203];
        open[0] = true;
        let counts = whole_numbers(&switch, &open);
        assert_eq!(counts, [&[200, 200][..], &[1; 400]].concat());
    }

    /// Thousands of blocks one after the other, with an imbalance in the middle.
    #[test]
    fn long_chains_are_balanced() {
        const NODES: usize = 3000;
        let mut chain: Vec<Edge> =
            (1..NODES).map(|to| Edge { from: to - 1, to, count: if to < 1500 { 101.0 } else { 100.0 } }).collect();
        let mut open = vec![false; NODES];
        (open[0], open[NODES - 1]) = (true, true);
        balance(&mut chain, &open);
        assert!(excess(&chain, NODES)[1..NODES - 1].iter().all(|excess| excess.abs() < 1e-3));
    }

    #[test]
    fn nothing_is_nothing() {
        balance(&mut [], &[]);
        assert!(whole_numbers(&[], &[]).is_empty());
        let mut unseen = edges(&[(0, 1, 0.0), (1, 1, 7.0)]);
        balance(&mut unseen, &[false, false]);
        assert_eq!(unseen[1].count, 7.0);
    }
}
