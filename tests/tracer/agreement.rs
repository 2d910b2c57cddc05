//! The interpreter and the CPU, stopped at every branch, find the same paths.

use crate::bursts::Traced;
use crate::{Place, errors, programs, text};

/// Compares on a command until enough was compared; what other threads or the kernel change is not to happen in it.
fn compare(place: &Place, depth: &str, command: &[&str]) {
    let (mut checked, mut diverged) = (0, 0);
    for _ in 0..4 {
        let args = [&["--tracer", "check", "--overhead", "100", "--depth", depth, "--"], command].concat();
        let output = place.record(&args);
        assert!(output.status.success(), "{command:?}: {}", errors(&output));
        let said = errors(&output);
        assert!(said.contains("predictions that could be checked were wrong"), "{said}");
        let traced = Traced::read(&place.recording());
        checked += traced.number("/predictions/checked");
        diverged += traced.number("/predictions/diverged");
        assert_eq!(diverged, 0, "{command:?} --depth {depth}: {:#}", traced.tracer());
        if checked > 50 {
            return;
        }
    }
    panic!("{command:?} --depth {depth}: only {checked} compared");
}

#[test]
fn both_tracers_find_the_same_path() {
    let Some(place) = Place::to_trace() else { return };
    let Some(varied) = place.program("varied", programs::VARIED) else { return };
    compare(&place, "16", &[text(&varied), "300"]);
    compare(&place, "64", &[text(&varied), "600"]);
}

#[test]
fn both_tracers_find_the_same_path_in_a_hot_loop() {
    let Some(place) = Place::to_trace() else { return };
    let Some(hot) = place.program("hot", programs::HOT) else { return };
    compare(&place, "256", &[text(&hot), "900"]);
}

#[test]
fn both_tracers_find_the_same_path_in_everyday_programs() {
    let Some(place) = Place::to_trace() else { return };
    let numbers: String =
        (0..200_000_u64).map(|n| format!("{}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20)).collect();
    std::fs::write(place.path("numbers"), numbers).unwrap();
    let count = "my %h; $h{$_ % 1000} .= \"x$_\" for 1..400000; print scalar keys %h";
    let commands: [&[&str]; 3] = [
        &["bzip2", "-kf9", "numbers"],
        &["sort", "--parallel=1", "-n", "-o", "sorted", "numbers"],
        &["perl", "-e", count],
    ];
    for command in commands {
        if std::process::Command::new(command[0]).arg("--version").stdin(std::process::Stdio::null()).output().is_err()
        {
            testing::skip!(Tool, "{} is not installed", command[0]);
            continue;
        }
        compare(&place, "16", command);
    }
}
