//! What there is to say of a mix beside its rows.

use analyzer::flow::AnalysedFlow;
use analyzer::mix::{Cell, Dimension, Key, Mix, NO_SOURCE, Operations, Query, Sum, UNREADABLE};
use analyzer::{Analysis, Origin};
use anyhow::bail;

use super::numbers::{Number, unread};
use super::query::Shape;
use super::unmatched;
use crate::filters::{nothing_passes, without_code};
use crate::lacks::{streams_without_cycles, without_lines, without_samples};
use crate::number::{count, share};
use crate::{Arguments, Precision};

/// All that there is to say of a mix. Of a recording without samples it is that alone.
///
/// # Errors
/// There is nothing to show: why that is.
pub fn said(
    (query, shape): (&Query, &Shape<'_>),
    analysis: &Analysis,
    mix: &Mix,
    arguments: &dyn Arguments,
) -> anyhow::Result<Vec<String>> {
    if let Some(nothing) = without_samples(analysis) {
        return Ok(vec![nothing]);
    }
    let unmatched: Vec<String> = mix.unmatched.iter().map(|of| unmatched::sentence(of, arguments)).collect();
    if mix.cells.is_empty() {
        let why = if !query.filters.is_empty() {
            without_code(&query.filters, analysis, arguments)
        } else if analysis.origin == Origin::Recording {
            Some("the samples say that they stand for nothing (their periods are 0)".to_owned())
        } else {
            Some("no code of it ran, or none is known".to_owned())
        };
        let weaker = &analysis.summary.shortcomings[..];
        let more = if analysis.origin == Origin::Recording { &[] } else { weaker };
        bail!("there is nothing to show: {}", nothing_passes(why, more, &unmatched));
    }
    let mut said: Vec<String> = mix.notes.iter().cloned().chain(unmatched).collect();
    said.extend(without_source(&query.rows, mix, arguments));
    said.extend(lacks_branches(query, shape.asks(Number::is_of_mispredictions), analysis).map(str::to_owned));
    said.extend(query.cycles.then(|| lacks_cycles(analysis)).flatten());
    said.extend((query.time && !analysis.tells_time()).then(|| WITHOUT_TIME.to_owned()));
    said.extend(mix.all.operations.iter().flat_map(|all| bounds(mix.all.count, &all.sum)));
    Ok(said)
}

/// What is said of time that no samples tell.
const WITHOUT_TIME: &str =
    "nothing is known of time: that needs samples of a clock or of cycles, and branch stacks beside them";

/// Whether all rows are of code, and that of no module could be read.
pub fn lacks_code(query: &Query, analysis: &Analysis) -> bool {
    query.rows.iter().all(is_of_code) && without_samples(analysis).is_none() && !analysis.has_readable_code()
}

/// Whether the values of a key are known of code that was read only.
pub fn is_of_code(key: &Key) -> bool {
    let of_code =
        [Dimension::Function, Dimension::Loop, Dimension::LoopDepth, Dimension::Block, Dimension::BlockLength];
    key.is_of_instruction() || of_code.iter().any(|dimension| key == dimension)
}

/// How right the largest rows are, of those that were read.
pub fn precision(analysis: &Analysis, mix: &Mix) -> Option<Precision> {
    let is_read = |row: &&[Cell]| row.iter().all(|cell| cell.row.iter().all(|value| value != UNREADABLE));
    let rows = mix.cells.chunk_by(|a, b| a.row == b.row).filter(is_read).map(|row| {
        let sum = Sum::of(row);
        (sum.count / mix.instructions, mix.uncertainty_of(&sum).share)
    });
    Precision::of(analysis, rows)
}

/// What to do where rows are of the source, and none is known.
pub fn without_source(rows: &[Key], mix: &Mix, arguments: &dyn Arguments) -> Option<String> {
    let at = rows.iter().position(|key| key.is_of_source())?;
    let has_none = |cell: &Cell| cell.row[at] == NO_SOURCE || cell.row[at] == UNREADABLE;
    mix.cells.iter().all(has_none).then(|| without_lines(arguments))
}

/// What is said where the recording does not have all that is asked for.
fn lacks_branches(query: &Query, asks_mispredictions: bool, analysis: &Analysis) -> Option<&'static str> {
    if !query.calls && !query.taken {
        return None;
    }
    let flow = analysis.flow.as_ref().map(AnalysedFlow::flow).filter(|flow| flow.branch_total() > 0.0);
    let Some(flow) = flow else {
        return Some("nothing is known of calls and taken branches: there are no branch stacks");
    };
    if analysis.origin == Origin::Exact {
        return Some(
            "exact counts do not say where returns and indirect branches went: they are not among those that were taken, \
             nor among calls",
        );
    }
    (asks_mispredictions && !flow.knows_mispredictions()).then_some(
        "nothing is known of mispredictions: no branch of the stacks is marked as one (those of bursts never are)",
    )
}

/// What is said of cycles that no branch record tells.
fn lacks_cycles(analysis: &Analysis) -> Option<String> {
    let Some(paths) = analysis.paths.as_ref().filter(|paths| !paths.cycles.is_empty()) else {
        let why = match analysis.origin {
            Origin::Recording => {
                "no branch record has them: only those of the hardware do, of Intel's CPUs from Skylake on"
            }
            Origin::Flow => "sums of recordings do not keep them, name a recording",
            Origin::Exact => "exact counts do not tell them, name a recording",
        };
        return Some(format!("nothing is known of cycles: {why}"));
    };
    streams_without_cycles(paths).map(|streams| format!("left out: {streams}"))
}

/// What is said of operations and bytes of so many instructions: that masks and registers decide them, or that code was not read.
pub fn bounds(instructions: f64, all: &Operations) -> Vec<String> {
    let mut said = Vec::new();
    if all.masked_flops > 0.0 {
        let part = share(all.masked_flops, all.flops);
        said.push(format!(
            "{part} of the floating-point operations have a mask, and what it leaves out is counted, too"
        ));
    }
    if all.masked_bytes > 0.0 {
        let part = share(all.masked_bytes, all.bytes());
        said.push(format!(
            "{part} of the bytes are of instructions with a mask, and what it leaves out is counted, too"
        ));
    }
    if all.unknown_bytes > 0.0 {
        let number = count(all.unknown_bytes);
        said.push(format!(
            "{number} executed instructions move as many bytes as registers say (`rep movsb`, `xsave`): these are not counted"
        ));
    }
    let unread = unread(instructions, all);
    if unread > 0.0 {
        let part = share(unread, instructions);
        said.push(format!(
            "the code of {part} of the instructions was not read: their floating-point operations and bytes are not counted"
        ));
    }
    said
}
