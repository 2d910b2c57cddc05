//! Processes that are switched all the time: events of CPUs record them, and only them.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::Duration;

use crate::bursts::Traced;
use crate::{Place, errors, programs, text};

/// Ends when the test does, with the child that it may have.
struct Waiting(Child);

impl Drop for Waiting {
    fn drop(&mut self) {
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.0.id())).unwrap_or_default();
        for pid in children.split_whitespace() {
            let _ = Command::new("kill").args(["-9", pid]).status();
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A place to record everything that runs, which the kernel may not allow.
fn to_record_all() -> Option<Place> {
    let place = Place::to_trace_by_default()?;
    let doctor = place.json(&["doctor", "--format", "json"]);
    if doctor["probes"]["system_wide"] != "works" {
        testing::skip!(Privileges, "no events of CPUs: {}", doctor["probes"]["system_wide"]);
        return None;
    }
    Some(place)
}

/// The part of each function in the instructions of bursts.
fn shares(place: &Place) -> BTreeMap<String, f64> {
    let report =
        place.json(&["mix", "--no-cache", "--format", "json", "--rows", "function", "--top", "0", "hbbp.data"]);
    let rows = report["rows"].as_array().unwrap().iter();
    rows.map(|row| (row["function"].as_str().unwrap().to_owned(), row["share"].as_f64().unwrap())).collect()
}

#[test]
fn what_is_switched_all_the_time_is_recorded_by_cpu() {
    let Some(place) = to_record_all() else { return };
    let Some(waits) = place.program("waits", programs::WAITS) else { return };
    let start = |arguments: &[&str]| Waiting(Command::new(&waits).args(arguments).spawn().unwrap());
    let go = place.path("go");
    let (with_child, other, stranger) = (start(&["200", text(&go)]), start(&["200"]), start(&["100"]));
    // So that it is known how they run.
    sleep(Duration::from_millis(500));
    let pids = [&with_child, &other].map(|process| process.0.id());
    let listed = pids.map(|pid| pid.to_string()).join(",");
    let recorder = place.hbbp(&["record", "-p", &listed, "--overhead", "5", "--duration", "5"]);
    let recording = std::thread::spawn(move || { recorder }.output().unwrap());
    sleep(Duration::from_millis(700));
    fs::write(&go, "").unwrap();
    let output = recording.join().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    let traced = Traced::read(&place.recording());
    assert!(traced.samples.keys().any(|event| event.starts_with("cpu-clock")), "{:?}", traced.samples);
    let child = fs::read_to_string(format!("/proc/{0}/task/{0}/children", pids[0])).unwrap();
    let child: u32 = child.trim().parse().expect("a child");
    let family = [pids[0], pids[1], child];
    assert!(traced.bursts.iter().all(|burst| family.contains(&burst.pid)), "{family:?}: {:?}", traced.names);
    for pid in family {
        assert!(traced.bursts.iter().any(|burst| burst.pid == pid), "{pid} of {family:?}: {:#}", traced.tracer());
    }
    let stranger_id = stranger.0.id();
    assert!(!traced.names.contains_key(&stranger_id) && traced.mappings.iter().all(|map| map.pid != stranger_id));
    assert_eq!((traced.number("/threads"), traced.number("/processes")), (3, 3), "{:#}", traced.tracer());
    // What CPUs counted is not what these did.
    let clock = &traced.metadata["events"][0];
    assert!(clock["counted"].is_null() && clock["samples"].as_u64().unwrap() > 50, "{clock:#}");

    // Three in four calls, each of as many rounds of about as many instructions: within four standard deviations of so many bursts, and what the
    // cost of code is wrong by.
    let shares = shares(&place);
    let (often, seldom) = (shares["often"], shares["seldom"]);
    let bursts = traced.bursts.iter().filter(|burst| burst.pid != child).count();
    let tolerance = 0.1 + 4.0 * (0.75 * 0.25 / bursts as f64).sqrt();
    assert!((often / (often + seldom) - 0.75).abs() < tolerance, "{bursts} bursts: {shares:?}");
    assert!(shares["of_child"] > 0.2, "{shares:?}");

    // Without those that they start.
    let output = place.record(&["-p", &listed, "-i", "--overhead", "5", "--duration", "2"]);
    assert!(output.status.success(), "{}", errors(&output));
    let traced = Traced::read(&place.recording());
    assert!(traced.bursts.len() > 2 && traced.bursts.iter().all(|burst| pids.contains(&burst.pid)), "{traced:?}");

    // Several files, of which each says what lives.
    let output = place.record(&["-p", &listed, "--overhead", "5", "--duration", "3", "--rotate", "1s"]);
    assert!(output.status.success(), "{}", errors(&output));
    let files = fs::read_dir(place.folder()).unwrap().map(|file| file.unwrap().path());
    let files: Vec<_> = files.filter(|file| text(file).contains("hbbp.2")).collect();
    assert!(files.len() >= 3, "{files:?}: {}", errors(&output));
    for file in files {
        let traced = Traced::read(&file);
        assert!(traced.bursts.iter().all(|burst| pids.contains(&burst.pid) || burst.pid == child), "{traced:?}");
        assert!(traced.mappings.iter().any(|map| map.pid == pids[0]), "{:?}", traced.mappings);
    }
}

/// A burst comes some time after the clock that starts it, and by then a thread may wait.
#[test]
fn code_after_and_before_a_wait_counts_like_the_rest() {
    let Some(place) = to_record_all() else { return };
    let Some(quarters) = place.program("quarters", programs::QUARTERS) else { return };
    let targets = [(); 4].map(|()| Waiting(Command::new(&quarters).spawn().unwrap()));
    sleep(Duration::from_millis(500));
    let pids = targets.each_ref().map(|target| target.0.id().to_string()).join(",");
    // With clocks of CPUs, and of threads.
    for (options, clock) in [(vec![], "cpu-clock"), (vec!["-i"], "task-clock")] {
        let output = place.record(&[&["-p", &pids, "--overhead", "20", "--duration", "12"], &options[..]].concat());
        assert!(output.status.success(), "{}", errors(&output));
        let traced = Traced::read(&place.recording());
        assert!(traced.samples.keys().any(|event| event.starts_with(clock)), "{clock}: {:?}", traced.samples);
        let bursts = traced.bursts.len();
        assert!(bursts > 400, "{bursts} bursts by {clock}: {:#}", traced.tracer());
        let shares = shares(&place);
        let of = ["first", "second", "third", "fourth"].map(|name| shares[name]);
        // The lag is a constant, which is not that of every machine.
        let tolerance = 0.06 + 4.0 * (0.25 * 0.75 / bursts as f64).sqrt();
        let all: f64 = of.iter().sum();
        let differ = |share: &f64| (share / all - 0.25).abs() > tolerance;
        assert!(!of.iter().any(differ), "{bursts} bursts by {clock}, ±{tolerance:.3}: {of:.3?}");
        println!("{bursts} bursts by {clock}, ±{tolerance:.3}: {of:.3?}");
    }
}

#[test]
fn what_computes_for_long_has_events_of_its_own() {
    let Some(place) = to_record_all() else { return };
    let Some(hot) = place.program("hot", programs::HOT) else { return };
    let target = Waiting(Command::new(hot).arg("60000").spawn().unwrap());
    sleep(Duration::from_millis(500));
    let output = place.record(&["-p", &target.0.id().to_string(), "--overhead", "20", "--duration", "1"]);
    assert!(output.status.success(), "{}", errors(&output));
    let traced = Traced::read(&place.recording());
    assert!(traced.samples.keys().any(|event| event.starts_with("task-clock")), "{:?}", traced.samples);
}
