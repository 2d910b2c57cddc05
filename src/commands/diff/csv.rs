//! The comparison as one table: overlaps, functions, blocks, lines, kinds of instructions. Shares are fractions: 0.05 is 5 %.

use std::io::Write;

use analyzer::flow::Moved;
use anyhow::Context;

use super::Report;

/// Prints the whole comparison.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let comparison = report.comparison;
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record([
        "kind",
        "name",
        "module",
        "start",
        "packing",
        "before",
        "after",
        "change",
        "overlap",
        "change_error",
        "within_error",
    ])?;
    let overlaps = [
        ("blocks", comparison.block_overlap),
        ("functions", Some(comparison.function_overlap)),
        ("lines", comparison.line_overlap),
    ];
    for (name, overlap) in overlaps {
        let overlap = overlap.map_or(String::new(), |overlap| overlap.to_string());
        csv.write_record(["overlap", name, "", "", "", "", "", "", &overlap, "", ""])?;
    }
    for moved in comparison.functions.iter().take(report.top) {
        let name = moved.what.function.as_deref().unwrap_or_default();
        let [before, after, change] = numbers(moved);
        let [error, within] = errors(moved, report.error_of_function(&moved.what));
        let module = &moved.what.module;
        csv.write_record(["function", name, module, "", "", &before, &after, &change, "", &error, &within])?;
    }
    for moved in comparison.blocks.iter().take(report.top) {
        let function = &moved.what.function;
        let name = function.function.as_deref().unwrap_or_default();
        let [before, after, change] = numbers(moved);
        let start = moved.what.start.to_string();
        let [error, within] = errors(moved, report.error_of_block(&moved.what));
        let module = &function.module;
        csv.write_record(["block", name, module, &start, "", &before, &after, &change, "", &error, &within])?;
    }
    for moved in comparison.lines.iter().take(report.top) {
        let [before, after, change] = numbers(moved);
        let line = moved.what.line.to_string();
        let function = &moved.what.function;
        csv.write_record(["line", function, "", &line, "", &before, &after, &change, "", "", ""])?;
    }
    for moved in &comparison.mix {
        let [before, after, change] = numbers(moved);
        let [error, within] = errors(moved, report.error_of_kind(&moved.what));
        let (isa, packing) = (moved.what.isa, moved.what.packing);
        csv.write_record(["isa", isa, "", "", packing, &before, &after, &change, "", &error, &within])?;
    }
    csv.flush().context("cannot write the table")
}

fn errors<N>(moved: &Moved<N>, error: Option<f64>) -> [String; 2] {
    let within = moved.is_within(error).map(|within| within.to_string());
    [error.map(|error| error.to_string()), within].map(Option::unwrap_or_default)
}

fn numbers<N>(moved: &Moved<N>) -> [String; 3] {
    [moved.shares[0], moved.shares[1], moved.change()].map(|share| share.to_string())
}
