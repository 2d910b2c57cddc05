//! What is missing in an analysis, and what to do about it, in sentences.

use analyzer::paths::BranchPaths;
use analyzer::{Analysis, Origin};
use anyhow::bail;

use crate::number::count;
use crate::{Argument, Arguments};

/// What to do where lines of the source were asked for, and none is known.
pub fn without_lines(arguments: &dyn Arguments) -> String {
    let [binaries, symfs] = [Argument::Binaries, Argument::Symfs].map(|argument| arguments.name(argument));
    format!(
        "no line of the source is known: build with debug information (-g, or debug = 1 in Cargo.toml), or name files \
         that have it ({binaries}, {symfs})"
    )
}

/// Says so where nothing can be made of a recording without samples.
///
/// # Errors
/// It has none.
pub fn require_samples(analysis: &Analysis) -> anyhow::Result<()> {
    match without_samples(analysis) {
        None => Ok(()),
        Some(nothing) => bail!(nothing),
    }
}

/// What is to be said of a recording without samples.
pub fn without_samples(analysis: &Analysis) -> Option<String> {
    let records = &analysis.summary.records;
    let follows_trace = analysis.sources.lbr.as_ref().is_some_and(|lbr| lbr.is_trace);
    if analysis.origin != Origin::Recording || follows_trace || records.samples.iter().any(|&samples| samples > 0) {
        return None;
    }
    Some(match analysis.summary.has_trace() {
        true => "the recording has no samples, and nothing of its processor trace could be followed".to_owned(),
        false => format!(
            "the recording has no samples: {}; record something that runs longer, or sample more often",
            describe_records(records)
        ),
    })
}

/// What is said of records that could not be read.
pub fn malformed(analysis: &Analysis) -> Option<String> {
    match analysis.summary.records.malformed {
        0 => None,
        1 => Some("1 record is malformed: what it says is not counted".to_owned()),
        many => Some(format!("{} records are malformed: what they say is not counted", count(many as f64))),
    }
}

fn describe_records(records: &analyzer::recording::RecordCounts) -> String {
    if records.by_type.is_empty() {
        return "it has no records at all".into();
    }
    let counts: Vec<String> = records.by_type.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    format!("it has {}", counts.join(", "))
}

/// What is said of streams that took more cycles than a branch record can say.
pub fn streams_without_cycles(paths: &BranchPaths) -> Option<String> {
    let number = match paths.too_long {
        0 => return None,
        1 => "1 stream".to_owned(),
        many => format!("{} streams", count(many as f64)),
    };
    Some(format!("cycles of {number}: a branch record holds less than 65,535"))
}
