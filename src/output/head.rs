//! The head of a report as lines.

use std::io::Write;

use reports::Head;

use crate::output::{Layout, in_markdown, printable};

/// Prints a head as lines that start with `#`, with the instructions executed in all; broken at words where there is a limit.
pub fn print_head(head: &Head, instructions: f64, out: &mut dyn Write, layout: Layout) -> std::io::Result<()> {
    let mut lines = if head.verbose { head.lines(instructions) } else { head.in_short(instructions) };
    if head.verbose && head.is_kept {
        lines.push(("cache", "analysed before (--no-cache analyses anew)".to_owned()));
    }
    for (title, text) in lines {
        print_line(title, &text, out, layout)?;
    }
    writeln!(out)
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
