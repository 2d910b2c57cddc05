//! Drawings of decision trees.

#[cfg(feature = "training")]
mod dot;
#[cfg(feature = "training")]
mod svg;
mod text;

#[cfg(feature = "training")]
pub use dot::dot;
#[cfg(feature = "training")]
pub use svg::svg;
pub use text::tree;

use model::{Decision, FEATURES, Node};

/// What a node asks: `instructions <= 18`; `None` of a leaf.
fn question(node: &Node) -> Option<String> {
    match node.decision {
        Decision::Split { feature, threshold, .. } => Some(format!("{} <= {threshold}", FEATURES[feature].name)),
        Decision::Leaf(_) => None,
    }
}
