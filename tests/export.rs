//! `hbbp export`: profiles whose counts are known by hand, and what other tools make of them.

#[path = "support/pprof.rs"]
mod pprof;
mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use perfdata::Features;
use support::{Fixture, hbbp, run, stdout};
use synthetic::calls;
use synthetic::*;
use tempfile::TempDir;

/// The program of four blocks, and a recording in which it went around twice: A 100, B 50, C 50, D 100.
fn twice_around() -> Option<(TempDir, PathBuf, PathBuf)> {
    let folder = tempfile::tempdir().unwrap();
    let binary = program(folder.path(), "four", &["-Wl,--emit-relocs"])?;
    let mut recorder = Recorder::new(&binary);
    recorder.stack(&AROUND);
    recorder.stack_with(&AROUND, perfdata::BranchFlags::MISPREDICTED);
    recorder.sample(B);
    let recording = folder.path().join("four.data");
    std::fs::write(&recording, recorder.finish(&Features::default())).unwrap();
    Some((folder, binary, recording))
}

fn export(format: &str, recording: &Path, more: &[&str]) -> String {
    let file = recording.to_str().unwrap();
    stdout(&[&["export", "--format", format, "-i", file], more].concat())
}

#[test]
fn bolt_gets_branches_and_the_fall_throughs_between_its_blocks() {
    let Some((_folder, _, recording)) = twice_around() else { return };
    // C falls through into D without a branch; B is entered from A's conditional jump that was not taken.
    let expected = "\
1 _start 14 1 _start 16 0 50
1 _start 14 1 _start 1b 25 50
1 _start 19 1 _start 1d 25 50
1 _start 1c 1 _start 1d 0 50
1 _start 1e 1 _start 0 50 100
";
    assert_eq!(export("bolt", &recording, &[]), expected);
}

/// BOLT takes blocks that ran less than 100 times for noise: what was seen twice must not look as if it ran millions of times.
#[test]
fn bolt_gets_relative_counts_in_numbers_of_branches_seen() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = program(folder.path(), "four", &[]) else { return };
    let mut recorder = Recorder::traced(&binary);
    let branches = [(B_JMP, D), (D_JMP, A), (A_JNE, C), (D_JMP, A)];
    for _ in 0..2 {
        recorder.burst(&Burst { ip: B, branches: &branches, instructions: 31, period: 3_100_000_000 });
    }
    let recording = folder.path().join("four.data");
    std::fs::write(&recording, recorder.finish(&burst_metadata("nanoseconds"))).unwrap();
    let expected = |times: u32| {
        format!(
            "1 _start 14 1 _start 1b 0 {0}\n1 _start 19 1 _start 1d 0 {0}\n1 _start 1c 1 _start 1d 0 {0}\n1 _start 1e 1 _start 0 0 {1}\n",
            2 * times,
            4 * times
        )
    };
    assert_eq!(export("bolt", &recording, &[]), expected(1));
    let merged = folder.path().join("merged");
    stdout(&["merge", "-o", merged.to_str().unwrap(), &format!("{}:3", recording.display())]);
    assert_eq!(export("bolt", &merged, &[]), expected(3));
}

#[test]
fn bolt_gets_aggregated_branches_and_ranges() {
    let Some((_folder, _, recording)) = twice_around() else { return };
    let expected = "\
B 401014 40101b 50 25
B 401019 40101d 50 25
B 40101e 401000 100 50
F 401000 401014 50
F 401000 401019 50
F 40101b 40101e 50
F 40101d 40101e 50
";
    assert_eq!(export("bolt-preagg", &recording, &[]), expected);
}

#[test]
fn llvm_profgen_gets_ranges_and_branches_as_offsets() {
    let Some((_folder, _, recording)) = twice_around() else { return };
    let expected = "4\n0-14:50\n0-19:50\n1b-1e:50\n1d-1e:50\n3\n14->1b:50\n19->1d:50\n1e->0:100\n";
    assert_eq!(export("llvm-profgen", &recording, &[]), expected);
}

/// A flow may say that a branch went where the file has no code.
#[test]
fn branches_to_no_code_are_told() {
    let Some((folder, _, recording)) = twice_around() else { return };
    let flow = folder.path().join("flow");
    stdout(&["merge", "-o", flow.to_str().unwrap(), recording.to_str().unwrap()]);
    let mut document: serde_json::Value = serde_json::from_slice(&std::fs::read(&flow).unwrap()).unwrap();
    const TO: usize = 2;
    document["modules"][0]["branches"][0][TO] = 0x10.into();
    std::fs::write(&flow, document.to_string()).unwrap();
    let output = run(&["export", "--format", "llvm-profgen", "-i", flow.to_str().unwrap()]);
    let notes = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{notes}");
    assert!(notes.contains("left out: branches at addresses that are no code of the file (25.00 % of all)"), "{notes}");
}

#[test]
fn without_branches_bolt_gets_samples() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = program(folder.path(), "four", &[]) else { return };
    let mut recorder = Recorder::new(&binary);
    recorder.sample(A);
    recorder.sample(D);
    recorder.sample(D);
    let recording = folder.path().join("four.data");
    std::fs::write(&recording, recorder.finish(&Features::default())).unwrap();
    assert_eq!(export("bolt", &recording, &[]), "no_lbr instructions\n1 _start 0 1000\n1 _start 1d 2000\n");
    for format in ["bolt-preagg", "llvm-profgen"] {
        let output = run(&["export", "--format", format, "-i", recording.to_str().unwrap()]);
        let error = String::from_utf8(output.stderr).unwrap();
        let expected = format!("there are no branches of {}, only samples", binary.display());
        assert!(!output.status.success() && error.contains(&expected) && error.contains("gcov"), "{error}");
    }
    let counted = analyzer::truth::Callgrind::read(export("callgrind", &recording, &[]).as_bytes()).unwrap();
    assert_eq!(counted.total, 3000);
}

/// Samples behind the symbols of the program, and branches there.
#[test]
fn what_is_in_no_function_of_bolts_is_told() {
    let folder = tempfile::tempdir().unwrap();
    // BOLT makes no function of a label without a symbol before the first one.
    let code = "
    jmp 1f              # 0
1:  nop                 # 2
    jmp 2f              # 3
.globl _start
.type _start, @function
_start:
2:  nop                 # 5
    jmp 2b              # 6
.size _start, .-_start
";
    let Some(binary) = assemble(folder.path(), "bare", code, &[]) else { return };
    let file = folder.path().join("bare.data");
    let told = |recorder: Recorder| {
        std::fs::write(&file, recorder.finish(&Features::default())).unwrap();
        let output = run(&["export", "--format", "bolt", "-i", file.to_str().unwrap()]);
        assert!(output.status.success());
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap())
    };
    const CODE: u64 = 0x40_1000;
    const START: u64 = CODE + 5;
    let mut recorder = Recorder::new(&binary);
    recorder.sample(CODE + 2);
    recorder.sample(START);
    recorder.sample(START);
    recorder.sample(START);
    let [profile, notes] = told(recorder);
    assert_eq!(profile, "no_lbr instructions\n1 _start 0 3000\n");
    assert!(notes.contains("left out: samples in no function that BOLT knows (25.00 % of all)"), "{notes}");
    let mut recorder = Recorder::new(&binary);
    recorder.stack(&[(CODE, CODE + 2), (CODE, CODE + 2), (CODE + 3, START), (START + 1, START), (START + 1, START)]);
    let [profile, notes] = told(recorder);
    assert_eq!(profile, "0 [unknown] 0 1 _start 0 0 25\n1 _start 1 1 _start 0 0 50\n");
    assert!(notes.contains("left out: branches and fall-throughs in no function that BOLT knows"), "{notes}");
}

#[test]
fn what_cannot_be_profiled_is_told() {
    let Some((folder, binary, recording)) = twice_around() else { return };
    let file = recording.to_str().unwrap();
    let error_of = |more: &[&str]| {
        let output = run(&[&["export", "--format", "bolt", "-i", file], more].concat());
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let error = error_of(&["--binary", env!("CARGO_BIN_EXE_hbbp")]);
    assert!(error.contains("no such file was seen running; there are: "), "{error}");
    let other = folder.path().join("other");
    std::fs::rename(&binary, &other).unwrap();
    let error = error_of(&[]);
    assert!(error.contains("there is no ") && error.contains("--binary"), "{error}");
    // The file that was recorded is elsewhere now.
    let told = format!("four={}", other.display());
    assert!(export("bolt", &recording, &["--binary", &told]).starts_with("1 _start 14 1 _start 16 0 50\n"));
}

#[test]
fn a_wrong_binary_is_told_and_what_does_not_fit_it_left_out() {
    let Some((folder, _, recording)) = twice_around() else { return };
    let other = assemble(folder.path(), "calls", calls::CALLS, &[]).unwrap();
    let given = format!("four={}", other.display());
    let output = run(&["export", "--format", "bolt", "-i", recording.to_str().unwrap(), "--binary", &given]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("does not look like the recorded"), "{told}");
    assert!(told.contains("left out: branches that are of no code of a file (100.00 % of all)"), "{told}");
}

/// A tool of LLVM 19; says loudly when it is not there.
fn llvm(tool: &str) -> Option<Command> {
    testing::tool(&Path::new("/usr/lib/llvm-19/bin").join(tool))
}

fn output_of(mut command: Command) -> String {
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{command:?}: {text}");
    text
}

/// Ends of the edges in a file of BOLT's.
fn edges(fdata: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(fdata).unwrap();
    text.lines().map(|line| line.rsplitn(3, ' ').last().unwrap().to_string()).collect()
}

/// What is in one of the sets only.
fn differences<'a>(one: &'a BTreeSet<String>, other: &'a BTreeSet<String>) -> Vec<&'a String> {
    one.symmetric_difference(other).collect()
}

/// All of it runs in every burst: where a burst ends in a loop whose exit none has seen, no edge can take out what flows in.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static int less(const void *a, const void *b) { int x = *(int *)a, y = *(int *)b; return x < y ? -1 : x > y; }
static __attribute__((noinline)) unsigned step(unsigned x) { if (x & 1) return x * 3 + 1; return x >> 1; }
static __attribute__((noinline)) int length(unsigned n) {
    int steps = 0;
    while (n != 1) { n = step(n); if (++steps > 100000) abort(); }
    return steps;
}
static __attribute__((noinline)) int choose(int x) {
    switch (x % 7) {
    case 0: return x + 3; case 1: return x * 2; case 2: return x ^ 5; case 3: return abs(x - 9) / 3;
    case 4: return x & 77; case 5: return -x; default: return 0;
    }
}
int main(int argc, char **argv) {
    long n = atol(argv[1]), sum = 0;
    int *values = malloc(20 * sizeof(int));
    for (long i = 1; i < n; i++) {
        sum += length(i) + choose((int)i);
        if (i % 20 == 0) {
            for (int k = 0; k < 20; k++) values[k] = (k * 7919 + i) % 10007;
            qsort(values, 20, sizeof(int), less);
            sum += values[10];
        }
    }
    printf("%ld\n", sum);
}
"#;

/// A folder with what the compiler makes of the source, `program`, and a recording of it with that argument, `data`.
fn traced(compiler: &str, extension: &str, source: &str, argument: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let written = file("program").with_extension(extension);
    std::fs::write(&written, source).unwrap();
    let mut compile = Command::new(compiler);
    // Bound at start: BOLT knows no function where the first call of a library's function goes to have it bound.
    compile.args(["-O2", "-Wl,--emit-relocs,--build-id,-z,now", "-o"]).arg(file("program")).arg(written);
    output_of(compile);
    let mut record = hbbp();
    record.args(["record", "--overhead", "20", "-o"]).arg(file("data")).arg("--").arg(file("program")).arg(argument);
    output_of(record);
    folder
}

/// BOLT's own reading of a recording that was traced in software, and ours, have the same edges; it takes ours without complaint.
#[test]
fn bolt_finds_nothing_wrong_with_a_traced_program() {
    let (Some(mut perf2bolt), Some(mut aggregate), Some(mut bolt)) =
        (llvm("perf2bolt"), llvm("perf2bolt"), llvm("llvm-bolt"))
    else {
        return;
    };
    if !support::has("perf") || !support::has("gcc") {
        return;
    }
    let folder = traced("gcc", "c", PROGRAM, "200000");
    let file = |name: &str| folder.path().join(name);
    perf2bolt.arg("-p").arg(file("data")).arg("-o").arg(file("perf2bolt.fdata")).arg(file("program"));
    output_of(perf2bolt);
    for (format, name) in [("bolt", "hbbp.fdata"), ("bolt-preagg", "hbbp.preagg")] {
        let mut export = hbbp();
        export.args(["export", "--format", format, "-i"]).arg(file("data")).arg("-o").arg(file(name));
        output_of(export);
    }
    aggregate.arg("-pa").arg("-p").arg(file("hbbp.preagg")).arg("-o").arg(file("preagg.fdata")).arg(file("program"));
    let told = output_of(aggregate);
    assert!(told.contains("traces mismatching disassembled function contents: 0 (0.0%)"), "{told}");
    let ours = edges(&file("hbbp.fdata"));
    assert!(ours.len() > 10, "{ours:?}");
    assert_eq!(differences(&ours, &edges(&file("perf2bolt.fdata"))), Vec::<&String>::new());
    assert_eq!(differences(&ours, &edges(&file("preagg.fdata"))), Vec::<&String>::new());

    bolt.arg(file("program")).arg("-o").arg(file("faster")).arg("-data").arg(file("hbbp.fdata"));
    bolt.args(["-reorder-blocks=ext-tsp", "-reorder-functions=hfsort", "-print-profile-stats"]);
    let told = output_of(bolt);
    assert!(!told.contains("stale") && !told.contains("invalid"), "{told}");

    // What flows into a block flows out of it, but for what rounding does.
    let mut stated = llvm("llvm-bolt").unwrap();
    stated.arg(file("program")).arg("-o").arg(file("other")).arg("-data").arg(file("perf2bolt.fdata"));
    stated.arg("-print-profile-stats");
    let (ours, usual) = (bias_score(&told), bias_score(&output_of(stated)));
    assert!(ours <= usual.max(0.1), "{ours} % by hbbp, {usual} % by perf2bolt");
}

const THROWS: &str = include_str!("support/throws.cpp");

/// What catches an exception is in a part of its own, which jumps back behind a call: not all that goes there came back from the call.
#[test]
fn exceptions_are_in_balance_too() {
    let Some(mut bolt) = llvm("llvm-bolt") else { return };
    if !support::has("g++") {
        return;
    }
    let folder = traced("g++", "cpp", THROWS, "3000000");
    let file = |name: &str| folder.path().join(name);
    let mut export = hbbp();
    export.args(["export", "--format", "bolt", "-i"]).arg(file("data")).arg("--binary").arg(file("program"));
    export.arg("-o").arg(file("fdata"));
    output_of(export);
    bolt.arg(file("program")).arg("-o").arg(file("faster")).arg("-data").arg(file("fdata")).arg("-print-profile-stats");
    let told = output_of(bolt);
    assert!(bias_score(&told) < 0.1, "{told}");
}

/// The mean of the differences between what flows into blocks and out of them, in percent: lower is better.
fn bias_score(told: &str) -> f64 {
    let score = told.split("Profile bias score: ").nth(1).and_then(|rest| rest.split('%').next());
    score.and_then(|score| score.parse().ok()).unwrap_or_else(|| panic!("no bias score: {told}"))
}

/// Branch stacks of real programs: BOLT's aggregation of ranges and branches gives the edges that we gave.
#[test]
fn bolt_agrees_on_real_programs() {
    for (fixture, least) in Fixture::all_stacks().iter().zip([150, 400]) {
        let Some(mut aggregate) = llvm("perf2bolt") else { return };
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let binary = fixture.copy_binary(folder.path());
        for (format, name) in [("bolt", "hbbp.fdata"), ("bolt-preagg", "hbbp.preagg")] {
            let mut export = hbbp();
            export.args(["export", "--format", format, "-i"]).arg(&fixture.recording).arg("-o").arg(file(name));
            export.arg("--binary").arg(&binary);
            output_of(export);
        }
        aggregate.arg("-pa").arg("-p").arg(file("hbbp.preagg")).arg("-o").arg(file("preagg.fdata"));
        aggregate.arg(binary);
        let told = output_of(aggregate);
        assert!(told.contains("traces mismatching disassembled function contents: 0 (0.0%)"), "{told}");
        let ours = edges(&file("hbbp.fdata"));
        assert!(ours.len() > least, "{}: {}", fixture.name, ours.len());
        assert_eq!(differences(&ours, &edges(&file("preagg.fdata"))), Vec::<&String>::new(), "{}", fixture.name);
    }
}

/// LLVM's generator of sample profiles takes the text.
#[test]
fn llvm_profgen_makes_a_profile_of_it() {
    // The functions that ran most of what has lines.
    for (fixture, function) in Fixture::all_stacks().iter().zip(["put_bit:", "longest_match:"]) {
        let Some(mut profgen) = llvm("llvm-profgen") else { return };
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let binary = fixture.copy_binary(folder.path());
        let ranges = export("llvm-profgen", &fixture.recording, &["--binary", binary.to_str().unwrap()]);
        std::fs::write(file("ranges"), ranges).unwrap();
        profgen.arg(format!("--unsymbolized-profile={}", file("ranges").display()));
        profgen.arg(format!("--binary={}", binary.display())).arg("--format=text");
        profgen.arg(format!("--output={}", file("profile").display()));
        output_of(profgen);
        let profile = std::fs::read_to_string(file("profile")).unwrap();
        assert!(profile.lines().any(|line| line.starts_with(function)), "{}: {profile}", fixture.name);
    }
}

/// What `perf` prints, but for samples without a stack where there are stacks.
#[test]
fn the_text_of_perf_script_is_that_of_perf() {
    let Some((_folder, _, traced)) = twice_around() else { return };
    if !support::has("perf") {
        return;
    }
    let stacks = Fixture::all_stacks().into_iter().map(|fixture| fixture.recording);
    for recording in stacks.chain([traced]) {
        let mut perf = Command::new("perf");
        perf.args(["script", "--show-mmap-events", "-F", "ip,brstack", "-i"]).arg(&recording);
        let theirs = String::from_utf8(perf.output().unwrap().stdout).unwrap();
        let ours = export("perf-script", &recording, &[]);
        let lines = |text: &str| -> Vec<String> {
            let all = text.lines().filter(|line| line.contains('/')).map(|line| line.trim_end().to_string());
            let mut lines: Vec<String> = all.collect();
            lines.sort(); // perf sorts by time.
            lines
        };
        let (ours, theirs) = (lines(&ours), lines(&theirs));
        assert!(!ours.is_empty() && ours.len() == theirs.len(), "{} {}", ours.len(), theirs.len());
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours, theirs);
        }
    }
}

/// Of several events only the branch source is for `llvm-profgen`, which would count the stacks of the others, too.
#[test]
fn llvm_profgen_makes_a_profile_of_the_stacks_of_a_recording_of_two_events() {
    let Some((folder, binary, _)) = twice_around() else { return };
    let mut recorder = Recorder::with_two_stacks(&binary);
    for _ in 0..200 {
        recorder.sample_with_stack(B, &[(D_JMP, A), (D_JMP, A)]);
        recorder.stack(&AROUND);
    }
    let file = |name: &str| folder.path().join(name);
    std::fs::write(file("recording"), recorder.finish(&Features::default())).unwrap();
    let script = export("perf-script", &file("recording"), &["--stacks-only"]);
    assert_eq!(script.lines().filter(|line| line.starts_with(' ')).count(), 200, "{script}");
    std::fs::write(file("script"), script).unwrap();
    let Some(mut profgen) = llvm("llvm-profgen") else { return };
    profgen.arg(format!("--perfscript={}", file("script").display())).arg(format!("--binary={}", binary.display()));
    // Without debug information it stops after ranges and branches, by address.
    profgen.arg("--skip-symbolization").arg(format!("--output={}", file("profile").display()));
    output_of(profgen);
    let profile = std::fs::read_to_string(file("profile")).unwrap();
    // Two branches of five lead from D to A with a range after them to A's jump.
    assert!(profile.contains("1e->0:600"), "{profile}");
}

/// The event of instructions has stacks of its own, which nothing else counts.
#[test]
fn only_the_stacks_of_the_branch_source_are_written_where_that_is_asked_for() {
    let Some((folder, binary, _)) = twice_around() else { return };
    let mut recorder = Recorder::with_two_stacks(&binary);
    for _ in 0..3 {
        recorder.sample_with_stack(B, &[(D_JMP, A)]);
        recorder.stack(&AROUND);
    }
    let both = folder.path().join("both");
    std::fs::write(&both, recorder.finish(&Features::default())).unwrap();
    let ips = |more: &[&str]| -> Vec<u64> {
        let text = export("perf-script", &both, more);
        let samples = text.lines().filter(|line| line.starts_with(' '));
        samples.map(|line| u64::from_str_radix(line.split_whitespace().next().unwrap(), 16).unwrap()).collect()
    };
    assert_eq!(ips(&[]), [B, A, B, A, B, A]);
    assert_eq!(ips(&["--stacks-only"]), [A, A, A]);
    let mut recorder = Recorder::new(&binary);
    recorder.sample(A);
    let file = folder.path().join("without");
    std::fs::write(&file, recorder.finish(&Features::default())).unwrap();
    let refused = run(&["export", "--format", "perf-script", "--stacks-only", "-i", file.to_str().unwrap()]);
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(1) && errors.contains("no stacks of taken branches"), "{errors}");
}

#[test]
fn an_option_of_another_format_is_wrong_usage() {
    for (option, format, right) in [
        (&["--stacks-only"][..], "bolt", "perf-script"),
        (&["--gcov-version", "2"], "llvm-text", "gcov"),
        (&["--ld-profile", "ld_profile.txt"], "bolt", "propeller"),
    ] {
        let output = run(&[&["export", "--format", format][..], option].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(&format!("{} is for --format {right}", option[0])), "{errors}");
    }
}

/// The second file would overwrite the first.
#[test]
fn two_outputs_in_one_file_are_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("profile.txt").to_str().unwrap().to_owned();
    let again = folder.path().join(".").join("profile.txt").to_str().unwrap().to_owned();
    for outputs in
        [&["-o", &file, "--ld-profile", &file][..], &["-o", &file, "--ld-profile", &again], &["--ld-profile", "-"]]
    {
        let output = run(&[&["export", "--format", "propeller"][..], outputs].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains("-o and --ld-profile both name"), "{errors}");
    }
}

#[test]
fn pprof_gets_every_block_with_its_function() {
    let Some((folder, _, recording)) = twice_around() else { return };
    let file = folder.path().join("profile.pb.gz");
    export("pprof", &recording, &["-o", file.to_str().unwrap()]);
    let profile = pprof::Profile::open(&file);
    let text = |index: i64| profile.string_table[index as usize].as_str();
    let types: Vec<&str> = profile.sample_type.iter().map(|pair| text(pair.kind)).collect();
    assert_eq!((types, text(0)), (vec!["executions", "instructions"], ""));
    let mut found = Vec::new();
    for sample in &profile.sample {
        let location = profile.location.iter().find(|location| location.id == sample.location_id[0]).unwrap();
        let function = profile.function.iter().find(|function| function.id == location.line[0].function_id).unwrap();
        found.push((location.address, text(function.name), sample.value.clone()));
    }
    let block = |start, executions, instructions| (start, "_start", vec![executions, executions * instructions]);
    assert_eq!(found, [block(A, 100, 21), block(B, 50, 4), block(C, 50, 2), block(D, 100, 2)]);
}

/// Our own reader of callgrind's files gets back what ran, and `callgrind_annotate` finds the same total.
#[test]
fn callgrind_gets_every_instruction() {
    let Some((folder, binary, recording)) = twice_around() else { return };
    let text = export("callgrind", &recording, &[]);
    let read = analyzer::truth::Callgrind::read(text.as_bytes()).unwrap();
    assert_eq!(read.total, 100 * 21 + 50 * 4 + 50 * 2 + 100 * 2);
    let counts = &read.objects[binary.to_str().unwrap()].counts;
    assert_eq!(counts.len(), 29);
    let at = |address| counts[&analyzer::address::Svma(address)];
    assert_eq!([at(A), at(A_JNE), at(B), at(B_JMP), at(C), at(D), at(D_JMP)], [100, 100, 50, 50, 50, 100, 100]);
    if support::has("callgrind_annotate") {
        let file = folder.path().join("four.callgrind");
        std::fs::write(&file, text).unwrap();
        let mut annotate = Command::new("callgrind_annotate");
        annotate.arg(&file);
        let told = output_of(annotate);
        assert!(told.contains("2,600 (100.0%)  PROGRAM TOTALS"), "{told}");
        assert!(told.contains("_start"), "{told}");
    }
}

/// Our own reader of the mix tool's files gets back what ran.
#[test]
fn sde_mix_gets_every_instruction() {
    let Some((_folder, binary, recording)) = twice_around() else { return };
    let text = export("sde-mix", &recording, &[]);
    let read = analyzer::truth::MixFile::read(text.as_bytes()).unwrap();
    let at = |address: u64| read.counts[&(Some(binary.to_str().unwrap().to_owned()), address)];
    assert_eq!([at(A), at(A_JNE), at(B), at(B_JMP), at(C), at(D), at(D_JMP)], [100, 100, 50, 50, 50, 100, 100]);
    assert_eq!(read.counts.len(), 29);
    assert_eq!(read.total(), 100 * 21 + 50 * 4 + 50 * 2 + 100 * 2);
    assert_eq!([read.mnemonics["jne"], read.mnemonics["jmp"], read.mnemonics["nop"]], [100, 150, 2350]);
    let sums: Vec<&str> = text.lines().filter(|line| line.starts_with('*')).collect();
    let sum = |name: &str| sums.iter().find_map(|line| line.strip_prefix(name)).map(str::trim);
    assert_eq!([sum("*isa-ext-BASE"), sum("*total")], [Some("2600"); 2]);
    assert!(text.starts_with("# Mix output version ") && text.contains("\nXDIS 401014: BASE     7505 "), "{text}");
}

/// The sums of a real program are those of its mix, and reading them again finds the same program.
#[test]
fn sde_mix_has_the_same_instructions_as_the_mix() {
    let fixture = Fixture::bursts("compress");
    let text = support::stdout_of(&["export", "--format", "sde-mix"], &fixture);
    let read = analyzer::truth::MixFile::read(text.as_bytes()).unwrap();
    let mix: serde_json::Value =
        serde_json::from_str(&support::stdout_of(&["mix", "--rows", "mnemonic", "--format", "json"], &fixture))
            .unwrap();
    let all = mix["instructions"].as_f64().unwrap();
    let mut compared = 0;
    for row in mix["rows"].as_array().unwrap() {
        let (name, count) = (row["mnemonic"].as_str().unwrap(), row["count"].as_f64().unwrap());
        if name == "[unreadable]" {
            continue;
        }
        // Blocks have whole executions, and here counts are by branches alone.
        let exported = read.mnemonics.get(name).copied().unwrap_or(0) as f64;
        assert!((exported - count).abs() < 0.01 * all, "{name}: {exported}, {count}");
        compared += 1;
    }
    assert!(compared > 50, "{compared}");
}

/// For what was seen ran: counts below one half are no 0.
#[test]
fn rare_code_is_in_every_profile() {
    let Some((folder, _, recording)) = twice_around() else { return };
    let rare = folder.path().join("rare");
    let weighted = format!("{}:0.004", recording.display());
    stdout(&["merge", "-o", rare.to_str().unwrap(), &weighted]);
    let read = analyzer::truth::Callgrind::read(export("callgrind", &rare, &[]).as_bytes()).unwrap();
    assert_eq!(read.total, 29);
    assert!(export("bolt-preagg", &rare, &[]).starts_with("B 401014 40101b 1 0\n"));
}

#[test]
fn names_with_line_breaks_break_no_lines() {
    let Some((folder, binary, _)) = twice_around() else { return };
    let strange = folder.path().join("fo\nur");
    std::fs::copy(binary, &strange).unwrap();
    let mut recorder = Recorder::new(&strange);
    recorder.stack(&AROUND);
    let recording = folder.path().join("strange.data");
    std::fs::write(&recording, recorder.finish(&Features::default())).unwrap();
    let text = export("callgrind", &recording, &[]);
    assert!(text.lines().any(|line| line.starts_with("ob=") && line.ends_with(r"fo\nur")), "{text}");
    assert!(!text.lines().any(|line| line == "ur"), "{text}");
}

#[test]
fn what_export_cannot_do_with_its_options_is_told() {
    let Some((_folder, binary, recording)) = twice_around() else { return };
    let binary = binary.to_str().unwrap();
    for option in [["--binary", binary], ["--symfs", "/"], ["--model", "published"], ["--threads", "1"]] {
        let arguments = ["export", "--format", "perf-script", "-i", recording.to_str().unwrap()];
        let output = run(&[&arguments[..], &option[..]].concat());
        let error = String::from_utf8(output.stderr).unwrap();
        let expected = format!("{} changes nothing here", option[0]);
        assert!(!output.status.success() && error.contains(&expected), "{error}");
    }
    if support::has("script") {
        for format in ["pprof", "gcov", "llvm-extbin"] {
            let command =
                format!("{} export --format {format} -i '{}'", env!("CARGO_BIN_EXE_hbbp"), recording.display());
            let mut terminal = Command::new("script");
            terminal.args(["-qec", &command, "/dev/null"]);
            let output = terminal.output().unwrap();
            let told = String::from_utf8_lossy(&output.stdout);
            assert!(!output.status.success() && told.contains("name a file with -o"), "{told}");
        }
    }
}

/// What `once` costs is shared by its two callers.
#[test]
fn callgrind_gets_calls_and_what_they_cost() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = assemble(folder.path(), "calls", calls::CALLS, &[]) else { return };
    let around = [&[(calls::START + 10, calls::START)], &calls::AROUND[..]].concat();
    let mut recorder = Recorder::new(&binary);
    for _ in 0..7 {
        recorder.stack(&around);
    }
    let recording = folder.path().join("calls.data");
    std::fs::write(&recording, recorder.finish(&Features::default())).unwrap();
    let text = export("callgrind", &recording, &[]);
    // Seven streams of a stack weigh 100 / 7 each: all of it ran 100 times.
    let calls: Vec<(&str, &str)> =
        text.lines().zip(text.lines().skip(1)).filter(|(line, _)| line.starts_with("calls=")).collect();
    let expected = [
        ("calls=100 0x40100c 0", "0x401000 0 700"),
        ("calls=100 0x401013 0", "0x401005 0 400"),
        ("calls=100 0x401013 0", "0x40100d 0 400"),
    ];
    assert_eq!(calls, expected, "{text}");
}

/// `shared` runs a loop of three rounds when `often` calls it, and none when `once` does. Each calls it as often.
const UNEQUAL: &str = "
.globl _start
.type _start, @function
_start:
    call often
    call once
    jmp _start
.size _start, .-_start
.type often, @function
often:
    call shared
    ret
.size often, .-often
.type once, @function
once:
    call shared
    ret
.size once, .-once
.type shared, @function
shared:
1:  nop
    jne 1b
    ret
.size shared, .-shared
.section .note.GNU-stack,\"\",@progbits
";

#[test]
fn callgrind_gets_what_functions_cost_when_each_caller_called_them() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = assemble(folder.path(), "unequal", UNEQUAL, &[]) else { return };
    let start = calls::START;
    let [often, once, shared] = [start + 12, start + 18, start + 24];
    let (jne, ret) = (shared + 1, shared + 3);
    let around = [
        (start + 10, start),
        (start, often),
        (often, shared),
        (jne, shared),
        (jne, shared),
        (ret, often + 5),
        (often + 5, start + 5),
        (start + 5, once),
        (once, shared),
        (ret, once + 5),
        (once + 5, start + 10),
        (start + 10, start),
    ];
    let mut recorder = Recorder::new(&binary);
    (0..11).for_each(|_| recorder.stack(&around));
    let recording = folder.path().join("unequal.data");
    std::fs::write(&recording, recorder.finish(&Features::default())).unwrap();
    let text = export("callgrind", &recording, &[]);
    assert!(text.contains("desc: Calls: costs are shared out as branch records show them"), "{text}");
    let costs: Vec<(&str, f64)> = text
        .lines()
        .zip(text.lines().skip(1))
        .filter(|(line, _)| line.starts_with("calls="))
        .map(|(line, cost)| (line, cost.rsplit(' ').next().unwrap().parse().unwrap()))
        .collect();
    // Three rounds and a return are seven instructions, one round and a return three.
    let of_shared: Vec<f64> =
        costs.iter().filter(|(line, _)| line.contains("0x401018")).map(|(_, cost)| *cost).collect();
    let [by_often, by_once] = of_shared[..] else { panic!("{text}") };
    assert!((by_often / by_once - 7.0 / 3.0).abs() < 0.02, "{by_often} and {by_once}");
    // Exact counts do not say it: there, each call costs the same.
    let flow = folder.path().join("unequal.flow");
    stdout(&["merge", "-o", flow.to_str().unwrap(), recording.to_str().unwrap()]);
    let text = export("callgrind", &flow, &[]);
    assert!(text.contains("desc: Calls: costs are shared out as if every call of a function cost the same"), "{text}");
}
