//! Rows as Parquet: `hbbp-fleet` makes them of CSV, so that its libraries are there for those who want them.

use std::ffi::OsString;
use std::io::{BufWriter, ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail};
use collector::is_standard_output;

use crate::fleet::{NOT_INSTALLED, program};

/// Columns of reports that are texts, whatever is in them. Those of pivots have the names of their keys.
const TEXTS: &[&str] = &[
    "module",
    "function",
    "block",
    "loop",
    "header",
    "start",
    "end",
    "address",
    "instruction",
    "target",
    "path",
    "file",
    "inlined",
    "trip_histogram",
    "kind",
    "name",
    "packing",
    "names_before",
    "names_after",
];

/// Whether Parquet can be written there.
///
/// # Errors
/// It would go to a terminal, or there is no `hbbp-fleet`.
pub fn check(file: Option<&Path>) -> anyhow::Result<()> {
    if file.is_none_or(is_standard_output) && std::io::stdout().is_terminal() {
        bail!("Parquet is for programs, not for a terminal: name a file with -o");
    }
    start(&["--version"], Stdio::null())?.wait()?;
    Ok(())
}

/// Calls `print` with what takes CSV, and writes its rows to the file, or to standard output. `keys`: columns that are texts, too.
pub fn write(
    file: Option<&Path>,
    keys: &[String],
    print: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let texts: Vec<&str> = TEXTS.iter().copied().chain(keys.iter().map(String::as_str)).collect();
    let mut words: Vec<OsString> = vec!["parquet".into(), "--text".into(), texts.join(",").into()];
    if let Some(file) = file.filter(|path| !is_standard_output(path)) {
        words.extend(["-o".into(), file.into()]);
    }
    let mut fleet = start(&words, Stdio::inherit())?;
    let rows = fleet.stdin.take().context("hbbp-fleet has no standard input")?;
    let mut out = BufWriter::new(rows);
    let printed = print(&mut out).and_then(|()| Ok(out.flush()?));
    if printed.is_err() {
        // Without its end it is no table.
        fleet.kill()?;
    }
    drop(out);
    let status = fleet.wait()?;
    match (printed, status.code()) {
        (Ok(()), Some(0)) => Ok(()),
        (Err(why), None | Some(0)) => Err(why),
        // It has said why; that it takes no more is what follows from it.
        (_, Some(_)) => bail!("hbbp-fleet could not write the table"),
        (Ok(()), None) => bail!("hbbp-fleet could not write the table: it was killed ({status})"),
    }
}

fn start<S: AsRef<std::ffi::OsStr>>(words: &[S], out: Stdio) -> anyhow::Result<Child> {
    let program = program();
    let started = Command::new(&program).args(words).stdin(Stdio::piped()).stdout(out).spawn();
    started.map_err(|error| match error.kind() {
        ErrorKind::NotFound => anyhow::anyhow!("Parquet is written by hbbp-fleet: {NOT_INSTALLED}"),
        _ => anyhow::Error::from(error).context(program.display().to_string()),
    })
}
