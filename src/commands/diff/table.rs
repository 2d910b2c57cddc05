//! The comparison for people.

use std::collections::BTreeMap;
use std::io::Write;

use analyzer::flow::{FunctionName, Moved};
use analyzer::uncertainty::Side;
use reports::diff::{Noise, Work};

use super::weaker::DEGRADED;
use super::{Report, pivot};
use crate::output::{Align, Role, Table, count, more, print_line, share};

/// Prints the whole comparison.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let (weaker, head): (Vec<_>, Vec<_>) = head(report).into_iter().partition(|(title, _)| *title == DEGRADED);
    let weaker = report.weaker.lines(weaker.into_iter().map(|(_, text)| text).collect());
    for (title, text) in head.into_iter().chain(weaker) {
        print_line(title, &text, out, report.layout)?;
    }
    writeln!(out)?;
    if let Some(pivot) = report.pivot {
        return pivot::print(pivot, report, out);
    }
    let comparison = report.changes.comparison;
    let mut functions = Table::new(function_columns()).in_colours(report.colours);
    for moved in comparison.functions.iter().take(report.top) {
        let noise = report.changes.of_function(moved);
        functions.row_in(role(noise), function_cells(moved, noise));
    }
    functions.print(out, report.layout)?;
    rest(comparison.functions.len(), report.top, ["function", "functions"], out)?;
    if !comparison.blocks.is_empty() {
        writeln!(out)?;
        let mut blocks = columns(report, "block", &[("function", Align::Left), ("module", Align::Left)]);
        for moved in comparison.blocks.iter().take(report.top) {
            let name = &moved.what.function;
            let function = name.function.clone().unwrap_or_default();
            let cells = [moved.what.start.to_string(), function, name.module.clone()];
            let noise = report.changes.of_block(moved);
            blocks.row_in(role(noise), shares(moved, noise).into_iter().chain(cells).collect());
        }
        blocks.print(out, report.layout)?;
        rest(comparison.blocks.len(), report.top, ["block", "blocks"], out)?;
    }
    if !comparison.lines.is_empty() {
        writeln!(out)?;
        let mut lines = columns(report, "line", &[("function", Align::Left)]);
        for moved in comparison.lines.iter().take(report.top) {
            let cells = [format!("{:+}", moved.what.line), moved.what.function.clone()];
            let noise = report.changes.of_line(moved);
            lines.row_in(role(noise), shares(moved, noise).into_iter().chain(cells).collect());
        }
        lines.print(out, report.layout)?;
        rest(comparison.lines.len(), report.top, ["line", "lines"], out)?;
    }
    writeln!(out)?;
    mix(report, out)
}

/// What is said of the comparison as a whole: titles and texts.
pub fn head(report: &Report<'_>) -> Vec<(&'static str, String)> {
    let comparison = report.changes.comparison;
    let mut lines = Vec::new();
    for (side, title) in ["before", "after"].into_iter().enumerate() {
        let unit =
            if report.changes.executions[side] { "instructions executed, summed over blocks" } else { "(relative)" };
        let text = format!("{}: {} {unit}", report.changes.files[side], count(comparison.instructions[side]));
        lines.push((title, text));
    }
    lines.push(("overlap", overlaps(report)));
    let [before, after] = comparison.same_files.map(percent);
    let of = if report.weaker.leaves_out() { " of what is compared" } else { "" };
    lines.push(("in both", format!("{before} before, {after} after{of} are in files that are the same")));
    if comparison.unread.iter().any(|share| *share > 0.0) {
        let [before, after] = comparison.unread.map(percent);
        let text =
            format!("{before} before, {after} after (estimated) of the instructions are in code that was not read");
        lines.push((DEGRADED, text));
    }
    lines.extend(comparison.lacks.iter().map(|why| (DEGRADED, why.clone())));
    lines.extend(comparison.notes.iter().map(|note| ("note", note.clone())));
    if let Some(pivot) = report.pivot {
        lines.extend(pivot.changes().map(|changes| ("changes", changes)));
        lines.push(("work", Work::of(&report.changes).text(&report.changes)));
        return lines;
    }
    let changes: Vec<Noise> = comparison.functions.iter().map(|moved| report.changes.of_function(moved)).collect();
    let is_exact = report.changes.sides.iter().all(|side| matches!(side, Side::Exact));
    if !is_exact && changes.iter().any(|noise| noise.is_finding.is_some()) {
        let findings = changes.iter().filter(|noise| noise.is_finding == Some(true)).count();
        let all = changes.len();
        let what = match findings {
            0 => format!("none of {all} functions changed by more than chance changes one of so many"),
            findings => format!("{findings} of {all} functions changed by more than chance changes one of so many"),
        };
        lines.push(("changes", format!("{what} (95 %); changes marked = are within their own ±")));
    }
    lines.push(("work", Work::of(&report.changes).text(&report.changes)));
    lines
}

/// How much both sides have in common, in words.
pub fn overlaps(report: &Report<'_>) -> String {
    let comparison = report.changes.comparison;
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
    for kind in &report.changes.comparison.mix {
        let sums = sets.entry(kind.what.isa).or_default();
        sums[0] += kind.shares[0];
        sums[1] += kind.shares[1];
    }
    let mut table = columns(report, "isa", &[("packing", Align::Left)]);
    let is_shown = |shares: [f64; 2]| shares.iter().any(|share| *share >= SHOWN);
    for (isa, sums) in sets.iter().filter(|(_, sums)| is_shown(**sums)) {
        let set = Moved { what: *isa, shares: *sums };
        let noise = report.changes.of_isa(&set);
        table.row_in(role(noise), shares(&set, noise).into_iter().chain([isa.to_string(), String::new()]).collect());
        let of_set = report.changes.comparison.mix.iter().filter(|kind| kind.what.isa == *isa);
        for kind in of_set.filter(|kind| is_shown(kind.shares)) {
            let noise = report.changes.of_kind(kind);
            let cells = shares(kind, noise).into_iter();
            table.row_in(role(noise), cells.chain([String::new(), kind.what.packing.to_string()]).collect());
        }
    }
    Ok(table.print(out, report.layout)?)
}

/// The columns of functions.
pub fn function_columns() -> Vec<(String, Align)> {
    titles("function", &[("module", Align::Left)])
}

/// The cells of a function.
pub fn function_cells(moved: &Moved<FunctionName>, noise: Noise) -> Vec<String> {
    let function = moved.what.function.clone().unwrap_or("[unread]".into());
    shares(moved, noise).into_iter().chain([function, moved.what.module.clone()]).collect()
}

pub(super) fn columns(report: &Report<'_>, what: &str, more: &[(&str, Align)]) -> Table {
    Table::new(titles(what, more)).in_colours(report.colours)
}

fn titles(what: &str, more: &[(&str, Align)]) -> Vec<(String, Align)> {
    let align = if matches!(what, "block" | "line") { Align::Right } else { Align::Left };
    let numbers = ["before", "after", "change", "±"].map(|title| (title, Align::Right));
    let first = numbers.into_iter().chain([("", Align::Right), (what, align)]).collect::<Vec<_>>();
    first.iter().chain(more).map(|(title, align)| (title.to_string(), *align)).collect()
}

/// Shares, change, its uncertainty, and a mark where the change is within that.
pub(super) fn shares<N>(moved: &Moved<N>, noise: Noise) -> [String; 5] {
    let [before, after] = moved.shares.map(percent);
    // No change is larger than all.
    let width = noise.error.map_or(String::new(), |error| format!("{:.2}", 100.0 * error.min(1.0)));
    let mark = if noise.is_within == Some(true) { "=" } else { "" };
    [before, after, format!("{:+.2}", 100.0 * moved.change()), width, mark.into()]
}

/// What is no finding is of less interest.
pub fn role(noise: Noise) -> Role {
    if noise.is_finding == Some(false) { Role::Dim } else { Role::Plain }
}

pub(super) fn rest(all: usize, top: usize, what: [&str; 2], out: &mut dyn Write) -> std::io::Result<()> {
    match all.saturating_sub(top) {
        0 => Ok(()),
        left_out => writeln!(out, "{}", more(left_out, what, "")),
    }
}

fn percent(value: f64) -> String {
    share(value, 1.0)
}
