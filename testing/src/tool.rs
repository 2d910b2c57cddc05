use std::path::Path;
use std::process::{Command, Stdio};

use crate::{Skip, skip};

/// Variables for AutoFDO's tools: without them, a log of hundreds of megabytes is in /tmp after each run.
pub const LITTLE_LOG: [(&str, &str); 1] = [("GLOG_minloglevel", "2")];

/// Whether a program can be started; says so when not.
pub fn has(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let found = command.status().is_ok();
    if !found {
        skip(Skip::Tool, format_args!("{program} is not installed"));
    }
    found
}

/// A program in a folder that is not on the path; says so when it is not there.
pub fn tool(path: &Path) -> Option<Command> {
    if path.exists() {
        return Some(Command::new(path));
    }
    skip(Skip::Tool, format_args!("{} is not installed", path.display()));
    None
}
