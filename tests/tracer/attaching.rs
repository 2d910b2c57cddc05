//! Processes that run already.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::bursts::Traced;
use crate::{Place, errors, programs, wait_for};

pub fn tasks(pid: u32) -> Vec<u32> {
    let names = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    names.map(|name| name.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect()
}

/// The program of eight threads, running.
fn eight_threads(place: &Place) -> Option<Child> {
    let program = place.program("threads", programs::THREADS)?;
    let target = Command::new(&program).arg("400").spawn().unwrap();
    wait_for("its threads", || tasks(target.id()).len() == 9);
    Some(target)
}

#[test]
fn a_running_process_and_one_of_its_threads() {
    let Some(place) = Place::to_trace() else { return };
    let Some(mut target) = eight_threads(&place) else { return };
    let pid = target.id();
    let options = ["--tracer", "lookahead", "--overhead", "20", "--duration", "1"];
    let output = place.record(&[&options[..], &["-p", &pid.to_string()]].concat());
    assert!(output.status.success(), "{}", errors(&output));
    let traced = Traced::read(&place.recording());
    assert!(traced.bursts.len() >= 8 && traced.bursts.iter().all(|burst| burst.pid == pid), "{:#}", traced.tracer());
    assert_eq!(traced.number("/threads"), 9, "{:#}", traced.tracer());
    let mut threads: Vec<u32> = traced.bursts.iter().map(|burst| burst.tid).collect();
    threads.sort_unstable();
    threads.dedup();
    assert!(threads.len() >= 4, "all that run: {threads:?}");

    let one = *tasks(pid).iter().max().unwrap();
    let output = place.record(&[&options[..], &["-t", &one.to_string()]].concat());
    assert!(output.status.success(), "{}", errors(&output));
    let traced = Traced::read(&place.recording());
    assert!(!traced.bursts.is_empty() && traced.bursts.iter().all(|burst| burst.tid == one), "{:#}", traced.tracer());
    assert_eq!(traced.number("/threads"), 1);
    assert_eq!(target.try_wait().unwrap(), None, "the process goes on");
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(status.lines().any(|line| line == "TracerPid:\t0"), "nobody traces it any more: {status}");
    target.kill().unwrap();
    target.wait().unwrap();
}

#[test]
fn a_process_that_someone_else_traces() {
    let Some(place) = Place::to_trace_by_default() else { return };
    let (Some(hot), Some(holder)) = (place.program("hot", programs::HOT), place.program("holder", programs::HOLDER))
    else {
        return;
    };
    let mut target = Command::new(hot).arg("60000").spawn().unwrap();
    let pid = target.id().to_string();
    let mut debugger = Command::new(holder).arg(&pid).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(debugger.stdout.take().unwrap()).read_line(&mut line).unwrap();
    if line.trim() == "traced" {
        let output = place.record(&["-p", &pid, "-F", "200", "--duration", "1"]);
        assert!(output.status.success(), "{}", errors(&output));
        let said = errors(&output);
        assert!(said.contains(&format!("no branch stacks: process {pid} is traced by process")), "{said}");
        assert!(said.contains("(a debugger, strace)"), "{said}");
        assert!(!said.contains("branches are traced"), "{said}");
        let traced = Traced::read(&place.recording());
        assert!(traced.bursts.is_empty() && !traced.samples.is_empty(), "{:?}", traced.samples);
        assert!(traced.metadata["degradations"].to_string().contains("no branch stacks"));

        let output = place.record(&["-p", &pid, "--duration", "0.5", "--tracer", "lookahead"]);
        assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
        assert!(errors(&output).contains("is traced by process"), "{}", errors(&output));
    } else {
        testing::skip!(Privileges, "the process cannot be traced by another program");
    }
    drop(debugger.stdin.take());
    debugger.wait().unwrap();
    target.kill().unwrap();
    target.wait().unwrap();
}
