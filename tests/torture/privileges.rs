//! Programs that give up rights: seccomp filters, another user, no dumps.

use std::fs;

use crate::trial::{Trial, check};

#[test]
fn a_filter_that_kills_at_any_other_system_call() {
    if let Some(trial) = Trial::of("sealed") {
        check(&trial);
    }
}

#[test]
fn root_that_becomes_nobody() {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    if !status.lines().any(|line| line.starts_with("Uid:") && line.split_whitespace().nth(2) == Some("0")) {
        testing::skip!(Privileges, "needs root");
        return;
    }
    if let Some(trial) = Trial::of("dropped") {
        check(&trial);
    }
}
