//! Annotated code for people.

use std::io::Write;
use std::path::Path;

use analyzer::annotate::{AnnotatedFunction, Seen, SourceTexts};

use super::summary::{of_time, times};
use super::{Report, code};
use crate::output::{MARKED, Role, count, print_line, printable, rounded, share, share_cells};

const NOT_SEEN: &str = "not seen: neither a sample nor a branch stack has it, so it ran seldom or never";
const NOT_READABLE: &str = "not readable: no instructions could be decoded there";

/// Prints all functions.
pub fn print(report: &Report<'_>, texts: &mut SourceTexts, out: &mut dyn Write) -> anyhow::Result<()> {
    let annotation = report.annotation;
    report.head.print(report.instructions, out, report.width)?;
    for (index, function) in annotation.functions.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        title(report, function, out)?;
        code::listing(report, function, texts).print(out, report.width, report.colours)?;
    }
    writeln!(out)?;
    for lacks in &annotation.lacks {
        print_line("lacks", lacks, out, report.width)?;
    }
    let left_out = annotation.ranked.get(annotation.functions.len()..).unwrap_or_default();
    if !left_out.is_empty() {
        let rest: f64 = left_out.iter().map(|of| of.share).sum();
        let plural = if left_out.len() == 1 { "" } else { "s" };
        let more = format!("... {} more function{plural} with {}", left_out.len(), share(rest, 1.0));
        wrapped(report, &format!("{more} (--top 0 shows them)"), Role::Plain, out)?;
    }
    let any = |is: &dyn Fn(&AnnotatedFunction) -> bool| annotation.functions.iter().any(is);
    let says = [
        (NOT_SEEN, any(&|of| of.blocks.iter().any(|block| block.seen == Seen::Not))),
        (NOT_READABLE, any(&|of| !of.unreadable.is_empty())),
        (MARKED, any(&|of| of.share_interval.rests_on_little || of.blocks.iter().any(is_marked))),
    ];
    for (text, _) in says.into_iter().filter(|(_, is_so)| *is_so) {
        wrapped(report, text, Role::Plain, out)?;
    }
    Ok(())
}

fn is_marked(block: &analyzer::annotate::AnnotatedBlock) -> bool {
    block.seen == Seen::Counted && block.share_interval.rests_on_little
}

/// What is above the code of a function.
fn title(report: &Report<'_>, function: &AnnotatedFunction, out: &mut dyn Write) -> std::io::Result<()> {
    let path = report.module(function);
    let file = Path::new(path).file_name().map_or(path.to_owned(), |name| name.to_string_lossy().into_owned());
    wrapped(report, &format!("{} ({file})", function.name), Role::Title, out)?;
    let [part, error] = share_cells(function.executed, report.instructions, function.share_interval);
    let error = if error.is_empty() { error } else { format!(" ± {error}") };
    let executed = count(rounded(function.executed, function.executed_interval));
    let mut facts = vec![format!("{part}{error} of all instructions: {executed}")];
    facts.extend(function.time.filter(|time| time.samples > 0).map(|time| {
        let long = report
            .time_per_instruction(function)
            .map_or(String::new(), |long| format!(" ({} per instruction)", times(long)));
        format!("{} of the time{long}", share_cells(time.share, 1.0, of_time(time))[0])
    }));
    facts.extend(function.calls.map(|calls| match calls {
        0.0 => "no call of it was seen".to_owned(),
        1.0 => "1 call".to_owned(),
        calls => format!("{} calls", count(calls)),
    }));
    let seen = function.blocks.iter().filter(|block| code::is_seen(block)).count();
    let blocks = function.blocks.iter().filter(|block| block.seen != Seen::Padding).count();
    facts.push(format!("{seen} of {blocks} blocks seen"));
    match &function.loops {
        Some(loops) if loops.len() == 1 => facts.push("1 loop".into()),
        Some(loops) if !loops.is_empty() => facts.push(format!("{} loops", loops.len())),
        Some(_) => {}
        None => facts.push("its code is too entangled to look for loops".into()),
    }
    wrapped(report, &facts.join("; "), Role::Plain, out)
}

/// A text, broken at words where there is a limit.
fn wrapped(report: &Report<'_>, text: &str, role: Role, out: &mut dyn Write) -> std::io::Result<()> {
    let text = printable(text);
    match report.width {
        None => writeln!(out, "{}", report.colours.paint(role, &text)),
        Some(width) => {
            let options = textwrap::Options::new(width).word_splitter(textwrap::WordSplitter::NoHyphenation);
            let mut lines = textwrap::wrap(&text, options).into_iter();
            lines.try_for_each(|line| writeln!(out, "{}", report.colours.paint(role, &line)))
        }
    }
}
