//! Where what was asked for goes: a file that is there as a whole or not at all, or standard output; and what is said beside it.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::store::{Unfinished, folder_of};

/// Says something on standard error. Names of files and texts of recordings may be in it.
pub fn say(text: &str) {
    eprintln!("hbbp-fleet: {}", printable(text));
}

/// So many steps are made without a word.
const FEW: usize = 10;

/// Says now and then how far it is with something of many steps, as `10 of 30 files are compared`.
pub fn say_how_far(number: usize, all: usize, what: &str) {
    if all > FEW && number.is_multiple_of(FEW) {
        say(&format!("{number} of {all} {what}"));
    }
}

/// A text with its control characters as Rust writes them; lines stay lines.
pub fn printable(text: &str) -> String {
    let of = |c: char| if c.is_control() && c != '\n' { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(of).collect()
}

/// An output that has begun.
pub enum Output {
    /// Standard output.
    Standard,
    /// A pipe or a device, which stays what it is.
    Device(PathBuf),
    /// A file: what was there stays until it is complete.
    File(Unfinished, PathBuf),
}

impl Output {
    /// Begins the output: to a file, or without one to standard output.
    ///
    /// # Errors
    /// The folder of the file cannot be written.
    pub fn begin(file: Option<&Path>) -> anyhow::Result<Self> {
        Ok(match file {
            None => Self::Standard,
            Some(file) if file.exists() && !file.is_file() => Self::Device(file.to_owned()),
            // A link is followed.
            Some(file) => {
                let file = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
                Self::File(Unfinished::begin(folder_of(&file))?, file)
            }
        })
    }

    /// What writes it.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn writer(&self) -> anyhow::Result<Box<dyn Write + Send>> {
        Ok(match self {
            Self::Standard => Box::new(std::io::stdout()),
            Self::Device(file) => Box::new(File::create(file).with_context(|| file.display().to_string())?),
            Self::File(unfinished, _) => Box::new(unfinished.writer()?),
        })
    }

    /// It is complete.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Standard | Self::Device(_) => Ok(()),
            Self::File(unfinished, file) => unfinished.finish(file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn what_would_steer_a_terminal_is_shown() {
        assert_eq!(printable("a\u{1b}[31mb\u{9b}\r\n\u{fc}"), "a\\u{1b}[31mb\\u{9b}\\r\n\u{fc}");
    }
}
