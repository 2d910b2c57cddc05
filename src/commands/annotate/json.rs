//! Annotated code as JSON: `hbbp-annotate/1`.

use std::io::Write;

use analyzer::address::Svma;
use analyzer::annotate::{
    AnnotatedBlock, AnnotatedFunction, AnnotatedInstruction, Branch, CountedLoop, Inlined, Place, SourcePlace, Target,
};
use analyzer::paths::{LoopTrips, TripBucket};
use analyzer::truth::ANNOTATED_SCHEMA;
use serde_json::{Value, json};

use super::{Annotated, Report, word};

/// Prints the document.
pub(super) fn print(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let functions: Vec<Value> = report.of.annotation.functions.iter().map(|of| function(report, of)).collect();
    let document = json!({
        "schema": ANNOTATED_SCHEMA,
        "source": report.head.source,
        "instructions": report.of.instructions,
        "head": report.head,
        "lacks": report.of.annotation.lacks,
        "functions": functions,
    });
    serde_json::to_writer(&mut *out, &document)?;
    Ok(writeln!(out)?)
}

fn function(report: &Report<'_>, function: &AnnotatedFunction) -> Value {
    let gap = |gap: &std::ops::Range<_>| json!({"start": gap.start, "end": gap.end});
    let mut before = None;
    let blocks: Value = function.blocks.iter().map(|of| block(report, function, of, &mut before)).collect();
    json!({
        "name": function.name,
        "module": report.of.module(function),
        "build_id": report.of.build_id(function),
        "start": function.start,
        "executed": function.executed,
        "executed_error": function.executed_interval.half_width,
        "share": report.of.share(function.executed),
        "share_error": function.share_interval.half_width,
        "rests_on_little": function.share_interval.rests_on_little,
        "time_share": function.time.map(|time| time.share),
        "time_share_error": function.time.map(|time| time.error),
        "time_per_instruction": report.of.time_per_instruction(function),
        "calls": function.calls,
        "blocks": blocks,
        "not_readable": function.unreadable.iter().map(gap).collect::<Value>(),
        "loops": function.loops.as_ref().map(|loops| loops.iter().map(|one| of_loop(report, function, one)).collect::<Value>()),
    })
}

/// `before`: the instruction before the block, which becomes its last.
fn block(
    report: &Report<'_>,
    function: &AnnotatedFunction,
    block: &AnnotatedBlock,
    before: &mut Option<Svma>,
) -> Value {
    json!({
        "start": block.start,
        "end": block.end,
        "seen": word(block.seen),
        "count": block.count.map(|count| count.count),
        "count_error": block.count_interval.half_width,
        "share": block.count.map(|_| report.of.share(block.executed())),
        "share_error": block.share_interval.half_width,
        "rests_on_little": block.share_interval.rests_on_little,
        "ebs": block.count.map(|count| count.ebs),
        "lbr": block.count.map(|count| count.lbr),
        "ebs_samples": block.count.map_or(0, |count| count.ebs_samples),
        "lbr_streams": block.count.map_or(0, |count| count.lbr_streams),
        "chosen": block.count.map(|count| count.chosen.as_str()),
        "bias": block.count.is_some_and(|count| count.bias),
        "loop": block.innermost,
        "cycles": report.of.cycles(function, block).map(|of| of.cycles),
        "ipc": report.of.cycles(function, block).and_then(|of| of.ipc),
        "timed": report.of.cycles(function, block).map_or(0, |of| of.timed),
        "branch": block.branch.as_ref().map(branch),
        "instructions": block
            .instructions
            .iter()
            .map(|one| instruction(&report.of, function, one, before.replace(one.address)))
            .collect::<Value>(),
    })
}

/// An instruction, and where it comes from if lines of the source are wanted.
pub fn instruction(
    of: &Annotated<'_>,
    function: &AnnotatedFunction,
    instruction: &AnnotatedInstruction,
    before: Option<Svma>,
) -> Value {
    let mut value = json!({"address": instruction.address, "text": instruction.text});
    if let Some(members) = value.as_object_mut().filter(|_| of.has_source) {
        let place = of.annotation.place(function, instruction.address);
        members.insert("file".into(), place.map(|place| place.path).into());
        members.insert("line".into(), place.map(|place| place.line).into());
        let begun = of.annotation.begun(function, before, instruction.address);
        members.insert("inlined".into(), begun.iter().map(inlined).collect());
    }
    value
}

fn inlined(inlined: &Inlined<'_>) -> Value {
    let at: Option<&SourcePlace<'_>> = inlined.at.as_ref();
    json!({"function": inlined.function, "file": at.map(|at| at.path), "line": at.map(|at| at.line)})
}

fn branch(branch: &Branch) -> Value {
    json!({
        "kind": branch.kind.as_str(),
        "target": branch.target.as_ref().map(place),
        "taken": branch.taken,
        "fallen": branch.fallen,
        "taken_rate": branch.taken_rate(),
        "mispredict_rate": branch.mispredict_rate(),
        "targets": branch.targets.iter().map(target).collect::<Value>(),
        "other_targets": branch.other_targets,
    })
}

fn place(place: &Place) -> Value {
    json!({"module": &*place.module, "address": place.address, "function": place.function.as_deref(), "offset": place.offset})
}

fn target(target: &Target) -> Value {
    let mut value = place(&target.place);
    if let Some(members) = value.as_object_mut() {
        members.insert("count".into(), target.count.into());
    }
    value
}

fn of_loop(report: &Report<'_>, function: &AnnotatedFunction, one: &CountedLoop) -> Value {
    json!({
        "header": one.header,
        "parent": one.parent,
        "depth": one.depth,
        "first": one.first,
        "last": one.last,
        "size": one.blocks,
        "entries": one.entries,
        "repeats": one.repeats,
        "trips": one.mean_trips(),
        "histogram": report.of.trips(function, one).map(histogram),
    })
}

fn histogram(of: &LoopTrips) -> Value {
    let bucket = |bucket: &TripBucket| {
        json!({
            "least": bucket.least,
            "most": bucket.most,
            "share": bucket.share,
            "share_error": bucket.share_interval.half_width,
            "rests_on_little": bucket.share_interval.rests_on_little,
            "whole": bucket.whole,
            "cut": bucket.cut,
        })
    };
    json!({
        "buckets": of.buckets.iter().map(bucket).collect::<Value>(),
        "longer": {
            "at_least": of.has_entries().then_some(of.at_least),
            "share": of.has_entries().then_some(of.longer),
            "share_error": of.longer_interval.half_width.filter(|_| of.has_entries()),
            "rests_on_little": of.longer_interval.rests_on_little && of.longer > 0.0,
        },
        "whole": of.whole,
        "cut": of.cut,
        "without_entry": of.without_entry,
    })
}
