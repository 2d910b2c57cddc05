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
/// What it may use more after a third of a recording. Pages that the allocator had not touched, and buffers that are made when they are needed,
/// come once: in one of the thirds after the first, perhaps, and not in both.
const GROWTH_KIB: u64 = 1400;

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
    let uses = [0; 3].map(|_| {
        sleep(Duration::from_millis(seconds * 300));
        kib(kept.pid(), "VmRSS")
    });
    let peak = kib(kept.pid(), "VmHWM");
    check_right(&trial, &kept.end());
    let metadata = Contents::of(&dir.join("hbbp.data")).metadata;
    eprintln!("{name}: {uses:?} KiB, at most {peak} KiB: {metadata}");
    assert!(peak < MOST_KIB, "{name}: {peak} KiB");
    let grows = uses.windows(2).all(|two| two[1] > two[0] + GROWTH_KIB);
    assert!(!grows, "{name}: {uses:?} KiB");
}
