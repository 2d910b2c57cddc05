//! What is said beside the output: on standard error.

use std::io::{self, Write};

use textwrap::{Options, WordSplitter};

use crate::output::{columns_of, printable};

/// [`say`] of a formatted text.
macro_rules! say {
    ($($format:tt)+) => { $crate::output::say(format!($($format)+)) };
}

const PREFIX: &str = "hbbp: ";

/// Says a sentence, or several lines of them, on standard error; on a terminal they are broken at words. Control characters are escaped:
/// sentences have names from recordings and files in them. Where nothing can be said, as on a terminal that is lost, the work goes on.
pub fn say(text: impl AsRef<str>) {
    let mut errors = io::stderr().lock();
    let width = columns_of(&errors);
    for line in text.as_ref().lines() {
        // Standard error has no buffer: each piece would be a system call.
        let _ = errors.write_all((broken(&printable(line), width) + "\n").as_bytes());
    }
}

/// With the name of the program, and lines that go on below its text.
fn broken(line: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return format!("{PREFIX}{line}") };
    let indent = " ".repeat(PREFIX.len());
    // Paths and addresses stay whole, to be copied.
    let options = Options::new(width).initial_indent(PREFIX).subsequent_indent(&indent);
    textwrap::fill(line, options.word_splitter(WordSplitter::NoHyphenation).break_words(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_words_where_a_terminal_ends() {
        let said = "this machine has no PMU: /a/path/that/is/longer/than/a/line is read";
        assert_eq!(broken(said, None), format!("hbbp: {said}"));
        assert_eq!(
            broken(said, Some(30)),
            "hbbp: this machine has no PMU:\n      /a/path/that/is/longer/than/a/line\n      is read"
        );
    }
}
