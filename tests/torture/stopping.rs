//! Job control: programs that are stopped and continued, by others, by themselves, by their parents; and SIGINT.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::attaching::LONG_MS;
use crate::contents::Contents;
use crate::kept::{Ended, Kept};
use crate::running::{announced, send, tell_to_end, wait_for};
use crate::status;
use crate::tracer;
use crate::trial::{Trial, check, check_right, check_same};
/// How often the program is stopped.
const STOPS: i32 = 3;

#[test]
fn parents_see_their_children_stop() {
    if let Some(trial) = Trial::of("waits") {
        check(&trial);
    }
}

/// The program is stopped from outside; it must stop, go on, and count as many continuations.
#[test]
fn stopped_from_outside() {
    let Some(trial) = Trial::of("stopped") else { return };
    let trial = Trial { code: STOPS, ..trial };
    let stop_and_go = |dir: &Path, command: &[String]| -> Option<Ended> {
        let kept = Kept::start(dir, &[], command)?;
        let pid = announced(dir);
        for _ in 0..STOPS {
            wait_for("the program to compute", computes(pid));
            send("-STOP", pid);
            wait_for("all threads to stop", || {
                let states = status::states(pid);
                !states.is_empty() && states.iter().all(|state| "tT".contains(*state))
            });
            let before = status::cpu_ticks(pid);
            sleep(Duration::from_millis(100));
            // A tick may be added late to what was used before.
            assert!(status::cpu_ticks(pid) <= before + 1, "a stopped program computes");
            send("-CONT", pid);
        }
        Some(kept.end())
    };
    let Some(alone) = stop_and_go(&trial.place.empty("alone"), &trial.command) else { return };
    assert_eq!(alone.status, format!("exited {}", trial.code), "not recorded: {alone:?}");
    let dir = trial.place.empty("recorded");
    let recorded = stop_and_go(&dir, &tracer::record_command(&trial.command)).unwrap();
    check_same(&alone, &recorded);
    Contents::of(&dir.join("hbbp.data"));
}

/// A program that is stopped before the recording begins stays so, and is still so when it has ended.
#[test]
fn stopped_while_attached_and_detached() {
    let Some(trial) = Trial::of("stopped") else { return };
    let trial = Trial { code: 1, ..trial };
    let dir = trial.place.empty("attached");
    let Some(kept) = Kept::start(&dir, &[], &trial.command) else { return };
    let pid = announced(&dir);
    wait_for("the program to compute", computes(pid));
    send("-STOP", pid);
    let stopped = || !status::states(pid).is_empty() && status::states(pid).iter().all(|state| *state == 'T');
    wait_for("all threads to stop", stopped);
    let before = status::cpu_ticks(pid);
    let words = tracer::record(&["--duration", "0.3", "-p", &pid.to_string()]);
    let output = Command::new(&words[0]).args(&words[1..]).current_dir(&dir).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    wait_for("the program to be stopped as it was", stopped);
    assert!(status::cpu_ticks(pid) <= before + 1, "a stopped program computes");
    send("-CONT", pid);
    let ended = kept.end();
    assert_eq!((ended.status.as_str(), ended.stdout.as_str()), ("exited 1", "the work is done\n"), "{ended:?}");
}

/// SIGINT at the collector of a running program ends the recording only.
#[test]
fn interrupted_while_attached() {
    let Some(trial) = Trial::of("timers") else { return };
    let trial = trial.with(&[LONG_MS]);
    let dir = trial.place.empty("attached");
    let Some(kept) = Kept::start(&dir, &[], &trial.command) else { return };
    let words = tracer::record(&["-p", &announced(&dir).to_string()]);
    let collector = Command::new(&words[0]).args(&words[1..]).current_dir(&dir).stderr(Stdio::piped()).spawn().unwrap();
    let recording = dir.join("hbbp.data");
    wait_for("the recording", || recording.exists());
    sleep(Duration::from_millis(700));
    send("-INT", collector.id());
    let output = collector.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Contents::of(&recording);
    tell_to_end(&dir);
    check_right(&trial, &kept.end());
}

/// SIGINT at the collector of a command reaches the command, which ends by it.
#[test]
fn interrupted_with_its_command() {
    let Some(trial) = Trial::of("threads") else { return };
    let trial = trial.with(&[LONG_MS]);
    let dir = trial.place.empty("recorded");
    let Some(kept) = Kept::start(&dir, &[], &tracer::record_command(&trial.command)) else { return };
    announced(&dir);
    sleep(Duration::from_millis(500));
    send("-INT", kept.pid());
    let ended = kept.end();
    assert_eq!((ended.status.as_str(), ended.stdout.as_str()), ("exited 130", ""), "{ended:?}");
    assert!(ended.orphans.is_empty(), "{ended:?}");
    Contents::of(&dir.join("hbbp.data"));
    assert!(fs::metadata(dir.join("hbbp.data")).unwrap().len() > 0);
}

/// Whether a process has used more CPU time since.
fn computes(pid: u32) -> impl FnMut() -> bool {
    let before = status::cpu_ticks(pid);
    move || status::cpu_ticks(pid) > before + 2
}
