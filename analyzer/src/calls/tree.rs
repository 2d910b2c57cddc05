//! Contexts added up: a tree that begins with the function that ran, and goes on with its callers.

use crate::calls::FunctionKey;
use crate::recording::Weight;
use crate::walks::{SuffixTree, TreeKey};

/// Contexts by function and callers; sums are executed instructions, in units of 2^-32. The same contexts give the same tree, in whatever order
/// and however divided among trees they were added.
#[derive(Debug)]
pub struct CallerTree(SuffixTree<FunctionKey, Weight>);

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

impl TreeKey for FunctionKey {
    fn bits(self) -> u64 {
        FunctionKey::bits(self)
    }
}

impl CallerTree {
    /// The most nodes of a tree, if there are not more functions; each takes some 64 bytes.
    pub const MOST_NODES: usize = 1 << 18;
    /// The most frames of a context.
    pub const MOST_FRAMES: u32 = 128;

    /// An empty tree of so many nodes at most, and frames in a context.
    pub fn new(most_nodes: usize, most_frames: u32) -> Self {
        CallerTree(SuffixTree::new(most_nodes, most_frames))
    }

    /// Adds what was executed in a function, which comes first, called by the next one, and so on.
    pub fn add(&mut self, functions: impl Iterator<Item = FunctionKey>, instructions: Weight) {
        self.0.add(functions, &instructions);
    }

    /// Adds everything of another tree.
    pub fn merge(&mut self, other: &CallerTree) {
        self.0.merge(&other.0);
    }

    /// Frames of a context that there was room for.
    pub fn depth(&self) -> u32 {
        self.0.depth()
    }

    /// All contexts in which something ran, in no particular order.
    pub fn contexts(&self) -> impl Iterator<Item = TreeContext> {
        self.0.sequences().map(|found| TreeContext { functions: found.keys, instructions: found.sum, cut: found.cut })
    }
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
            assert!(tree.0.len() <= MOST, "{}", tree.0.len());
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
