//! `record -p`: attached to a running program and detached from it, without a trace.

use std::process::Command;

use crate::contents::Contents;
use crate::kept::{Ended, Kept};
use crate::programs::build;
use crate::running::{announced, tell_to_end, wait_for};
use crate::status;
use crate::tracer;
use crate::trial::{Trial, check_right};

/// Longer than it takes, ms; the programs are told to end.
pub const LONG_MS: &str = "100000";

/// How often to attach, and for how long.
pub struct Attached {
    pub times: u32,
    pub seconds: &'static str,
}

/// Starts the program, records it again and again, looks after each time for what may be left on it, and lets it end.
pub fn attach_again_and_again(trial: &Trial, attached: &Attached) -> Option<Ended> {
    let dir = trial.place.empty("attached");
    let kept = Kept::start(&dir, &trial.environment, &trial.command)?;
    let pid = announced(&dir);
    let mut have_bursts = tracer::kind().is_none();
    for _ in 0..attached.times {
        let words = tracer::record(&["--duration", attached.seconds, "-p", &pid.to_string()]);
        let output = Command::new(&words[0]).args(&words[1..]).current_dir(&dir).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        if status::states(pid).is_empty() {
            panic!("it has ended: {:?}", kept.end());
        }
        nothing_left_on(pid);
        // In a virtual machine the tracer may wait for another CPU for longer than such a recording lasts.
        have_bursts |= Contents::read(&dir.join("hbbp.data")).has_bursts();
    }
    assert!(have_bursts, "no recording of {} has bursts", attached.times);
    tell_to_end(&dir);
    let ended = kept.end();
    check_right(trial, &ended);
    Some(ended)
}

/// SIGURG and SIGWINCH in the masks of `/proc/PID/status`.
const SIGNALS: u64 = 1 << 22 | 1 << 27;

/// Neither a tracer, nor a stop, nor a signal that would stay.
fn nothing_left_on(pid: u32) {
    let states = status::states(pid);
    assert!(!states.is_empty() && !states.iter().any(|state| "tT".contains(*state)), "{pid}: {states:?}");
    let tracers = status::of_threads(pid, "TracerPid");
    assert!(tracers.iter().all(|tracer| tracer == "0"), "{pid}: {tracers:?}");
    // The program's own are pending for a moment.
    wait_for("no pending signal", || {
        let masks = ["SigPnd", "ShdPnd"].into_iter().flat_map(|name| status::of_threads(pid, name));
        masks.into_iter().all(|mask| u64::from_str_radix(&mask, 16).unwrap() & SIGNALS == 0)
    });
}

/// Computing, sleeping and waiting threads, looked at from inside and, for debug registers, from outside.
#[test]
fn nothing_is_left_on_the_program() {
    let (Some(trial), Some(probe)) = (Trial::of("marked"), build("probe", &[])) else { return };
    let dir = trial.place.empty("attached");
    let kept = Kept::start(&dir, &[], &trial.command).unwrap();
    let pid = announced(&dir);
    let look = |when: &str| {
        let probed = Command::new(&probe).arg(pid.to_string()).output().unwrap();
        eprint!("{}", String::from_utf8_lossy(&probed.stderr));
        assert!(probed.status.success(), "{when}: {}", String::from_utf8_lossy(&probed.stdout));
    };
    look("before any recording");
    for _ in 0..5 {
        let words = tracer::record(&["--duration", "0.3", "-p", &pid.to_string()]);
        let output = Command::new(&words[0]).args(&words[1..]).current_dir(&dir).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        nothing_left_on(pid);
        look("after a recording");
        Contents::of(&dir.join("hbbp.data"));
    }
    tell_to_end(&dir);
    check_right(&trial, &kept.end());
}

#[test]
fn signals_of_a_program_that_is_attached_to() {
    let both = ["-DSIGNAL=SIGWINCH", "-DOTHER=SIGURG"];
    let trials = [Trial::of("timers"), Trial::of("urgent"), Trial::built("urgent", &both)];
    for trial in trials.into_iter().flatten() {
        attach_again_and_again(&trial.with(&[LONG_MS]), &Attached { times: 3, seconds: "0.25" });
    }
}

/// What a clock has sent to a thread that blocks it must not come to the program when nobody traces the thread any more.
#[test]
fn signals_that_are_blocked_when_the_recording_ends() {
    if let Some(trial) = Trial::of("urgent_late") {
        attach_again_and_again(&trial.with(&[LONG_MS]), &Attached { times: 6, seconds: "0.25" });
    }
}

#[test]
fn threads_that_come_and_go_while_attaching() {
    if let Some(trial) = Trial::of("threads") {
        attach_again_and_again(&trial.with(&[LONG_MS]), &Attached { times: 3, seconds: "0.3" });
    }
}

/// A filter that kills even at `restart_syscall`, which the kernel uses where a stop interrupts a sleep.
#[test]
fn a_sealed_program_that_is_attached_to() {
    if let Some(trial) = Trial::of("sealed") {
        attach_again_and_again(&trial.with(&[LONG_MS]), &Attached { times: 3, seconds: "0.25" });
    }
}
