//! Starting programs, signalling them, and waiting for what they do, whatever started the tests and however busy the machine is.
#![allow(dead_code)] // Each test program uses a part of it.

use std::ffi::OsStr;
use std::fs;
use std::process::Command;
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A program that finds every signal at its default: shells cannot trap what was ignored when they started, and who runs the tests may
/// ignore some. (No signal is blocked either: the standard library sees to that.)
pub fn with_default_signals(program: impl AsRef<OsStr>) -> Command {
    static CAN_RESET: OnceLock<bool> = OnceLock::new();
    let can_reset = CAN_RESET.get_or_init(|| {
        let can = can_set_signals("--default-signal");
        if !can {
            eprintln!("env has no --default-signal: programs ignore the signals the tests ignore");
        }
        can
    });
    if *can_reset { with_signals("--default-signal", program) } else { Command::new(program) }
}

/// A program that is started by `env` with this option for signals.
pub fn with_signals(option: &str, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("env");
    command.arg(option).arg(program);
    command
}

/// Whether `env` has this option for signals.
pub fn can_set_signals(option: &str) -> bool {
    Command::new("env").args([option, "true"]).status().is_ok_and(|status| status.success())
}

pub fn send(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

pub fn wait_for(what: &str, done: impl FnMut() -> bool) {
    wait_or_tell(what, String::new, done);
}

/// Waits, and says `why` if it has waited too long. The limit is for what never comes; a busy machine stays far below.
pub fn wait_or_tell(what: &str, why: impl FnOnce() -> String, mut done: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(600);
    while !done() {
        if Instant::now() > limit {
            panic!("waited for {what}; {}", why());
        }
        sleep(Duration::from_millis(5));
    }
}

/// CPU time that a process has used, in hundredths of a second (`utime` and `stime` of proc(5)).
pub fn cpu_time(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, behind_name) = stat.rsplit_once(") ").unwrap();
    behind_name.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

/// Waits until a process has used `hundredths` of a second of CPU time from now on.
pub fn wait_for_cpu_time(pid: u32, hundredths: u64) {
    let enough = cpu_time(pid) + hundredths;
    wait_for("CPU time", || cpu_time(pid) >= enough);
}
