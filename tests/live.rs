//! Programs recorded and analysed here and now: clock samples, real processes, real libraries.

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

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
