//! Signals: many, of every kind, with handlers that do not return, and the very ones a tracer uses.

use crate::trial::{Trial, check};

#[test]
fn timers_at_some_kilohertz() {
    if let Some(trial) = Trial::of("timers") {
        check(&trial);
    }
}

#[test]
fn faults_that_are_repaired() {
    if let Some(trial) = Trial::of("faults") {
        check(&trial);
    }
}

#[test]
fn queued_signals_in_order() {
    if let Some(trial) = Trial::of("queued") {
        check(&trial);
    }
}

#[test]
fn signals_of_the_tracer_that_the_program_handles() {
    for flags in [&[][..], &["-DSIGNAL=SIGWINCH"], &["-DSIGNAL=SIGWINCH", "-DOTHER=SIGURG"]] {
        if let Some(trial) = Trial::built("urgent", flags) {
            check(&trial);
        }
    }
}

/// SIGWINCH could be on its way when the program blocks it.
#[test]
fn sigurg_blocked_and_waited_for() {
    if let Some(trial) = Trial::of("urgent_blocked") {
        check(&trial);
    }
}

#[test]
fn handlers_that_do_not_return() {
    if let Some(trial) = Trial::of("jumps") {
        check(&Trial { code: 7, ..trial });
    }
}

#[test]
fn sigtrap_of_the_program() {
    if let Some(trial) = Trial::of("traps") {
        check(&trial);
    }
}
