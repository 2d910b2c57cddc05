//! The head of a report as lines.

use std::io::Write;

use reports::head::{Bursts, Head, SIMULATED, TRACE};

use crate::output::{Layout, columns_of, count, counted, idle, in_markdown, printable, share};

/// Prints a head as lines that start with `#`, with the instructions executed in all; broken at words where there is a limit.
pub fn print_head(head: &Head, instructions: f64, out: &mut dyn Write, layout: Layout) -> std::io::Result<()> {
    let mut lines = if head.verbose { head_lines(head, instructions) } else { head_in_short(head, instructions) };
    if head.verbose && head.is_kept {
        lines.push(("cache", "analysed before (--no-cache analyses anew)".to_owned()));
    }
    for (title, text) in lines {
        print_line(title, &text, out, layout)?;
    }
    writeln!(out)
}

/// Prints a head to standard error, before an error that it explains: which files could not be read, and why.
pub fn say_head(head: &Head, instructions: f64) {
    // The error is said all the same.
    let mut errors = std::io::stderr().lock();
    let layout = columns_of(&errors).map_or(Layout::Text, Layout::Columns);
    let _ = print_head(head, instructions, &mut errors, layout);
}

/// A line of a head: a title of at most nine characters and a text, broken at words where there is a limit.
pub fn print_line(title: &str, text: &str, out: &mut dyn Write, layout: Layout) -> std::io::Result<()> {
    let first = format!("# {title:9}");
    let text = &printable(text);
    let width = match layout {
        Layout::Columns(width) => width,
        Layout::Text => return writeln!(out, "{first}{text}"),
        Layout::Markdown if title.is_empty() => return writeln!(out, "  {}", in_markdown(text)),
        Layout::Markdown => return writeln!(out, "- {title}: {}", in_markdown(text)),
    };
    let options = textwrap::Options::new(width)
        .initial_indent(&first)
        .subsequent_indent("#          ")
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    for line in textwrap::wrap(text, options) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// The line below a table that does not have all: `... 5 more rows with 3.10 % (--top 0 shows them)`. `what`: what one is called, and many; `with`:
/// what they are of all, or nothing.
pub fn more(number: usize, [one, many]: [&str; 2], with: &str) -> String {
    let more = counted(number as u64, &format!("more {one}"), &format!("more {many}"));
    let with = if with.is_empty() { String::new() } else { format!(" with {with}") };
    format!("... {more}{with} (--top 0 shows them)")
}

/// A line below a table, broken at words where there is a limit.
pub fn print_below(text: &str, out: &mut dyn Write, layout: Layout) -> std::io::Result<()> {
    match layout.width() {
        Some(width) => {
            let options = textwrap::Options::new(width).word_splitter(textwrap::WordSplitter::NoHyphenation);
            writeln!(out, "{}", textwrap::fill(text, options))
        }
        None => writeln!(out, "{text}"),
    }
}

/// What counts are made from, how good they are, and what is missing.
pub fn head_in_short(head: &Head, instructions: f64) -> Vec<(&'static str, String)> {
    let unit = match head.unit {
        "executions" => format!("{} instructions executed", count(instructions)),
        _ => "counts are relative".to_owned(),
    };
    let mut lines = vec![("source", format!("{}; {unit}", made_from(head)))];
    lines.extend(head.precision.iter().map(|precision| ("errors", precision.text.clone())));
    let broken = head.lbr_source.as_ref().map_or(0, |lbr| lbr.broken.total());
    let losses = [
        ("samples lost", head.lost),
        ("streams broken", broken),
        ("samples not used", head.unused_events.iter().map(|event| event.samples).sum()),
        ("throttled", head.throttled),
        ("records malformed", head.malformed),
        ("records unknown", head.unknown_records),
    ];
    let some = losses.into_iter().filter(|(_, number)| *number > 0);
    let losses: Vec<String> = some.map(|(what, number)| format!("{what}: {}", count(number as f64))).collect();
    lines.extend((!losses.is_empty()).then(|| ("lost", losses.join(", "))));
    let weaker = weaker_in_short(&head.degraded, head.shortcomings, "it was recorded");
    lines.extend(weaker.map(|sentence| ("weaker", sentence)));
    lines
}

/// What is weaker, in one line, the rest by number: it is not to push the table off the screen. The first `shortcomings` are of what is missing
/// or damaged, the others of how `it was recorded`.
pub fn weaker_in_short(degraded: &[String], shortcomings: usize, recorded: &str) -> Option<String> {
    match degraded.split_at(shortcomings.min(degraded.len())) {
        ([], []) => None,
        ([one], []) | ([], [one]) => Some(one.clone()),
        ([], more) => Some(format!("{} things about how {recorded} (-v shows them)", more.len())),
        ([first, more @ ..], of_recorder) => {
            Some(format!("{first}; and {} more (-v shows them)", more.len() + of_recorder.len()))
        }
    }
}

/// The sources of the counts and how much there is of each.
fn made_from(head: &Head) -> String {
    let number = |number: u64| count(number as f64);
    let simulated = |provenance| if provenance == Some(SIMULATED) { ", simulated" } else { "" };
    let samples = head.ebs_source.as_ref().map(|ebs| {
        format!("{} of {}{}", counted(ebs.samples, "sample", "samples"), ebs.event, simulated(ebs.provenance))
    });
    let branches = head.lbr_source.as_ref().map(|lbr| match &lbr.bursts {
        Some(bursts) => {
            let cost = bursts.tracer.as_ref().and_then(|tracer| match (tracer.idle, tracer.overhead) {
                (Some(times), _) => Some(format!("; {}", idle(times))),
                (None, overhead) => Some(format!(", overhead {}", share(overhead?, 100.0))),
            });
            let (number, length) = (counted(bursts.bursts, "burst", "bursts"), count(bursts.mean_instructions));
            format!("traced branches: {number} of {length} instructions{}", cost.unwrap_or_default())
        }
        None if lbr.provenance == TRACE => {
            format!("the trace of {}, {} taken branches", lbr.event, number(lbr.branches))
        }
        None => {
            let simulated = simulated(Some(lbr.provenance));
            format!("{} of {}{simulated}", counted(lbr.samples, "branch stack", "branch stacks"), lbr.event)
        }
    });
    match (head.source, samples, branches) {
        ("ebs", Some(samples), _) => samples,
        ("lbr", _, Some(branches)) => branches,
        (_, Some(samples), Some(branches)) => format!("{branches}, and {samples}; {}", head.choice),
        _ => head.choice.clone(),
    }
}

/// All lines of a head: a title, or none where a line goes on with what the one before it says, and a text.
pub fn head_lines(head: &Head, instructions: f64) -> Vec<(&'static str, String)> {
    let source = match head.source {
        "exact" | "flow" => head.choice.clone(),
        source => format!("{source} ({})", head.choice),
    };
    let mut lines = vec![("source", source)];
    if let Some(ebs) = &head.ebs_source {
        let by = ebs.provenance.map_or(String::new(), |provenance| format!(", {provenance}"));
        lines.push(("ebs", format!("{}: {}{by}", ebs.event, counted(ebs.samples, "sample", "samples"))));
    }
    if let Some(lbr) = &head.lbr_source {
        let [samples, branches, streams] = [lbr.samples, lbr.branches, lbr.streams].map(|n| count(n as f64));
        let broken = lbr.broken.total() as f64;
        let streams = format!("{streams} streams, {} broken ({})", count(broken), share(broken, lbr.streams as f64));
        match &lbr.bursts {
            None => {
                let by = if lbr.provenance == SIMULATED { ", simulated" } else { "" };
                lines.push(("lbr", format!("{}: {samples} samples{by}, {branches} branches, {streams}", lbr.event)))
            }
            Some(bursts) => {
                lines.push(("lbr", format!("{}: traced in software; {streams}", lbr.event)));
                lines.extend(lines_of_bursts(bursts));
            }
        }
    }
    lines.extend(
        head.unused_events
            .iter()
            .map(|unused| ("unused", format!("{}: {}", unused.event, counted(unused.samples, "sample", "samples")))),
    );
    let [lost, throttled, malformed, unknown] =
        [head.lost, head.throttled, head.malformed, head.unknown_records].map(|n| count(n as f64));
    lines.push((
        "lost",
        format!("{lost} samples; throttled {throttled} times; records: {malformed} malformed, {unknown} unknown"),
    ));
    lines.extend(head.degraded.iter().map(|degraded| ("degraded", degraded.clone())));
    let instructions = count(instructions);
    lines.push((
        "counts",
        match head.unit {
            "executions" => format!("executions; {instructions} instructions executed"),
            _ => format!("relative, to be compared only with each other; their sum is {instructions}"),
        },
    ));
    lines.extend(head.precision.iter().map(|precision| ("errors", precision.text.clone())));
    lines
}

fn lines_of_bursts(of: &Bursts) -> Vec<(&'static str, String)> {
    let [bursts, instructions, branches] = [of.bursts as f64, of.mean_instructions, of.mean_branches].map(count);
    let weight = match of.weighted_by.as_str() {
        "nanoseconds" if of.divided_by_cost => "the CPU time it stands for / the cost of code where it starts",
        "nanoseconds" => "the CPU time it stands for",
        "instructions" => "the instructions it stands for",
        _ => "the events it stands for",
    };
    let core = of
        .core
        .map(|core| format!(" ({core} core{})", if of.calibrated { ", calibrated" } else { "" }))
        .unwrap_or_default();
    let mut lines = vec![
        ("bursts", format!("{bursts}; mean: {instructions} instructions, {branches} branches")),
        ("", format!("each burst weighs {weight}{core}")),
    ];
    if let Some(tracer) = &of.tracer {
        let kind = tracer.kind.as_deref().unwrap_or("of unknown kind");
        if let Some(times) = tracer.idle {
            lines.push(("tracer", format!("{kind}; {}", idle(times))));
            return lines;
        }
        let overhead = tracer.overhead.map(|overhead| format!(", overhead {}", share(overhead, 100.0)));
        let credit = tracer.start_credit_ns.filter(|&credit| credit > 0);
        let credit = credit.map(|credit| format!(", up to {} ms of it allowed for the start", credit as f64 / 1e6));
        lines.push(("tracer", format!("{kind}{}{}", overhead.unwrap_or_default(), credit.unwrap_or_default())));
    }
    lines
}
