//! Rows as Parquet: `hbbp-fleet` makes them of CSV, so that its libraries are there for those who want them.

use std::io::{BufWriter, ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail};
use collector::is_standard_output;

use crate::fleet::{NOT_INSTALLED, program};

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

/// Calls `print` with what takes CSV, and writes its rows to the file, or to standard output.
pub fn write(file: Option<&Path>, print: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let mut fleet = match file.filter(|path| !is_standard_output(path)) {
        Some(file) => {
            let mut words = vec!["parquet".as_ref(), "-o".as_ref()];
            words.push(file.as_os_str());
            start(&words, Stdio::inherit())?
        }
        None => start(&["parquet"], Stdio::inherit())?,
    };
    let rows = fleet.stdin.take().context("hbbp-fleet has no standard input")?;
    let mut out = BufWriter::new(rows);
    let printed = print(&mut out).and_then(|()| Ok(out.flush()?));
    if printed.is_err() {
        // Without its end it is no table.
        fleet.kill()?;
    }
    drop(out);
    let status = fleet.wait()?;
    match printed {
        // It has said why.
        _ if !status.success() && status.code().is_some() => bail!("hbbp-fleet could not write the table"),
        printed => printed,
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
