//! Programs recorded and analysed here and now: clock samples, real processes, real libraries.

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use testing::Alone;

/// Spins for that many milliseconds of CPU time, in a function of that name.
fn spinner(name: &str) -> String {
    format!(
        "#include <time.h>
        #include <stdlib.h>
        __attribute__((noinline)) unsigned long {name}(long ms) {{
            struct timespec t;
            unsigned long x = 1;
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
            long end = t.tv_sec * 1000 + t.tv_nsec / 1000000 + ms;
            do {{
                for (int i = 0; i < 100000; i++) x = x * 6364136223846793005ul + 1;
                clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
            }} while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < end);
            return x;
        }}\n"
    )
}

/// Two libraries in turn at one place, a thread, a forked child, and an exec: each spins as long as the others.
const MAIN: &str = r#"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
enum { MS = 300 };
static void *thread(void *unused) { spin_in_thread(MS); return unused; }
static void library(const char *file, const char *function) {
    void *handle = dlopen(file, RTLD_NOW);
    if (!handle) { fprintf(stderr, "%s\n", dlerror()); exit(9); }
    void *address = dlsym(handle, function);
    fprintf(stderr, "%s at %p\n", function, address);
    ((unsigned long (*)(long))address)(MS);
    dlclose(handle);
}
int main(int argc, char **argv) {
    puts("the program's own output");
    fflush(stdout);
    if (argc > 1) { spin_after_exec(MS); return 0; }
    library("./one.so", "spin_in_one");
    library("./two.so", "spin_in_two");
    pthread_t t;
    pthread_create(&t, 0, thread, 0);
    pthread_join(t, 0);
    pid_t child = fork();
    if (child == 0) { spin_in_child(MS); _exit(0); }
    waitpid(child, 0, 0);
    execl(argv[0], "again", "exec", (char *)0);
    return 1;
}
"#;

fn compile(folder: &Path, source: &str, output: &str, flags: &[&str]) -> Option<PathBuf> {
    let file = folder.join(format!("{output}.c"));
    std::fs::write(&file, source).unwrap();
    let output = folder.join(output);
    let status = Command::new("gcc").args(["-O1", "-o"]).arg(&output).arg(&file).args(flags).status();
    if !status.is_ok_and(|status| status.success()) {
        testing::skip!(Tool, "gcc cannot compile the test program");
        return None;
    }
    Some(output)
}

fn spinning_program(folder: &Path) -> Option<PathBuf> {
    compile(folder, &spinner("spin_in_one"), "one.so", &["-shared", "-fPIC"])?;
    compile(folder, &spinner("spin_in_two"), "two.so", &["-shared", "-fPIC"])?;
    let functions: String = ["spin_in_thread", "spin_in_child", "spin_after_exec"].map(spinner).concat();
    compile(folder, &(functions + MAIN), "main", &["-pthread", "-ldl"])
}

/// Whether the clock can be sampled here; says loudly when not.
fn can_record(folder: &Path) -> bool {
    let output =
        support::hbbp().args(["record", "-q", "-o"]).arg(folder.join("probe.data")).args(["--", "true"]).output();
    let output = output.unwrap();
    if !output.status.success() {
        testing::skip!(NoSampling, "recording is not possible here: {}", String::from_utf8_lossy(&output.stderr));
    }
    output.status.success()
}

#[test]
fn time_lands_in_the_function_that_spent_it() {
    let _alone = Alone::wait();
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = spinning_program(folder.path()) else { return };
    if !can_record(folder.path()) {
        return;
    }
    let output = support::hbbp()
        .current_dir(folder.path())
        .args(["mix", "--rows", "function", "--format", "json", "--"])
        .arg(&program)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert_eq!(stderr.matches("the program's own output").count(), 2, "its output is not mixed into the report");
    serde_json::from_slice::<Value>(&output.stdout).expect("standard output is the report alone");
    // Event samples come more often than traced paths.
    let recording = folder.path().join("time.data");
    let recorded = support::hbbp()
        .current_dir(folder.path())
        .args(["record", "-q", "--tracer", "none", "-o"])
        .arg(&recording)
        .arg("--")
        .arg(&program)
        .output();
    assert!(recorded.unwrap().status.success());
    let report = support::hbbp().args(["mix", "--rows", "function", "--format", "json", "-i"]).arg(&recording).output();
    let document: Value = serde_json::from_slice(&report.unwrap().stdout).unwrap();
    let shares: BTreeMap<&str, f64> = document["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["function"].as_str().unwrap(), row["share"].as_f64().unwrap()))
        .collect();
    for function in ["spin_in_one", "spin_in_two", "spin_in_thread", "spin_in_child", "spin_after_exec"] {
        let share = shares.get(function).copied().unwrap_or(0.0);
        assert!((0.1..0.3).contains(&share), "{function} has {share}, not a fifth: {shares:?}\n{stderr}");
    }
}

#[test]
fn samples_land_in_the_modules_and_functions_that_perf_names() {
    let _alone = Alone::wait();
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = spinning_program(folder.path()) else { return };
    if !support::has("perf") {
        return;
    }
    let data = folder.path().join("perf.data");
    let status = Command::new("perf")
        .current_dir(folder.path())
        .args(["record", "-q", "-e", "task-clock:u", "-c", "1000000", "-o"])
        .arg(&data)
        .arg("--")
        .arg(&program)
        .output()
        .unwrap();
    if !status.status.success() {
        testing::skip!(NoSampling, "perf cannot record here: {}", String::from_utf8_lossy(&status.stderr));
        return;
    }
    let script = Command::new("perf").args(["script", "-F", "ip,sym,dso", "-i"]).arg(&data).output().unwrap();
    let mut expected: BTreeMap<(String, String), u64> = BTreeMap::new();
    for line in String::from_utf8_lossy(&script.stdout).lines().filter(|line| line.contains("spin_")) {
        let (_, rest) = line.trim().split_once(' ').unwrap();
        let (symbol, module) = rest.rsplit_once(" (").unwrap();
        *expected.entry((module.trim_end_matches(')').to_string(), symbol.trim().to_string())).or_default() += 1;
    }
    assert_eq!(expected.len(), 5, "{expected:?}");
    let arguments = ["mix", "--rows", "module,function", "--format", "json", "-i", data.to_str().unwrap()];
    let document: Value = serde_json::from_str(&support::stdout(&arguments)).unwrap();
    let counted: BTreeMap<(String, String), u64> = document["rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["function"].as_str().unwrap().starts_with("spin_"))
        .map(|row| {
            let text = |key: &str| row[key].as_str().unwrap().to_string();
            ((text("module"), text("function")), (row["count"].as_f64().unwrap() / 1e6).round() as u64)
        })
        .collect();
    assert_eq!(counted, expected);
}

#[test]
fn a_recording_reads_the_same_from_a_pipe_and_compressed() {
    let _alone = Alone::wait();
    let folder = tempfile::tempdir().unwrap();
    if !support::has("perf") {
        return;
    }
    let data = folder.path().join("perf.data");
    let work = ["sh", "-c", "seq 300000 | sort -r | gzip -9 | wc -c"];
    let record = |arguments: &[&str]| {
        Command::new("perf")
            .args(["record", "-q", "-e", "task-clock"])
            .args(arguments)
            .arg("--")
            .args(work)
            .output()
            .unwrap()
    };
    let compressed = record(&["-z", "-o", data.to_str().unwrap()]);
    if !compressed.status.success() {
        testing::skip!(NoSampling, "perf cannot record here: {}", String::from_utf8_lossy(&compressed.stderr));
        return;
    }
    let inject = Command::new("perf").args(["inject", "-o", "-", "-i"]).arg(&data).output().unwrap();
    let by_module = ["mix", "--rows", "module", "--format", "csv"];
    let from_file = support::stdout(&[&by_module[..], &["-i", data.to_str().unwrap()]].concat());
    assert!(from_file.contains("gzip,"), "{from_file}");
    let pipe = folder.path().join("pipe.data");
    std::fs::write(&pipe, &inject.stdout).unwrap();
    let output =
        support::hbbp().args(by_module).args(["-i", "-"]).stdin(std::fs::File::open(&pipe).unwrap()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), from_file, "{}", String::from_utf8_lossy(&output.stderr));
}

/// `hbbp COMMAND` in a folder; `None`, said on stderr, where nothing can be recorded.
fn reporter(folder: &Path) -> Option<impl Fn(&[&str]) -> Output> {
    let folder = folder.to_owned();
    let can = can_record(&folder);
    can.then_some(move |arguments: &[&str]| {
        support::hbbp().current_dir(&folder).stdin(Stdio::null()).args(arguments).output().unwrap()
    })
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn reports_pass_on_the_status_of_their_command() {
    let _alone = Alone::wait();
    let folder = tempfile::tempdir().unwrap();
    let Some(report) = reporter(folder.path()) else { return };
    std::fs::write(folder.path().join("text"), "no program").unwrap();
    let statuses: [(&[&str], i32); 6] = [
        (&["sh", "-c", "exit 7"], 7),
        (&["true"], 0),
        (&["sh", "-c", "kill -KILL $$"], 137),
        (&["no-such-command"], 127),
        (&["./text"], 126),
        (&["sh", "-c", "exit 2"], 2),
    ];
    for (command, status) in statuses {
        for name in ["mix", "blocks"] {
            let output = report(&[&[name, "--format", "json", "--"], command].concat());
            assert_eq!(output.status.code(), Some(status), "{name} {command:?}: {}", said(&output));
            assert_eq!(output.stdout.is_empty(), [126, 127].contains(&status), "{name} {command:?}");
        }
    }
    // It has been stopped, as it was told.
    let output = report(&["mix", "--duration", "0.2", "--", "sleep", "600"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    // Without a report, success is none.
    let export =
        ["export", "--tracer", "none", "--expect", "long", "--format", "pprof", "-o", "profile", "--", "sh", "-c"];
    for (script, status) in [("exit 7", 7), ("exit 0", 1)] {
        let output = report(&[&export[..], &[script]].concat());
        assert_eq!(output.status.code(), Some(status), "{}", said(&output));
        assert!(said(&output).contains("no samples") && !folder.path().join("profile").exists(), "{}", said(&output));
    }
    let output = report(&["validate", "--", "no-such-command"]);
    assert_eq!(output.status.code(), Some(127), "{}", said(&output));
}

#[test]
fn options_of_record_are_those_of_reports() {
    let _alone = Alone::wait();
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = spinning_program(folder.path()) else { return };
    let Some(report) = reporter(folder.path()) else { return };
    let head = |options: &[&str]| -> Value {
        let shape = ["mix", "--format", "json", "--stdout", "hidden"];
        let output = report(&[&shape, options, &["--", program.to_str().unwrap()]].concat());
        assert!(output.status.success(), "{}", said(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["head"].clone()
    };
    let sampled = head(&["--tracer", "none", "--expect", "seconds"]);
    assert!(sampled["lbr_source"].is_null() && sampled["ebs_source"]["samples"].as_u64() > Some(0), "{sampled:#}");
    let seldom = head(&["--tracer", "none", "-F", "10"]);
    assert!(seldom["ebs_source"]["samples"].as_u64() < sampled["ebs_source"]["samples"].as_u64(), "{seldom:#}");
    #[cfg(feature = "simulated-pmu")]
    {
        let pmu =
            ["--pmu", "simulated", "--pmu-core", "westmere", "--seed", "2", "--expect", "seconds", "--no-inherit"];
        let shape = ["mix", "--format", "json", "--quiet", "--stdout", "hidden"];
        let output = report(&[&shape, &pmu[..], &["--", "sh", "-c", "exit 3"]].concat());
        // Where nothing is traced, 1; else the command's, for a report of no samples is a report.
        if output.status.code() == Some(3) {
            let document: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert!(document["head"]["degraded"].to_string().contains("made by a simulated PMU"), "{document:#}");
            assert!(!said(&output).contains("the command ended with"), "{}", said(&output));
        }
        let refused = report(&["mix", "--seed", "2", "--", "true"]);
        assert!(said(&refused).contains("are for --pmu simulated"), "{}", said(&refused));
    }
    let traced = head(&["--overhead", "20", "--tracer", "lookahead", "--burst", "3000"]);
    let tracer = &traced["lbr_source"]["bursts"]["tracer"];
    if tracer.is_null() {
        testing::skip!(NoTracing, "branches are not traced in software: {traced:#}");
        return;
    }
    assert_eq!((&tracer["kind"], &tracer["burst_instructions"]), (&"lookahead".into(), &3000.into()));
}

/// Between the lines of a report nobody wants to see what the command prints.
#[test]
fn what_a_command_prints_goes_where_it_was_sent() {
    let _alone = Alone::wait();
    let folder = tempfile::tempdir().unwrap();
    let Some(report) = reporter(folder.path()) else { return };
    // Programs do less to /dev/null.
    let script = "test -p /dev/stdout && echo poured-$((1 + 1)); echo an error >&2";
    let run = |options: &[&str]| {
        let output = report(&[&["mix", "--format", "json"], options, &["--", "sh", "-c", script]].concat());
        assert!(output.status.success(), "{}", said(&output));
        serde_json::from_slice::<Value>(&output.stdout).expect("standard output is the report alone");
        said(&output)
    };
    let hidden = run(&["--stdout", "hidden"]);
    assert!(hidden.contains("the command printed 9 bytes, which are not shown"), "{hidden}");
    assert!(hidden.contains("an error") && !hidden.contains("poured-2"), "{hidden}");
    for shown in [run(&["--stdout", "stderr"]), run(&[])] {
        assert!(shown.contains("poured-2\n") && !shown.contains("not shown"), "{shown}");
    }
    report(&["mix", "--stdout", "kept", "--", "echo", "kept"]);
    assert_eq!(std::fs::read_to_string(folder.path().join("kept")).unwrap(), "kept\n");
    let unwritable = report(&["mix", "--stdout", "no/such/folder", "--", "touch", "ran"]);
    assert!(said(&unwritable).contains("cannot write no/such/folder") && !folder.path().join("ran").exists());
    if !support::has("script") {
        return;
    }
    let command = format!("{} mix -- sh -c '{script}'", env!("CARGO_BIN_EXE_hbbp"));
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &command, "/dev/null"]).env("SHELL", "/bin/sh").current_dir(folder.path());
    let screen = terminal.stdin(Stdio::null()).output().unwrap();
    let screen = String::from_utf8_lossy(&screen.stdout);
    assert!(screen.contains("# source") && screen.contains("not shown") && !screen.contains("poured-2"), "{screen}");
}
