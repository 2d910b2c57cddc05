//! Paths for people.

use std::io::Write;

use analyzer::annotate::Place;
use analyzer::paths::{BranchFacts, FoundHistory, FoundPath, Frequency, History, HotPaths};

use super::Report;
use crate::output::{
    Align, Layout, MARKED, Table, count, cut_inside, more, print_below, print_head, print_line, rounded, share,
    share_cells,
};

/// Prints the head and the first paths.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    print_head(report.head, report.instructions, out, report.layout)?;
    if report.head.verbose {
        print_line("branches", &facts(&report.paths.facts), out, report.layout)?;
    }
    if let Some(hot) = &report.paths.hot {
        hot_paths(hot, report, out)?;
    }
    if let Some(Ok(history)) = &report.paths.history {
        of_history(history, report, out)?;
    }
    Ok(())
}

fn hot_paths(hot: &HotPaths, report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    if report.sampled_only > 0.0 {
        let part = share(report.sampled_only, report.instructions);
        let text = format!(
            "{part} of all instructions (estimated) are in code that only samples count, and in no path: shares are of the rest"
        );
        print_line("left out", &text, out, report.layout)?;
    }
    if hot.cut > 0.0 {
        let [part, _] = share_cells(hot.cut, 1.0, hot.cut_interval);
        let text = format!("{part} of the instructions are in paths that begin before a branch stack, or end after it");
        print_line("cut off", &text, out, report.layout)?;
    }
    if hot.unread > 0.0 {
        let text =
            format!("{} of the instructions are in code that was not read, and in no path", share(hot.unread, 1.0));
        print_line("unread", &text, out, report.layout)?;
    }
    if hot.merged > 0.0 {
        let (part, depth) = (share(hot.merged, 1.0), hot.depth);
        let text = format!("paths with {part} of the instructions are told apart by their last {depth} blocks only");
        print_line("no room", &text, out, report.layout)?;
    }
    let titles = [
        ("share", Align::Right),
        ("±", Align::Right),
        ("executions", Align::Right),
        ("length", Align::Right),
        ("function", Align::Left),
        ("path", Align::Left),
    ];
    let titles = titles.map(|(title, align)| (title.to_owned(), align)).to_vec();
    let mut table = Table::new(titles).dispense_with(vec![3, 1]);
    for path in hot.paths.iter().take(report.top) {
        let [share, error, executions] = cells(&path.frequency);
        let function = path.function.as_deref().map_or_else(|| file_of(&path.module), str::to_owned);
        table.row(vec![share, error, executions, path.instructions.to_string(), function, blocks(path)]);
    }
    before_table(out, report.layout)?;
    table.print(out, report.layout)?;
    end(&hot.paths.iter().map(|path| path.frequency).collect::<Vec<_>>(), report, out)
}

/// Its blocks, by their distance from the function's symbol.
fn blocks(path: &FoundPath) -> String {
    let place = |place: &Place| match place.function {
        Some(_) => format!("+{:#x}", place.offset),
        None => format!("{:#x}", place.address.0),
    };
    let mut blocks: Vec<String> = path.blocks.iter().map(place).collect();
    if path.is_cut {
        blocks.insert(0, "..".to_owned());
    }
    blocks.join(" ")
}

/// In Markdown a table is one only after an empty line.
fn before_table(out: &mut dyn Write, layout: Layout) -> std::io::Result<()> {
    if layout == Layout::Markdown { writeln!(out) } else { Ok(()) }
}

/// Places that the head names, and columns of each.
const PLACES: usize = 3;
const LONGEST_PLACE: usize = 70;

fn of_history(history: &History, report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut places: Vec<String> = history.places.iter().map(Place::name).collect();
    if places.is_empty() {
        places.extend(report.to.map(str::to_owned));
    }
    // A line of source can be in many functions.
    let more = places.len().saturating_sub(PLACES);
    places.truncate(PLACES);
    places.iter_mut().for_each(|place| cut_inside(place, LONGEST_PLACE));
    let more = if more > 0 { format!(" and {more} more places") } else { String::new() };
    let text = format!("{}{more}: {} arrivals", places.join(", "), count(history.arrivals));
    print_line("to", &text, out, report.layout)?;
    if history.short > 0.0 {
        let plural = if history.branches == 1 { "branch is" } else { "branches are" };
        let text = format!(
            "before {} of the arrivals, fewer than {} {plural} known: they are left out (--branches asks for fewer)",
            share(history.short, 1.0),
            history.branches
        );
        print_line("short", &text, out, report.layout)?;
    }
    if history.depth < history.branches {
        let text = format!("the last {} branches of each path are told apart, not {}", history.depth, history.branches);
        print_line("no room", &text, out, report.layout)?;
    }
    let titles = [
        ("share", Align::Right),
        ("±", Align::Right),
        ("executions", Align::Right),
        ("branch", Align::Left),
        ("to", Align::Left),
    ];
    let titles = titles.map(|(title, align)| (title.to_owned(), align)).to_vec();
    let mut table = Table::new(titles).dispense_with(vec![1]);
    for (at, path) in history.paths.iter().take(report.top).enumerate() {
        if at > 0 {
            table.row(vec![String::new(); 5]);
        }
        rows(path).into_iter().for_each(|row| table.row(row));
    }
    before_table(out, report.layout)?;
    table.print(out, report.layout)?;
    end(&history.paths.iter().map(|path| path.frequency).collect::<Vec<_>>(), report, out)
}

/// A row for each branch, the newest last; the numbers are in the first.
fn rows(path: &FoundHistory) -> Vec<Vec<String>> {
    let numbers = std::iter::once(cells(&path.frequency)).chain(std::iter::repeat_with(Default::default));
    let rows = path.steps.iter().zip(numbers).map(|(step, numbers)| {
        let again = if step.repeats { " (again and again)" } else { "" };
        numbers.into_iter().chain([step.from.name(), format!("{}{again}", step.to.name())]).collect()
    });
    rows.collect()
}

/// The share of a path, its ±, and its executions.
fn cells(of: &Frequency) -> [String; 3] {
    let [share, error] = share_cells(of.share, 1.0, of.share_interval);
    [share, error, count(rounded(of.executions, of.executions_interval))]
}

/// What is said below the first of all paths.
fn end(all: &[Frequency], report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let (shown, rest) = all.split_at(report.top.min(all.len()));
    if !rest.is_empty() {
        let part = share(rest.iter().map(|path| path.share).sum(), 1.0);
        print_below(&more(rest.len(), ["path", "paths"], &part), out, report.layout)?;
    }
    if shown.iter().any(|path| path.share_interval.rests_on_little) {
        print_below(MARKED, out, report.layout)?;
    }
    Ok(())
}

fn file_of(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

/// What the records say of branches.
fn facts(facts: &BranchFacts) -> String {
    let mut said = vec![format!("{} recorded", count(facts.branches as f64))];
    let mut unknown: Vec<&str> = Vec::new();
    let mut say = |number: u64, what: &'static str, is_known: bool| match is_known {
        true => said.push(format!("{} {what}", count(number as f64))),
        false => unknown.push(what),
    };
    say(facts.mispredicted, "mispredicted", facts.mispredicted + facts.predicted > 0);
    say(facts.in_transaction, "in transactions", facts.in_transaction > 0);
    say(facts.aborts, "aborts", facts.aborts > 0);
    say(facts.timed, "with cycles", facts.timed > 0);
    say(facts.kinds.values().sum(), "with their kind", !facts.kinds.is_empty());
    let speculated = facts.speculated + facts.not_speculated;
    say(speculated, "with their speculation", speculated > 0);
    if !unknown.is_empty() {
        said.push(format!("none is marked as: {}", unknown.join(", ")));
    }
    said.join("; ")
}
