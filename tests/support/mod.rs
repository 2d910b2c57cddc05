//! Where the tests find things, and how they run the command.
#![allow(dead_code, unused_imports)] // Each test program uses a part of it.

use std::process::{Command, Output};

pub use testing::{Fixture, Skip, has, skip};

/// Where there is no folder, and none can be made.
pub const NO_FOLDER: &str = "/dev/null";

/// The `hbbp` that was built for this test; models that the user imported are out of its sight, every analysis is made anew, and nothing
/// comes from the network.
pub fn hbbp() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hbbp"));
    command.env("XDG_DATA_HOME", "/nonexistent").env("XDG_CACHE_HOME", NO_FOLDER).env_remove("DEBUGINFOD_URLS");
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

/// What `hbbp` prints on a terminal of so many columns, with these variables; `None` (said loudly) where there is no `script`.
pub fn on_terminal(columns: usize, variables: &str, arguments: &[&str]) -> Option<String> {
    if !has("script") {
        return None;
    }
    let quoted: Vec<String> = arguments.iter().map(|argument| format!("'{argument}'")).collect();
    let command = format!(
        "stty rows 24 cols {columns}; TERM=xterm {variables} '{}' {} 2>/dev/null",
        env!("CARGO_BIN_EXE_hbbp"),
        quoted.join(" ")
    );
    let output = Command::new("script").args(["-qec", &command, "/dev/null"]).env_remove("NO_COLOR").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap().replace("\r\n", "\n");
    assert!(output.status.success(), "{text}");
    Some(text)
}
