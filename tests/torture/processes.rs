//! Processes in great number, deep, orphaned, executed by another thread, left behind.

use std::fs;

use crate::contents::Contents;
use crate::kept::Kept;
use crate::place::Place;
use crate::tracer;
use crate::trial::{Trial, check, check_same};

#[test]
fn two_thousand_children() {
    if let Some(trial) = Trial::built("storm", &["-static"]) {
        check(&trial.with(&["2000"]));
    }
}

#[test]
fn parents_that_end_first() {
    if let Some(trial) = Trial::of("orphans") {
        check(&trial);
    }
}

#[test]
fn exec_by_one_of_several_threads() {
    if let Some(trial) = Trial::of("exec_thread") {
        check(&trial);
    }
}

#[test]
fn children_that_borrow_memory() {
    if let Some(trial) = Trial::of("vforks") {
        check(&trial);
    }
}

/// Pipelines of 24 commands, in shells in shells; every number must come through, and the last status.
#[test]
fn deep_pipelines_of_shells() {
    let Some(place) = Place::to_record() else { return };
    let pipeline = format!("seq 1 3000 {} | awk '{{sum += $1}} END {{print sum}}'", "| cat | sed s/x/y/".repeat(12));
    let nested = format!("(sh -c \"(sh -c 'true; seq 1 50 | wc -l'; exit 3) | tail -n 1; true\"; {pipeline})");
    let script = format!("for i in 1 2 3; do {nested}; done; sh -c 'sh -c \"exit 5\"; exit $?'");
    let command = ["sh", "-c", &script].map(str::to_owned);
    let Some(alone) = Kept::start(&place.empty("alone"), &[], &command).map(Kept::end) else { return };
    assert_eq!((alone.stdout.as_str(), alone.status.as_str()), ("50\n4501500\n".repeat(3).as_str(), "exited 5"));
    let dir = place.empty("recorded");
    let recorded = Kept::start(&dir, &[], &tracer::record_command(&command)).unwrap().end();
    check_same(&alone, &recorded);
    Contents::of(&dir.join("hbbp.data"));
}

/// The recording ends with the command; the daemon must go on, and end, by itself.
#[test]
fn daemons_that_outlive_the_command() {
    let Some(trial) = Trial::of("daemon") else { return };
    let trial = trial.with(&["daemon"]);
    if check(&trial).is_some() {
        for run in ["alone", "recorded"] {
            let said = fs::read_to_string(trial.place.path(run).join("daemon")).unwrap();
            assert_eq!(said, "the daemon outlived the program\n", "{run}");
        }
    }
}
