//! A program that is recorded sees what it sees alone. `programs/` has more than a hundred kinds of things that a program can see: what system calls
//! return and how long they take while signals come that do nothing, which signals come and wait, what becomes of processes, threads and
//! limits. Each prints what it saw, alone and recorded, and both must be the same; what differs is run a second time, and must not differ again.

mod programs;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use testing::Alone;

/// What visits cannot help (guide: record, "From outside"): a thread that blocks the signal it is asked to stop by, in the microseconds between,
/// has it waiting until it lets it through; a program that asks which signals wait may see it. One that asks who traces it, in the microseconds in
/// which it is asked to stop, sees the recorder.
const SEEN_OF_VISITS: [&str; 4] =
    ["none_is_pending", "none_wait_for_a_collecting_thread", "none_wait_for_a_collector", "says_who_traces_it"];

/// What agents cannot help (guide: record, "What is left in the program"): a program that takes all signals for itself, or asks which wait,
/// after its agent is there, sees the clock's until the recorder notices; one that filters its system calls then is killed for the agent's, if
/// its code does not show that it makes filters. One that is stopped when the clock's signal comes has it waiting until it goes on (twice in
/// 4,000 stops at 100 %).
const SEEN_OF_AGENTS: [&str; 7] = [
    "filtered_by_hidden_code",
    "none_come_to_a_handler",
    "no_signal_waits_for_the_stopped",
    "none_is_pending",
    "none_wait_for_a_collecting_thread",
    "none_wait_for_a_collector",
    "urgent",
];

/// What each kind said, and how it ended.
type Seen = BTreeMap<String, Vec<String>>;

/// What the program printed, by kind.
fn seen(output: &Path) -> Seen {
    let mut seen = Seen::new();
    for line in fs::read_to_string(output).unwrap().lines() {
        let (kind, said) = line.split_once(": ").unwrap_or((line, ""));
        seen.entry(kind.to_owned()).or_default().push(said.to_owned());
    }
    seen
}

/// Runs a command with its output in a file of the folder.
fn run(command: &mut Command, folder: &Path, name: &str) -> (ExitStatus, Seen) {
    let output = folder.join(name);
    let errors = File::create(folder.join(format!("{name}.errors"))).unwrap();
    let status = command.stdin(Stdio::null()).stdout(File::create(&output).unwrap()).stderr(errors).status().unwrap();
    (status, seen(&output))
}

fn record(options: &[&str], folder: &Path) -> Command {
    let mut record = Command::new(env!("CARGO_BIN_EXE_hbbp"));
    record.args(["record", "-q", "--burst", "1000", "-o"]).arg(folder.join("hbbp.data")).args(options);
    record
}

/// The kinds that saw something else than alone, but for these.
fn changed(alone: &Seen, recorded: &Seen, known: &[&str]) -> Vec<String> {
    let kinds: BTreeSet<&String> = alone.keys().chain(recorded.keys()).collect();
    let differ =
        kinds.into_iter().filter(|&kind| !known.contains(&kind.as_str()) && alone.get(kind) != recorded.get(kind));
    differ.map(|kind| format!("{kind}: alone {:?}, recorded {:?}", alone.get(kind), recorded.get(kind))).collect()
}

/// The kinds that are said to have changed.
fn kinds_of(changed: &[String]) -> Vec<&str> {
    changed.iter().filter_map(|said| Some(said.split_once(": ")?.0)).collect()
}

/// What these kinds saw.
fn only(seen: &Seen, kinds: &[&str]) -> Seen {
    let of_these = seen.iter().filter(|(kind, _)| kinds.contains(&kind.as_str()));
    of_these.map(|(kind, said)| (kind.clone(), said.clone())).collect()
}

/// Records the programs in each of these ways, and compares.
fn compare(flags: &[&str], ways: &[&[&str]], known: &[&str]) {
    let _alone = Alone::wait();
    for (program, least) in [(programs::kinds(flags), 60), (programs::filtering(flags), 6)] {
        let Some(program) = program else { continue };
        compare_program(&program, least, ways, known);
    }
}

/// What a program sees alone: one run serves all tests.
fn alone(program: &Path) -> Seen {
    static SEEN: Mutex<BTreeMap<PathBuf, Seen>> = Mutex::new(BTreeMap::new());
    let mut all = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let run_once = || {
        let folder = tempfile::tempdir().unwrap();
        let (status, seen) = run(&mut Command::new(program), folder.path(), "alone");
        assert!(status.success(), "{status}");
        seen
    };
    all.entry(program.to_owned()).or_insert_with(run_once).clone()
}

/// The same of one program, which has so many kinds at least.
fn compare_program(program: &Path, least: usize, ways: &[&[&str]], known: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let alone = alone(program);
    assert!(alone.len() >= least, "only {} kinds", alone.len());
    for way in ways {
        let (status, recorded) = run(record(way, folder.path()).arg("--").arg(program), folder.path(), "recorded");
        assert!(status.success(), "{way:?}: {status}");
        let once = changed(&alone, &recorded, known);
        if once.is_empty() {
            continue;
        }
        // On a busy machine a kind may be late by chance, or meet the microseconds in which its thread is asked to stop. What the recorder
        // changes is changed again.
        println!("{way:?}, once: {}", once.join("\n"));
        let kinds = kinds_of(&once);
        let (_, again) = run(record(way, folder.path()).arg("--").arg(program).args(&kinds), folder.path(), "again");
        let twice = changed(&only(&alone, &kinds), &again, known);
        assert!(twice.is_empty(), "{way:?}, twice: {}", twice.join("\n"));
    }
}

#[test]
fn visits_are_not_seen() {
    let ways: [&[&str]; 2] =
        [&["--tracer", "lookahead", "--overhead", "30"], &["--tracer", "lookahead", "--overhead", "1"]];
    compare(&[], &ways, &SEEN_OF_VISITS);
}

#[test]
fn visits_are_not_seen_by_32_bit_code() {
    compare(&["-m32"], &[&["--tracer", "lookahead", "--overhead", "30"]], &SEEN_OF_VISITS);
}

#[test]
fn of_agents_only_that_is_seen_which_is_known() {
    compare(
        &[],
        &[&["--tracer", "agent", "--overhead", "30"], &["--tracer", "agent", "--overhead", "1"]],
        &SEEN_OF_AGENTS,
    );
}

#[test]
fn samples_alone_are_not_seen() {
    compare(&[], &[&["--tracer", "none"]], &[]);
}

/// What a program saw of these kinds, or all, while the recorder came and went; and how often it did.
fn while_recorders_come_and_go(program: &Path, kinds: &[&str], folder: &Path) -> (Seen, u32) {
    let output = folder.join("recorded");
    let mut command = Command::new(program);
    let mut running = command.args(kinds).stdin(Stdio::null()).stdout(File::create(&output).unwrap()).spawn().unwrap();
    let pid = running.id().to_string();
    let mut recordings = 0;
    while running.try_wait().unwrap().is_none() {
        let options = ["--tracer", "lookahead", "--overhead", "30", "--duration", "0.7", "-p", &pid];
        let status = record(&options, folder).output();
        recordings += u32::from(status.unwrap().status.success());
        std::thread::sleep(Duration::from_millis(50));
    }
    (seen(&output), recordings)
}

/// The recorder comes while the program runs, and goes before it ends; then another one.
#[test]
fn coming_and_going_is_not_seen() {
    let _alone = Alone::wait();
    let Some(program) = programs::kinds(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let alone = alone(&program);
    let (recorded, recordings) = while_recorders_come_and_go(&program, &[], folder.path());
    assert!(recordings > 3, "{recordings} recordings");
    let once = changed(&alone, &recorded, &SEEN_OF_VISITS);
    if !once.is_empty() {
        println!("once: {}", once.join("\n"));
        let (again, _) = while_recorders_come_and_go(&program, &kinds_of(&once), folder.path());
        let twice = changed(&only(&alone, &kinds_of(&once)), &again, &SEEN_OF_VISITS);
        assert!(twice.is_empty(), "twice: {}", twice.join("\n"));
    }
}
