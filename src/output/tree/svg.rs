//! A tree as a picture.

use std::io::Write;

use model::{Decision, Source, Tree};

use super::question;
use crate::output::escaped;

const BOX_WIDTH: f64 = 190.0;
const BOX_HEIGHT: f64 = 78.0;
const GAP: f64 = 24.0;
const LEVEL: f64 = BOX_HEIGHT + 56.0;
const MARGIN: f64 = 16.0;

/// Draws the tree: leaves side by side, every other node above the middle of its children.
pub fn svg(tree: &Tree, out: &mut dyn Write) -> std::io::Result<()> {
    let places = places(tree);
    let width = 2.0 * MARGIN + tree.leaves() as f64 * (BOX_WIDTH + GAP) - GAP;
    let height = MARGIN + BOX_HEIGHT + places.iter().map(|place| place.1).fold(0.0, f64::max);
    writeln!(
        out,
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13" text-anchor="middle">
<rect width="{width}" height="{height}" fill="#ffffff"/>"##
    )?;
    for (index, node) in tree.nodes().iter().enumerate() {
        let Decision::Split { left, right, .. } = node.decision else { continue };
        for (child, answer) in [(left, "yes"), (right, "no")] {
            line(out, places[index], places[child], answer)?;
        }
    }
    for (index, node) in tree.nodes().iter().enumerate() {
        let (title, fill, stroke) = match node.decision {
            Decision::Split { .. } => (question(node).unwrap_or_default(), "#ffffff", "#5f6b7a"),
            Decision::Leaf(Source::Ebs) => ("ebs".into(), "#fde3cf", "#c8682a"),
            Decision::Leaf(Source::Lbr) => ("lbr".into(), "#d5e5f7", "#2f6db3"),
        };
        let (x, y) = places[index];
        let left = x - BOX_WIDTH / 2.0;
        writeln!(
            out,
            r#"<rect x="{left}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6" fill="{fill}" stroke="{stroke}"/>"#
        )?;
        let title = escaped(&title);
        let lines = [
            (20.0, format!(r#"<tspan font-weight="bold">{title}</tspan>"#)),
            (38.0, format!("gini = {:.3}", node.gini)),
            (54.0, format!("samples = {}", node.samples)),
            (70.0, format!("weight = {:.1} %", 100.0 * node.weight)),
        ];
        for (below, text) in lines {
            writeln!(out, r#"<text x="{x}" y="{}">{text}</text>"#, y + below)?;
        }
    }
    writeln!(out, "</svg>")
}

/// The middle of the upper edge of each node's box.
fn places(tree: &Tree) -> Vec<(f64, f64)> {
    let nodes = tree.nodes();
    let mut places = vec![(0.0, MARGIN); nodes.len()];
    let mut leaves = 0;
    let mut stack = vec![0];
    // From left to right, so that leaves come in order.
    while let Some(index) = stack.pop() {
        match nodes[index].decision {
            Decision::Split { left, right, .. } => {
                [left, right].into_iter().for_each(|child| places[child].1 = places[index].1 + LEVEL);
                stack.extend([right, left]);
            }
            Decision::Leaf(_) => {
                places[index].0 = MARGIN + BOX_WIDTH / 2.0 + f64::from(leaves) * (BOX_WIDTH + GAP);
                leaves += 1;
            }
        }
    }
    // Children stand behind their parents in the list.
    for (index, node) in nodes.iter().enumerate().rev() {
        if let Decision::Split { left, right, .. } = node.decision {
            places[index].0 = (places[left].0 + places[right].0) / 2.0;
        }
    }
    places
}

fn line(out: &mut dyn Write, from: (f64, f64), to: (f64, f64), answer: &str) -> std::io::Result<()> {
    let bottom = from.1 + BOX_HEIGHT;
    let middle = (bottom + to.1) / 2.0;
    let (x, y) = (from.0, bottom);
    writeln!(
        out,
        r##"<path d="M{x} {y} C{x} {middle} {} {middle} {} {}" fill="none" stroke="#8a94a3"/>"##,
        to.0, to.0, to.1
    )?;
    let (text_x, text_y) = ((from.0 + to.0) / 2.0, middle - 6.0);
    writeln!(out, r##"<text x="{text_x}" y="{text_y}" fill="#5f6b7a" font-size="12">{answer}</text>"##)
}
