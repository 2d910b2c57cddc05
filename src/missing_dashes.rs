//! `hbbp mix gzip -t file`, where `hbbp mix -- gzip -t file` was meant.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use collector::find_program;

/// Commands that take a command after `--`.
const RECORDING: [&str; 11] =
    ["record", "mix", "vectorization", "blocks", "annotate", "tui", "report", "export", "label", "validate", "truth"];

/// Adds to an error of the command line, `words`, what was probably meant: a command without `--` before it.
pub fn explain(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(meant) = meant(words)
    {
        let tip = format!("to record a command, put -- before it: {meant}");
        // What clap proposes is to be given an option of the command as a value.
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// The words with `--` before the first that is a program, and no value of an option.
fn meant(words: &[OsString]) -> Option<String> {
    let text: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    if !RECORDING.contains(&text.get(1)?.as_str()) || text.iter().any(|word| word == "--") {
        return None;
    }
    let is_free = |at: usize| !text[at].starts_with('-') && (at == 2 || !text[at - 1].starts_with('-'));
    let program = (2..text.len()).find(|&at| is_free(at) && find_program(&words[at]).is_ok())?;
    let before = text[1..program].join(" ");
    Some(format!("hbbp {before} -- {}", text[program..].join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_are_missing_before_the_program() {
        let meant = |line: &str| meant(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(meant("hbbp mix sh -c true").as_deref(), Some("hbbp mix -- sh -c true"));
        assert_eq!(meant("hbbp record --overhead 5 sh -x").as_deref(), Some("hbbp record --overhead 5 -- sh -x"));
        for other in
            ["hbbp mix -- sh -c true", "hbbp mix -o sh --rowz", "hbbp diff sh sh", "hbbp mix no-such -c", "hbbp"]
        {
            assert_eq!(meant(other), None, "{other}");
        }
    }
}
