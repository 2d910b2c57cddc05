//! `hbbp record` and `hbbp truth` of programs of 32 bits: they see nothing of it, their code is counted, and why there are no bursts is said.
//!
//! These tests need perf events, and a C compiler that makes such programs (Debian: gcc-multilib); they say so and stop where there are none.

#[path = "support/place.rs"]
mod place;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;

use place::Place;
use serde_json::Value;
use tempfile::TempDir;

/// Two loops and system calls. Words: how long it takes, threads, what to execute at the end with the same words.
const SOURCE: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define KEEP __attribute__((noinline, noclone))

KEEP static unsigned mixed(unsigned value, unsigned rounds) {
    for (unsigned round = 0; round < rounds; round++)
        value = (value ^ (value >> 7)) * 2654435761u + round;
    return value;
}

KEEP static unsigned divided(unsigned value, unsigned rounds) {
    for (unsigned round = 1; round <= rounds; round++)
        value = value / (round | 3) + 2654435761u;
    return value;
}

static void *work(void *scale) {
    unsigned times = (unsigned)(unsigned long)scale, sum = 0;
    for (unsigned turn = 0; turn < 100 * times; turn++) {
        sum += mixed(turn, 20000) + divided(turn, 10000);
        sum += getppid() == 0;
    }
    return (void *)(unsigned long)sum;
}

int main(int count, char **words) {
    void *scale = (void *)(unsigned long)atoi(words[1]), *more;
    int threads = atoi(words[2]);
    pthread_t ids[16];
    for (int i = 1; i < threads; i++)
        pthread_create(&ids[i], 0, work, scale);
    unsigned sum = (unsigned)(unsigned long)work(scale);
    for (int i = 1; i < threads; i++) {
        pthread_join(ids[i], &more);
        sum += (unsigned)(unsigned long)more;
    }
    printf("%u, %d bytes\n", sum, (int)sizeof(void *));
    if (count > 3) {
        fflush(stdout);
        char *next[] = {words[3], words[1], words[2], 0};
        execv(next[0], next);
    }
    return 7;
}
"#;

struct Programs {
    _folder: TempDir,
    short: PathBuf,
    long: PathBuf,
}

/// The program with 32 bits, and with 64; `None`, said on stderr, without a compiler.
fn programs() -> Option<&'static Programs> {
    static PROGRAMS: LazyLock<Option<Programs>> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("loops.c");
        std::fs::write(&source, SOURCE).unwrap();
        let compile =
            |name, flags: &[&str]| testing::c_program(folder.path(), name, std::slice::from_ref(&source), flags);
        let (short, long) = (compile("short", &["-m32"])?, compile("long", &[])?);
        Some(Programs { short, long, _folder: folder })
    });
    PROGRAMS.as_ref()
}

/// What is long enough to be sampled, and the number of threads.
const WORDS: [&str; 2] = ["100", "2"];

impl Place {
    fn hbbp(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hbbp"));
        command.args(arguments).current_dir(self.folder()).stdin(Stdio::null()).env("XDG_CACHE_HOME", "/dev/null");
        command
    }

    /// Records a command in this way.
    fn record(&self, way: &[&str], command: &[&Path]) -> Output {
        let mut record = self.hbbp(&["record", "-o", "run.data"]);
        record.args(way).arg("--").args(&command[..1]).args(WORDS).args(&command[1..]).output().unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.hbbp(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn blocks(&self) -> Value {
        self.json(&["blocks", "-i", "run.data", "--format", "json"])
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The blocks of a program.
fn of<'a>(document: &'a Value, program: &Path) -> Vec<&'a Value> {
    let path = program.to_str().unwrap();
    let Some(index) = document["modules"].as_array().unwrap().iter().position(|module| module["path"] == path) else {
        return Vec::new();
    };
    document["blocks"].as_array().unwrap().iter().filter(|block| block["module"] == index).collect()
}

fn number(block: &Value, key: &str) -> u64 {
    block[key].as_u64().unwrap()
}

/// What a document says is missing, or weaker than it could be.
fn head(document: &Value) -> String {
    document["head"].to_string()
}

/// Addresses of all instructions, by objdump.
fn disassemble(program: &Path) -> BTreeSet<u64> {
    let output = Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(program).output().unwrap();
    let address = |line: &str| u64::from_str_radix(line.trim_start().split_once(":\t")?.0, 16).ok();
    text(&output.stdout).lines().filter_map(address).collect()
}

/// Checks that blocks of a program are of its instructions, and that both loops were seen.
fn check_code(document: &Value, program: &Path) {
    let blocks = of(document, program);
    for function in ["mixed", "divided"] {
        let counted = |block: &&&Value| block["function"] == function && block["count"].as_f64().unwrap() > 0.0;
        assert!(blocks.iter().any(|block| counted(&block)), "{function}: {blocks:#?}");
    }
    if !testing::has("objdump") {
        return;
    }
    let code = disassemble(program);
    for block in blocks {
        let (start, end) = (number(block, "start"), number(block, "end"));
        assert_eq!(block["decoded"], true, "{block}");
        assert!(code.contains(&start), "{block}");
        assert_eq!(code.range(start..end).count() as u64, number(block, "instructions"), "{block}");
    }
}

/// What it writes alone, and its status.
fn alone(command: &[&Path]) -> (String, Option<i32>) {
    let output = Command::new(command[0]).args(WORDS).args(&command[1..]).output().unwrap();
    assert!(output.stderr.is_empty());
    (text(&output.stdout), output.status.code())
}

const NO_BURSTS: &str = "no bursts of 1 process with 32-bit code: they follow 64-bit code only";

#[test]
fn it_is_counted_by_the_clock_and_sees_nothing() {
    let (Some(place), Some(programs)) = (Place::to_trace(), programs()) else { return };
    let expected = alone(&[&programs.short]);
    let ways: [(&[&str], Option<&str>); 6] = [
        (&["--tracer", "none"], None),
        (&["--tracer", "agent"], Some(NO_BURSTS)),
        (&["--tracer", "lookahead"], Some(NO_BURSTS)),
        (&["--tracer", "agent", "--overhead", "30"], Some(NO_BURSTS)),
        (&["--tracer", "agent-check"], Some(NO_BURSTS)),
        (&["--tracer", "breakpoint"], Some("bursts met 32-bit code, which they do not follow")),
    ];
    for (way, said) in ways {
        let output = place.record(way, &[&programs.short]);
        assert_eq!((text(&output.stdout), output.status.code()), expected, "{way:?}: {}", text(&output.stderr));
        let document = place.blocks();
        let head = head(&document);
        assert!(said.is_none_or(|said| head.contains(said)), "{way:?}: {head}");
        assert_eq!(said == Some(NO_BURSTS), head.contains("no bursts of"), "{way:?}: {head}");
        assert!(!head.contains("before the first burst"), "there is none: {way:?}: {head}");
        check_code(&document, &programs.short);
    }
}

/// The vDSO of such processes is another one.
#[test]
fn its_vdso_is_recorded() {
    let (Some(place), Some(programs)) = (Place::to_record(), programs()) else { return };
    let output = place.record(&["--tracer", "none"], &[&programs.short]);
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    let recording = std::fs::read(place.path("run.data")).unwrap();
    let class =
        |at: usize| recording.get(at + 16..at + 21).filter(|start| start.starts_with(b"\x7fELF")).map(|start| start[4]);
    let marks = recording.windows(8).enumerate().filter(|(_, bytes)| bytes == b"hbbpvdso");
    let classes: Vec<u8> = marks.filter_map(|(at, _)| class(at)).collect();
    assert_eq!(classes, [2, 1]);
}

#[test]
fn timers_leave_it_alone_and_say_so() {
    let (Some(place), Some(programs)) = (Place::to_time(), programs()) else { return };
    let output = place.record(&["--tracer", "timer"], &[&programs.short]);
    assert_eq!((text(&output.stdout), output.status.code()), alone(&[&programs.short]));
    let said = text(&output.stderr);
    assert!(said.contains("is a 32-bit program: bursts are of 64-bit code"), "{said}");
    assert!(!said.contains("ld.so"), "the loader complains: {said}");
}

#[test]
fn what_runs_already_is_sampled() {
    let (Some(place), Some(programs)) = (Place::to_trace(), programs()) else { return };
    let words = ["1000000", "2"];
    let mut running = Running(Command::new(&programs.short).args(words).stdout(Stdio::null()).spawn().unwrap());
    let pid = running.0.id().to_string();
    let why = format!("process {pid} is a 32-bit program: bursts are of 64-bit code");
    let record = ["record", "-o", "run.data", "--duration", "1.5", "-p", &pid];
    let output = place.hbbp(&record).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document = place.blocks();
    assert!(head(&document).contains(&why), "{}", head(&document));
    check_code(&document, &programs.short);
    // An agent that was asked for is not replaced by anything.
    let output = place.hbbp(&[&record[..], &["--inject"]].concat()).output().unwrap();
    assert!(!output.status.success() && text(&output.stderr).contains(&why), "{}", text(&output.stderr));
    assert!(running.0.try_wait().unwrap().is_none(), "it runs on");
}

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whichever comes first, bursts follow the program of 64 bits, and the clock counts the other one.
#[test]
fn what_it_executes_has_bursts_and_what_executes_it() {
    let (Some(place), Some(programs)) = (Place::to_trace_by_default(), programs()) else { return };
    for command in [[&*programs.short, &*programs.long], [&programs.long, &programs.short]] {
        let output = place.record(&[], &command);
        assert_eq!((text(&output.stdout), output.status.code()), alone(&command), "{}", text(&output.stderr));
        let document = place.blocks();
        check_code(&document, &programs.short);
        check_code(&document, &programs.long);
        let head = head(&document);
        assert!(head.contains(NO_BURSTS), "{head}");
        let choice = document["head"]["choice"].as_str().unwrap();
        assert!(choice.starts_with("lbr outside ") && choice.contains("32-bit code: "), "{choice}");
        let streams =
            |program: &Path| of(&document, program).iter().map(|block| number(block, "lbr_streams")).sum::<u64>();
        assert_eq!(streams(&programs.short), 0);
        assert!(streams(&programs.long) > 0);
        let chosen = |program: &Path| of(&document, program).iter().all(|block| block["chosen"] == "ebs");
        assert!(chosen(&programs.short));
    }
}

#[test]
fn exact_counts_of_it_are_exact() {
    let Some(programs) = programs() else { return };
    if !testing::has("valgrind") {
        return;
    }
    let plain =
        Command::new("valgrind").args(["--tool=none", "-q"]).arg(&programs.short).args(["1", "1"]).output().unwrap();
    if plain.status.code() != Some(7) {
        testing::skip!(ToolVersion, "valgrind runs no 32-bit programs here: {}", text(&plain.stderr));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let truth = folder.path().join("truth.json");
    let mut hbbp = Command::new(env!("CARGO_BIN_EXE_hbbp"));
    let output =
        hbbp.args(["truth", "-o"]).arg(&truth).arg("--").arg(&programs.short).args(["1", "2"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&std::fs::read(&truth).unwrap()).unwrap();
    let count_in = |function: &str| {
        let blocks = of(&document, &programs.short).into_iter().filter(|block| block["function"] == function);
        blocks.map(|block| block["count"].as_f64().unwrap() as u64).max()
    };
    // Two threads, 100 turns each.
    assert_eq!(count_in("mixed"), Some(2 * 100 * 20_000));
    assert_eq!(count_in("divided"), Some(2 * 100 * 10_000));
    check_code_of_truth(&document, &programs.short);
}

/// Checks that the exact blocks are of the program's instructions.
fn check_code_of_truth(document: &Value, program: &Path) {
    if !testing::has("objdump") {
        return;
    }
    let code = disassemble(program);
    for block in of(document, program) {
        let inside = code.range(number(block, "start")..number(block, "end")).count() as u64;
        assert_eq!(inside, number(block, "instructions"), "{block}");
    }
}
