//! Calling contexts, for flame graphs and other viewers.

use std::io::{self, Write};
use std::path::Path;

use analyzer::Analysis;
use analyzer::calls::{CallerTree, Calls};
use analyzer::recording::{StackUse, base_name};
use anyhow::bail;
use perfdata::{Recording, SampleFormat};

use crate::input::{Input, InputArgs, is_recording};
use crate::output::profile::Contexts;
use crate::output::{self, Head, share, write_to};

/// What has no branch records is refused before a command runs for nothing.
pub fn check(truth: Option<&Path>, input: &InputArgs, format: &str) -> anyhow::Result<()> {
    let wanted = format!("--format {format} is made from the branch records of a recording");
    if truth.is_some() {
        bail!("exact counts do not say who called whom: {wanted}");
    }
    if let Some(file) = input.file().filter(|file| file.exists() && !is_recording(file)) {
        bail!("{}: {wanted}, and this is none", file.display());
    }
    Ok(())
}

/// Writes the contexts of a recording, with what was inlined if so many threads are to read that; what is not in them is said on standard error.
pub fn write(
    input: &Input<'_>,
    (file, inlined): (Option<&Path>, Option<usize>),
    write: fn(&Contexts<'_>, &mut dyn Write) -> io::Result<Vec<String>>,
) -> anyhow::Result<()> {
    let mut analysis = input.analyze_with_calls()?;
    let Some(mut calls) = analysis.calls.take().filter(|calls| calls.walks > 0) else {
        bail!(without_branches(input.recording()?));
    };
    if calls.instructions <= 0.0 {
        bail!("nothing was seen running");
    }
    Head::of(&analysis).degraded.iter().for_each(output::say);
    describe(&calls).iter().for_each(output::say);
    if let Some(threads) = inlined {
        let (with_inlined, notes) = calls.with_inlined(&analysis, threads);
        notes.iter().for_each(output::say);
        calls = with_inlined;
    }
    let contexts = Contexts { calls: &calls, modules: &analysis.modules, title: title(&analysis) };
    let notes = write_to(file, |out| Ok(write(&contexts, out)?))?;
    notes.iter().for_each(output::say);
    Ok(())
}

/// Why there are no contexts, and what to do.
pub fn without_branches(recording: &Recording) -> String {
    let mut why = "the recording has no stacks of taken branches, which would show who called whom: record with `hbbp record`, which traces \
                   branches where the hardware records none"
        .to_owned();
    let events = || recording.events().iter();
    if events().any(|event| StackUse::of(event) == StackUse::CallStack) {
        why += "; its LBR call stacks are of events whose samples count nothing here: `perf report --no-children` shows them";
    } else if events().any(|event| event.attr.sample_format.contains(SampleFormat::CALLCHAIN)) {
        why += "; its call chains are for `perf report` and tools that fold `perf script`";
    }
    why
}

/// How far the contexts reach, in sentences.
pub fn describe(calls: &Calls) -> Vec<String> {
    let part = |part: f64| share(part, calls.instructions);
    let known = part(calls.with_caller);
    let reach = match &calls.events {
        Some(events) => format!(
            "the stacks are LBR call stacks of {events}: the calls that had not returned when a sample was taken, of which the hardware keeps the \
             newest; widths are periods of samples, not executed instructions, and {known} of them have a caller"
        ),
        None => format!(
            "the caller is known for {known} of the instructions: branch records show the calls that they hold, and the callers that code \
             returns to"
        ),
    };
    let mut lines = vec![reach];
    if calls.without_branches > 0.0 {
        lines.push(format!("{} are in functions that only samples saw: without callers", part(calls.without_branches)));
    }
    if calls.lost > 0 {
        let lost = output::count(calls.lost as f64);
        lines.push(format!(
            "places where callers were lost, because control went to what fits no call before it: {lost}"
        ));
    }
    if calls.cut > 0.0 {
        let why = if calls.is_cut_for_room() {
            format!("all together have more than {} frames", output::count(CallerTree::MOST_NODES as f64))
        } else {
            "no more are kept".to_owned()
        };
        lines.push(format!(
            "{} have more than {} callers, of which the outer ones are left out: {why}",
            part(calls.cut),
            calls.depth - 1
        ));
    }
    lines
}

/// What ran: the module that executed most.
fn title(analysis: &Analysis) -> String {
    let most = analysis.counted.iter().max_by(|one, other| one.instructions().total_cmp(&other.instructions()));
    let name = most.map(|module| base_name(&analysis.modules.get(module.counts.module).path));
    output::printable(&name.unwrap_or_default()).into_owned()
}
