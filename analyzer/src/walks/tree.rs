//! What was seen, by what came before it, added up: a tree that begins with what was seen last.
//!
//! ```text
//! main -> f -> h  10        h 0 -- f 10 -- main 0      a node: a step, what came after it on the way to what was seen;
//! main -> g -> h   5          \\-- g  5                 its sum: of that whose oldest known step it is
//! g -> h           2                      \\- main 5
//! f                1        f 1
//! ```
//!
//! (`g -> h`, before which nothing is known, has 2, and `main -> g -> h` 5.) That way round what is cut off for want of room are the oldest
//! steps, and the sums of the newest stay.

use hashbrown::HashTable;

use crate::recording::Weight;
use crate::walks::fold;

/// A step of a tree: a function that called the next one, a branch that led to it.
pub trait TreeKey: Copy + Eq {
    /// All of it in one number.
    fn bits(self) -> u64;
}

/// What is added up.
pub trait TreeSum: Clone + Default {
    /// Adds another. Sums must not depend on their order.
    fn add(&mut self, other: &Self);
    /// Nothing was added.
    fn is_nothing(&self) -> bool;
}

impl TreeSum for Weight {
    fn add(&mut self, other: &Self) {
        *self = self.plus(*other);
    }

    fn is_nothing(&self) -> bool {
        *self == Weight::default()
    }
}

/// Sums by sequences of steps. The same ones give the same tree, in whatever order and however divided among trees they were added.
#[derive(Clone, Debug)]
pub struct SuffixTree<K, S> {
    nodes: Vec<TreeNode<K, S>>,
    index: HashTable<u32>,
    /// Steps of a sequence that are kept, the newest ones.
    depth: u32,
    most: usize,
}

/// A step of sequences.
#[derive(Clone, Debug)]
struct TreeNode<K, S> {
    /// What came after it; [`NONE`] if it is the newest.
    after: u32,
    key: K,
    /// Steps from it to the newest one, both included.
    depth: u32,
    /// Of the sequences whose oldest step it is.
    sum: S,
    /// Of it, where there were older steps.
    cut: S,
}

/// A sequence of a finished [`SuffixTree`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeSequence<K, S> {
    /// The newest step, the one before it, and so on.
    pub keys: Vec<K>,
    /// What was added up.
    pub sum: S,
    /// Of it, what had older steps that are known and were left out.
    pub cut: S,
}

const NONE: u32 = u32::MAX;

impl<K: TreeKey, S: TreeSum> SuffixTree<K, S> {
    /// An empty tree of so many nodes at most, if there are not more different newest steps, and steps in a sequence.
    pub fn new(most_nodes: usize, most_steps: u32) -> Self {
        SuffixTree { nodes: Vec::new(), index: HashTable::new(), depth: most_steps.max(1), most: most_nodes }
    }

    /// Adds to the sum of a sequence; its newest step comes first.
    pub fn add(&mut self, keys: impl Iterator<Item = K>, more: &S) {
        let mut keys = keys;
        let (mut node, mut depth) = (NONE, 0);
        for key in keys.by_ref().take(self.depth as usize) {
            depth += 1;
            node = self.node(node, key, depth);
        }
        let cut = if keys.next().is_some() { more.clone() } else { S::default() };
        self.count(node, more, &cut);
        self.keep_bound();
    }

    /// Adds everything of another tree.
    pub fn merge(&mut self, other: &Self) {
        if other.depth < self.depth {
            self.keep_depth(other.depth);
        }
        self.add_nodes(&other.nodes);
        self.keep_bound();
    }

    /// Steps of a sequence that there was room for.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Nodes that there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// All sequences that have a sum, in no particular order.
    pub fn sequences(&self) -> impl Iterator<Item = TreeSequence<K, S>> {
        let seen = self.nodes.iter().filter(|node| !node.sum.is_nothing());
        seen.map(|node| {
            let newer = std::iter::successors(Some(node), |node| self.nodes.get(node.after as usize));
            let mut keys: Vec<K> = newer.map(|node| node.key).collect();
            keys.reverse();
            TreeSequence { keys, sum: node.sum.clone(), cut: node.cut.clone() }
        })
    }

    /// Takes off the oldest steps until there is room. How many stay follows from all sequences together: those of a part of them can have
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

    /// Adds the nodes of a tree: each comes after the one that is newer.
    fn add_nodes(&mut self, nodes: &[TreeNode<K, S>]) {
        let mut ids: Vec<u32> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let after = ids.get(node.after as usize).copied().unwrap_or(NONE);
            if node.depth > self.depth {
                self.count(after, &node.sum, &node.sum);
                ids.push(after);
            } else {
                let id = self.node(after, node.key, node.depth);
                self.count(id, &node.sum, &node.cut);
                ids.push(id);
            }
        }
    }

    fn count(&mut self, id: u32, more: &S, cut: &S) {
        if let Some(node) = self.nodes.get_mut(id as usize) {
            node.sum.add(more);
            node.cut.add(cut);
        }
    }

    fn node(&mut self, after: u32, key: K, depth: u32) -> u32 {
        let nodes = &mut self.nodes;
        let is_same = |&id: &u32| nodes.get(id as usize).is_some_and(|node| (node.after, node.key) == (after, key));
        let hash = hash(after, key);
        if let Some(&id) = self.index.find(hash, is_same) {
            return id;
        }
        let id = nodes.len() as u32;
        nodes.push(TreeNode { after, key, depth, sum: S::default(), cut: S::default() });
        let rehash = |&id: &u32| nodes.get(id as usize).map_or(0, |node| self::hash(node.after, node.key));
        self.index.insert_unique(hash, id, rehash);
        id
    }
}

fn hash(after: u32, key: impl TreeKey) -> u64 {
    fold(u64::from(after).rotate_left(32), key.bits())
}
