//! The comparison for people.

use std::collections::BTreeMap;
use std::io::Write;

use analyzer::flow::{FunctionName, Moved};

use super::Report;
use crate::output::{Align, Table, count, print_line, share};

/// Prints the whole comparison.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    head(report, out)?;
    let comparison = report.comparison;
    let mut functions = Table::new(function_columns());
    for moved in comparison.functions.iter().take(report.top) {
        functions.row(function_cells(report, moved));
    }
    functions.print(out, report.width)?;
    rest(comparison.functions.len(), report.top, "functions", out)?;
    if !comparison.blocks.is_empty() {
        writeln!(out)?;
        let mut blocks = Table::new(columns("block", &[("function", Align::Left), ("module", Align::Left)]));
        for moved in comparison.blocks.iter().take(report.top) {
            let name = &moved.what.function;
            let function = name.function.clone().unwrap_or_default();
            let cells = [moved.what.start.to_string(), function, name.module.clone()];
            blocks.row(shares(moved, report.error_of_block(&moved.what)).into_iter().chain(cells).collect());
        }
        blocks.print(out, report.width)?;
        rest(comparison.blocks.len(), report.top, "blocks", out)?;
    }
    if !comparison.lines.is_empty() {
        writeln!(out)?;
        let mut lines = Table::new(columns("line", &[("function", Align::Left)]));
        for moved in comparison.lines.iter().take(report.top) {
            let cells = [format!("{:+}", moved.what.line), moved.what.function.clone()];
            lines.row(shares(moved, None).into_iter().chain(cells).collect());
        }
        lines.print(out, report.width)?;
        rest(comparison.lines.len(), report.top, "lines", out)?;
    }
    writeln!(out)?;
    mix(report, out)
}

fn head(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let Report { comparison, width, .. } = report;
    for (side, title) in ["before", "after"].into_iter().enumerate() {
        let unit = if report.executions[side] { "instructions executed" } else { "(relative)" };
        let text = format!("{}: {} {unit}", report.files[side], count(comparison.instructions[side]));
        print_line(title, &text, out, *width)?;
    }
    print_line("overlap", &overlaps(report), out, *width)?;
    let [before, after] = comparison.same_files.map(percent);
    print_line("in both", &format!("{before} before, {after} after are in files that are the same"), out, *width)?;
    if comparison.unread.iter().any(|share| *share > 0.0) {
        let [before, after] = comparison.unread.map(percent);
        let text =
            format!("{before} before, {after} after (estimated) of the instructions are in code that was not read");
        print_line("degraded", &text, out, *width)?;
    }
    for note in &comparison.notes {
        print_line("note", note, out, *width)?;
    }
    let changes = || comparison.functions.iter().map(|moved| moved.is_within(report.error_of_function(&moved.what)));
    if changes().any(|within| within.is_some()) {
        let (beyond, all) = (changes().filter(|within| *within == Some(false)).count(), comparison.functions.len());
        let what = match beyond {
            0 => "no function changed by more than its uncertainty".to_string(),
            beyond => format!("{beyond} of {all} functions changed by more than their uncertainty"),
        };
        print_line("changes", &format!("{what}; changes marked = may be none (95 %)"), out, *width)?;
    }
    Ok(writeln!(out)?)
}

/// How much both sides have in common, in words.
pub fn overlaps(report: &Report<'_>) -> String {
    let comparison = report.comparison;
    let blocks = match comparison.block_overlap {
        Some(overlap) => format!("blocks {} of the files that are the same", percent(overlap)),
        None => "no file is the same on both sides".into(),
    };
    let functions = percent(comparison.function_overlap);
    let [before, after] = comparison.with_lines.map(percent);
    let lines = match comparison.line_overlap {
        Some(overlap) => format!("lines {} of what has debug information ({before}, {after})", percent(overlap)),
        None => "no line of the source is known on both sides".into(),
    };
    format!("functions {functions}, {blocks}, {lines}")
}

/// Kinds of instructions of less are nothing in a table.
const SHOWN: f64 = 0.00005;

/// By instruction set, all of it and by packing.
fn mix(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut sets: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
    for kind in &report.comparison.mix {
        let sums = sets.entry(kind.what.isa).or_default();
        sums[0] += kind.shares[0];
        sums[1] += kind.shares[1];
    }
    let mut table = Table::new(columns("isa", &[("packing", Align::Left)]));
    let is_shown = |shares: [f64; 2]| shares.iter().any(|share| *share >= SHOWN);
    for (isa, sums) in sets.iter().filter(|(_, sums)| is_shown(**sums)) {
        table.row(
            shares(&Moved { what: (), shares: *sums }, None)
                .into_iter()
                .chain([isa.to_string(), String::new()])
                .collect(),
        );
        let of_set = report.comparison.mix.iter().filter(|kind| kind.what.isa == *isa);
        for kind in of_set.filter(|kind| is_shown(kind.shares)) {
            let cells = shares(kind, report.error_of_kind(&kind.what)).into_iter();
            table.row(cells.chain([String::new(), kind.what.packing.to_string()]).collect());
        }
    }
    Ok(table.print(out, report.width)?)
}

/// The columns of functions.
pub fn function_columns() -> Vec<(String, Align)> {
    columns("function", &[("module", Align::Left)])
}

/// The cells of a function.
pub fn function_cells(report: &Report<'_>, moved: &Moved<FunctionName>) -> Vec<String> {
    let function = moved.what.function.clone().unwrap_or("[unread]".into());
    let cells = shares(moved, report.error_of_function(&moved.what)).into_iter();
    cells.chain([function, moved.what.module.clone()]).collect()
}

fn columns(what: &str, more: &[(&str, Align)]) -> Vec<(String, Align)> {
    let align = if matches!(what, "block" | "line") { Align::Right } else { Align::Left };
    let numbers = ["before", "after", "change", "±"].map(|title| (title, Align::Right));
    let first = numbers.into_iter().chain([("", Align::Right), (what, align)]).collect::<Vec<_>>();
    first.iter().chain(more).map(|(title, align)| (title.to_string(), *align)).collect()
}

/// Shares, change, its uncertainty, and a mark where the change is within that.
fn shares<N>(moved: &Moved<N>, error: Option<f64>) -> [String; 5] {
    let [before, after] = moved.shares.map(percent);
    let width = error.map_or(String::new(), |error| format!("{:.2}", 100.0 * error));
    let mark = if moved.is_within(error) == Some(true) { "=" } else { "" };
    [before, after, format!("{:+.2}", 100.0 * moved.change()), width, mark.into()]
}

fn rest(all: usize, top: usize, what: &str, out: &mut dyn Write) -> std::io::Result<()> {
    match all.saturating_sub(top) {
        0 => Ok(()),
        more => writeln!(out, "... {more} more {what} (--top 0 shows them)"),
    }
}

fn percent(value: f64) -> String {
    share(value, 1.0)
}
