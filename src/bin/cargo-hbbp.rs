//! `cargo hbbp`: cargo runs the program `cargo-hbbp` for it, and this one is replaced by `hbbp` with the same words. After `pgo --`, `run` is
//! `cargo run`.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
    // Cargo says its own name for the program first.
    if words.first().is_some_and(|word| word == "hbbp") {
        words.remove(0);
    }
    if words.first().is_some_and(|word| word == "pgo")
        && let Some(end) = words.iter().position(|word| word == "--")
        && words.get(end + 1).is_some_and(|word| word != "cargo")
    {
        words.insert(end + 1, "cargo".into());
    }
    // The one that was installed with it.
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name("hbbp")).filter(|file| file.is_file());
    let program = beside.unwrap_or_else(|| PathBuf::from("hbbp"));
    let error = Command::new(&program).args(words).exec();
    eprintln!("cargo hbbp: cannot run {}: {error}; install hbbp, which does the work", program.display());
    ExitCode::from(127)
}
