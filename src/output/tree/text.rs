//! A tree as indented lines.

use std::io::Write;

use model::{Decision, FEATURES, Tree};

use super::question;
use crate::output::{Align, Table, count, share};

/// Prints the nodes, each with what it held of the training blocks, and how much each feature counts.
pub fn tree(tree: &Tree, out: &mut dyn Write, width: Option<usize>) -> std::io::Result<()> {
    let titles = [("tree", Align::Left), ("blocks", Align::Right), ("weight", Align::Right), ("gini", Align::Right)];
    let mut table = Table::new(titles.map(|(title, align)| (title.to_string(), align)).to_vec());
    let mut stack = vec![(0, 0, "")];
    while let Some((index, depth, answer)) = stack.pop() {
        let node = &tree.nodes()[index];
        let text = match node.decision {
            Decision::Split { left, right, .. } => {
                stack.extend([(right, depth + 1, "no: "), (left, depth + 1, "yes: ")]);
                format!("{}?", question(node).unwrap_or_default())
            }
            Decision::Leaf(source) => source.to_string(),
        };
        let indent = "  ".repeat(depth);
        table.row(vec![
            format!("{indent}{answer}{text}"),
            count(node.samples as f64),
            share(node.weight, 1.0),
            format!("{:.3}", node.gini),
        ]);
    }
    table.print(out, width)?;
    importances(tree, out, width)
}

fn importances(tree: &Tree, out: &mut dyn Write, width: Option<usize>) -> std::io::Result<()> {
    let importances = tree.importances();
    if importances.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let titles = [("feature", Align::Left), ("importance", Align::Right), ("meaning", Align::Left)];
    let mut table = Table::new(titles.map(|(title, align)| (title.to_string(), align)).to_vec());
    for (feature, importance) in importances {
        let feature = &FEATURES[feature];
        table.row(vec![feature.name.into(), format!("{importance:.3}"), feature.meaning.into()]);
    }
    table.print(out, width)
}
