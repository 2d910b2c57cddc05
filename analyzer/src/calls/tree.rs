//! Contexts added up: a tree that begins with the function that ran, and goes on with its callers.
//!
//! ```text
//! main -> f -> h  10        h 0 -- f 10 -- main 0      a node: a function, what it called on the way down to what ran;
//! main -> g -> h   5          \\-- g  5                 its weight: of contexts whose outermost known caller it is
//! g -> h           2                      \\- main 5
//! f                1        f 1
//! ```
//!
//! (`g -> h`, whose caller is not known, has 2, and `main -> g -> h` 5.) That way round what is cut off for want of room are outer callers,
//! and what each function executed stays.

use hashbrown::HashTable;

use crate::calls::{FunctionKey, fold};
use crate::recording::Weight;

/// Contexts by function and callers. The same contexts give the same tree, in whatever order and however divided among trees they were added.
#[derive(Debug)]
pub struct CallerTree {
    nodes: Vec<TreeNode>,
    index: HashTable<u32>,
    /// Frames of a context that are kept, the innermost ones.
    depth: u32,
    most: usize,
}

/// A function of contexts.
#[derive(Clone, Copy, Debug)]
struct TreeNode {
    /// The function that it calls; [`NONE`] if it is what ran.
    callee: u32,
    function: FunctionKey,
    /// Frames from it down to what ran, both included.
    depth: u32,
    sums: Sums,
}

/// What was executed in contexts whose outermost caller a node is, in units of 2^-32 instructions.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    all: Weight,
    /// Of it, where there were more callers.
    cut: Weight,
}

/// A context of a finished [`CallerTree`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeContext {
    /// What ran, its caller, and so on.
    pub functions: Vec<FunctionKey>,
    /// Instructions executed.
    pub instructions: Weight,
    /// Of them, those that had callers that are known and were left out.
    pub cut: Weight,
}

const NONE: u32 = u32::MAX;

impl CallerTree {
    /// The most nodes of a tree, if there are not more functions; each takes some 64 bytes.
    pub const MOST_NODES: usize = 1 << 18;
    /// The most frames of a context.
    pub const MOST_FRAMES: u32 = 128;

    /// An empty tree of so many nodes at most, and frames in a context.
    pub fn new(most_nodes: usize, most_frames: u32) -> Self {
        CallerTree { nodes: Vec::new(), index: HashTable::new(), depth: most_frames.max(1), most: most_nodes }
    }

    /// Adds what was executed in a function, which comes first, called by the next one, and so on.
    pub fn add(&mut self, functions: impl Iterator<Item = FunctionKey>, instructions: Weight) {
        let mut functions = functions;
        let (mut node, mut depth) = (NONE, 0);
        for function in functions.by_ref().take(self.depth as usize) {
            depth += 1;
            node = self.node(node, function, depth);
        }
        let cut = if functions.next().is_some() { instructions } else { Weight::default() };
        self.count(node, Sums { all: instructions, cut });
        self.keep_bound();
    }

    /// Adds everything of another tree.
    pub fn merge(&mut self, other: &CallerTree) {
        if other.depth < self.depth {
            self.keep_depth(other.depth);
        }
        self.add_nodes(&other.nodes);
        self.keep_bound();
    }

    /// Frames of a context that there was room for.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// All contexts in which something ran, in no particular order.
    pub fn contexts(&self) -> impl Iterator<Item = TreeContext> {
        let ran = self.nodes.iter().filter(|node| node.sums.all > Weight::default());
        ran.map(|node| {
            let down = std::iter::successors(Some(node), |node| self.nodes.get(node.callee as usize));
            let mut functions: Vec<FunctionKey> = down.map(|node| node.function).collect();
            functions.reverse();
            TreeContext { functions, instructions: node.sums.all, cut: node.sums.cut }
        })
    }

    /// Takes off outer frames until there is room. How many frames stay follows from all contexts together: those of a part of them can have
    /// no more.
    fn keep_bound(&mut self) {
        if self.nodes.len() <= self.most || self.depth == 1 {
            return;
        }
        let mut of_depth = vec![0; self.depth as usize + 1];
        for node in &self.nodes {
            if let Some(number) = of_depth.get_mut(node.depth as usize) {
                *number += 1;
            }
        }
        let sums = of_depth.iter().scan(0, |sum, number| {
            *sum += number;
            Some(*sum)
        });
        let fits = sums.take_while(|nodes| *nodes <= self.most).count() as u32;
        self.keep_depth(fits.saturating_sub(1).max(1));
    }

    fn keep_depth(&mut self, depth: u32) {
        self.depth = depth;
        self.index.clear();
        let nodes = std::mem::take(&mut self.nodes);
        self.add_nodes(&nodes);
    }

    /// Adds the nodes of a tree: each comes after the one that it calls.
    fn add_nodes(&mut self, nodes: &[TreeNode]) {
        let mut ids: Vec<u32> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let callee = ids.get(node.callee as usize).copied().unwrap_or(NONE);
            if node.depth > self.depth {
                self.count(callee, Sums { cut: node.sums.all, ..node.sums });
                ids.push(callee);
            } else {
                let id = self.node(callee, node.function, node.depth);
                self.count(id, node.sums);
                ids.push(id);
            }
        }
    }

    fn count(&mut self, id: u32, more: Sums) {
        if let Some(TreeNode { sums, .. }) = self.nodes.get_mut(id as usize) {
            *sums = Sums { all: sums.all.plus(more.all), cut: sums.cut.plus(more.cut) };
        }
    }

    fn node(&mut self, callee: u32, function: FunctionKey, depth: u32) -> u32 {
        let nodes = &mut self.nodes;
        let is_same =
            |&id: &u32| nodes.get(id as usize).is_some_and(|node| (node.callee, node.function) == (callee, function));
        let hash = hash(callee, function);
        if let Some(&id) = self.index.find(hash, is_same) {
            return id;
        }
        let id = nodes.len() as u32;
        nodes.push(TreeNode { callee, function, depth, sums: Sums::default() });
        let rehash = |&id: &u32| nodes.get(id as usize).map_or(0, |node| self::hash(node.callee, node.function));
        self.index.insert_unique(hash, id, rehash);
        id
    }
}

fn hash(callee: u32, function: FunctionKey) -> u64 {
    fold(u64::from(callee).rotate_left(32), function.bits())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::ModuleId;

    /// What ran comes first.
    fn add(tree: &mut CallerTree, functions: &[u32], weight: u128) {
        tree.add(functions.iter().map(|function| FunctionKey::unread(ModuleId(*function))), Weight(weight));
    }

    /// Contexts, their weights, and what was cut.
    fn shown(tree: &CallerTree) -> Vec<(Vec<u32>, u128, u128)> {
        let of = |context: TreeContext| {
            let functions = context.functions.iter().map(|key| key.module().0).collect();
            (functions, context.instructions.0, context.cut.0)
        };
        let mut contexts: Vec<_> = tree.contexts().map(of).collect();
        contexts.sort();
        contexts
    }

    #[test]
    fn equal_contexts_add_up() {
        let mut tree = CallerTree::new(100, 10);
        add(&mut tree, &[3, 1, 0], 10);
        add(&mut tree, &[3, 2, 0], 5);
        add(&mut tree, &[3, 2], 2);
        add(&mut tree, &[3, 1, 0], 1);
        assert_eq!(shown(&tree), [(vec![3, 1, 0], 11, 0), (vec![3, 2], 2, 0), (vec![3, 2, 0], 5, 0)]);
    }

    #[test]
    fn outer_callers_are_cut_and_no_sum_of_a_function_changes() {
        let mut tree = CallerTree::new(100, 2);
        add(&mut tree, &[3, 1, 0], 10);
        add(&mut tree, &[3, 1], 1);
        assert_eq!(shown(&tree), [(vec![3, 1], 11, 10)]);
    }

    /// The sums by function that the bound must keep, and that it holds.
    #[test]
    fn nodes_are_bounded_whatever_the_order_and_division() {
        const MOST: usize = 60;
        let mut random = fastrand::Rng::with_seed(7);
        let contexts: Vec<Vec<u32>> =
            (0..400).map(|_| (0..random.usize(1..9)).map(|_| random.u32(0..4)).collect()).collect();
        let tree_of = |contexts: &mut dyn Iterator<Item = &Vec<u32>>| {
            let mut tree = CallerTree::new(MOST, 8);
            contexts.for_each(|context| add(&mut tree, context, 1 + context.len() as u128));
            assert!(tree.nodes.len() <= MOST, "{}", tree.nodes.len());
            tree
        };
        let whole = tree_of(&mut contexts.iter());
        // 4 + 16 nodes fit; the 64 of the third level, nearly all of which are there, do not.
        assert_eq!(whole.depth(), 2);
        let expected = shown(&whole);
        assert!(expected.iter().any(|(_, _, cut)| *cut > 0));
        for function in 0..4 {
            let of_function = contexts.iter().filter(|context| context[0] == function);
            let sum: u128 = of_function.map(|context| 1 + context.len() as u128).sum();
            assert_eq!(
                sum,
                expected.iter().filter(|(functions, ..)| functions[0] == function).map(|(_, sum, _)| sum).sum::<u128>()
            );
        }
        assert_eq!(shown(&tree_of(&mut contexts.iter().rev())), expected);
        for parts in [2, 3, 50] {
            let mut trees = (0..parts).map(|part| tree_of(&mut contexts.iter().skip(part).step_by(parts)));
            let mut sum = trees.next().unwrap();
            trees.for_each(|tree| sum.merge(&tree));
            assert_eq!(shown(&sum), expected, "{parts} parts");
        }
    }

    #[test]
    fn more_functions_than_nodes_are_all_kept() {
        let mut tree = CallerTree::new(3, 8);
        (0..10).for_each(|function| add(&mut tree, &[function, 1, 2], 1));
        assert_eq!((tree.depth(), shown(&tree).len()), (1, 10));
    }
}
