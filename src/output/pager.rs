//! A program that shows long output page by page.

use std::ffi::OsString;
use std::io::{BufWriter, Write};
use std::process::{Command, Stdio};

use collector::{find_program, ignore_interrupts, with_inherited};

/// Calls `print` with a pager, or with standard output where there is none. `HBBP_PAGER` and `PAGER` name one, as a
/// command of the shell; empty, or `cat`, is none.
pub fn page(print: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let started = pager().and_then(|mut command| with_inherited(&mut command).stdin(Stdio::piped()).spawn().ok());
    let Some(mut pager) = started else { return super::write_to(None, print) };
    // Ctrl-C is for the pager.
    ignore_interrupts();
    let printed = match pager.stdin.take() {
        Some(stdin) => {
            let mut out = BufWriter::with_capacity(1 << 16, stdin);
            print(&mut out).and_then(|()| Ok(out.flush()?))
        }
        None => Ok(()),
    };
    // As a shell says that it cannot run a command.
    const NOT_RUN: [i32; 2] = [126, 127];
    let ended = pager.wait()?;
    anyhow::ensure!(
        ended.code().is_none_or(|code| !NOT_RUN.contains(&code)),
        "the pager cannot be started: set HBBP_PAGER (or PAGER) to a command that can, or to nothing for none"
    );
    printed
}

fn pager() -> Option<Command> {
    let named = |name| std::env::var_os(name);
    let command = match named("HBBP_PAGER").or_else(|| named("PAGER")) {
        Some(command) if command.is_empty() || command == "cat" => return None,
        Some(command) => command,
        None => {
            find_program(&OsString::from("less")).ok()?;
            "less -FRX".into()
        }
    };
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command);
    if named("LESS").is_none() {
        // As git does, so that any `less` shows colours.
        shell.env("LESS", "FRX");
    }
    Some(shell)
}
