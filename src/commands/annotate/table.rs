//! Annotated code for people.

use std::io::Write;

use analyzer::annotate::{AnnotatedFunction, Seen, SourceTexts};

use super::{Report, code, heading};
use crate::output::{Layout, MARKED, Role, in_markdown, more, print_head, print_line, printable, share};

const NOT_SEEN: &str = "not seen: neither a sample nor a branch stack has it, so it ran seldom or never";
const NOT_READABLE: &str = "not readable: no instructions could be decoded there";

/// Prints all functions.
pub fn print(report: &Report<'_>, texts: &mut SourceTexts, out: &mut dyn Write) -> anyhow::Result<()> {
    let annotation = report.of.annotation;
    print_head(report.head, report.of.instructions, out, report.layout)?;
    for (index, function) in annotation.functions.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        title(report, function, out)?;
        code::listing(&report.of, function, texts).print(out, report.layout, report.colours)?;
    }
    writeln!(out)?;
    for lacks in &annotation.lacks {
        print_line("lacks", lacks, out, report.layout)?;
    }
    let left_out = annotation.ranked.get(annotation.functions.len()..).unwrap_or_default();
    if !left_out.is_empty() {
        let rest: f64 = left_out.iter().map(|of| of.share).sum();
        let more = more(left_out.len(), ["function", "functions"], &share(rest, 1.0));
        wrapped(report, &more, Role::Plain, out)?;
    }
    let any = |is: &dyn Fn(&AnnotatedFunction) -> bool| annotation.functions.iter().any(is);
    let says = [
        (NOT_SEEN, any(&|of| of.blocks.iter().any(|block| block.seen == Seen::Not))),
        (NOT_READABLE, any(&|of| !of.unreadable.is_empty() && report.of.why_unread(of).is_none())),
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
    wrapped(report, &heading::title(&report.of, function), Role::Title, out)?;
    wrapped(report, &heading::facts(&report.of, function), Role::Plain, out)
}

/// A text, broken at words where there is a limit.
fn wrapped(report: &Report<'_>, text: &str, role: Role, out: &mut dyn Write) -> std::io::Result<()> {
    let text = printable(text);
    match report.layout.width() {
        None if report.layout == Layout::Markdown => writeln!(out, "{}\n", in_markdown(&text)),
        None => writeln!(out, "{}", report.colours.paint(role, &text)),
        Some(width) => {
            let options = textwrap::Options::new(width).word_splitter(textwrap::WordSplitter::NoHyphenation);
            let mut lines = textwrap::wrap(&text, options).into_iter();
            lines.try_for_each(|line| writeln!(out, "{}", report.colours.paint(role, &line)))
        }
    }
}
