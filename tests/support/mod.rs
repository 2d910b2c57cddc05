//! Where the tests find things, and how they run the command.
#![allow(dead_code)] // Each test program uses a part of it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The `hbbp` that was built for this test; models that the user imported are out of its sight.
pub fn hbbp() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hbbp"));
    command.env("XDG_DATA_HOME", "/nonexistent");
    command
}

/// Runs `hbbp` with these arguments.
pub fn run(arguments: &[&str]) -> Output {
    hbbp().args(arguments).output().expect("hbbp starts")
}

/// Standard output of a run that must succeed.
pub fn stdout(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "hbbp {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("output is UTF-8")
}

/// A recording made on real hardware, or `None` (said loudly) where the folder with them is not there.
pub fn recording(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("HBBP_RECORDINGS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/recordings"), PathBuf::from);
    let file = folder.join(name);
    if file.exists() {
        return Some(file);
    }
    eprintln!("SKIPPED: {} is not there; set HBBP_RECORDINGS", file.display());
    None
}

/// Whether a program can be started; says loudly when not.
pub fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        eprintln!("SKIPPED: {program} is not installed");
    }
    found
}
