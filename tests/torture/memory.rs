//! The collector's memory is bounded, however long it records: `HBBP_TORTURE_SECONDS` sets how long (5 without).

use std::env;
use std::thread::sleep;
use std::time::Duration;

use crate::contents::Contents;
use crate::kept::Kept;
use crate::running::announced;
use crate::status::kib;
use crate::tracer;
use crate::trial::{Trial, check_right};

/// What a collector may ever use: rings of half a MiB per CPU, the code of a small program decoded once, the pages of a burst, and
/// the state of some hundred threads are tens of MiB together.
const MOST_KIB: u64 = 200 * 1024;
/// What it may use more in the second half of a recording than in the first: some pages that the allocator had not touched.
const GROWTH_KIB: u64 = 2 * 1024;

/// Some thousand threads a second, not many at a time: what each had must be given back.
#[test]
fn memory_with_threads_that_come_and_go() {
    bounded("threads", &["16"]);
}

#[test]
fn memory_with_signals_and_system_calls() {
    bounded("syscalls", &[]);
}

/// Runs a program with its time and `more` arguments.
fn bounded(name: &str, more: &[&str]) {
    let seconds: u64 = env::var("HBBP_TORTURE_SECONDS").map_or(5, |seconds| seconds.parse().unwrap());
    let Some(trial) = Trial::of(name) else { return };
    let trial = trial.with(&[&(seconds * 1000).to_string()]).with(more);
    let dir = trial.place.empty("recorded");
    let kept = Kept::start(&dir, &[], &tracer::record_command(&trial.command)).unwrap();
    announced(&dir);
    sleep(Duration::from_millis(seconds * 450));
    let early = kib(kept.pid(), "VmRSS");
    sleep(Duration::from_millis(seconds * 450));
    let (late, peak) = (kib(kept.pid(), "VmRSS"), kib(kept.pid(), "VmHWM"));
    check_right(&trial, &kept.end());
    let metadata = Contents::of(&dir.join("hbbp.data")).metadata;
    eprintln!("{name}: {early} KiB, later {late} KiB, at most {peak} KiB: {metadata}");
    assert!(peak < MOST_KIB, "{name}: {peak} KiB");
    assert!(late <= early + GROWTH_KIB, "{name}: {early} KiB, later {late} KiB");
}
