//! Collectors killed with SIGKILL, at random moments and before every single thing that they do to a program, `HBBP_TORTURE_KILLS` of them
//! (20 without): the program finishes as if there had been none.

use std::env;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::kept::Kept;
use crate::programs::build;
use crate::running::{announced, send_if_it_lives};
use crate::tracer;
use crate::trial::{Trial, check_right, is_right};

/// Kills without `HBBP_TORTURE_KILLS`.
const DEFAULT_KILLS: u64 = 20;
/// How long the programs take, ms.
const RUN_MS: &str = "600";
const PROGRAMS: [&str; 5] = ["threads", "timers", "faults", "rseq", "syscalls"];

fn kills() -> u64 {
    env::var("HBBP_TORTURE_KILLS").map_or(DEFAULT_KILLS, |number| number.parse().unwrap())
}

/// The half of the kills for one test: the numbers that follow from `seed`, which is said so that a failure can be repeated.
fn moments(seed: u64) -> impl Iterator<Item = (u64, Duration)> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..kills().div_ceil(2)).map(move |number| (number, Duration::from_micros(random.u64(..550_000))))
}

fn trials() -> Option<Vec<Trial>> {
    PROGRAMS.into_iter().map(|name| Some(Trial::of(name)?.with(&[RUN_MS]))).collect()
}

/// The command is an orphan then.
#[test]
fn killed_collectors_of_commands() {
    let Some(trials) = trials() else { return };
    let mut started = 0;
    for (number, moment) in moments(1) {
        let trial = &trials[number as usize % trials.len()];
        let dir = trial.place.empty("killed");
        let kept = Kept::start(&dir, &[], &tracer::record_command(&trial.command)).unwrap();
        let collector = kept.pid();
        // One in five even before the program runs.
        if number % 5 != 4 {
            announced(&dir);
            sleep(moment);
        } else {
            sleep(moment / 20);
        }
        send_if_it_lives("-KILL", collector);
        let ended = kept.end();
        let what = format!("kill {number}, {moment:?} into {:?}: {ended:?}", trial.command);
        let finished = is_right(&ended.stdout) && ended.orphans == ["exited 0"];
        let had_finished = is_right(&ended.stdout) && ended.orphans.is_empty();
        let never_began = !dir.join("pid").exists() && ended.stdout.is_empty();
        match ended.status.as_str() {
            "killed 9" if dir.join("pid").exists() => assert!(finished || had_finished, "{what}"),
            "killed 9" => assert!(never_began, "{what}"),
            // The program was faster.
            other => assert!(other == "exited 0" && had_finished, "{what}"),
        }
        started += u64::from(finished);
    }
    assert!(started > 0, "no collector was killed while its command ran");
}

#[test]
fn killed_collectors_of_running_programs() {
    let Some(trials) = trials() else { return };
    let mut killed = 0;
    for (number, moment) in moments(2) {
        let trial = &trials[number as usize % trials.len()];
        let dir = trial.place.empty("killed");
        let kept = Kept::start(&dir, &[], &trial.command).unwrap();
        let words = tracer::record(&["-p", &announced(&dir).to_string()]);
        let mut collector = Command::new(&words[0]);
        collector.args(&words[1..]).current_dir(&dir).stderr(Stdio::null());
        let mut collector = collector.spawn().unwrap();
        sleep(moment);
        collector.kill().unwrap();
        killed += u64::from(collector.wait().unwrap().code().is_none());
        eprintln!("kill {number}, {moment:?} into {:?}", trial.command);
        check_right(trial, &kept.end());
    }
    assert!(killed > 0, "every collector had ended before");
}

/// A random moment rarely falls between two requests of which the program needs both.
#[test]
fn killed_before_each_request() {
    let Some(trials) = trials() else { return };
    let Some(dies) = build("dies", &["-shared", "-fPIC", "-ldl"]) else { return };
    let mut killed = 0;
    for (trial, request) in ["threads", "timers", "syscalls"].iter().flat_map(|name| {
        let trial = trials.iter().find(|trial| trial.command[0].ends_with(name)).unwrap();
        (1..=2 * kills()).map(move |request| (trial, request))
    }) {
        let dir = trial.place.empty("requests");
        let command = [trial.command[0].clone(), "250".to_owned()];
        let kept = Kept::start(&dir, &[], &command).unwrap();
        let words = tracer::record(&["-p", &announced(&dir).to_string()]);
        let mut collector = Command::new(&words[0]);
        collector.args(&words[1..]).current_dir(&dir).stderr(Stdio::null());
        let collector = collector.env("LD_PRELOAD", &dies).env("DIES_AT", request.to_string()).status().unwrap();
        killed += u64::from(collector.code().is_none());
        eprintln!("request {request} of {:?}: {collector}", trial.command[0]);
        check_right(trial, &kept.end());
    }
    assert!(killed >= kills(), "most collectors had ended before: {killed} had not");
}
