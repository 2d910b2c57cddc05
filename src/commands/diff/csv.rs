//! The comparison as one table: overlaps, functions, blocks, lines, kinds of instructions. Shares are fractions: 0.05 is 5 %.

use std::io::Write;

use analyzer::flow::Moved;
use anyhow::Context;
use reports::diff::Noise;

use super::{Report, pivot};

/// Prints the whole comparison.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    if let Some(pivot) = report.pivot {
        return pivot::print_csv(pivot, report, out);
    }
    let comparison = report.changes.comparison;
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
        "finding",
        "names_before",
        "names_after",
    ])?;
    let overlaps = [
        ("blocks", comparison.block_overlap),
        ("functions", Some(comparison.function_overlap)),
        ("lines", comparison.line_overlap),
    ];
    for (name, overlap) in overlaps {
        let overlap = overlap.map_or(String::new(), |overlap| overlap.to_string());
        csv.write_record(["overlap", name, "", "", "", "", "", "", &overlap, "", "", "", "", ""])?;
    }
    for moved in comparison.functions.iter().take(report.top) {
        let name = moved.what.function.as_deref().unwrap_or_default();
        let [before, after, change] = numbers(moved);
        let [error, within, finding] = errors(report.changes.of_function(moved));
        let module = &moved.what.module;
        let joined = comparison.joined.get(&moved.what);
        let [names_before, names_after] =
            [0, 1].map(|side| joined.map_or(String::new(), |names| names[side].join(" ")));
        let cells = ["function", name, module, "", "", &before, &after, &change, "", &error, &within, &finding];
        csv.write_record(cells.into_iter().chain([names_before.as_str(), names_after.as_str()]))?;
    }
    for moved in comparison.blocks.iter().take(report.top) {
        let function = &moved.what.function;
        let name = function.function.as_deref().unwrap_or_default();
        let [before, after, change] = numbers(moved);
        let start = moved.what.start.to_string();
        let [error, within, finding] = errors(report.changes.of_block(moved));
        let module = &function.module;
        let cells = ["block", name, module, &start, "", &before, &after, &change, "", &error, &within, &finding];
        csv.write_record(cells.into_iter().chain(["", ""]))?;
    }
    for moved in comparison.lines.iter().take(report.top) {
        let [before, after, change] = numbers(moved);
        let line = moved.what.line.to_string();
        let function = &moved.what.function;
        let [error, within, finding] = errors(report.changes.of_line(moved));
        let cells = ["line", function, "", &line, "", &before, &after, &change, "", &error, &within, &finding];
        csv.write_record(cells.into_iter().chain(["", ""]))?;
    }
    for moved in &comparison.mix {
        let [before, after, change] = numbers(moved);
        let [error, within, finding] = errors(report.changes.of_kind(moved));
        let (isa, packing) = (moved.what.isa, moved.what.packing);
        let cells = ["isa", isa, "", "", packing, &before, &after, &change, "", &error, &within, &finding];
        csv.write_record(cells.into_iter().chain(["", ""]))?;
    }
    csv.flush().context("cannot write the table")
}

fn errors(noise: Noise) -> [String; 3] {
    let text = |is: Option<bool>| is.map_or(String::new(), |is| is.to_string());
    let error = noise.error.map_or(String::new(), |error| error.to_string());
    [error, text(noise.is_within), text(noise.is_finding)]
}

fn numbers<N>(moved: &Moved<N>) -> [String; 3] {
    [moved.shares[0], moved.shares[1], moved.change()].map(|share| share.to_string())
}
