//! Trees as they stand in files.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use serde::{Deserialize, Serialize};

use crate::{Decision, FEATURES, Node, Source, Tree, TreeError, feature_index};

/// A node as it stands in a file: a leaf has `source`, a split the rest.
#[derive(Serialize, Deserialize)]
pub struct NodeRecord {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    feature: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    threshold: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    right: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<Source>,
    samples: u64,
    weight: f64,
    gini: f64,
}

/// A tree as it stands in a file.
#[derive(Serialize, Deserialize)]
pub struct TreeRecord {
    /// Names of features; splits have indexes in this list.
    pub features: Vec<String>,
    /// The nodes, the root first.
    pub nodes: Vec<NodeRecord>,
}

impl From<&Tree> for TreeRecord {
    fn from(tree: &Tree) -> Self {
        let features = tree.features();
        let place = |feature: usize| features.iter().position(|&listed| listed == feature);
        let nodes = tree.nodes().iter().map(|node| {
            let Node { decision, samples, weight, gini } = *node;
            let leaf = NodeRecord {
                feature: None,
                threshold: None,
                left: None,
                right: None,
                source: None,
                samples,
                weight,
                gini,
            };
            match decision {
                Decision::Leaf(source) => NodeRecord { source: Some(source), ..leaf },
                Decision::Split { feature, threshold, left, right } => NodeRecord {
                    feature: place(feature),
                    threshold: Some(threshold),
                    left: Some(left),
                    right: Some(right),
                    ..leaf
                },
            }
        });
        TreeRecord {
            nodes: nodes.collect(),
            features: features.iter().filter_map(|&feature| Some(FEATURES.get(feature)?.name.to_owned())).collect(),
        }
    }
}

impl TryFrom<TreeRecord> for Tree {
    type Error = TreeError;

    fn try_from(record: TreeRecord) -> Result<Self, TreeError> {
        let known = |name: &String| feature_index(name).ok_or_else(|| TreeError::UnknownFeature { name: name.clone() });
        let features = record.features.iter().map(known).collect::<Result<Vec<_>, _>>()?;
        let node = |(index, node): (usize, NodeRecord)| {
            let NodeRecord { feature, threshold, left, right, source, samples, weight, gini } = node;
            let decision = match (source, feature, threshold, left, right) {
                (Some(source), None, None, None, None) => Decision::Leaf(source),
                (None, Some(feature), Some(threshold), Some(left), Some(right)) => {
                    let listed = features.len();
                    let feature =
                        *features.get(feature).ok_or(TreeError::FeatureIndex { node: index, feature, listed })?;
                    Decision::Split { feature, threshold, left, right }
                }
                _ => return Err(TreeError::Neither(index)),
            };
            Ok(Node { decision, samples, weight, gini })
        };
        Tree::new(record.nodes.into_iter().enumerate().map(node).collect::<Result<Vec<_>, _>>()?)
    }
}
