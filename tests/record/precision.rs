//! `--precision`: recording goes on until the numbers are good enough.

use std::fs;

use crate::{Place, errors, wait_for};

/// Computes for a while, and says that it did: a line for each run.
const COMPUTES: &str = "i=0; while [ $i -lt 40000 ]; do i=$((i + 1)); done; echo run >> runs";

fn runs(place: &Place) -> usize {
    fs::read_to_string(place.path("runs")).unwrap_or_default().lines().count()
}

#[test]
fn a_command_is_run_again_until_its_numbers_are_good_enough() {
    let Some(place) = Place::to_record() else { return };
    let output = place.run(&["--precision", "40%", "--overhead", "30", "--", "sh", "-c", COMPUTES]);
    let said = errors(&output);
    assert!(output.status.success(), "{said}");
    let last = said.lines().rfind(|line| line.contains("right within")).unwrap_or_default();
    assert!(last.contains(&format!(" and {} runs: ", runs(&place))), "{} runs: {said}", runs(&place));
    assert!(runs(&place) > 1 && last.ends_with("% by chance (40 % wanted)"), "{said}");
    assert!(place.contents().total() > 0);
}

#[test]
fn a_run_that_fails_is_the_last() {
    let Some(place) = Place::to_record() else { return };
    let script = format!("{COMPUTES}; [ $(wc -l < runs) -lt 3 ] || exit 7");
    let output = place.run(&["--precision", "0.001%", "--", "sh", "-c", &script]);
    assert_eq!((output.status.code(), runs(&place)), (Some(7), 3), "{}", errors(&output));
    let missing = place.run(&["--precision", "1%", "-o", "other.data", "--", "/no/such/program"]);
    assert_eq!(missing.status.code(), Some(127), "{}", errors(&missing));
    assert!(!place.path("other.data").exists());
}

#[test]
fn it_is_told_to_end_as_the_command_is() {
    let Some(place) = Place::to_record() else { return };
    let script = "trap 'touch told; exit 0' TERM; touch started; while :; do sleep 0.01; done";
    let output = place.run(&["--precision", "0.001%", "--duration", "0.5", "--", "sh", "-c", script]);
    assert!(output.status.success() && place.path("told").exists(), "{}", errors(&output));
}

#[test]
fn what_runs_already_is_recorded_until_it_is_enough() {
    let Some(place) = Place::to_record() else { return };
    let script = "touch started; while [ -e started ]; do :; done";
    let mut program =
        std::process::Command::new("sh").args(["-c", script]).current_dir(place.folder()).spawn().unwrap();
    wait_for("the program to start", || place.path("started").exists());
    let output =
        place.run(&["--precision", "60", "--overhead", "30", "--duration", "100", "-p", &program.id().to_string()]);
    fs::remove_file(place.path("started")).unwrap();
    program.wait().unwrap();
    let said = errors(&output);
    assert!(output.status.success() && !said.contains("not reached"), "{said}");
    assert!(said.lines().next_back().is_some_and(|line| line.ends_with("(60 % wanted)")), "{said}");
}

#[test]
fn what_cannot_be_is_said_before_anything_runs() {
    let Some(place) = Place::to_record() else { return };
    let pid = std::process::id().to_string();
    for options in [
        &["--precision", "0", "--", "true"][..],
        &["--precision", "1%", "-o", "-", "--", "true"],
        &["--precision", "1%", "-p", &pid, "--", "true"],
        &["--precision", "1%", "--off", "--", "true"],
    ] {
        let output = place.run(options);
        assert_eq!(output.status.code(), Some(2), "{options:?}: {}", errors(&output));
    }
    assert!(!place.recording().exists());
}
