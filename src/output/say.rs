//! What is said beside the output: on standard error.

use std::io::{self, Write};

use textwrap::{Options, WordSplitter};

use crate::output::{columns_of, printable};

/// [`say`] of a formatted text.
macro_rules! say {
    ($($format:tt)+) => { $crate::output::say(format!($($format)+)) };
}

/// As every line begins that is said.
pub const PREFIX: &str = "hbbp: ";

/// Says a sentence, or several lines of them, on standard error; on a terminal they are broken at words. Control characters are escaped:
/// sentences have names from recordings and files in them. Where nothing can be said, as on a terminal that is lost, the work goes on.
pub fn say(text: impl AsRef<str>) {
    let mut errors = io::stderr().lock();
    let width = columns_of(&errors);
    for line in text.as_ref().lines() {
        // Standard error has no buffer: each piece would be a system call.
        let _ = errors.write_all((named(&printable(line), width) + "\n").as_bytes());
    }
}

/// With the name of the program, and lines that go on below its text.
fn named(line: &str, width: Option<usize>) -> String {
    width.map_or_else(|| format!("{PREFIX}{line}"), |width| broken(PREFIX, line, width))
}

/// Broken at words into lines of so many columns: the first begins with `lead`, the others are indented as far.
pub fn broken(lead: &str, text: &str, columns: usize) -> String {
    let indent = " ".repeat(lead.len());
    // Paths and addresses stay whole, to be copied.
    let options = Options::new(columns).initial_indent(lead).subsequent_indent(&indent);
    textwrap::fill(text, options.word_splitter(WordSplitter::NoHyphenation).break_words(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_words_where_a_terminal_ends() {
        let said = "this machine has no PMU: /a/path/that/is/longer/than/a/line is read";
        assert_eq!(named(said, None), format!("hbbp: {said}"));
        assert_eq!(
            named(said, Some(30)),
            "hbbp: this machine has no PMU:\n      /a/path/that/is/longer/than/a/line\n      is read"
        );
    }
}
