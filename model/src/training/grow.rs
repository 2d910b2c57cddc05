//! Growing trees.
//!
//! A tree of at most N leaves is grown best split first: of all leaves the one is split that lowers the impurity, weighted, the most.
//! `linfa-trees` grows depth first and without a limit of leaves, so it is asked for one node at a time, with that node's blocks
//! only, and its first split is taken. What was found for a node serves all trees with other limits of the same blocks.

use linfa::Dataset;
use linfa::traits::Fit;
use linfa_trees::{DecisionTree, SplitQuality};
use ndarray::{Array1, Array2, Axis};

use crate::training::LabelledBlock;
use crate::training::digits::{shortest_between, to_digits};
use crate::{Decision, FEATURES, Node, Source, Tree, Weighting};

/// What trees are grown from: all features of all blocks.
pub struct Ground<'a> {
    values: Array2<f64>,
    blocks: &'a [LabelledBlock],
    /// Executed instructions of the program of each block.
    programs: Vec<f64>,
}

impl<'a> Ground<'a> {
    /// `programs`: for each block the executed instructions of its program.
    pub fn new(blocks: &'a [LabelledBlock], programs: Vec<f64>) -> Self {
        let value = |(block, feature): (usize, usize)| (FEATURES[feature].get)(&blocks[block].features);
        Ground { values: Array2::from_shape_fn((blocks.len(), FEATURES.len()), value), blocks, programs }
    }
}

/// Grows trees from some of the blocks.
pub struct Grower<'a> {
    ground: &'a Ground<'a>,
    /// Of all blocks of the ground; their mean over those that are used is 1.
    weights: Vec<f64>,
    /// The least weight of a leaf.
    min_weight: f64,
    plants: Vec<Plant>,
}

/// A node that may become part of a tree.
struct Plant {
    rows: Vec<usize>,
    depth: usize,
    weight: f64,
    lbr_weight: f64,
    /// Found out when a tree first asks.
    split: Option<Option<Split>>,
}

#[derive(Clone, Copy)]
struct Split {
    feature: usize,
    threshold: f64,
    gain: f64,
    children: [usize; 2],
}

/// How far the first split of a node looks ahead. `linfa-trees` drops a split behind which all leaves say the same; one
/// whose use shows at the next split must stay.
const LEVELS: usize = 2;
/// Where both labels weigh the same, `linfa-trees` takes any. Branch stacks weigh this much more, and always win.
const TIE_BREAK: f64 = 1.0 + 1.0 / 8192.0;

impl<'a> Grower<'a> {
    /// For trees from these blocks (indexes, ascending); `min_weight` is the least part of their weight in a leaf.
    pub fn new(ground: &'a Ground<'a>, rows: Vec<usize>, weighting: Weighting, min_weight: f64) -> Self {
        let blocks = ground.blocks.iter().zip(&ground.programs);
        let mut weights: Vec<f64> = blocks.map(|(block, program)| block.training_weight(weighting, *program)).collect();
        let total: f64 = rows.iter().map(|&row| weights[row]).sum();
        if total > 0.0 {
            let scale = rows.len() as f64 / total;
            weights.iter_mut().for_each(|weight| *weight *= scale);
        }
        let min_weight = min_weight * rows.len() as f64;
        let mut grower = Grower { ground, weights, min_weight, plants: Vec::new() };
        grower.plant(rows, 0);
        grower
    }

    /// The tree within these limits.
    pub fn grow(&mut self, leaves: usize, depth: usize) -> Tree {
        let mut tips = vec![0];
        let mut split = Vec::new();
        while split.len() + 1 < leaves {
            let mut best: Option<(f64, usize)> = None;
            for (place, &tip) in tips.iter().enumerate() {
                if self.plants[tip].depth < depth
                    && let Some(found) = self.split(tip)
                    && best.is_none_or(|(gain, _)| found.gain > gain)
                {
                    best = Some((found.gain, place));
                }
            }
            let Some((_, place)) = best else { break };
            let tip = tips.remove(place);
            split.push(tip);
            tips.extend(self.split(tip).into_iter().flat_map(|found| found.children));
        }
        let mut nodes = Vec::new();
        self.emit(0, &split, &mut nodes);
        Tree::new(nodes).expect("grown nodes are a tree")
    }

    fn plant(&mut self, rows: Vec<usize>, depth: usize) -> usize {
        let weight = rows.iter().map(|&row| self.weights[row]).sum();
        let by_lbr = rows.iter().filter(|&&row| self.ground.blocks[row].label() == Source::Lbr);
        let lbr_weight = by_lbr.fold(0.0, |sum, &row| sum + self.weights[row]);
        self.plants.push(Plant { rows, depth, weight, lbr_weight, split: None });
        self.plants.len() - 1
    }

    fn split(&mut self, at: usize) -> Option<Split> {
        if let Some(known) = self.plants[at].split {
            return known;
        }
        let split = self.find_split(at);
        self.plants[at].split = Some(split);
        split
    }

    fn find_split(&mut self, at: usize) -> Option<Split> {
        let plant = &self.plants[at];
        if plant.rows.len() < 2 || plant.weight <= 0.0 || plant.gini() <= 0.0 {
            return None;
        }
        let (feature, threshold) = self.first_split(&plant.rows)?;
        let column = self.ground.values.column(feature);
        let (left, right): (Vec<usize>, Vec<usize>) = plant.rows.iter().partition(|&&row| column[row] <= threshold);
        let (impurity, depth) = (plant.weight * plant.gini(), plant.depth + 1);
        if left.is_empty() || right.is_empty() {
            return None; // The values are too close to each other for a number between them.
        }
        let highest = |rows: &[usize]| rows.iter().map(|&row| column[row]).fold(f64::NEG_INFINITY, f64::max);
        let lowest = |rows: &[usize]| rows.iter().map(|&row| column[row]).fold(f64::INFINITY, f64::min);
        let threshold = shortest_between(highest(&left), lowest(&right));
        let children = [left, right].map(|rows| self.plant(rows, depth));
        let left_over: f64 = children.iter().map(|&child| self.plants[child].weight * self.plants[child].gini()).sum();
        Some(Split { feature, threshold, gain: impurity - left_over, children })
    }

    /// The first split of the tree that `linfa-trees` makes of these blocks.
    fn first_split(&self, rows: &[usize]) -> Option<(usize, f64)> {
        let is_lbr = |&row: &usize| self.ground.blocks[row].label() == Source::Lbr;
        let weight = |row: &usize| (self.weights[*row] * if is_lbr(row) { TIE_BREAK } else { 1.0 }) as f32;
        let records = self.ground.values.select(Axis(0), rows);
        let labels: Array1<bool> = rows.iter().map(is_lbr).collect();
        let dataset = Dataset::new(records, labels).with_weights(rows.iter().map(weight).collect::<Array1<f32>>());
        let tree = DecisionTree::params()
            .split_quality(SplitQuality::Gini)
            .max_depth(Some(LEVELS))
            .min_weight_leaf(self.min_weight as f32)
            .fit(&dataset)
            .expect("the parameters are in range");
        let root = tree.root_node();
        let (feature, threshold, _) = root.split();
        (!root.is_leaf()).then_some((feature, threshold))
    }

    /// Adds the node and what is below it; a split that decides nothing becomes a leaf. Returns its source if it is a leaf.
    fn emit(&self, at: usize, split: &[usize], nodes: &mut Vec<Node>) -> Option<Source> {
        let plant = &self.plants[at];
        let place = nodes.len();
        let majority =
            if plant.lbr_weight * TIE_BREAK >= plant.weight - plant.lbr_weight { Source::Lbr } else { Source::Ebs };
        let (samples, weight) = (plant.rows.len() as u64, plant.weight / self.plants[0].weight);
        let weight = if weight.is_finite() { to_digits(weight, 6) } else { 0.0 };
        nodes.push(Node { decision: Decision::Leaf(majority), samples, weight, gini: to_digits(plant.gini(), 6) });
        let Some(Some(found)) = plant.split.filter(|_| split.contains(&at)) else { return Some(majority) };
        let [left, right] = found.children;
        let left_place = nodes.len();
        let left = self.emit(left, split, nodes);
        let right_place = nodes.len();
        let right = self.emit(right, split, nodes);
        if left.is_some() && left == right {
            nodes.truncate(place + 1);
            return left;
        }
        let Split { feature, threshold, .. } = found;
        nodes[place].decision = Decision::Split { feature, threshold, left: left_place, right: right_place };
        None
    }
}

impl Plant {
    fn gini(&self) -> f64 {
        let lbr = if self.weight > 0.0 { (self.lbr_weight / self.weight).clamp(0.0, 1.0) } else { 0.0 };
        2.0 * lbr * (1.0 - lbr)
    }
}
