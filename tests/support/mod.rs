//! Where the tests find things, and how they run the command.
#![allow(dead_code, unused_imports)] // Each test program uses a part of it.

use std::process::{Command, Output};

pub use testing::{Fixture, Skip, has, skip};

/// Where there is no folder, and none can be made.
pub const NO_FOLDER: &str = "/dev/null";

/// The `hbbp` that was built for this test; models that the user imported are out of its sight, and every analysis is made anew.
pub fn hbbp() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hbbp"));
    command.env("XDG_DATA_HOME", "/nonexistent").env("XDG_CACHE_HOME", NO_FOLDER);
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

/// The same of `command` with a recording and its binary behind it.
pub fn stdout_of(command: &[&str], fixture: &Fixture) -> String {
    let input = fixture.input();
    stdout(&[command, &input.each_ref().map(String::as_str)].concat())
}
