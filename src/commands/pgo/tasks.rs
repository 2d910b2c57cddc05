//! Commands that are run as steps: said, logged, and their failures explained.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// Lines of a log that an error shows.
const SHOWN: usize = 15;
/// Bytes of a log that are looked at for them.
const LOOKED_AT: u64 = 64 << 10;

/// This program, to do a step.
pub fn own_command() -> anyhow::Result<Command> {
    Ok(Command::new(std::env::current_exe().context("hbbp's own executable")?))
}

/// Where the program's own output goes, of the last run.
pub fn run_log(folder: &Path) -> PathBuf {
    folder.join("run.log")
}

/// Does a step with a command of this program (`record`): says it, runs it with its messages in a log in the folder, and shows those that
/// begin with one of `shows`; of several with the same beginning the last.
///
/// # Errors
/// It cannot be run, or did not succeed: with the end of what it said.
pub fn own_step(name: &str, command: &mut Command, shows: &[&str], folder: &Path) -> anyhow::Result<()> {
    say!("    hbbp {}", shown(command.get_args().map(|word| word.to_string_lossy().into_owned())));
    let log = folder.join("hbbp.log");
    let from = log.metadata().map_or(0, |file| file.len());
    logged(command, &log, &format!("hbbp {name}"))?;
    let messages = end_of(&log, from);
    for beginning in shows {
        let starts = |line: &&str| line.strip_prefix("hbbp: ").is_some_and(|line| line.starts_with(beginning));
        messages.lines().rfind(starts).into_iter().for_each(|line| say!("    {}", line.trim_start_matches("hbbp: ")));
    }
    Ok(())
}

/// Says the command, and runs it with all that it prints in the log.
///
/// # Errors
/// It cannot be run, or did not succeed: with the end of what it printed.
pub fn logged(command: &mut Command, log: &Path, what: &str) -> anyhow::Result<()> {
    let file = appended(log)?;
    let from = file.metadata().map_or(0, |file| file.len());
    let errors = file.try_clone().context("a log file")?;
    let status = command.stdin(Stdio::null()).stdout(file).stderr(errors).status();
    let status = status.with_context(|| format!("cannot run {what}"))?;
    if !status.success() {
        bail!("{what} did not succeed ({status}); the end of {}:\n{}", log.display(), tail(log, from));
    }
    Ok(())
}

/// A log to go on with.
pub fn appended(log: &Path) -> anyhow::Result<File> {
    OpenOptions::new().create(true).append(true).open(log).with_context(|| format!("cannot write {}", log.display()))
}

/// The last lines of a log that came after a place in it; empty if there are none.
pub fn tail(log: &Path, from: u64) -> String {
    let text = end_of(log, from);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(SHOWN)..].join("\n")
}

/// What came after a place in a log, of its last part.
fn end_of(log: &Path, from: u64) -> String {
    let Ok(mut file) = File::open(log) else { return String::new() };
    let length = file.metadata().map_or(0, |file| file.len());
    let mut bytes = Vec::new();
    let begins = from.max(length.saturating_sub(LOOKED_AT));
    let read = file.seek(SeekFrom::Start(begins)).and_then(|_| file.take(LOOKED_AT).read_to_end(&mut bytes));
    if read.is_ok() { String::from_utf8_lossy(&bytes).into_owned() } else { String::new() }
}

/// Removes a file of an earlier time.
pub fn remove_if_there(file: &Path) -> anyhow::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", file.display()))
        }
        _ => Ok(()),
    }
}

/// Words as one would type them in the working directory.
pub fn shown(typed: impl IntoIterator<Item = String>) -> String {
    let here = std::env::current_dir().map(|here| format!("{}/", here.display())).unwrap_or_default();
    words(typed.into_iter().map(|word| if here.len() > 1 { word.replace(&here, "") } else { word }))
}

/// Words as one would type them.
pub fn words(words: impl IntoIterator<Item = String>) -> String {
    words.into_iter().map(|word| quoted(&word)).collect::<Vec<_>>().join(" ")
}

/// A word for a shell.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+%@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_read_them_otherwise() {
        let typed = words(["a".into(), "it's".into(), String::new(), "x y".into(), "$HOME".into()]);
        assert_eq!(typed, r"a 'it'\''s' '' 'x y' '$HOME'");
    }

    #[test]
    fn the_end_of_a_log_is_of_this_time_only() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        appended(&log).unwrap().write_all(b"before\n").unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "seq 20; echo why >&2; exit 3"]);
        let error = logged(&mut command, &log, "seq").unwrap_err().to_string();
        assert!(error.contains("exit status: 3") && error.ends_with("20\nwhy") && !error.contains("before"), "{error}");
        assert_eq!(error.lines().count(), SHOWN + 1);
    }
}
