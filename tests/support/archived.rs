//! Archives after everything that they were made of is gone.
#![allow(dead_code)] // Each test program uses a part of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::support::hbbp;

/// Reports that have all that a recording and its files tell.
pub const REPORTS: &[&[&str]] = &[
    &["mix"],
    &["mix", "-v", "--rows", "function", "--format", "json"],
    &["mix", "--rows", "module", "--format", "csv"],
    &["blocks", "--format", "json"],
    &["annotate", "--format", "json"],
    &["paths", "--format", "json"],
    &["export", "--format", "bolt", "-o", "-"],
    &["export", "--format", "folded", "-o", "-"],
    &["export", "--format", "callgrind", "-o", "-"],
];

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A command in a folder whose user has this home, and knows no servers unless the variables name some.
pub fn command(folder: &Path, home: &Path, variables: &[(&str, &str)]) -> Command {
    let mut command = hbbp();
    command.current_dir(folder).env("HOME", home).env_remove("DEBUGINFOD_URLS").envs(variables.iter().copied());
    command
}

/// Packs `FOLDER/run.data`, whose files are found with these options and variables; removes it and what it was made of; and checks that reports of
/// the archive are the same as those of the recording were, to the byte, for a user with an empty home. Returns the archive.
pub fn reports_are_the_same(
    folder: &Path,
    options: &[&str],
    home: &Path,
    variables: &[(&str, &str)],
    remove: impl FnOnce(),
) -> PathBuf {
    let before: Vec<Output> = REPORTS
        .iter()
        .map(|report| command(folder, home, variables).args(*report).arg("run.data").args(options).output().unwrap())
        .collect();
    let pack =
        command(folder, home, variables).args(["archive", "run.data", "-o", "run.tar.zst"]).args(options).output();
    let pack = pack.unwrap();
    assert!(pack.status.success(), "{}", said(&pack));
    fs::remove_file(folder.join("run.data")).unwrap();
    remove();
    for (report, before) in REPORTS.iter().zip(before) {
        let after = command(folder, &folder.join("nobody"), &[]).args(*report).arg("run.tar.zst").output().unwrap();
        assert_eq!(said(&after), said(&before), "{report:?}");
        assert_eq!(after.status, before.status, "{report:?}: {}", said(&after));
        assert!(after.stdout == before.stdout, "{report:?}: {}", String::from_utf8_lossy(&after.stdout));
    }
    folder.join("run.tar.zst")
}
