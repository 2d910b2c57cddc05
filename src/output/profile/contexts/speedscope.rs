//! What speedscope reads: a sampled profile, one sample for each context.
//!
//! (Its `file-format-schema.json`; weights have no unit there that is instructions, so it is `none`.)

use std::io::{self, Write};

use serde::Serialize;

use crate::output::profile::contexts::{Contexts, UNKNOWN_CALLERS};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: String,
    name: &'a str,
    active_profile_index: usize,
    shared: Shared,
    profiles: [Sampled<'a>; 1],
}

#[derive(Serialize)]
struct Shared {
    frames: Vec<Frame>,
}

#[derive(Serialize)]
struct Frame {
    name: String,
    /// Path of the module.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sampled<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    /// Indexes of frames, the outermost first.
    samples: Vec<Vec<usize>>,
    weights: Vec<u64>,
}

/// Writes the profile.
pub fn speedscope(contexts: &Contexts<'_>, out: &mut dyn Write) -> io::Result<Vec<String>> {
    let mut frames = vec![Frame { name: UNKNOWN_CALLERS.into(), file: None }];
    frames.extend((0..contexts.calls.functions.len()).map(|function| Frame {
        name: contexts.name(function).into_owned(),
        file: contexts.module(function).map(|module| module.path.clone()),
    }));
    let stack = |functions: &[usize]| std::iter::once(0).chain(functions.iter().map(|function| function + 1)).collect();
    let (samples, weights): (Vec<Vec<usize>>, Vec<u64>) =
        contexts.stacks().map(|(functions, instructions)| (stack(functions), instructions)).unzip();
    let all = weights.iter().fold(0, |sum: u64, weight| sum.saturating_add(*weight));
    let profile = Sampled {
        kind: "sampled",
        name: contexts.unit(),
        unit: "none",
        start_value: 0,
        end_value: all,
        samples,
        weights,
    };
    let file = File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        exporter: format!("hbbp {}", env!("CARGO_PKG_VERSION")),
        name: &contexts.title,
        active_profile_index: 0,
        shared: Shared { frames },
        profiles: [profile],
    };
    serde_json::to_writer(&mut *out, &file)?;
    writeln!(out)?;
    Ok(Vec::new())
}
