//! What the order of branches tells: trips of loops, paths through functions and to places, cycles of blocks. Counts are known by hand.

mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use perfdata::{BranchFlags, Features};
use serde_json::Value;
use support::{Fixture, run, stdout, stdout_of};
use synthetic::{A, AROUND, B, Burst, C, D, Recorder, assemble, burst_metadata, calls};
use tempfile::TempDir;

/// `work` goes around as often as it is made to.
const LOOP: &str = "
.globl _start
.type _start, @function
_start:
    call work
    jmp _start
.size _start, .-_start
.type work, @function
work:
    nop
1:  nop
    jne 1b
    ret
.size work, .-work
.section .note.GNU-stack,\"\",@progbits
";
const START: u64 = 0x40_1000;
const BACK: u64 = 0x40_1005;
const WORK: u64 = 0x40_1007;
const HEADER: u64 = 0x40_1008;
const JNE: u64 = 0x40_1009;
const RET: u64 = 0x40_100b;
/// All instructions.
const INSTRUCTIONS: [u64; 6] = [START, BACK, WORK, HEADER, JNE, RET];

/// The branches of a call of `work` that goes around so often.
fn call(trips: usize) -> Vec<(u64, u64)> {
    let mut branches = vec![(START, WORK)];
    branches.extend(vec![(JNE, HEADER); trips - 1]);
    branches.extend([(RET, BACK), (BACK, START)]);
    branches
}

/// How many instructions branches execute from a place on.
fn length(start: u64, branches: &[(u64, u64)]) -> u64 {
    let starts = std::iter::once(start).chain(branches.iter().map(|branch| branch.1));
    let streams = starts
        .zip(branches)
        .map(|(start, (from, _))| INSTRUCTIONS.iter().filter(|at| (start..=*from).contains(at)).count() as u64);
    streams.sum()
}

fn recording(
    source: &str,
    start: fn(&Path) -> Recorder,
    features: &Features,
    record: impl FnOnce(&mut Recorder),
) -> Option<(TempDir, String)> {
    let folder = tempfile::tempdir().unwrap();
    let binary = assemble(folder.path(), "program", source, &["-Wl,--build-id=0x0123456789abcdef"])?;
    let mut recorder = start(&binary);
    record(&mut recorder);
    let file: PathBuf = folder.path().join("run.data");
    std::fs::write(&file, recorder.finish(features)).unwrap();
    Some((folder, file.to_str().unwrap().to_owned()))
}

fn traced(source: &str, record: impl FnOnce(&mut Recorder)) -> Option<(TempDir, String)> {
    recording(source, Recorder::traced, &burst_metadata("instructions"), record)
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&stdout(&[arguments, &["--format", "json"]].concat())).unwrap()
}

/// What is said of the trips of the loop.
fn histogram(file: &str) -> Value {
    let document = json(&["annotate", file, "-f", "work", "--trips"]);
    document["functions"][0]["loops"][0]["histogram"].clone()
}

/// The fewest iterations, and the share of the entries, of each bucket.
fn shares(histogram: &Value) -> BTreeMap<u64, f64> {
    let buckets = histogram["buckets"].as_array().unwrap().iter();
    buckets.map(|bucket| (bucket["least"].as_u64().unwrap(), bucket["share"].as_f64().unwrap())).collect()
}

fn near(value: f64, expected: f64, within: f64) {
    assert!((value - expected).abs() <= within, "{value} instead of {expected}");
}

#[test]
fn trips_are_counted_from_entry_to_exit() {
    let branches = [call(1), call(2), call(4), call(4), call(6)[..5].to_vec()].concat();
    let made = traced(LOOP, |recorder| {
        let instructions = length(START, &branches);
        recorder.burst(&Burst { ip: START, branches: &branches, instructions, period: instructions });
    });
    let Some((_folder, file)) = made else { return };
    let found = histogram(&file);
    // Of 5 entries 1 ends in the first iteration, 1 of the 4 others in the second, 2 of the 3 others in the fourth; the last was seen to begin its fifth.
    let shares = shares(&found);
    near(shares[&1], 0.2, 1e-9);
    near(shares[&2], 0.2, 1e-9);
    near(shares[&3], 0.4, 1e-9);
    near(found["longer"]["share"].as_f64().unwrap(), 0.2, 1e-9);
    assert_eq!((&found["longer"]["at_least"], &found["whole"], &found["cut"]), (&5.into(), &4.into(), &1.into()));
    let table = stdout(&["annotate", &file, "-f", "work", "--trips"]);
    assert!(table.contains("  trips  1: ") && table.contains("at least 5: "), "{table}");
    assert!(table.contains("4 trips seen from entry to exit, 1 cut off"), "{table}");
    let csv = stdout(&["annotate", &file, "-f", "work", "--trips", "--format", "csv"]);
    assert!(csv.contains("3-4 0.4") && csv.contains(">=5 0.2"), "{csv}");
    // Nobody asked.
    let document = json(&["annotate", &file, "-f", "work"]);
    assert_eq!(document["functions"][0]["loops"][0]["histogram"], Value::Null);
}

/// A loop that calls `throws`, which returns to where the loop catches: no way in the code leads there.
const CATCHES: &str = "
.globl _start
.type _start, @function
_start:
    call work
    jmp _start
.size _start, .-_start
.type work, @function
work:
    nop
1:  call throws
2:  nop
    jne 1b
    ret
    nop
    jmp 2b
.size work, .-work
.type throws, @function
throws:
    ret
.size throws, .-throws
.section .note.GNU-stack,\"\",@progbits
";

#[test]
fn loops_that_catch_exceptions_show_whole_trips() {
    const AGAIN: u64 = WORK + 1;
    const LATCH: u64 = AGAIN + 5;
    const CATCH: u64 = LATCH + 4;
    const THROWS: u64 = CATCH + 3;
    let comes_back = [(AGAIN, THROWS), (THROWS, LATCH)];
    let throws = [(AGAIN, THROWS), (THROWS, CATCH), (CATCH + 1, LATCH)];
    let around = [(LATCH + 1, AGAIN)];
    let begin = [(START, WORK)];
    let end = [(LATCH + 3, BACK), (BACK, START)];
    let once: [&[(u64, u64)]; 8] = [&begin, &comes_back, &around, &throws, &around, &throws, &around, &comes_back];
    let branches = [once.concat(), end.to_vec()].concat().repeat(2);
    let made = traced(CATCHES, |recorder| {
        recorder.burst(&Burst { ip: START, branches: &branches, instructions: 60, period: 60 });
    });
    let Some((_folder, file)) = made else { return };
    let found = histogram(&file);
    assert_eq!((&found["whole"], &found["cut"], &found["without_entry"]), (&2.into(), &0.into(), &0.into()), "{found}");
    // Of 3 to 4 iterations.
    assert_eq!(shares(&found), [(3, 1.0)].into());
}

/// A run whose loop goes around 1 or 20 times as often, seen through short windows at any place: bursts, or stacks of hardware.
#[test]
fn short_trips_are_not_preferred_to_those_that_are_cut_off() {
    let mut random = fastrand::Rng::with_seed(5);
    let all: Vec<(u64, u64)> = (0..3000).flat_map(|_| call(if random.bool() { 1 } else { 20 })).collect();
    let windows: Vec<usize> = (0..500).map(|_| random.usize(1..all.len() - 30)).collect();
    let bursts = traced(LOOP, |recorder| {
        for &at in &windows {
            let (ip, branches) = (all[at - 1].1, &all[at..at + 30]);
            let instructions = length(ip, branches);
            recorder.burst(&Burst { ip, branches, instructions, period: instructions });
        }
    });
    let stacks = recording(LOOP, Recorder::new, &Features::default(), |recorder| {
        windows.iter().for_each(|&at| recorder.stack(&all[at..at + 30]));
    });
    let (Some((_one, bursts)), Some((_other, stacks))) = (bursts, stacks) else { return };
    for file in [bursts, stacks] {
        let found = histogram(&file);
        let by_whole = |least: u64| {
            let buckets = found["buckets"].as_array().unwrap();
            buckets.iter().find(|bucket| bucket["least"] == least).unwrap()["whole"].as_f64().unwrap()
        };
        assert!(by_whole(1) > 1.5 * by_whole(17), "the windows show no bias: {found}");
        near(shares(&found)[&1], 0.5, 0.08);
        near(shares(&found)[&17], 0.5, 0.08);
        let error = found["buckets"][0]["share_error"].as_f64().unwrap();
        assert!(error > 0.01 && error < 0.2, "{error}");
        assert!(found["without_entry"].as_u64().unwrap() > 50 && found["cut"].as_u64().unwrap() > 50, "{found}");
    }
}

#[test]
fn hot_paths_are_between_back_edges() {
    let made = traced(synthetic::SOURCE, |recorder| {
        let branches = AROUND[1..].repeat(4);
        recorder.burst(&Burst { ip: A, branches: &branches, instructions: 4 * 52, period: 4 * 52 });
    });
    let Some((_folder, file)) = made else { return };
    let document = json(&["paths", &file]);
    let paths = document["hot"]["paths"].as_array().unwrap();
    let found: Vec<(Value, f64, f64)> = paths
        .iter()
        .map(|path| (path["blocks"].clone(), path["executions"].as_f64().unwrap(), path["length"].as_f64().unwrap()))
        .collect();
    // Of the first time around it is not known that it begins there.
    let expected = [(serde_json::json!([A, B, D]), 3.0, 27.0), (serde_json::json!([A, C, D]), 4.0, 25.0)];
    for (blocks, executions, length) in expected {
        let of = found.iter().find(|path| path.0 == blocks).unwrap_or_else(|| panic!("{blocks}: {document}"));
        near(of.1, executions, 1e-6);
        assert!((of.2 - length).abs() < f64::EPSILON);
    }
    assert_eq!(found.len(), 2, "{document}");
    near(document["hot"]["instructions"].as_f64().unwrap(), 4.0 * 52.0, 1e-3);
    near(document["hot"]["cut"].as_f64().unwrap(), 27.0 / (4.0 * 52.0), 1e-6);
    let shares: f64 = paths.iter().map(|path| path["share"].as_f64().unwrap()).sum();
    near(shares + document["hot"]["cut"].as_f64().unwrap(), 1.0, 1e-6);
    let table = stdout(&["paths", &file]);
    assert!(table.contains("+0x0 +0x16 +0x1d") && table.contains("# cut off"), "{table}");
    assert!(stdout(&["paths", &file, "--format", "markdown"]).contains("| +0x0 +0x1b +0x1d |"));
    assert!(stdout(&["paths", &file, "--format", "csv"]).lines().count() == 3);
    assert!(stdout(&["paths", &file, "-f", "_start", "--top", "1"]).contains("... 1 more path with"));
}

/// A call within a path is no part of it: the path goes on where the call comes back.
#[test]
fn paths_go_on_after_calls() {
    let made = traced(calls::CALLS, |recorder| {
        let branches = calls::AROUND.repeat(3);
        recorder.burst(&Burst { ip: calls::START, branches: &branches, instructions: 3 * 14, period: 3 * 14 });
    });
    let Some((_folder, file)) = made else { return };
    let document = json(&["paths", &file]);
    let executions: BTreeMap<String, f64> = document["hot"]["paths"]
        .as_array()
        .unwrap()
        .iter()
        .map(|path| (path["function"].as_str().unwrap().to_owned(), path["executions"].as_f64().unwrap()))
        .collect();
    let expected = [("_start", 2.0), ("once", 6.0), ("twice", 3.0)];
    assert_eq!(executions, expected.map(|(name, number)| (name.to_owned(), number)).into());
}

/// Those that go through a block with such an instruction, whole.
#[test]
fn paths_are_kept_by_their_instructions() {
    let made = traced(calls::CALLS, |recorder| {
        let branches = calls::AROUND.repeat(3);
        recorder.burst(&Burst { ip: calls::START, branches: &branches, instructions: 3 * 14, period: 3 * 14 });
    });
    let Some((_folder, file)) = made else { return };
    let functions = |filter: &[&str]| -> Vec<String> {
        let document = json(&[&["paths", &file], filter].concat());
        let paths = document["hot"]["paths"].as_array().unwrap();
        paths.iter().map(|path| path["function"].as_str().unwrap().to_owned()).collect()
    };
    let all = functions(&[]);
    assert_eq!(all.len(), 3);
    let callers = functions(&["--filter", "branch=call"]);
    assert!(callers.contains(&"_start".to_owned()) && !callers.contains(&"once".to_owned()), "{callers:?}");
    assert_eq!(functions(&["--filter", "branch!=call"]), all);
    let none = support::run(&["paths", &file, "--filter", "isa=avx2"]);
    assert_eq!(none.status.code(), Some(1));
}

#[test]
fn histories_are_the_branches_before_a_place() {
    let made = traced(calls::CALLS, |recorder| {
        let branches = calls::AROUND.repeat(5);
        recorder.burst(&Burst { ip: calls::START, branches: &branches, instructions: 5 * 14, period: 5 * 14 });
    });
    let Some((_folder, file)) = made else { return };
    let (start, twice, once) = (calls::START, calls::TWICE, calls::ONCE);
    for to in ["once", "program+0x401013", "0x401014", "once+0x1"] {
        let document = json(&["paths", &file, "--to", to, "--branches", "2"]);
        let history = &document["history"];
        let steps = |path: &Value| -> Vec<(u64, u64)> {
            let address = |step: &Value, end: &str| step[end]["address"].as_u64().unwrap();
            path["branches"].as_array().unwrap().iter().map(|of| (address(of, "from"), address(of, "to"))).collect()
        };
        let paths: BTreeMap<Vec<(u64, u64)>, f64> = history["paths"]
            .as_array()
            .unwrap()
            .iter()
            .map(|path| (steps(path), path["executions"].as_f64().unwrap()))
            .collect();
        let expected =
            [(vec![(start, twice), (twice + 1, once)], 5.0), (vec![(twice + 6, start + 5), (start + 5, once)], 5.0)];
        // Of the branches before the first arrival it is not known whether the oldest was taken several times.
        let expected: BTreeMap<_, _> = expected.into();
        assert_eq!(paths.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{to}");
        near(paths.values().sum(), 9.0, 1e-6);
        assert_eq!(&history["seen"], &10);
        near(history["short"].as_f64().unwrap(), 0.1, 1e-9);
    }
    // The first of ten arrivals has fewer.
    let document = json(&["paths", &file, "--to", "once", "--branches", "3"]);
    near(document["history"]["short"].as_f64().unwrap(), 0.1, 1e-9);
    let table = stdout(&["paths", &file, "--to", "once", "--branches", "3"]);
    assert!(table.contains("# short") && table.contains("twice+0x1") && table.contains("once"), "{table}");
    for (to, why) in
        [("onc", "did you mean --to 'once'"), ("0x999999", "no code that ran"), ("x.c:3", "no line of the")]
    {
        let output = run(&["paths", &file, "--to", to]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(why), "{error}");
    }
}

/// What goes around is one branch that is taken again and again.
#[test]
fn repeated_branches_are_one() {
    let branches = [call(5), call(3)].concat();
    let made = traced(LOOP, |recorder| {
        let instructions = length(START, &branches);
        recorder.burst(&Burst { ip: START, branches: &branches, instructions, period: instructions });
    });
    let Some((_folder, file)) = made else { return };
    let document = json(&["paths", &file, "--to", "0x40100b", "--branches", "2"]);
    let paths = document["history"]["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 1, "{document}");
    assert_eq!(paths[0]["branches"][1]["repeats"], true);
    assert!(stdout(&["paths", &file, "--to", "0x40100b"]).contains("(again and again)"));
}

/// What is executed as often is as certain: a path that is a whole block, and the block.
#[test]
fn executions_of_a_path_are_as_certain_as_those_of_its_block() {
    let mut random = fastrand::Rng::with_seed(11);
    let made = traced(LOOP, |recorder| {
        for _ in 0..2000 {
            let branches: Vec<(u64, u64)> = (0..4).flat_map(|_| call(if random.bool() { 1 } else { 9 })).collect();
            let instructions = length(START, &branches);
            recorder.burst(&Burst { ip: START, branches: &branches, instructions, period: 1000 });
        }
    });
    let Some((_folder, file)) = made else { return };
    let document = json(&["paths", &file, "-f", "_start"]);
    let path = &document["hot"]["paths"][0];
    let annotated = json(&["annotate", &file, "-f", "_start"]);
    let block = &annotated["functions"][0]["blocks"][0];
    let relative = |value: &Value, error: &Value| error.as_f64().unwrap() / value.as_f64().unwrap();
    let of_path = relative(&path["executions"], &path["executions_error"]);
    let of_block = relative(&block["count"], &block["count_error"]);
    assert!(of_path < 0.1 && of_path < 3.0 * of_block && of_block < 3.0 * of_path, "{of_path} and {of_block}");
}

/// More different paths than there is room for: shares are those of whole paths nevertheless.
#[test]
fn paths_without_room_add_up() {
    const MANY: &str = "
.globl _start
.type _start, @function
_start:
.rept 60
    jne 1f
    nop
1:
.endr
    jmp _start
.size _start, .-_start
.section .note.GNU-stack,\"\",@progbits
";
    let mut random = fastrand::Rng::with_seed(2);
    let made = traced(MANY, |recorder| {
        for _ in 0..100 {
            let (mut branches, mut instructions) = (Vec::new(), 0);
            for _ in 0..40 {
                let taken = (0..60).filter(|_| random.bool()).map(|at| (START + 3 * at, START + 3 * at + 3));
                let before = branches.len();
                branches.extend(taken);
                instructions += 60 + 60 - (branches.len() - before) as u64 + 1;
                branches.push((START + 180, START));
            }
            recorder.burst(&Burst { ip: START, branches: &branches, instructions, period: instructions });
        }
    });
    let Some((_folder, file)) = made else { return };
    let hot = &json(&["paths", &file])["hot"];
    assert!(hot["merged"].as_f64().unwrap() > 0.5, "there was room: {}", hot["depth"]);
    let shares: f64 = hot["paths"].as_array().unwrap().iter().map(|path| path["share"].as_f64().unwrap()).sum();
    near(shares + hot["cut"].as_f64().unwrap() + hot["unread"].as_f64().unwrap(), 1.0, 1e-6);
}

#[test]
fn nothing_to_show_is_an_error() {
    let made = traced(synthetic::SOURCE, |recorder| {
        let branches = AROUND[1..].repeat(4);
        recorder.burst(&Burst { ip: A, branches: &branches, instructions: 4 * 52, period: 4 * 52 });
    });
    let Some((folder, file)) = made else { return };
    let fails = |arguments: &[&str], why: &str| {
        let output = run(arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && output.stdout.is_empty() && text.contains(why), "{text}");
    };
    fails(&["paths", &file, "-f", "nosuch"], "there is nothing to show: no path goes through a function \"nosuch\"");
    // After the end of the function.
    fails(&["paths", &file, "--to", "_start+0x1000"], "no code that ran is at _start+0x1000");
    std::fs::remove_file(folder.path().join("program")).unwrap();
    for command in ["paths", "annotate"] {
        fails(&[command, &file], "the code of no module could be read");
        // The head says which file, and why.
        fails(&[command, &file], "program: there is no ");
    }
}

/// Where one record of a stack has cycles, 0 cycles are a number.
#[test]
fn no_cycles_are_cycles_too() {
    let timed = BranchFlags::PREDICTED.with_cycles(10);
    let made = recording(synthetic::SOURCE, Recorder::new, &Features::default(), |recorder| {
        (0..40).for_each(|_| recorder.stack_with(&AROUND, BranchFlags::PREDICTED.with_cycles(0)));
        (0..40).for_each(|_| recorder.stack_with(&AROUND, timed));
    });
    let Some((_folder, file)) = made else { return };
    // Those of stacks without any are not known.
    assert_eq!(json(&["paths", &file])["branches"]["timed"], 200);
    let made = recording(synthetic::SOURCE, Recorder::new, &Features::default(), |recorder| {
        (0..40).for_each(|_| recorder.stack(&AROUND));
    });
    let Some((_folder, file)) = made else { return };
    let output = run(&["mix", &file, "--rows", "function", "--values", "cycles,ipc", "--format", "csv"]);
    let (table, told) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(told.contains("nothing is known of cycles: no branch record has them"), "{told}");
    assert!(table.lines().nth(1).is_some_and(|row| row.ends_with(",0,,")), "{table}");
}

/// Of timed branch stacks: each stream takes 10 cycles.
#[test]
fn cycles_of_streams_are_those_of_their_blocks() {
    let made = recording(synthetic::SOURCE, Recorder::new, &Features::default(), |recorder| {
        (0..40).for_each(|_| recorder.stack_with(&AROUND, BranchFlags::PREDICTED.with_cycles(10)));
    });
    let Some((_folder, file)) = made else { return };
    let document = json(&["annotate", &file]);
    let blocks = document["functions"][0]["blocks"].as_array().unwrap();
    let of = |start: u64| blocks.iter().find(|block| block["start"] == start).unwrap();
    // A and B share 10 cycles of 25 instructions in one stream, A has 10 alone in another; so C and D, and D.
    let expected = [(A, 9.2, 21.0 / 9.2), (B, 1.6, 2.5), (C, 5.0, 0.4), (D, 7.5, 2.0 / 7.5)];
    for (start, cycles, ipc) in expected {
        near(of(start)["cycles"].as_f64().unwrap(), cycles, 1e-3);
        near(of(start)["ipc"].as_f64().unwrap(), ipc, 1e-3);
    }
    assert_eq!((&of(A)["timed"], &of(D)["timed"]), (&80.into(), &80.into()));
    assert!(!document["lacks"].to_string().contains("cycles"), "{document}");
    // A mix adds up what the blocks took.
    let sum = |number: fn(&Value) -> f64| -> f64 {
        blocks.iter().map(|block| block["count"].as_f64().unwrap() * number(block)).sum()
    };
    let cycles = sum(|block| block["cycles"].as_f64().unwrap());
    let instructions = sum(|block| block["instructions"].as_array().unwrap().len() as f64);
    let mix = json(&["mix", &file, "--rows", "function", "--values", "cycles,ipc,cycles-per-call"]);
    let row = &mix["rows"][0];
    near(row["cycles"].as_f64().unwrap(), cycles, 1e-6 * cycles);
    near(row["ipc"].as_f64().unwrap(), instructions / cycles, 1e-6);
    assert_eq!(row["timed_instructions"], row["count"], "{row}");
    let table = stdout(&["mix", &file, "--rows", "mnemonic", "--values", "cycles,ipc", "--sort", "cycles"]);
    assert!(table.contains("cycles") && table.contains("IPC") && !table.contains('≥'), "{table}");
    let table = stdout(&["annotate", &file]);
    let titles = table.lines().find(|line| line.contains("share")).unwrap();
    assert!(titles.contains("cycles") && titles.contains("ipc") && table.contains("9.20  2.28"), "{table}");
    let branches = &json(&["paths", &file])["branches"];
    assert_eq!((&branches["recorded"], &branches["timed"]), (&200.into(), &200.into()));
    assert_eq!((&branches["predicted"], &branches["aborts"]), (&200.into(), &0.into()));
}

#[test]
fn marks_of_branches_are_counted() {
    const IN_TX: u64 = 1 << 2;
    const ABORT: u64 = 1 << 3;
    let made = recording(synthetic::SOURCE, Recorder::new, &Features::default(), |recorder| {
        recorder.stack_with(&AROUND, BranchFlags(IN_TX | 2));
        recorder.stack_with(&AROUND[..2], BranchFlags(ABORT | 1 | 3 << 24 | 1 << 20));
    });
    let Some((_folder, file)) = made else { return };
    let branches = &json(&["paths", &file])["branches"];
    let expected = serde_json::json!({"recorded": 7, "mispredicted": 2, "predicted": 5, "in_transaction": 5, "aborts": 2,
        "timed": 0, "speculated": 2, "not_speculated": 0, "kinds": {"COND": 2}});
    assert_eq!(*branches, expected);
    let table = stdout(&["paths", &file, "-v"]);
    assert!(
        table.contains("5 in transactions; 2 aborts") && table.contains("none is marked as: with cycles"),
        "{table}"
    );
}

/// What happened to a branch is at the end of the way to it.
#[test]
fn histories_lead_to_events() {
    const ABORT: BranchFlags = BranchFlags(1 << 3 | 2);
    let made = recording(synthetic::SOURCE, Recorder::new, &Features::default(), |recorder| {
        recorder.stack_with(&AROUND, BranchFlags(2));
        recorder.stack_with(&AROUND, BranchFlags(1));
        recorder.stack_with(&AROUND[..3], ABORT);
    });
    let Some((_folder, file)) = made else { return };
    // Stacks are recorded newest first.
    for (event, length, known) in [("mispredicted", 5, 3), ("abort", 3, 1)] {
        let document = json(&["paths", &file, "--to-event", event, "--branches", "2"]);
        let history = &document["history"];
        assert_eq!((&history["seen"], &history["places"]), (&length.into(), &serde_json::json!([])), "{document}");
        let paths = history["paths"].as_array().unwrap();
        let seen: u64 = paths.iter().map(|path| path["seen"].as_u64().unwrap()).sum();
        assert_eq!(seen, known, "two branches, and one before them");
        let stack: Vec<(u64, u64)> = AROUND[..length].iter().rev().copied().collect();
        for path in paths {
            let address = |index: usize, end: &str| path["branches"][index][end]["address"].as_u64().unwrap();
            let steps = [0, 1].map(|index| (address(index, "from"), address(index, "to")));
            assert!(stack.windows(2).any(|two| two == steps), "{steps:x?} in {stack:x?}");
        }
    }
    let table = stdout(&["paths", &file, "--to-event", "mispredicted", "--branches", "2"]);
    assert!(table.contains("a mispredicted branch: "), "{table}");
    let made = recording(synthetic::SOURCE, Recorder::new, &Features::default(), |recorder| {
        recorder.stack_with(&AROUND, BranchFlags(0));
    });
    let Some((_folder, file)) = made else { return };
    for (event, why) in [("mispredicted", "do not say which branches were mispredicted"), ("abort", "no branch record")]
    {
        let output = run(&["paths", &file, "--to-event", event]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(why), "{error}");
    }
}

#[test]
fn without_branch_stacks_there_are_no_paths() {
    let made = recording(synthetic::SOURCE, Recorder::new, &Features::default(), |recorder| {
        (0..20).for_each(|_| recorder.sample(A));
    });
    let Some((_folder, file)) = made else { return };
    let output = run(&["paths", &file]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("has no branch stacks"));
    assert!(!output.status.success());
    assert!(stdout(&["annotate", &file, "--trips"]).contains("there are no branch stacks"));
}

/// Real code: what the loops go around on average is what their histograms say, and threads change nothing.
#[test]
fn paths_of_traced_programs() {
    let fixture = Fixture::bursts("threads");
    let annotated =
        |threads: &str| stdout_of(&["annotate", "--trips", "--format", "json", "--threads", threads], &fixture);
    let text = annotated("1");
    assert_eq!(text, annotated("4"));
    let document: Value = serde_json::from_str(&text).unwrap();
    let functions = document["functions"].as_array().unwrap();
    let loops = functions.iter().flat_map(|function| function["loops"].as_array().cloned().unwrap_or_default());
    let mut compared = 0;
    for one in loops {
        let histogram = &one["histogram"];
        let (Some(whole), Some(mean)) = (histogram["whole"].as_u64(), one["trips"].as_f64()) else { continue };
        let longer = histogram["longer"]["share"].as_f64().unwrap();
        if whole < 200 || longer > 0.01 {
            continue;
        }
        let bounds = |end: &str| -> f64 {
            let buckets = histogram["buckets"].as_array().unwrap().iter();
            buckets.map(|bucket| bucket["share"].as_f64().unwrap() * bucket[end].as_f64().unwrap()).sum()
        };
        assert!(bounds("least") * 0.8 < mean && mean < bounds("most") * 1.2, "{one}");
        compared += 1;
    }
    assert!(compared > 0, "{document}");
    let paths = |threads: &str| stdout_of(&["paths", "--format", "json", "--threads", threads], &fixture);
    assert_eq!(paths("1"), paths("3"));
    let document: Value = serde_json::from_str(&paths("2")).unwrap();
    let shares: f64 =
        document["hot"]["paths"].as_array().unwrap().iter().map(|path| path["share"].as_f64().unwrap()).sum();
    let cut = document["hot"]["cut"].as_f64().unwrap();
    let unread = document["hot"]["unread"].as_f64().unwrap();
    near(shares + cut + unread, 1.0, 1e-6);
}

/// Real stacks: every program reads the same branches.
#[test]
fn histories_of_real_stacks_are_those_of_perf() {
    let Some(file) = testing::hardware_recording("westmere-lbr.perf.data") else { return };
    let Some(fixture) = Fixture::westmere() else { return };
    let document: Value =
        serde_json::from_str(&stdout_of(&["paths", "--top", "1", "--format", "json"], &fixture)).unwrap();
    let output = std::process::Command::new("perf").args(["script", "-F", "ip,brstack", "-i"]).arg(&file).output();
    let Ok(output) = output.map_err(|_| testing::skip!(Tool, "perf is not installed")) else { return };
    let text = String::from_utf8_lossy(&output.stdout);
    let entries: Vec<&str> = text.split_whitespace().filter(|word| word.contains('/')).collect();
    let mispredicted = entries.iter().filter(|entry| entry.split('/').nth(2) == Some("M")).count();
    let branches = &document["branches"];
    assert_eq!((&branches["recorded"], &branches["mispredicted"]), (&entries.len().into(), &mispredicted.into()));

    // The two branches before each arrival of which the stack has the way on, too.
    const LONGEST_MATCH: u64 = 0x40_1680;
    let mut expected: BTreeMap<[(u64, u64); 2], u64> = BTreeMap::new();
    for line in text.lines() {
        let address = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
        let entry = |word: &str| {
            let (from, rest) = word.split_once('/').unwrap();
            (address(from), address(rest.split('/').next().unwrap()))
        };
        let mut stack: Vec<(u64, u64)> = line.split_whitespace().filter(|word| word.contains('/')).map(entry).collect();
        stack.reverse();
        // An older one says that the first was not taken before.
        for four in stack.windows(4).filter(|four| four[2].1 == LONGEST_MATCH) {
            let three = &four[1..];
            *expected.entry([three[0], three[1]]).or_default() += 1;
        }
    }
    // Every branch that is marked, but the first two of a stack: of these, the ones before are not known.
    let history = ["paths", "--to-event", "mispredicted", "--branches", "1", "--format", "json"];
    let document: Value = serde_json::from_str(&stdout_of(&history, &fixture)).unwrap();
    assert_eq!(document["history"]["seen"], mispredicted);
    let last: u64 =
        document["history"]["paths"].as_array().unwrap().iter().map(|path| path["seen"].as_u64().unwrap()).sum();
    assert!(0 < last && last as usize <= mispredicted, "{last} of {mispredicted}");

    let history = ["paths", "--to", "longest_match", "--branches", "2", "--format", "json"];
    let document: Value = serde_json::from_str(&stdout_of(&history, &fixture)).unwrap();
    let address = |step: &Value, end: &str| step[end]["address"].as_u64().unwrap();
    let found = document["history"]["paths"].as_array().unwrap().iter().map(|path| {
        let step = |index: usize| (address(&path["branches"][index], "from"), address(&path["branches"][index], "to"));
        ([step(0), step(1)], path["seen"].as_u64().unwrap())
    });
    assert_eq!(found.collect::<BTreeMap<_, _>>(), expected);
    assert!(expected.len() > 1, "{expected:?}");
}
