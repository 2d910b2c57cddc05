//! Decision trees.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use crate::{FEATURES, Features, Source};

/// A binary decision tree over features of a block, with what each of its nodes held of the training blocks (as HBBP figure 1 shows it).
///
/// Node 0 is the root; children come after their parents.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    nodes: Vec<Node>,
}

/// A node, with what came to it of the blocks the tree was made from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node {
    /// Where blocks go from here, or what is chosen for them.
    pub decision: Decision,
    /// How many blocks came here.
    pub samples: u64,
    /// Their part of the weight of all blocks, 0 to 1.
    pub weight: f64,
    /// Gini impurity of their labels, by weight: 0 (all the same) to 0.5 (half and half).
    pub gini: f64,
}

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision {
    /// Goes left where the feature is at most the threshold, else right.
    Split {
        /// The feature that decides, as an index in [`FEATURES`].
        feature: usize,
        /// The largest value that goes left.
        threshold: f64,
        /// Index of the left child.
        left: usize,
        /// Index of the right child.
        right: usize,
    },
    /// Chooses this source for the blocks that come here.
    Leaf(Source),
}

/// Why nodes are no tree.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TreeError {
    /// There is nothing to decide with.
    #[error("the tree has no nodes")]
    Empty,
    /// More than a tree for people to read has.
    #[error("the tree has {0} nodes, of at most {MOST_NODES}")]
    TooLarge(usize),
    /// Longer ways than a tree for people to read has.
    #[error("node {0} is more than {MOST_DEPTH} splits from the root")]
    TooDeep(usize),
    /// A child that is not there, or before its parent, as in a cycle.
    #[error("node {node}: child {child} is not one of the nodes after it, {} to {}", node + 1, nodes - 1)]
    Child {
        /// The node that is the parent.
        node: usize,
        /// What it names as its child.
        child: usize,
        /// How many nodes there are.
        nodes: usize,
    },
    /// A node that is reached in two ways or in none.
    #[error("node {0} has {1} parents instead of one")]
    Parents(usize, usize),
    /// A number out of its range.
    #[error("node {node}: {what} is {value}, which is not {expected}")]
    Number {
        /// The node that has the number.
        node: usize,
        /// What the number is of.
        what: &'static str,
        /// The value that was found.
        value: f64,
        /// The values that are possible.
        expected: &'static str,
    },
    /// A feature that this program does not know.
    #[error("no feature is called {name:?}; there are {}", feature_names())]
    UnknownFeature {
        /// What it is called.
        name: String,
    },
    /// A node with neither a source nor a complete split, or with both.
    #[error("node {0} is neither a leaf (with `source`) nor a split (with `feature`, `threshold`, `left` and `right`)")]
    Neither(usize),
    /// A split by a feature that is not listed.
    #[error("node {node}: feature {feature} is not in the list of {listed}")]
    FeatureIndex {
        /// The node that it is in.
        node: usize,
        /// The index it has.
        feature: usize,
        /// How long the list is.
        listed: usize,
    },
}

fn feature_names() -> String {
    FEATURES.iter().map(|feature| feature.name).collect::<Vec<_>>().join(", ")
}

/// The most nodes a tree has.
pub const MOST_NODES: usize = 4096;
/// The most splits between the root and a leaf.
pub const MOST_DEPTH: usize = 32;

impl Tree {
    /// Checks that the nodes are a tree.
    ///
    /// # Errors
    /// The first rule that is broken, and where.
    pub fn new(nodes: Vec<Node>) -> Result<Self, TreeError> {
        if nodes.is_empty() {
            return Err(TreeError::Empty);
        }
        if nodes.len() > MOST_NODES {
            return Err(TreeError::TooLarge(nodes.len()));
        }
        // Children come after their parents, so each node is visited after its parent, and there is no cycle.
        let mut reached = vec![Reached::default(); nodes.len()];
        let mut rest = reached.as_mut_slice();
        for (index, node) in nodes.iter().enumerate() {
            node.check(index)?;
            let Some((this, after)) = rest.split_first_mut() else { break };
            if this.depth > MOST_DEPTH {
                return Err(TreeError::TooDeep(index));
            }
            if let Decision::Split { left, right, .. } = node.decision {
                for child in [left, right] {
                    let place = child.checked_sub(index + 1).and_then(|distance| after.get_mut(distance));
                    let place = place.ok_or(TreeError::Child { node: index, child, nodes: nodes.len() })?;
                    place.parents += 1;
                    place.depth = this.depth + 1;
                }
            }
            rest = after;
        }
        match reached.iter().enumerate().skip(1).find(|(_, node)| node.parents != 1) {
            Some((index, node)) => Err(TreeError::Parents(index, node.parents)),
            None => Ok(Tree { nodes }),
        }
    }

    /// The nodes; the first is the root.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The source that the tree names for a block.
    pub fn choose(&self, block: &Features) -> Source {
        let mut at = 0;
        loop {
            match self.node(at).decision {
                Decision::Leaf(source) => return source,
                Decision::Split { feature, threshold, left, right } => {
                    let value = FEATURES.get(feature).map_or(f64::NAN, |feature| (feature.get)(block));
                    at = if value <= threshold { left } else { right };
                }
            }
        }
    }

    #[expect(clippy::indexing_slicing, reason = "`new` checks that there is a root, and that all children are nodes")]
    fn node(&self, index: usize) -> &Node {
        &self.nodes[index]
    }

    /// The features it splits by, as indexes in [`FEATURES`], ascending.
    pub fn features(&self) -> Vec<usize> {
        let mut features: Vec<usize> = self.nodes.iter().filter_map(|node| node.decision.feature()).collect();
        features.sort_unstable();
        features.dedup();
        features
    }

    /// How many leaves it has.
    pub fn leaves(&self) -> usize {
        self.nodes.iter().filter(|node| matches!(node.decision, Decision::Leaf(_))).count()
    }

    /// The source it names for every block, if it never names the other.
    pub fn only(&self) -> Option<Source> {
        match self.node(0).decision {
            Decision::Leaf(source) => Some(source),
            Decision::Split { .. } => None,
        }
    }

    /// How much each of its features lowers the Gini impurity, weighted, of 1 in all: Scikit's "feature importance", which HBBP section
    /// IV.B names. Largest first; indexes are those of [`FEATURES`].
    pub fn importances(&self) -> Vec<(usize, f64)> {
        let impurity = |index: usize| self.node(index).weight * self.node(index).gini;
        let gains: Vec<(usize, f64)> = self
            .nodes
            .iter()
            .enumerate()
            .filter_map(|(index, node)| match node.decision {
                Decision::Split { feature, left, right, .. } => {
                    Some((feature, (impurity(index) - impurity(left) - impurity(right)).max(0.0)))
                }
                Decision::Leaf(_) => None,
            })
            .collect();
        let total: f64 = gains.iter().map(|(_, gain)| gain).sum();
        let of = |feature: usize| gains.iter().filter(|gain| gain.0 == feature).map(|(_, gain)| gain).sum::<f64>();
        let share = |feature| if total > 0.0 { of(feature) / total } else { 0.0 };
        let mut importances: Vec<(usize, f64)> =
            self.features().into_iter().map(|feature| (feature, share(feature))).collect();
        importances.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        importances
    }
}

/// How [`Tree::new`] came to a node.
#[derive(Clone, Default)]
struct Reached {
    parents: usize,
    depth: usize,
}

impl Decision {
    fn feature(self) -> Option<usize> {
        match self {
            Decision::Split { feature, .. } => Some(feature),
            Decision::Leaf(_) => None,
        }
    }
}

impl Node {
    fn check(&self, node: usize) -> Result<(), TreeError> {
        let check = |what, value: f64, valid: bool, expected| {
            if valid { Ok(()) } else { Err(TreeError::Number { node, what, value, expected }) }
        };
        check("weight", self.weight, (0.0..=1.0 + 1e-9).contains(&self.weight), "between 0 and 1")?;
        check("gini", self.gini, (0.0..=0.5 + 1e-9).contains(&self.gini), "between 0 and 0.5")?;
        if let Decision::Split { threshold, feature, .. } = self.decision {
            check("threshold", threshold, threshold.is_finite(), "finite")?;
            if feature >= FEATURES.len() {
                return Err(TreeError::FeatureIndex { node, feature, listed: FEATURES.len() });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(left: usize, right: usize, weight: f64, gini: f64) -> Node {
        Node { decision: Decision::Split { feature: 0, threshold: 18.5, left, right }, samples: 9, weight, gini }
    }

    fn leaf(source: Source) -> Node {
        Node { decision: Decision::Leaf(source), samples: 1, weight: 0.5, gini: 0.0 }
    }

    #[test]
    fn what_is_at_most_the_threshold_goes_left() {
        let tree = Tree::new(vec![split(1, 2, 1.0, 0.5), leaf(Source::Lbr), leaf(Source::Ebs)]).unwrap();
        let choose = |instructions| tree.choose(&Features { instructions, ..Features::default() });
        assert_eq!([choose(18), choose(19)], [Source::Lbr, Source::Ebs]);
        assert_eq!((tree.leaves(), tree.only(), tree.features()), (2, None, vec![0]));
        assert_eq!(tree.importances(), [(0, 1.0)]);
    }

    #[test]
    fn nodes_that_are_no_tree_are_refused() {
        let (a, b) = (leaf(Source::Lbr), leaf(Source::Ebs));
        let check = |nodes: Vec<Node>, expected: &str| assert_eq!(Tree::new(nodes).unwrap_err().to_string(), expected);
        check(vec![], "the tree has no nodes");
        check(vec![split(0, 1, 1.0, 0.5), a], "node 0: child 0 is not one of the nodes after it, 1 to 1");
        check(
            vec![split(1, 2, 1.0, 0.5), split(0, 2, 0.5, 0.5), a],
            "node 1: child 0 is not one of the nodes after it, 2 to 2",
        );
        check(vec![split(1, 3, 1.0, 0.5), a, b], "node 0: child 3 is not one of the nodes after it, 1 to 2");
        check(vec![split(1, 1, 1.0, 0.5), a], "node 1 has 2 parents instead of one");
        check(vec![a, b], "node 1 has 0 parents instead of one");
        check(vec![split(1, 2, 1.0, 0.7), a, b], "node 0: gini is 0.7, which is not between 0 and 0.5");
        check(vec![split(1, 2, f64::NAN, 0.5), a, b], "node 0: weight is NaN, which is not between 0 and 1");
        check(vec![a; MOST_NODES + 1], "the tree has 4097 nodes, of at most 4096");
        let link = |index: usize| {
            if index.is_multiple_of(2) && index < 200 { split(index + 1, index + 2, 1.0, 0.5) } else { a }
        };
        let chain: Vec<Node> = (0..=200).map(link).collect();
        check(chain, "node 65 is more than 32 splits from the root");
    }
}
