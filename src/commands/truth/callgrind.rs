//! Running a command under valgrind's callgrind.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use analyzer::BinarySearch;
use analyzer::truth::{ExactCounter, Truth};
use anyhow::{Context, bail};
use collector::with_inherited;

use super::{files, pinned_environment};
use crate::output;

/// Functions before which counts are written and begin anew. A child begins with the counts of its parent, which would be there
/// twice; a program that becomes another one takes its counts with it.
const DUMP_BEFORE: [&str; 4] = ["fork", "vfork", "_Fork", "execve"];

/// Runs a command and counts its instructions, in all its processes. `stdout`: its standard output; `None`: that of this process.
pub fn count_under_callgrind(
    command: &[OsString],
    search: BinarySearch,
    (stdout, quiet): (Option<Stdio>, bool),
) -> anyhow::Result<Truth> {
    let folder = tempfile::Builder::new().prefix("hbbp-truth-").tempdir().context("a folder for the counts")?;
    let environment = pinned_environment();
    if !quiet {
        say!("counting every instruction under valgrind, 10 to 100 times slower");
    }
    let mut valgrind = valgrind(folder.path(), command, stdout);
    valgrind.envs(environment.iter().cloned());
    let status = with_inherited(&mut valgrind).status().map_err(explain)?;
    let files = written(folder.path(), "out.")?;
    if files.is_empty() {
        bail!("valgrind counted nothing ({status}){}", last_words(folder.path())?);
    }
    if !status.success() {
        output::say(describe(status));
    }
    let mut counter = ExactCounter::new(search);
    for file in &files {
        files::add(file, &mut counter)?;
    }
    let mut truth = counter.finish()?;
    truth.command = command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    truth.environment = environment.into_iter().collect();
    Ok(truth)
}

fn valgrind(folder: &Path, command: &[OsString], stdout: Option<Stdio>) -> Command {
    let option = |name: &str, file: &str| {
        let mut option = OsString::from(name);
        option.push(folder.join(file));
        option
    };
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--tool=callgrind", "--dump-instr=yes", "--compress-pos=no", "--compress-strings=no", "--skip-plt=no"])
        .args(["--trace-children=yes", "--quiet"])
        .args(DUMP_BEFORE.map(|function| format!("--dump-before={function}")))
        .arg(option("--callgrind-out-file=", "out.%p"))
        .arg(option("--log-file=", "log.%p"))
        .arg("--")
        .args(command);
    if let Some(stdout) = stdout {
        valgrind.stdout(stdout);
    }
    valgrind
}

fn explain(error: io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::NotFound => anyhow::anyhow!(
            "exact counts need valgrind, which is not installed: install it (Debian: `apt-get install valgrind`), or count \
             elsewhere and convert with `hbbp truth --from FILE`"
        ),
        _ => anyhow::Error::new(error).context("valgrind cannot be run"),
    }
}

fn describe(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("the command ended with exit status {code}"),
        None => format!("the command ended with {status}: what a killed process had counted is lost"),
    }
}

/// Files of that prefix, by name.
fn written(folder: &Path, prefix: &str) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // A process that was killed leaves an empty one.
        if entry.file_name().as_encoded_bytes().starts_with(OsStr::new(prefix).as_encoded_bytes())
            && entry.metadata()?.len() > 0
        {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// The last that valgrind wrote into its log; what it says before it has one, it has said on standard error.
fn last_words(folder: &Path) -> io::Result<String> {
    let mut said = String::new();
    for file in written(folder, "log.")? {
        said += &String::from_utf8_lossy(&fs::read(file)?);
    }
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
    Ok(last.map_or(String::new(), |last| format!(": {last}")))
}
