//! The switch of a recording, in the hands of the program (in C and in Rust) and of `hbbp control`.

#[path = "../support/place.rs"]
mod place;
#[path = "../support/processes.rs"]
mod processes;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use perfdata::{FeatureBit, Recording};
use place::Place;
use processes::{send, wait_for, wait_for_cpu_time};
use serde_json::Value;

/// Functions that take 250 ms of CPU time, longer than it takes until a recorder's end is seen, by their names, and a program that calls
/// them as its arguments say: names of functions, `stop`, `start`, `=NAME` for a mark, `?` prints whether it is being recorded; and some that change what the process is.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include "hbbp.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static volatile double sum;
#define WORK(name) __attribute__((noipa)) static void name(void) { \
    for (clock_t end = clock() + CLOCKS_PER_SEC / 4; clock() < end;) \
        for (long i = 0; i < 1000000; i++) sum += i; \
}
WORK(one) WORK(two) WORK(three)
int main(int argc, char **argv) {
    setbuf(stdout, 0);
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (!strcmp(word, "one")) one();
        if (!strcmp(word, "two")) two();
        if (!strcmp(word, "three")) three();
        if (!strcmp(word, "stop")) hbbp_stop();
        if (!strcmp(word, "start")) hbbp_start();
        if (*word == '=') hbbp_mark(word + 1);
        if (*word == '?') printf("%d", hbbp_is_recording());
        if (!strcmp(word, "fork") && fork()) { wait(0); break; }
        if (!strcmp(word, "exec")) { argv[i] = argv[0]; execv("/proc/self/exe", argv + i); return 9; }
        if (!strcmp(word, "daemon")) {
            pid_t child = fork(), parent = getpid();
            if (child) {
                waitpid(child, 0, 0);
                while (access("done", F_OK)) usleep(10000);
                _exit(0);
            }
            if (fork()) _exit(0);
            while (getppid() == parent) usleep(1000);
            for (int fd = 3; fd < 64; fd++) close(fd);
            for (int fd = 3; fd < 16; fd++) open("log", O_RDWR | O_CREAT, 0600);
        }
        if (!strcmp(word, "wait")) {
            close(open("waiting", O_RDWR | O_CREAT, 0600));
            while (access("go", F_OK)) usleep(10000);
        }
        if (!strcmp(word, "again")) i = 0;
    }
    close(open("done", O_RDWR | O_CREAT, 0600));
    return 0;
}
"#;

impl Place {
    /// The program, in this folder; `None`, said on stderr, without a compiler.
    fn program(&self) -> Option<()> {
        fs::write(self.path("program.c"), PROGRAM).unwrap();
        let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("control/c");
        let mut gcc = Command::new("gcc");
        gcc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-I"]).arg(&library).current_dir(self.folder());
        let made = gcc.args(["-o", "program", "program.c"]).arg(library.join("hbbp.c")).status();
        if !made.is_ok_and(|status| status.success()) {
            testing::skip!(Tool, "gcc cannot compile the test program");
            return None;
        }
        Some(())
    }

    fn hbbp(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hbbp"));
        command.args(args).current_dir(self.folder()).stdin(Stdio::null()).env("XDG_CACHE_HOME", "/dev/null");
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.hbbp(args).output().unwrap()
    }

    /// Starts a recording, and waits until it is being made.
    fn record(&self, args: &[&str]) -> Recorder {
        let child = self.hbbp(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let recorder = Recorder(Some(child));
        let pid = recorder.pid();
        wait_for("the recording", || self.status().iter().any(|recording| recording["recorder"] == pid));
        recorder
    }

    fn status(&self) -> Vec<Value> {
        let output = self.run(&["control", "status", "--format", "json"]);
        let status: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(status["schema"], "hbbp-control/1");
        status["recordings"].as_array().unwrap().clone()
    }

    /// Says it to that recorder.
    fn control(&self, recorder: &Recorder, words: &[&str]) {
        let pid = recorder.pid().to_string();
        let output = self.run(&[&["control", "--recorder", &pid], words].concat());
        assert!(output.status.success(), "{}", errors(&output));
    }

    /// What the recording has of each phase and function.
    fn mix(&self) -> Vec<(String, String, f64)> {
        let output = self.run(&["mix", "--rows", "phase,function", "--format", "json", "--threads", "1"]);
        let mix: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", errors(&output)));
        let rows = mix["rows"].as_array().unwrap().iter();
        let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
        let rows = rows.map(|row| (text(row, "phase"), text(row, "function"), row["count"].as_f64().unwrap()));
        rows.filter(|(_, function, _)| ["one", "two", "three"].contains(&function.as_str())).collect()
    }

    /// The phases and functions that were seen, sorted.
    fn seen(&self) -> Vec<String> {
        let mut seen: Vec<String> =
            self.mix().iter().map(|(phase, function, _)| format!("{phase} {function}")).collect();
        seen.sort();
        seen
    }
}

/// A recording that is being made; killed when the test gives up.
struct Recorder(Option<Child>);

impl Recorder {
    fn pid(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }

    fn end(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Whatever makes the samples.
#[test]
fn a_program_marks_phases_and_switches_itself_off() {
    let Some(place) = Place::to_trace() else { return };
    let Some(()) = place.program() else { return };
    let words = ["?", "=load", "one", "=solve", "two", "stop", "?", "three", "start", "?", "=", "one"];
    for tracer in ["none", "lookahead", "agent"] {
        let output = place.run(&[&["record", "--tracer", tracer, "--", "./program"], &words[..]].concat());
        assert!(output.status.success(), "{}", errors(&output));
        assert_eq!(printed(&output), "101", "{tracer}");
        assert_eq!(place.seen(), ["[none] one", "load one", "solve two"], "{tracer}");
        let said = errors(&output);
        assert!(said.contains("3 marks of phases"), "{said}");
        assert!(said.contains("while recording was switched off, and are left out"), "{said}");
        // Half of what `one` did is in the phase.
        let mix = place.mix();
        let of = |phase: &str| mix.iter().filter(|row| row.0 == phase && row.1 == "one").map(|row| row.2).sum::<f64>();
        let share = of("load") / (of("load") + of("[none]"));
        assert!((0.2..0.8).contains(&share), "{tracer}: {mix:?}");
    }
    let output = place.run(&["mix", "--rows", "function", "--filter", "phase=solve", "--format", "csv"]);
    let names: Vec<String> =
        printed(&output).lines().skip(1).map(|line| line.split(',').next().unwrap().to_owned()).collect();
    assert!(names.contains(&"two".to_owned()) && !names.contains(&"one".to_owned()), "{names:?} {}", errors(&output));
}

#[test]
fn without_a_recording_nothing_happens() {
    let Some(place) = Place::to_record() else { return };
    let Some(()) = place.program() else { return };
    let words = ["?", "=load", "stop", "start", "?"];
    let output = Command::new(place.path("program")).args(words).current_dir(place.folder()).output().unwrap();
    assert_eq!((output.status.code(), printed(&output).as_str()), (Some(0), "00"));
    let output = place.run(&["control", "--recorder", "1", "off"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(errors(&output).contains("no recording is being made by process 1"), "{}", errors(&output));
}

#[test]
fn children_are_as_their_parents_and_programs_have_said_nothing() {
    let Some(place) = Place::to_record() else { return };
    let Some(()) = place.program() else { return };
    let record = ["record", "--tracer", "none", "--ebs-period", "1000003", "--", "./program"];
    let output = place.run(&[&record[..], &["=p", "stop", "fork", "?", "one", "exec", "?", "two"]].concat());
    assert_eq!(printed(&output), "01", "{}", errors(&output));
    assert_eq!(place.seen(), ["[none] two"]);
    let output = place.run(&[&record[..], &["=p", "fork", "one", "exec", "=q", "two"]].concat());
    assert!(output.status.success(), "{}", errors(&output));
    assert_eq!(place.seen(), ["p one", "q two"]);
    let off = [&["record", "--off"], &record[1..]].concat();
    let output = place.run(&[&off[..], &["?", "one", "start", "?", "two", "exec", "?", "three"]].concat());
    assert_eq!(printed(&output), "010", "{}", errors(&output));
    assert_eq!(place.seen(), ["[none] two"]);
}

#[test]
fn what_is_said_from_outside_holds_for_all() {
    let Some(place) = Place::to_trace() else { return };
    let Some(()) = place.program() else { return };
    let recorder = place.record(&["record", "--off", "--", "./program", "one", "wait", "two", "?", "=own", "three"]);
    wait_for("the program", || place.path("waiting").exists());
    let recording = recorder.pid();
    let pid = recording.to_string();
    let table = printed(&place.run(&["control", "status"]));
    let line = table.lines().find(|line| line.contains(&pid)).unwrap_or_else(|| panic!("{table}"));
    assert!(line.contains(" off ") && line.contains("hbbp record --off -- ./program one"), "{table}");
    place.control(&recorder, &["on"]);
    place.control(&recorder, &["mark", "outside"]);
    let is_on = place.status().iter().any(|status| status["recorder"] == recorder.pid() && status["on"] == true);
    assert!(is_on, "{:?}", place.status());
    fs::write(place.path("go"), "").unwrap();
    let output = recorder.end();
    assert_eq!(printed(&output), "1", "{}", errors(&output));
    assert_eq!(place.seen(), ["outside two", "own three"]);
    assert!(place.status().iter().all(|status| status["recorder"] != recording));
}

#[test]
fn no_bursts_are_taken_where_it_is_off() {
    let Some(place) = Place::to_trace() else { return };
    let Some(()) = place.program() else { return };
    for tracer in ["lookahead", "agent"] {
        let bursts = |words: &[&str]| {
            let record = ["record", "--tracer", tracer, "--overhead", "20", "--off", "--", "./program"];
            let output = place.run(&[&record[..], words].concat());
            assert!(output.status.success(), "{}", errors(&output));
            let recording = Recording::open(&place.path("hbbp.data")).unwrap();
            let metadata = &recording.features().other[&FeatureBit(250)];
            let metadata: Value = serde_json::from_slice(metadata).unwrap();
            metadata["tracer"]["bursts"].as_u64().unwrap_or(0)
        };
        assert_eq!(bursts(&["one", "two", "three"]), 0, "{tracer}");
        assert!(bursts(&["one", "start", "two", "three"]) > 3, "{tracer}");
        // A child is on as its parent is, and takes bursts when the recorder has heard of it.
        let long = ["two"; 12];
        assert!(bursts(&[&["start", "fork"], &long[..]].concat()) > 3, "{tracer}");
    }
}

#[test]
fn what_runs_already_finds_its_recording() {
    let Some(place) = Place::to_record() else { return };
    let Some(()) = place.program() else { return };
    let mut program = Command::new(place.path("program"));
    let program = program.args(["=first", "wait", "=second", "one", "again"]).current_dir(place.folder());
    let mut program = program.spawn().unwrap();
    wait_for("the program", || place.path("waiting").exists());
    let recorder = place.record(&["record", "--tracer", "none", "-p", &program.id().to_string()]);
    fs::write(place.path("go"), "").unwrap();
    // It looks for one every second.
    wait_for_cpu_time(program.id(), 250);
    send("-INT", recorder.pid());
    assert!(recorder.end().status.success());
    assert!(place.seen().contains(&"second one".to_owned()), "{:?}", place.seen());
    program.kill().unwrap();
    program.wait().unwrap();
}

/// A write to a pipe without readers would end the program.
#[test]
fn a_program_outlives_its_recorder() {
    let Some(place) = Place::to_record() else { return };
    let Some(()) = place.program() else { return };
    let mut recorder =
        place.record(&["record", "--tracer", "none", "--", "./program", "=a", "wait", "=b", "one", "=c", "?", "fork"]);
    wait_for("the program", || place.path("waiting").exists());
    let folder = control::Recordings::of_user().of_recorder(recorder.pid());
    assert!(folder.exists());
    let child = recorder.0.as_mut().unwrap();
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    fs::write(place.path("go"), "").unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().unwrap(), &mut text).unwrap();
    assert_eq!(text, "0", "it came to its end");
    // What the recorder left is removed by the next, perhaps one of another test.
    place.run(&["record", "--tracer", "none", "-q", "--", "true"]);
    assert!(!folder.exists());
}

/// A daemon has no parent that is recorded, closes all descriptors, and what it opens after that has their numbers.
#[test]
fn a_daemon_finds_its_recording_again_and_its_files_are_not_written_to() {
    let Some(place) = Place::to_record() else { return };
    let Some(()) = place.program() else { return };
    let words = ["=a", "daemon", "one", "=b", "two", "stop", "?", "three"];
    let output = place.run(&[&["record", "--tracer", "none", "--", "./program"], &words[..]].concat());
    assert!(output.status.success(), "{}", errors(&output));
    assert_eq!(fs::read(place.path("log")).unwrap(), b"");
    assert_eq!(printed(&output), "0", "{}", errors(&output));
    assert_eq!(place.seen(), ["a one", "b two"]);
}

#[test]
fn a_folder_of_the_users_choice() {
    let Some(place) = Place::to_record() else { return };
    let Some(()) = place.program() else { return };
    let folder = place.path("control");
    let with_folder = |args: &[&str]| {
        let mut command = place.hbbp(args);
        command.env(control::ENVIRONMENT, &folder);
        command
    };
    let args = ["record", "--tracer", "none", "--", "./program", "wait", "?", "=a", "one"];
    let recorder = Recorder(Some(with_folder(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()));
    wait_for("the program", || place.path("waiting").exists());
    let second = with_folder(&["record", "-o", "other.data", "--", "true"]).output().unwrap();
    // As a recorder within a recording, which has the same environment.
    assert!(second.status.success(), "{}", errors(&second));
    assert!(errors(&second).contains("another recorder uses it"), "{}", errors(&second));
    let second = with_folder(&["record", "--off", "-o", "other.data", "--", "true"]).output().unwrap();
    assert_eq!(second.status.code(), Some(1), "{}", errors(&second));
    let both = with_folder(&["control", "--recorder", "1", "on"]).output().unwrap();
    assert_eq!(both.status.code(), Some(2), "{}", errors(&both));
    assert!(with_folder(&["control", "mark", "b"]).status().unwrap().success());
    fs::write(place.path("go"), "").unwrap();
    let output = recorder.end();
    assert_eq!(printed(&output), "1", "{}", errors(&output));
    assert_eq!(place.seen(), ["a one"]);
    assert!(!folder.exists(), "nothing is left");
}

#[test]
fn what_cannot_be_is_said() {
    let Some(place) = Place::to_record() else { return };
    let file = place.path("file");
    fs::write(&file, "").unwrap();
    let output = place.hbbp(&["record", "--off", "--", "true"]).env(control::ENVIRONMENT, &file).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(errors(&output).contains("nobody could switch the recording on or off"), "{}", errors(&output));
    assert!(!place.path("hbbp.data").exists());
    let name = "x".repeat(101);
    let output = place.run(&["control", "mark", &name]);
    assert!(errors(&output).contains("at most 100 bytes"), "{}", errors(&output));
    let first = place.record(&["record", "--tracer", "none", "-o", "1.data", "--", "sleep", "60"]);
    let second = place.record(&["record", "--tracer", "none", "-o", "2.data", "--", "sleep", "60"]);
    let output = place.run(&["control", "off"]);
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("choose one with --recorder") && said.contains(&first.pid().to_string()), "{said}");
    for recorder in [first, second] {
        send("-TERM", recorder.pid());
        recorder.end();
    }
}

/// More messages than fit are lost, and counted.
#[test]
fn a_flood_of_marks_is_survived() {
    let Some(place) = Place::to_record() else { return };
    let Some(()) = place.program() else { return };
    let mut words = vec!["=phase"; 100_000];
    words.push("one");
    let output = place.run(&[&["record", "--tracer", "none", "--", "./program"], &words[..]].concat());
    assert!(output.status.success(), "{}", errors(&output));
    assert_eq!(place.seen(), ["phase one"]);
    let said = errors(&output);
    let number = |text: &str| -> u64 {
        let before = said.lines().find_map(|line| line.split_once(text)).map_or("0", |(before, _)| before);
        before.rsplit(' ').next().unwrap().parse().unwrap_or(0)
    };
    let (marks, lost) = (number(" marks of phases"), number(" messages of programs"));
    // Those that were lost last have nobody to tell.
    assert!(marks + lost <= 100_000 && marks >= 1_000, "{said}");
}

/// The crate does what the C library does.
#[test]
fn a_rust_program_marks_phases() {
    let Some(place) = Place::to_record() else { return };
    let this = std::env::current_exe().unwrap();
    let words =
        ["record", "--tracer", "none", "--", this.to_str().unwrap(), "--ignored", "--exact", "the_rust_program"];
    let output = place.hbbp(&words).env("MARKS_PHASES", "1").output().unwrap();
    assert!(output.status.success(), "{} {}", printed(&output), errors(&output));
    let rows = place.run(&["mix", "--rows", "phase", "--format", "csv"]);
    let rows = printed(&rows);
    assert!(rows.contains("\nload,") && rows.contains("\nsolve,") && !rows.contains("hidden"), "{rows}");
}

/// What [`a_rust_program_marks_phases`] records.
#[test]
#[ignore = "it is a program that another test records"]
fn the_rust_program() {
    if std::env::var_os("MARKS_PHASES").is_none() {
        return;
    }
    let work = || (0..30_000_000_u64).fold(1.0, |sum: f64, i| std::hint::black_box(sum + i as f64));
    assert!(control::is_recording());
    control::mark("load");
    work();
    control::mark("solve");
    work();
    control::stop();
    assert!(!control::is_recording());
    control::mark("hidden");
    work();
    // It ends before the recording goes on: what this process does until it has ended is no part of it.
    control::mark("");
    control::start();
    assert!(control::is_recording());
}

/// Both libraries look in the same places.
#[test]
fn the_c_library_looks_where_the_crate_looks() {
    let code = Path::new(env!("CARGO_MANIFEST_DIR")).join("control/c/hbbp.c");
    let code = fs::read_to_string(code).unwrap();
    let places =
        [control::ENVIRONMENT, control::MESSAGES, control::STATE, "/tmp/hbbp-%u", "/run/user/%u/hbbp", "of-all"];
    for place in places {
        assert!(code.contains(place), "{place}");
    }
}
