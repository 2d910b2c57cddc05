//! Recordings that `perf record` makes here and now, one per set of options, read as `perf script` reads them.
//!
//! A set that this machine's kernel or rights do not allow is skipped, loudly.

mod perf_tool;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use perf_tool::{check, check_header, check_open, for_each_record, perf_is_here};
use perfdata::{RecordType, Recording};
use testing::Alone;

/// Some loops, and some processes that come and go.
const PROGRAM: [&str; 3] = ["sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; (exit 3); true | cat"];

/// Records the program; `None`, loudly, when `perf record` cannot.
fn record(options: &str, output: &str, directory: &Path) -> Option<PathBuf> {
    let path = directory.join("perf.data");
    let stdout = match output {
        "-" => Stdio::from(File::create(&path).unwrap()),
        _ => Stdio::null(),
    };
    let output = if output == "-" { Path::new("-") } else { &path };
    let mut command = Command::new("perf");
    command.arg("record").args(options.split_whitespace()).arg("-o").arg(output).arg("--").args(PROGRAM);
    let result = command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped()).output().unwrap();
    if !result.status.success() {
        let why = String::from_utf8_lossy(&result.stderr);
        testing::skip!(NoEvent, "perf record {options}: {}", why.lines().next().unwrap_or_default());
        return None;
    }
    Some(path)
}

fn check_options(options: &str) {
    let directory = tempfile::tempdir().unwrap();
    if let Some(path) = record(options, "file", directory.path()) {
        eprintln!("perf record {options}");
        check(&path);
        check_header(&path);
    }
}

#[test]
fn plain_samples() {
    let _alone = Alone::wait();
    if perf_is_here() {
        check_options("-e task-clock -c 500000");
        check_options("-e cpu-clock -F 2000");
        check_options("-e task-clock:u -c 500000");
        check_options("-e task-clock -c 500000 -a");
    }
}

#[test]
fn optional_fields_one_by_one() {
    let _alone = Alone::wait();
    if !perf_is_here() {
        return;
    }
    for field in [
        "-d",
        "-s",
        "-T",
        "-P",
        "-W",
        "-R",
        "--phys-data",
        "--data-page-size",
        "--code-page-size",
        "--sample-cpu",
        "--sample-identifier",
        "--transaction",
        "-g",
        "--call-graph dwarf,256",
        "-I",
        "-Iax,r8",
        "--user-regs=ax,ip,sp",
        "--all-cgroups",
    ] {
        check_options(&format!("-e task-clock -c 1000000 {field}"));
    }
}

#[test]
fn optional_fields_together() {
    let _alone = Alone::wait();
    if perf_is_here() {
        check_options(
            "-e cpu-clock -F 1000 -d -s -T -P -W -R --phys-data --data-page-size --code-page-size --sample-cpu \
             --sample-identifier --transaction --call-graph dwarf,64 -I --user-regs=ax,ip,sp --all-cgroups",
        );
    }
}

#[test]
fn several_events() {
    let _alone = Alone::wait();
    if perf_is_here() {
        check_options("-e task-clock -e cpu-clock -e page-faults -c 1000000");
        check_options("-e {task-clock,cpu-clock,page-faults}:S -c 1000000");
        check_options("-e {task-clock,cpu-clock,page-faults}:S -c 1000000 -s");
        check_options("-e task-clock/call-graph=fp/ -e cpu-clock/time=0/ -e page-faults/period=1/");
    }
}

#[test]
fn records_other_than_samples() {
    let _alone = Alone::wait();
    if perf_is_here() {
        check_options("-e task-clock -c 1000000 --switch-events");
        check_options("-e task-clock -c 1000000 --switch-events -a");
        check_options("-e task-clock -c 1000000 --namespaces");
        check_options("-e task-clock -c 1000000 --all-cgroups");
        check_options("-e task-clock -c 1000000 --buildid-mmap");
        check_options("-e task-clock -c 1000000 --buildid-all");
        check_options("-e task-clock -c 1000000 -d --tail-synthesize --overwrite");
        check_options("-e task-clock -c 1000000 --clockid CLOCK_MONOTONIC_RAW");
        check_options("-e sched:sched_switch");
        check_options("-e raw_syscalls:sys_enter -R");
    }
}

#[test]
fn compressed() {
    let _alone = Alone::wait();
    if perf_is_here() {
        check_options("-e task-clock -c 100000 -z");
        check_options("-e task-clock -c 100000 -z=22 -g --switch-events");
        // Stack dumps make many compressed records, with records across their ends.
        check_options("-e task-clock -c 50000 -z -m 16 --call-graph dwarf,8192");
    }
}

#[test]
fn pipe_mode() {
    let _alone = Alone::wait();
    if !perf_is_here() {
        return;
    }
    for options in [
        "-e task-clock -c 500000",
        "-e task-clock -e cpu-clock -c 500000 -g",
        "-e task-clock -c 100000 -z -g",
        "-e raw_syscalls:sys_enter",
    ] {
        let directory = tempfile::tempdir().unwrap();
        let Some(path) = record(options, "-", directory.path()) else { continue };
        let stream = File::open(&path).unwrap();
        let recording = Recording::from_stream(stream).unwrap();
        check_open(&recording, &path);
        check(&path);
        let features = recording.features();
        assert_eq!(features.cmdline[1], "record", "{:?}", features.cmdline);
        assert!(features.hostname.is_some() && features.nr_cpus.is_some() && features.cpu_desc.is_some());
    }
}

#[test]
fn build_ids_injected_into_a_stream() {
    let _alone = Alone::wait();
    if !perf_is_here() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let Some(plain) = record("-e task-clock -c 100000", "-", directory.path()) else { return };
    let path = directory.path().join("injected");
    let mut command = Command::new("perf");
    command.args(["inject", "-b", "-o", "-", "-i", "-"]);
    command.stdin(File::open(&plain).unwrap()).stdout(File::create(&path).unwrap());
    assert!(command.stderr(Stdio::null()).status().unwrap().success());
    let recording = Recording::open(&path).unwrap();
    check_open(&recording, &path);
    assert!(!recording.features().build_ids.is_empty());
}

#[test]
fn a_killed_recorder_leaves_what_it_wrote() {
    let _alone = Alone::wait();
    if !perf_is_here() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("perf.data");
    // -m 1: the ring is emptied often. The program kills its recorder, its parent.
    let script = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; kill -9 $PPID";
    let mut command = Command::new("perf");
    command
        .args(["record", "-e", "task-clock", "-c", "100000", "-m", "1", "-o"])
        .arg(&path)
        .args(["--", "sh", "-c", script]);
    let result = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).output().unwrap();
    if result.status.code().is_some() {
        testing::skip!(NoSampling, "perf record ended by itself: {}", String::from_utf8_lossy(&result.stderr));
        return;
    }
    let recording = Recording::open(&path).unwrap();
    assert!(recording.notes().iter().any(|note| note.contains("0 bytes of data")), "{:?}", recording.notes());
    let mut samples = 0;
    for_each_record(&recording, |raw| samples += usize::from(raw.record_type == RecordType::SAMPLE));
    assert!(samples > 0);
}
