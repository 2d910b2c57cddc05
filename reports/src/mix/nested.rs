//! Rows in groups, and groups in groups: what is printed one after the other.

use std::collections::BTreeMap;

use analyzer::mix::{Cell, Mix, Query, Sum};

use super::order::Order;

/// A row, or a group of rows.
#[derive(Debug)]
pub struct Node<'a> {
    /// The values of the keys: of all for a row, of the first ones for a group.
    pub values: &'a [String],
    /// By row and column.
    pub cells: Vec<&'a Cell>,
    /// All of them together.
    pub sum: Sum,
    /// The rows or groups in it; none in a row.
    pub children: Vec<Node<'a>>,
}

/// One line of what is printed.
pub struct Line<'r, 'a> {
    /// The group or row; of several that are left out, all.
    pub nodes: &'r [Node<'a>],
    /// Whether these are left out.
    pub others: bool,
    /// The group that they are in; `None` at the outermost level.
    pub group: Option<&'r Node<'a>>,
    /// What their shares are of.
    pub whole: &'r Sum,
}

/// The rows of a mix. `levels`: after how many keys there is a sum, ascending; the last is the number of all. `per`: how many keys make the
/// groups that shares are of; 0 for shares of all.
pub fn nested<'a>(mix: &'a Mix, query: &Query, (levels, per): (&[usize], usize), order: &Order) -> Vec<Node<'a>> {
    let nesting = Nesting { per, sort: &|nodes, whole| order.sort(nodes, mix, query, whole) };
    nesting.within(mix.cells.iter().collect(), levels, &mix.all)
}

/// How rows are put into groups.
struct Nesting<'s, 'a> {
    per: usize,
    /// Sorts nodes whose shares are of a sum.
    sort: &'s dyn Fn(&mut Vec<Node<'a>>, &Sum),
}

impl<'a> Nesting<'_, 'a> {
    fn within(&self, cells: Vec<&'a Cell>, levels: &[usize], whole: &Sum) -> Vec<Node<'a>> {
        let Some((&level, levels)) = levels.split_first() else { return Vec::new() };
        let mut groups: BTreeMap<&'a [String], Vec<&'a Cell>> = BTreeMap::new();
        for cell in cells {
            groups.entry(&cell.row[..level]).or_default().push(cell);
        }
        let node = |(values, cells): (&'a [String], Vec<&'a Cell>)| {
            let sum = Sum::of(cells.iter().copied());
            let whole_of_children = if level == self.per { &sum } else { whole };
            let children = self.within(cells.clone(), levels, whole_of_children);
            Node { values, cells, sum, children }
        };
        let mut nodes: Vec<Node<'a>> = groups.into_iter().map(node).collect();
        (self.sort)(&mut nodes, whole);
        nodes
    }
}

impl Node<'_> {
    /// How many rows are in it.
    pub fn rows(&self) -> usize {
        if self.children.is_empty() { 1 } else { self.children.iter().map(Node::rows).sum() }
    }
}

/// Calls `visit` with each line: the `top` largest of each group, and then the others. `per`: how many keys make the groups that
/// shares are of; 0 for shares of all.
pub fn for_each_line<'r, 'a>(
    nodes: &'r [Node<'a>],
    all: &'r Sum,
    (per, top): (usize, usize),
    visit: &mut dyn FnMut(Line<'r, 'a>),
) {
    lines(nodes, (None, all), (per, top), visit);
}

fn lines<'r, 'a>(
    nodes: &'r [Node<'a>],
    (group, whole): (Option<&'r Node<'a>>, &'r Sum),
    (per, top): (usize, usize),
    visit: &mut dyn FnMut(Line<'r, 'a>),
) {
    let (shown, others) = nodes.split_at(top.min(nodes.len()));
    for node in shown {
        visit(Line { nodes: std::slice::from_ref(node), others: false, group, whole });
        let whole_of_children = if node.values.len() == per { &node.sum } else { whole };
        lines(&node.children, (Some(node), whole_of_children), (per, top), visit);
    }
    if !others.is_empty() {
        visit(Line { nodes: others, others: true, group, whole });
    }
}

impl<'r, 'a> Line<'r, 'a> {
    /// Their cells.
    pub fn cells(&self) -> impl Iterator<Item = &'a Cell> + Clone + use<'r, 'a> {
        self.nodes.iter().flat_map(|node| node.cells.iter().copied())
    }

    /// The row, if it is one.
    pub fn row(&self) -> Option<&'r Node<'a>> {
        self.nodes.first().filter(|node| !self.others && node.children.is_empty())
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.nodes.iter().map(Node::rows).sum()
    }

    /// The sum of all.
    pub fn sum(&self) -> Sum {
        match self.nodes {
            [node] => node.sum.clone(),
            _ => Sum::of(self.cells()),
        }
    }
}
