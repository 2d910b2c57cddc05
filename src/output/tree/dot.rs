//! A tree for Graphviz, as HBBP figure 1 shows one.

use std::io::Write;

use model::{Decision, Source, Tree};

use super::question;

/// Prints the tree in the DOT language.
pub fn dot(tree: &Tree, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "digraph tree {{")?;
    writeln!(out, "  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"sans-serif\"];")?;
    for (index, node) in tree.nodes().iter().enumerate() {
        let held =
            format!("gini = {:.3}\\nsamples = {}\\nweight = {:.1} %", node.gini, node.samples, 100.0 * node.weight);
        match node.decision {
            Decision::Split { left, right, .. } => {
                let question = question(node).unwrap_or_default();
                writeln!(out, "  n{index} [label=\"{question}\\n{held}\"];")?;
                writeln!(out, "  n{index} -> n{left} [label=\"yes\"];")?;
                writeln!(out, "  n{index} -> n{right} [label=\"no\"];")?;
            }
            Decision::Leaf(source) => {
                let color = match source {
                    Source::Ebs => "#fde3cf",
                    Source::Lbr => "#d5e5f7",
                };
                writeln!(out, "  n{index} [label=\"{source}\\n{held}\", fillcolor=\"{color}\"];")?;
            }
        }
    }
    writeln!(out, "}}")
}
