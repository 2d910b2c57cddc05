//! System calls that wait: none may be cut short.

use crate::attaching::{Attached, LONG_MS, attach_again_and_again};
use crate::tracer;
use crate::trial::{Trial, check, check_run};

#[test]
fn waiting_is_not_cut_short() {
    if let Some(trial) = Trial::of("blocking") {
        check(&trial);
    }
}

/// Threads that no signal stops.
#[test]
fn waiting_is_not_cut_short_where_all_signals_are_blocked() {
    if tracer::kind().as_deref() == Some("breakpoint") {
        testing::skip!(TracerLimit, "no breakpoint can tell a thread that blocks all signals");
    } else if let Some(trial) = Trial::of("blocking").map(|trial| trial.with(&["900", "all"])) {
        // Nor does an agent's signal come through.
        match tracer::kind().as_deref() {
            Some("agent") => drop(check_run(&trial)),
            _ => drop(check(&trial)),
        }
    }
}

/// To attach and to detach are interruptions of their own.
#[test]
fn waiting_is_not_cut_short_by_attaching_and_detaching() {
    if let Some(trial) = Trial::of("blocking") {
        attach_again_and_again(&trial.with(&[LONG_MS]), &Attached { times: 4, seconds: "0.25" });
    }
    if tracer::kind().as_deref() == Some("breakpoint") {
        testing::skip!(TracerLimit, "no breakpoint can tell a thread that blocks all signals");
    } else if let Some(trial) = Trial::of("blocking") {
        attach_again_and_again(&trial.with(&[LONG_MS, "all"]), &Attached { times: 4, seconds: "0.25" });
    }
}
