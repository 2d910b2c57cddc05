//! Hostile and broken input: a clear message or a partial result, never a panic, a hang or runaway memory.

mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use std::path::Path;
use std::process::{Command, Output};

use perfdata::{Avma, Features, Mmap};
use synthetic::{A, AROUND, Burst, C, Recorder, burst_metadata, note};

/// Runs `hbbp` with 1.5 GB of address space and 20 seconds; a panic's message, a signal or a time-out fails the test.
fn run_limited(arguments: &[&str]) -> Output {
    let output = Command::new("sh")
        .args(["-c", "ulimit -v 1500000; exec timeout -s KILL 20 \"$@\"", "sh", env!("CARGO_BIN_EXE_hbbp")])
        .args(arguments)
        .env("XDG_CACHE_HOME", support::NO_FOLDER)
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(!message.contains("panicked"), "hbbp {arguments:?}: {message}");
    assert!(output.status.code().is_some_and(|code| code <= 2), "hbbp {arguments:?}: {:?} {message}", output.status);
    output
}

/// Must fail with exit status 1 and say this.
fn fails_with(arguments: &[&str], expected: &str) {
    let output = run_limited(arguments);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains(expected), "{message:?} does not say {expected:?}");
}

fn recording_of(binary: &Path) -> Vec<u8> {
    let mut recorder = Recorder::new(binary);
    (0..5).for_each(|_| recorder.stack(&AROUND));
    (0..5).for_each(|_| recorder.sample(A));
    recorder.finish(&Features::default())
}

#[test]
fn what_is_no_recording_is_said_to_be_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_string()
    };
    fails_with(&["mix", "-i", "/nowhere/at-all"], "No such file");
    fails_with(&["mix", "-i", folder.path().to_str().unwrap()], folder.path().to_str().unwrap());
    fails_with(&["mix", "-i", &file("empty", b"")], "empty");
    fails_with(&["mix", "-i", &file("text", b"# this is not a recording at all, it is some text\n")], "perf.data");
    fails_with(&["blocks", "-i", &file("magic", b"PERFILE2")], "");
}

#[test]
fn a_recording_without_samples_says_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.data");
    std::fs::write(&file, Recorder::new(Path::new("/nowhere")).finish(&Features::default())).unwrap();
    let file = file.to_str().unwrap();
    fails_with(&["export", "--format", "bolt", "-i", file], "no samples");
    for (command, rows, header) in [
        ("mix", "rows", "mnemonic,count,share"),
        ("blocks", "blocks", "module,start,"),
        ("annotate", "functions", "module,function,"),
        ("vectorization", "rows", "module,function,loop,"),
    ] {
        let run = |format: &str| {
            let output = run_limited(&[command, "-i", file, "--format", format]);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{command} {format}: {said}");
            // Once: in the head of a table, else on standard error.
            let text = String::from_utf8(output.stdout).unwrap();
            let says = if format == "table" { &text } else { &said };
            assert_eq!(says.matches("PERF_RECORD_MMAP2").count(), 1, "{command} {format}: {said}{text}");
            assert!(says.contains("no samples") && (format != "table" || said.is_empty()), "{said}");
            text
        };
        let text = run("json");
        assert!(!text.contains("-0"), "{text}");
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["schema"], format!("hbbp-{command}/1"));
        assert_eq!((&document[rows], &document["instructions"]), (&serde_json::json!([]), &serde_json::json!(0.0)));
        assert!(document["head"]["degraded"][0].as_str().unwrap().contains("no samples"), "{document}");
        let csv = run("csv");
        assert!(csv.starts_with(header) && csv.lines().count() == 1, "{csv}");
        let table = run("table");
        assert!(table.contains("# source") && table.contains("no samples"), "{table}");
    }
}

/// Of code that nobody could read, no filter by code keeps anything: that is said, and of a module that is not there, that.
#[test]
fn filters_of_code_that_was_not_read_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.data");
    std::fs::write(&file, recording_of(Path::new("/nowhere/program"))).unwrap();
    let merged = folder.path().join("run.flow");
    let [file, merged] = [&file, &merged].map(|file| file.to_str().unwrap());
    assert!(run_limited(&["merge", file, "-o", merged]).status.success());
    let why = "filters choose code, and that of no module could be read: name the binaries with --binary or --symfs";
    for command in ["mix", "blocks", "annotate", "vectorization"] {
        for input in [file, merged] {
            fails_with(&[command, input, "--filter", "isa=avx"], why);
            fails_with(&[command, input, "--filter", "module=nope"], "nothing has the module \"nope\"");
        }
    }
}

/// Names come from recordings: they must not command the terminal that messages go to.
#[test]
fn control_characters_of_names_are_not_sent_to_the_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::new(Path::new("/nowhere/\u{1b}]0;title\u{7}"));
    (0..5).for_each(|_| recorder.stack(&AROUND));
    let file = directory.path().join("hostile.data");
    std::fs::write(&file, recorder.finish(&Features::default())).unwrap();
    let file = file.to_str().unwrap();
    let merged = directory.path().join("merged").to_str().unwrap().to_string();
    let commands: [&[&str]; 11] = [
        &["mix", "-i", file],
        &["vectorization", "--loops", "-i", file],
        &["annotate", "--summary", "-i", file],
        &["blocks", "-i", file],
        &["annotate", "-i", file],
        &["export", "--format", "bolt", "-i", file],
        &["export", "--format", "llvm-text", "-i", file],
        &["export", "--format", "folded", "-i", file],
        &["export", "--format", "speedscope", "-i", file],
        &["merge", "-o", &merged, file, "no\u{1b}such"],
        &["diff", file, file],
    ];
    let mut named = 0;
    for command in commands {
        let output = run_limited(command);
        for text in [&output.stdout, &output.stderr] {
            assert!(!text.contains(&0x1b), "{command:?}: {}", String::from_utf8_lossy(text));
            named += usize::from(String::from_utf8_lossy(text).contains("\\u{1b}"));
        }
    }
    assert!(named >= 4, "{named}");
}

#[test]
fn a_limit_of_file_sizes_is_said_of_what_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("some.data");
    std::fs::write(&file, recording_of(Path::new("/nowhere/four"))).unwrap();
    let limited = |args: &[&str]| {
        let script = "ulimit -f 0; exec \"$0\" \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_hbbp")]).args(args);
        command.current_dir(directory.path()).output().unwrap()
    };
    for args in [&["mix", "-i", "some.data", "--rows", "module", "-o", "out"][..], &["merge", "-o", "out", "some.data"]]
    {
        let output = limited(args);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {message}");
        assert!(message.contains("cannot write out: File too large"), "{args:?}: {message}");
    }
}

#[test]
fn wrong_usage_exits_with_two() {
    for arguments in
        [&["mix", "--rows", "colour"][..], &["blocks", "--top", "many"], &["mix", "--filter", "x"], &["no"]]
    {
        assert_eq!(run_limited(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

const BURST: Burst<'_> = Burst { ip: C, branches: &AROUND, instructions: 100, period: 1000 };

fn recording_of_bursts(binary: &Path) -> Vec<u8> {
    let mut recorder = Recorder::traced(binary);
    (0..5).for_each(|_| recorder.burst(&BURST));
    (0..5).for_each(|_| recorder.sample(A));
    recorder.finish(&burst_metadata("nanoseconds"))
}

#[test]
fn a_truncated_or_flipped_recording_never_panics() {
    damage(recording_of);
}

#[test]
fn a_truncated_or_flipped_recording_of_bursts_never_panics() {
    damage(recording_of_bursts);
}

#[test]
fn absurd_bursts_are_survived() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = synthetic::program(folder.path(), "four", &[]) else { return };
    let file = folder.path().join("run.data");
    let mut recorder = Recorder::traced(&binary);
    for ip in [C, 0, 1, A - 1, u64::MAX, u64::MAX - 1, 1 << 63] {
        for instructions in [0, 1, 5, u64::MAX] {
            for period in [0, 1, u64::MAX] {
                recorder.burst(&Burst { ip, instructions, period, ..BURST });
                recorder.burst(&Burst { ip, instructions, period, branches: &[] });
            }
        }
    }
    let absurd_notes = [
        r#"{"events":[{"name":"burst:u","provenance":"software","unit":"instructions"}],"tracer":{"kind":"\u001b[2J\n"}}"#,
        r#"{"events":[{"name":"burst:u","provenance":"software"}],"tracer":{"bursts":1e400}}"#,
        r#"{"events":[{"name":"burst:u","provenance":"software"}],"tracer":{"overhead":1e300,"depth":-1}}"#,
        r#"{"events":[{"name":"task-clock","provenance":"software"},{"name":"burst:u"}],"tracer":[]}"#,
    ];
    let good = recorder.finish(&burst_metadata("nanoseconds"));
    std::fs::write(&file, &good).unwrap();
    let path = file.to_str().unwrap();
    assert_eq!(run_limited(&["blocks", "-i", path]).status.code(), Some(0));
    for format in ["folded", "flamegraph", "speedscope", "firefox"] {
        assert_eq!(run_limited(&["export", "--format", format, "-i", path]).status.code(), Some(0), "{format}");
    }
    for text in absurd_notes {
        let mut recorder = Recorder::traced(&binary);
        recorder.burst(&BURST);
        std::fs::write(&file, recorder.finish(&note(text))).unwrap();
        for command in ["mix", "blocks", "annotate", "vectorization"] {
            let output = run_limited(&[command, "-i", path]);
            assert_eq!(output.status.code(), Some(0), "{text}: {}", String::from_utf8_lossy(&output.stderr));
            assert!(!output.stdout.contains(&0x1b), "{text}");
        }
    }
}

fn damage(recording_of: fn(&Path) -> Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = synthetic::program(folder.path(), "four", &[]) else { return };
    let good = recording_of(&binary);
    let file = folder.path().join("run.data");
    let path = file.to_str().unwrap();
    let mut partial = 0;
    for end in (0..good.len()).step_by(good.len() / 150) {
        std::fs::write(&file, &good[..end]).unwrap();
        partial += usize::from(run_limited(&["mix", "-i", path]).status.success());
    }
    assert!(partial > 20, "only {partial} of the truncated recordings gave a partial result");
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..300 {
        let mut flipped = good.clone();
        let at = random.usize(..flipped.len());
        flipped[at] ^= 1 << random.u32(..8);
        std::fs::write(&file, &flipped).unwrap();
        run_limited(&["blocks", "-i", path]);
        run_limited(&["annotate", "-i", path, "--source"]);
    }
}

#[test]
fn absurd_mappings_are_survived() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = synthetic::program(folder.path(), "four", &[]) else { return };
    let mut recorder = Recorder::new(&binary);
    for (start, len, pgoff) in [
        (0, u64::MAX, 0),
        (u64::MAX, u64::MAX, u64::MAX),
        (0x1000, 0, 0),
        (0x40_0000, 0x2000, 0x40_0000),
        (0x40_1008, 4, u64::MAX - 2),
    ] {
        recorder.map(&Mmap { start: Avma(start), len, pgoff, path: b"/absurd", ..Recorder::mapping() });
    }
    for round in 0..20_000_u64 {
        let (start, len) = (Avma(0x40_0000 + round % 977 * 0x100), 0x1000 + round % 31 * 0x1000);
        recorder.map(&Mmap { start, len, pgoff: round, path: b"/overlapping", ..Recorder::mapping() });
    }
    (0..5).for_each(|_| recorder.stack(&AROUND));
    let file = folder.path().join("run.data");
    std::fs::write(&file, recorder.finish(&Features::default())).unwrap();
    let output = run_limited(&["blocks", "-i", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_binary_that_is_none_leaves_counts_by_module() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = synthetic::program(folder.path(), "four", &[]) else { return };
    let file = folder.path().join("run.data");
    std::fs::write(&file, recording_of(&binary)).unwrap();
    let file = file.to_str().unwrap();
    let elf = std::fs::read(&binary).unwrap();
    let truncated = &elf[..elf.len() / 4];
    let mut of_another_machine = elf.clone();
    of_another_machine[18] = 0xb7;
    for (bytes, expected) in [
        (&b"#!/bin/sh\n"[..], "not an ELF file"),
        (&b""[..], "ELF"),
        (truncated, "does not fit"),
        (&of_another_machine, "machine 183"),
    ] {
        std::fs::write(&binary, bytes).unwrap();
        fails_with(&["mix", "-i", file], expected);
        let by_module = support::stdout(&["mix", "-i", file, "--rows", "module", "--format", "csv"]);
        assert!(by_module.contains(binary.to_str().unwrap()), "{by_module}");
    }
}

#[test]
fn a_stripped_binary_has_blocks_too() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = synthetic::program(folder.path(), "four", &["-s"]) else { return };
    let file = folder.path().join("run.data");
    std::fs::write(&file, recording_of(&binary)).unwrap();
    let csv = support::stdout(&["blocks", "-i", file.to_str().unwrap(), "--format", "csv"]);
    let rows: Vec<&str> = csv.lines().skip(1).map(|row| row.split_once(',').unwrap().1).collect();
    assert_eq!(rows.len(), 4, "{csv}");
    assert!(rows[0].starts_with("0x401000,0x401016,21,[.text"), "{csv}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = synthetic::program(folder.path(), "four", &[]) else { return };
    let file = folder.path().join("run.data");
    std::fs::write(&file, recording_of(&binary)).unwrap();
    let file = file.to_str().unwrap();
    for arguments in [
        &["doctor"][..],
        &["doctor", "--format", "json"],
        &["mix", "-i", file],
        &["mix", "-i", file, "--format", "csv"],
        &["blocks", "-i", file, "--format", "json"],
        &["annotate", "-i", file],
    ] {
        let output = Command::new("sh")
            .args(["-c", "exec 3>&1; { \"$@\"; echo $? >&3; } | true", "sh", env!("CARGO_BIN_EXE_hbbp")])
            .args(arguments)
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n", "{arguments:?}: {message}");
        assert_eq!(message, "", "{arguments:?}");
    }
}

/// Profiles of recordings that are cut and changed anywhere, and of merged files that are.
#[test]
fn profiles_of_damaged_input_are_refused_or_partial() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = synthetic::program(folder.path(), "four", &[]) else { return };
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (file, good, merged) = (path("damaged"), path("good"), path("merged"));
    let recording = recording_of(&binary);
    std::fs::write(&good, &recording).unwrap();
    assert!(run_limited(&["merge", "-o", &merged, &good]).status.success());
    let merged = std::fs::read(&merged).unwrap();
    for whole in [recording, merged] {
        let step = whole.len() / 9 + 1;
        for at in (1..whole.len()).step_by(step) {
            let mut changed = whole.clone();
            changed[at] ^= 0x35;
            for bytes in [&whole[..at], &changed[..]] {
                std::fs::write(&file, bytes).unwrap();
                for format in
                    ["bolt", "bolt-preagg", "pprof", "otlp", "callgrind", "sde-mix", "perf-script", "flamegraph"]
                {
                    run_limited(&["export", "--format", format, "-i", &file, "-o", "/dev/null"]);
                }
                run_limited(&["diff", &good, &file, "--format", "json"]);
                run_limited(&["merge", "--keep-going", "-o", "/dev/null", &file]);
            }
        }
    }
}

#[test]
fn a_merged_file_may_state_any_number() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = synthetic::program(folder.path(), "four", &[]) else { return };
    let path = folder.path().join("flow");
    let file = path.to_str().unwrap();
    let (first, last) = (u64::MAX, synthetic::D_JMP);
    for ranges in [
        format!("[0,{first},3e20]"),
        format!("[{A},{last},3e20],[{A},{last},3e20],[{first},{first},1e-300]"),
        format!("[{},{},1]", A + 1, A + 1),
    ] {
        for branches in ["", "[18446744073709551615,0,0,3e20,3e20]", "[0,0,18446744073709551615,1,1]"] {
            let text = format!(
                r#"{{"schema":"hbbp-flow/1","executions":true,"inputs":1,"left_out":{{"streams":0,"branches":0,"samples":0}},
                "modules":[{{"path":"{}","build_id":null,"read":true,"ranges":[{ranges}],"branches":[{branches}],"samples":[]}}]}}"#,
                binary.display()
            );
            std::fs::write(&path, text).unwrap();
            for format in ["bolt", "bolt-preagg", "llvm-profgen", "pprof", "otlp", "callgrind"] {
                run_limited(&["export", "--format", format, "-i", file, "-o", "/dev/null"]);
            }
            run_limited(&["diff", file, file]);
        }
    }
}

/// Code that is said to be in no file: any lengths, addresses, overlaps, times and names.
#[test]
fn a_recording_may_say_anything_of_made_code() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = synthetic::program(folder.path(), "four", &[]) else { return };
    let file = folder.path().join("run.data");
    let path = file.to_str().unwrap();
    let page = 0x7f00_0000_1000;
    let write = |records: &mut dyn Iterator<Item = Vec<u64>>| {
        let mut recorder = Recorder::traced(&binary);
        let anonymous = Mmap { start: Avma(page), len: 0x10_0000, path: b"//anon", pgoff: page, ..Recorder::mapping() };
        recorder.map(&anonymous);
        for words in records {
            recorder.user_record(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>());
            let jumps = [(page + 6, page), (page + 6, page)];
            recorder.burst(&Burst { ip: page, branches: &jumps, instructions: 6, period: 6 });
        }
        std::fs::write(&file, recorder.finish(&burst_metadata("nanoseconds"))).unwrap();
        for command in ["mix", "annotate", "blocks"] {
            run_limited(&[command, "-i", path]);
        }
    };
    let [code, names, since, vdso] =
        [b"hbbpcode", b"hbbpname", b"hbbpcall", b"hbbpvdso"].map(|word| u64::from_le_bytes(*word));
    // Pieces that end anywhere, at absurd addresses and times.
    let odd = [0, 1, 7, 8, 9, 1 << 32, u64::MAX / 2, u64::MAX - 7, u64::MAX];
    let any = odd.iter().flat_map(|&one| {
        odd.iter().flat_map(move |&other| {
            [
                vec![code, one, 7, other, one, other],
                vec![code, other, 7, page, one, other],
                vec![code, one, u64::from(u32::MAX), other, one, other],
                vec![code, 0, u64::from(u32::MAX), other | 1 << 63, 8, one],
                vec![names, u64::from(u32::MAX), one | 1 << 63, other, one, other],
                vec![names, 7, one, other, one, other],
                vec![names, 7, page + one % 9, other, 8, one],
                vec![since, one, 7, page + other % 9, other, 8, one],
                vec![since, other, 7, page, one, 8, other],
                vec![vdso, one, other],
                vec![code, one],
            ]
        })
    });
    write(&mut any.into_iter());
    // Code that is another each time, in pages all over an area, and then some.
    write(&mut (0..600_u64).map(|time| vec![code, time * 10, 7, page + time % 40 * 4096, 16, time, !time]));
    // Code that has another name each time.
    write(&mut (0..600_u64).flat_map(|time| {
        let code = vec![code, time * 10, 7, page + time % 40 * 4096, 16, 1, 2];
        [code, vec![since, time * 10 + 5, 7, page, 1 << 20, 8, time | 1]]
    }));
    // A page for each piece.
    write(
        &mut (0..3000_u64)
            .map(|at| {
                let pieces = (0..2000).flat_map(|piece| [(at * 2000 + piece) << 12, 8, u64::from(u32::MAX)]);
                [code, 1, 7].into_iter().chain(pieces).collect()
            })
            .take(20),
    );
    // Names that overlap in every way.
    write(&mut (0..40_u64).map(|at| {
        let entries = (0..1000).flat_map(|name| [page + (name * at) % 4000, 1 + name * 7 % 5000, 8, name]);
        let head = if at % 2 == 0 { vec![code, 0, 7, page + at * 100, 8, at] } else { vec![names, 7] };
        head.iter().copied().chain(entries.take(if at % 2 == 0 { 0 } else { 4000 })).collect()
    }));
}
