//! Paths as JSON: hbbp-paths/1.

use std::io::Write;

use analyzer::annotate::Place;
use analyzer::paths::{BranchFacts, FoundHistory, FoundPath, Frequency, History, HotPaths};
use perfdata::BranchKind;
use serde_json::{Value, json};

use super::Report;

/// Prints the first paths.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let paths = report.paths;
    let history = paths.history.as_ref().and_then(|history| history.as_ref().ok());
    let document = json!({
        "schema": "hbbp-paths/1",
        "source": report.head.source,
        "instructions": report.instructions,
        "head": report.head,
        "walked": paths.walks,
        "branches": facts(&paths.facts),
        "hot": paths.hot.as_ref().map(|hot| of_hot(hot, report.top)),
        "history": history.map(|history| of_history(history, report)),
    });
    serde_json::to_writer(&mut *out, &document)?;
    Ok(writeln!(out)?)
}

fn of_hot(hot: &HotPaths, top: usize) -> Value {
    json!({
        "instructions": hot.instructions,
        "cut": hot.cut,
        "cut_error": hot.cut_interval.half_width,
        "unread": hot.unread,
        "merged": hot.merged,
        "depth": hot.depth,
        "paths": hot.paths.iter().take(top).map(path).collect::<Value>(),
        "others": hot.paths.len().saturating_sub(top),
    })
}

fn path(path: &FoundPath) -> Value {
    let row = json!({
        "module": &*path.module,
        "function": path.function.as_deref(),
        "blocks": path.blocks.iter().map(|place| json!(place.address)).collect::<Value>(),
        "is_cut": path.is_cut,
        "is_piece": path.is_piece,
        "length": path.instructions,
    });
    with_frequency(row, &path.frequency)
}

fn with_frequency(mut row: Value, of: &Frequency) -> Value {
    row["executions"] = json!(of.executions);
    row["executions_error"] = json!(of.executions_interval.half_width);
    row["share"] = json!(of.share);
    row["share_error"] = json!(of.share_interval.half_width);
    row["rests_on_little"] = json!(of.share_interval.rests_on_little);
    row["seen"] = json!(of.seen);
    row
}

fn of_history(history: &History, report: &Report<'_>) -> Value {
    json!({
        "to": report.to,
        "places": history.places.iter().map(place).collect::<Value>(),
        "branches": history.branches,
        "depth": history.depth,
        "arrivals": history.arrivals,
        "seen": history.seen,
        "short": history.short,
        "paths": history.paths.iter().take(report.top).map(of_path).collect::<Value>(),
        "others": history.paths.len().saturating_sub(report.top),
    })
}

fn of_path(path: &FoundHistory) -> Value {
    let step = |step: &analyzer::paths::FoundStep| json!({"from": place(&step.from), "to": place(&step.to), "repeats": step.repeats});
    let row = json!({"branches": path.steps.iter().map(step).collect::<Value>()});
    with_frequency(row, &path.frequency)
}

fn place(place: &Place) -> Value {
    json!({
        "module": &*place.module,
        "address": place.address,
        "function": place.function.as_deref(),
        "offset": place.offset,
    })
}

fn facts(facts: &BranchFacts) -> Value {
    let kinds = facts.kinds.iter().map(|(kind, number)| (BranchKind(*kind).to_string(), json!(number)));
    json!({
        "recorded": facts.branches,
        "mispredicted": facts.mispredicted,
        "predicted": facts.predicted,
        "in_transaction": facts.in_transaction,
        "aborts": facts.aborts,
        "timed": facts.timed,
        "speculated": facts.speculated,
        "not_speculated": facts.not_speculated,
        "kinds": kinds.collect::<serde_json::Map<String, Value>>(),
    })
}
