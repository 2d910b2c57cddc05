//! The comparison as one table: overlaps, functions, blocks, lines, kinds of instructions. Shares are fractions: 0.05 is 5 %.

use std::io::Write;

use analyzer::flow::Moved;
use anyhow::Context;

use super::Report;

/// Prints the whole comparison.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let comparison = report.comparison;
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(["kind", "name", "module", "start", "packing", "before", "after", "change", "overlap"])?;
    let overlaps = [
        ("blocks", comparison.block_overlap),
        ("functions", Some(comparison.function_overlap)),
        ("lines", comparison.line_overlap),
    ];
    for (name, overlap) in overlaps {
        let overlap = overlap.map_or(String::new(), |overlap| overlap.to_string());
        csv.write_record(["overlap", name, "", "", "", "", "", "", &overlap])?;
    }
    for moved in comparison.functions.iter().take(report.top) {
        let name = moved.what.function.as_deref().unwrap_or_default();
        let [before, after, change] = numbers(moved);
        csv.write_record(["function", name, &moved.what.module, "", "", &before, &after, &change, ""])?;
    }
    for moved in comparison.blocks.iter().take(report.top) {
        let function = &moved.what.function;
        let name = function.function.as_deref().unwrap_or_default();
        let [before, after, change] = numbers(moved);
        let start = moved.what.start.to_string();
        csv.write_record(["block", name, &function.module, &start, "", &before, &after, &change, ""])?;
    }
    for moved in comparison.lines.iter().take(report.top) {
        let [before, after, change] = numbers(moved);
        let line = moved.what.line.to_string();
        csv.write_record(["line", &moved.what.function, "", &line, "", &before, &after, &change, ""])?;
    }
    for moved in &comparison.mix {
        let [before, after, change] = numbers(moved);
        csv.write_record(["isa", moved.what.isa, "", "", moved.what.packing, &before, &after, &change, ""])?;
    }
    csv.flush().context("cannot write the table")
}

fn numbers<N>(moved: &Moved<N>) -> [String; 3] {
    [moved.shares[0], moved.shares[1], moved.change()].map(|share| share.to_string())
}
