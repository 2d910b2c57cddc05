//! `hbbp annotate`: loops, branches and zeroes of a program whose executions are known by hand; names; what a terminal
//! gets.
//!
//! ```text
//! main  A 0x401000  call work            3 f's and 1 g by the computed call
//!       B 0x401005  call *%rax
//!       C 0x401007  jmp A
//! work  W 0x401009  nop
//!       L 0x40100a  dec, je U            three times each: the header of a loop; the branch is never taken
//!       M 0x40100e  nop, jne L           taken twice of three times
//!       R 0x401011  ret
//!       U 0x401012  nop, ret             not seen
//! f     F 0x401014  ret
//! g     G 0x401015  ret
//! idle    0x401016  ret                  not seen
//! ```

mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use std::path::{Path, PathBuf};
use std::process::Command;

use perfdata::{BranchFlags, Features};
use serde_json::{Value, json};
use support::Fixture;
use synthetic::{Burst, Recorder, burst_metadata};
use tempfile::TempDir;
use unicode_width::UnicodeWidthStr;

const A: u64 = 0x40_1000;
const B: u64 = 0x40_1005;
const C: u64 = 0x40_1007;
const W: u64 = 0x40_1009;
const L: u64 = 0x40_100a;
const JNE: u64 = 0x40_100f;
const R: u64 = 0x40_1011;
const U: u64 = 0x40_1012;
const F: u64 = 0x40_1014;
const G: u64 = 0x40_1015;

const SOURCE: &str = "
.macro function name
.globl \\name
.type \\name, @function
\\name:
.endm
.globl _start
function main
_start:
    call work
    call *%rax
    jmp main
.size main, .-main
function work
    nop
1:  dec %ecx
    je 2f
    nop
    jne 1b
    ret
2:  nop
    ret
.size work, .-work
function f
    ret
.size f, .-f
function g
    ret
.size g, .-g
function idle
    ret
.size idle, .-idle
.section .note.GNU-stack,\"\",@progbits
";

/// Branches of one time around, with the function that is called by address.
fn around(called: u64) -> [(u64, u64); 7] {
    [(A, W), (JNE, L), (JNE, L), (R, B), (B, called), (called, C), (C, A)]
}

/// What the source of the program is compiled with.
fn program(folder: &Path, extra: &[&str]) -> Option<PathBuf> {
    synthetic::assemble(folder, "calls", SOURCE, extra)
}

/// A burst of four times around, and samples of a clock: three where bursts were, one where they were not.
fn traced(extra: &[&str]) -> Option<(TempDir, String)> {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::traced(&program(folder.path(), extra)?);
    let branches = [F, F, F, G].map(around).concat();
    recorder.burst(&Burst { ip: A, branches: &branches, instructions: 72, period: 7_200 });
    [L, L, L, U].into_iter().for_each(|ip| recorder.sample(ip));
    Some(write(folder, recorder.finish(&burst_metadata("instructions"))))
}

fn write(folder: TempDir, recording: Vec<u8>) -> (TempDir, String) {
    let file = folder.path().join("run.data");
    std::fs::write(&file, recording).unwrap();
    let name = file.to_str().unwrap().to_owned();
    (folder, name)
}

fn annotated(arguments: &[&str]) -> Value {
    serde_json::from_str(&support::stdout(&[&["annotate", "--format", "json"], arguments].concat())).unwrap()
}

fn function<'a>(document: &'a Value, name: &str) -> &'a Value {
    let functions = document["functions"].as_array().unwrap();
    functions.iter().find(|function| function["name"] == name).unwrap_or_else(|| panic!("{name} in {document}"))
}

fn block(function: &Value, start: u64) -> &Value {
    let blocks = function["blocks"].as_array().unwrap();
    blocks.iter().find(|block| block["start"] == start).unwrap_or_else(|| panic!("{start:#x} in {function}"))
}

#[test]
fn branches_and_loops_are_those_of_the_bursts() {
    let Some((_folder, file)) = traced(&[]) else { return };
    let document = annotated(&[&file]);
    let names: Vec<&str> =
        document["functions"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["work", "main", "f", "g"], "hottest first");
    let work = function(&document, "work");
    // Of 18 instructions once around, W, R and three times L and M.
    assert!((work["share"].as_f64().unwrap() - 14.0 / 18.0).abs() < 1e-9, "{work}");
    let once = block(work, W)["count"].as_f64().unwrap();
    assert!(once > 0.0);
    assert_eq!(work["calls"], once);
    assert_eq!(function(&document, "f")["calls"], 0.75 * once);

    let loops = work["loops"].as_array().unwrap();
    assert_eq!(loops.len(), 1, "{work}");
    let expected = json!({"header": 1, "parent": null, "depth": 1, "first": 1, "last": 2, "size": 2,
        "entries": once, "repeats": 2.0 * once, "trips": 3.0, "histogram": null});
    assert_eq!(loops[0], expected);
    assert_eq!(block(work, L)["loop"], 0);
    assert_eq!(block(work, R)["loop"], Value::Null);

    let never = &block(work, L)["branch"];
    assert_eq!(
        (&never["kind"], &never["taken"], &never["fallen"]),
        (&json!("conditional"), &json!(0.0), &json!(3.0 * once))
    );
    assert_eq!(never["target"]["offset"], U - W);
    let back = &block(work, 0x40_100e)["branch"];
    assert!((back["taken_rate"].as_f64().unwrap() - 2.0 / 3.0).abs() < 1e-12, "{back}");

    let main = function(&document, "main");
    let computed = &block(main, B)["branch"];
    let went: Vec<(&Value, f64)> = computed["targets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|target| (&target["function"], target["count"].as_f64().unwrap() / once))
        .collect();
    assert_eq!(went, [(&json!("f"), 0.75), (&json!("g"), 0.25)]);
    // The burst began inside of it.
    let endless = &main["loops"][0];
    assert_eq!(
        (&endless["entries"], &endless["repeats"], &endless["trips"]),
        (&json!(0.0), &json!(once), &Value::Null)
    );
}

#[test]
fn zeroes_are_explained() {
    let Some((_folder, file)) = traced(&[]) else { return };
    let document = annotated(&[&file]);
    let work = function(&document, "work");
    let unseen = block(work, U);
    assert_eq!(
        (&unseen["seen"], &unseen["count"], &unseen["ebs_samples"]),
        (&json!("by-other-source"), &json!(0.0), &json!(1))
    );
    assert_eq!(block(work, L)["seen"], "counted");
    let table = support::stdout(&["annotate", &file]);
    assert!(table.contains("; not seen in branches, in 1 sample"), "{table}");
    assert!(table.contains("je 0x401012  ; not seen taken") && table.contains("; taken 67 %"), "{table}");
    assert!(table.contains("call rax  ; to f 75 %, g 25 %"), "{table}");
    assert!(table.contains("loop of 2 blocks: 3.00 trips on average"), "{table}");
    assert!(table.contains("# lacks    cycles of blocks"), "{table}");
    assert!(table.contains("... 1 more function with 1.39 %"), "{table}");
}

/// Data between instructions, as old compilers put tables of jumps there.
#[test]
fn what_is_no_instruction_is_not_readable() {
    let folder = tempfile::tempdir().unwrap();
    let source = ".globl _start\n.type _start, @function\n_start: jmp 1f\n.byte 6, 6, 6, 6\n1: jmp _start\n\
        .size _start, .-_start\n.section .note.GNU-stack,\"\",@progbits\n";
    let Some(binary) = synthetic::assemble(folder.path(), "data", source, &[]) else { return };
    let mut recorder = Recorder::new(&binary);
    (0..8).for_each(|_| recorder.stack(&[(A, A + 6), (A + 6, A)].repeat(8)));
    let (_folder, file) = write(folder, recorder.finish(&Features::default()));
    let document = annotated(&[&file]);
    let start = function(&document, "_start");
    assert_eq!(start["not_readable"], json!([{"start": A + 2, "end": A + 6}]));
    assert_eq!(start["blocks"].as_array().unwrap().len(), 2);
    let table = support::stdout(&["annotate", &file]);
    assert!(table.contains("401002  4 bytes that are no instructions"), "{table}");
    assert!(table.contains("\nnot readable: no instructions could be decoded there\n"), "{table}");
}

/// Samples alone: which ways branches went is not known, and is not made up.
#[test]
fn without_branch_stacks_no_branch_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = program(folder.path(), &[]) else { return };
    let mut recorder = Recorder::new(&binary);
    (0..20).for_each(|_| recorder.sample(L));
    let (_folder, file) = write(folder, recorder.finish(&Features::default()));
    let document = annotated(&[&file]);
    let work = function(&document, "work");
    assert_eq!(
        (&work["calls"], &work["loops"][0]["trips"], &work["loops"][0]["depth"]),
        (&Value::Null, &Value::Null, &json!(1))
    );
    assert_eq!(block(work, L)["branch"]["taken"], Value::Null);
    assert_eq!(block(work, R)["seen"], "not-seen");
    assert!(document["lacks"][0].as_str().unwrap().contains("no branch stacks"), "{document}");
    let table = support::stdout(&["annotate", &file]);
    assert!(table.contains("not seen: neither") && !table.contains("taken"), "{table}");
}

#[test]
fn mispredictions_are_of_the_branches_that_have_them() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = program(folder.path(), &[]) else { return };
    let mut recorder = Recorder::new(&binary);
    (0..8).for_each(|_| recorder.stack(&[F, G].map(around).concat()));
    recorder.stack_with(&[(JNE, L), (JNE, L), (JNE, L)], BranchFlags::MISPREDICTED);
    let (_folder, file) = write(folder, recorder.finish(&Features::default()));
    let document = annotated(&[&file]);
    let work = function(&document, "work");
    let part = block(work, 0x40_100e)["branch"]["mispredict_rate"].as_f64().unwrap();
    assert!(part > 0.0 && part < 1.0, "{part}");
    assert_eq!(block(work, R)["branch"]["mispredict_rate"], 0.0);
    assert_eq!(document["lacks"].as_array().unwrap().len(), 1, "{document}");
    assert!(support::stdout(&["annotate", &file]).contains("% of these mispredicted"));
}

#[test]
fn functions_are_named_as_elsewhere() {
    let Some((_folder, file)) = traced(&[]) else { return };
    let names = |arguments: &[&str]| -> Vec<String> {
        let document = annotated(&[&[file.as_str()], arguments].concat());
        document["functions"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&["-f", "main"]), ["main"]);
    assert_eq!(names(&["-f", "g", "--function", "wo*"]), ["work", "g"]);
    assert_eq!(names(&["--top", "2"]), ["work", "main"]);
    assert_eq!(names(&["-f", "*", "--top", "1"]), ["work"]);
    let refused = |name: &str| {
        let output = support::run(&["annotate", &file, "-f", name]);
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refused("wrok").contains("nothing has the function \"wrok\": did you mean --function 'work'?"));
    assert!(refused("idle").contains("the function \"idle\" was not seen"));
    // One that is there and one that is not.
    let output = support::run(&["annotate", &file, "-f", "work", "-f", "idle"]);
    assert!(output.status.success());
    assert!(String::from_utf8(output.stderr).unwrap().contains("\"idle\" was not seen"));
}

#[test]
fn every_instruction_is_a_row_of_the_csv() {
    let Some((_folder, file)) = traced(&[]) else { return };
    let text = support::stdout(&["annotate", &file, "--format", "csv", "-f", "work"]);
    let mut csv = csv::Reader::from_reader(text.as_bytes());
    let titles = csv.headers().unwrap().clone();
    let rows: Vec<csv::StringRecord> = csv.records().map(Result::unwrap).collect();
    let of = |row: usize, title: &str| rows[row][titles.iter().position(|one| one == title).unwrap()].to_owned();
    assert_eq!(rows.len(), 8);
    let columns = ["address", "instruction", "seen", "depth", "trips", "branch", "target"];
    assert_eq!(columns.map(|title| of(1, title)), ["0x40100a", "dec ecx", "counted", "1", "3", "", ""]);
    assert_eq!(
        columns.map(|title| of(2, title)),
        ["0x40100c", "je 0x401012", "counted", "1", "", "conditional", "work+0x9"]
    );
    assert_eq!(of(2, "taken_rate"), "0");
    assert_eq!(of(7, "seen"), "by-other-source");
}

/// An assembler describes each of its lines.
#[test]
fn lines_of_the_source_are_between_the_instructions() {
    let Some((folder, file)) = traced(&["-g"]) else { return };
    let print = || support::stdout(&["annotate", &file, "--source", "-f", "work"]);
    let table = print();
    let line = SOURCE.lines().position(|line| line == "1:  dec %ecx").unwrap() + 1;
    assert!(table.contains(&format!("calls.s:{line}  1:  dec %ecx")), "{table}");
    let source = folder.path().join("calls.s");
    let hostile = std::fs::read_to_string(&source).unwrap().replace("dec %ecx", "dec \u{1b}[31m");
    std::fs::write(&source, hostile).unwrap();
    assert!(print().contains("1:  dec \\u{1b}[31m"));
    std::fs::remove_file(&source).unwrap();
    assert!(print().contains(&format!("calls.s:{line}\n")));
    let document = annotated(&[&file, "--source", "-f", "work"]);
    let dec = &block(function(&document, "work"), L)["instructions"][0];
    assert_eq!((&dec["text"], &dec["line"]), (&json!("dec ecx"), &json!(line)));
    let said = |file: &str| String::from_utf8(support::run(&["annotate", file, "--source"]).stderr).unwrap();
    assert!(!said(&file).contains("no line of the source"));
    let Some((_folder, without)) = traced(&[]) else { return };
    assert!(said(&without).contains("no line of the source is known: build with debug information"));
}

/// `f` is one of 18 instructions three times of four, and 40 of 100 samples of the clock.
#[test]
fn time_stands_beside_instructions() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = program(folder.path(), &[]) else { return };
    let branches = [F, F, F, G].map(around).concat();
    let mut recorder = Recorder::traced(&binary);
    for turn in 0..100 {
        if turn % 2 == 0 {
            recorder.burst(&Burst { ip: A, branches: &branches, instructions: 72, period: 7_200 });
        }
        recorder.sample(if turn % 5 < 2 { F } else { L });
    }
    let (folder, file) = write(folder, recorder.finish(&burst_metadata("instructions")));
    let document = annotated(&[&file]);
    let near = |value: &Value, expected: f64| {
        assert!((value.as_f64().unwrap() - expected).abs() < 1e-9, "{value}, expected {expected}");
    };
    let (f, work) = (function(&document, "f"), function(&document, "work"));
    near(&f["time_share"], 0.4);
    near(&f["time_share_error"], 1.96 * (0.4_f64 * 0.6 / 100.0).sqrt());
    near(&f["time_per_instruction"], 0.4 / f["share"].as_f64().unwrap());
    near(&work["time_per_instruction"], 0.6 / work["share"].as_f64().unwrap());
    // Nothing of its time was seen.
    near(&function(&document, "g")["time_share"], 0.0);
    assert_eq!(function(&document, "g")["time_per_instruction"], Value::Null);
    let summary = support::stdout(&["annotate", "--summary", &file]);
    assert!(summary.contains("# slow     f: 40.0 % of the time, "), "{summary}");
    assert!(summary.contains(" of the instructions: an instruction takes 9."), "{summary}");
    let rows: Vec<&str> = summary.lines().skip_while(|line| !line.contains("time/instr")).skip(1).collect();
    assert!(rows[0].contains("work") && rows[1].contains("9.") && rows[1].contains("f  "), "{summary}");
    let listing = support::stdout(&["annotate", "-f", "f", &file]);
    assert!(listing.contains("; 40.0 % of the time (9."), "{listing}");
    let refused = support::run(&["annotate", "--summary", "--format", "json", &file]);
    assert_eq!(refused.status.code(), Some(2));

    // An event that counts instructions tells no time.
    let mut recorder = Recorder::new(&binary);
    recorder.stack(&branches);
    recorder.sample(L);
    let (_folder, file) = write(folder, recorder.finish(&Features::default()));
    assert_eq!(function(&annotated(&[&file]), "work")["time_share"], Value::Null);
    let summary = support::stdout(&["annotate", "--summary", &file]);
    assert!(summary.contains("# lacks    time: ") && !summary.contains("time/instr"), "{summary}");
}

/// The guide's example: two to four trips in each of 40 bursts, and samples at the loop and where no burst came.
#[test]
fn the_guide_shows_what_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = program(folder.path(), &["-g"]) else { return };
    let mut recorder = Recorder::traced(&binary);
    for burst in 0..40_usize {
        let mut branches = Vec::new();
        let mut instructions = 0;
        for turn in 0..4 {
            let trips = 2 + (burst + turn) % 3;
            let [call, back, _, rest @ ..] = around(if turn < 3 { F } else { G });
            branches.push(call);
            branches.extend(std::iter::repeat_n(back, trips - 1));
            branches.extend(rest);
            instructions += 6 + 4 * trips as u64;
        }
        recorder.burst(&Burst { ip: A, branches: &branches, instructions, period: 100_000 });
        recorder.sample(L);
    }
    recorder.sample(U);
    let (_folder, file) = write(folder, recorder.finish(&burst_metadata("instructions")));
    let table = support::stdout(&["annotate", &file, "-f", "work", "--source"]);
    let (_, listing) = table.split_once("\n\n").unwrap();
    let shown: String = listing.lines().map(|line| format!("    {line}\n").replace("    \n", "\n")).collect();
    let guide = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guide/annotate.md")).unwrap();
    assert!(guide.contains(&shown), "docs/guide/annotate.md does not have\n{shown}");
}

fn on_terminal(columns: usize, variables: &str, arguments: &[String]) -> Option<String> {
    let arguments = arguments.iter().map(String::as_str);
    support::on_terminal(columns, variables, &["annotate"].into_iter().chain(arguments).collect::<Vec<_>>())
}

#[test]
fn a_pager_that_cannot_be_started_is_an_error() {
    if !support::has("script") {
        return;
    }
    let fixture = Fixture::bursts("objects");
    let arguments = fixture.input().join("' '");
    let command = format!("PAGER=/nonexistent/pager '{}' annotate '{arguments}'", env!("CARGO_BIN_EXE_hbbp"));
    let output =
        Command::new("script").args(["-qec", &command, "/dev/null"]).env_remove("HBBP_PAGER").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success() && text.contains("the pager cannot be started"), "{text}");
}

/// The text without sequences that set colours.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or(part, |(_, rest)| rest))
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let objects = Fixture::bursts("objects");
    let arguments = [&objects.input()[..], &["--source".into(), "--top".into(), "2".into()]].concat();
    for columns in [60, 79, 80, 100, 132, 200] {
        let Some(text) = on_terminal(columns, "HBBP_PAGER= NO_COLOR=1", &arguments) else { return };
        assert!(text.lines().count() > 100, "{text}");
        let widest = text.lines().max_by_key(|line| line.width()).unwrap();
        assert!(widest.width() <= columns, "{columns}: {widest}");
        assert!(text.contains("share") && text.contains("count") && text.contains("loops"), "{columns}: {text}");
    }
}

#[test]
fn terminals_get_colours_and_a_pager_and_pipes_get_neither() {
    let Some((_folder, file)) = traced(&[]) else { return };
    let plain = support::stdout(&["annotate", &file]);
    assert!(!plain.contains('\x1b'));
    let of_terminal = |variables: &str| on_terminal(200, variables, std::slice::from_ref(&file));
    let Some(coloured) = of_terminal("HBBP_PAGER=cat") else { return };
    assert!(coloured.contains("\x1b[31m33.33 %"), "{coloured}");
    let same = |text: &str| assert_eq!(without_colours(text), plain);
    same(&coloured);
    let Some(monochrome) = of_terminal("HBBP_PAGER= NO_COLOR=1") else { return };
    assert!(!monochrome.contains('\x1b'));
    same(&monochrome);
    let Some(dumb) = of_terminal("PAGER=cat TERM=dumb") else { return };
    assert!(!dumb.contains('\x1b'));
    // The first that is set decides.
    let Some(paged) = of_terminal("NO_COLOR=1 PAGER=false HBBP_PAGER='sed s/^/paged:/'") else { return };
    assert!(paged.lines().count() > 20 && paged.lines().all(|line| line.starts_with("paged:")), "{paged}");
    // One that has seen enough is no failure.
    let Some(head) = of_terminal("NO_COLOR=1 PAGER='head -n 1'") else { return };
    assert_eq!(head.lines().count(), 1);
}
