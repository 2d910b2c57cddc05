//! `hbbp calibrate`, and what recordings make of it.

#[path = "support/place.rs"]
mod place;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use perfdata::{FeatureBit, Recording};
use place::Place;
use serde_json::{Value, json};

/// `hbbp ARGS` of a user whose data is in this folder.
fn hbbp(data: &Path, args: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_hbbp");
    Command::new(program).args(args).env("XDG_DATA_HOME", data).output().expect("hbbp starts")
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn what_is_measured_rises_from_level_to_level() {
    let folder = tempfile::tempdir().unwrap();
    let output = hbbp(folder.path(), &["calibrate", "--dry-run", "--format", "json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["schema"], "hbbp-calibration/1");
    let number = |key: &str| found[key].as_f64();
    // On a machine that is busy with other things, the levels may not be told apart.
    match (number("third_cycles"), number("memory_cycles")) {
        (Some(third), Some(memory)) => {
            assert!(output.status.success(), "{}", errors(&output));
            assert!(number("second_cycles").unwrap() < third && third < memory, "{found}");
            assert!(number("third_kib") > number("second_kib"), "{found}");
        }
        none => {
            assert_eq!((none, output.status.code()), ((None, None), Some(1)), "{}", errors(&output));
            assert!(errors(&output).contains("nothing is kept"), "{}", errors(&output));
        }
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is kept");
}

#[test]
fn recordings_note_what_was_measured_of_their_machine_and_of_no_other() {
    let Some(place) = Place::to_trace_by_default() else { return };
    let output = hbbp(place.folder(), &["calibrate", "--format", "json"]);
    let kept: Value = serde_json::from_slice(&output.stdout).unwrap();
    let file = place.path("hbbp/calibration.json");
    if output.status.success() {
        assert_eq!(serde_json::from_slice::<Value>(&fs::read(&file).unwrap()).unwrap(), kept);
    } else {
        assert!(!file.exists(), "{}", errors(&output));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
    }

    let recording = place.path("run.data");
    let record = || {
        let path = recording.to_str().unwrap();
        let command = ["sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done"];
        let output = hbbp(place.folder(), &[&["record", "-o", path, "--"][..], &command].concat());
        assert!(output.status.success(), "{}", errors(&output));
        let recording = Recording::open(&recording).unwrap();
        let metadata: Value = serde_json::from_slice(&recording.features().other[&FeatureBit(250)]).unwrap();
        (metadata["calibration"].clone(), errors(&output))
    };
    let head = || {
        let output = hbbp(place.folder(), &["mix", "-v", "-i", recording.to_str().unwrap()]);
        let head = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && head.contains("the cost of code where it starts"), "{}", errors(&output));
        head
    };

    let of_this_machine = json!({
        "schema": "hbbp-calibration/1", "cpuid": kept["cpuid"], "second_cycles": 14.0, "third_cycles": 50.0,
        "memory_cycles": 400.0, "second_kib": 1024, "third_kib": 100_000,
    });
    fs::write(&file, of_this_machine.to_string()).unwrap();
    let (noted, said) = record();
    assert_eq!(noted, of_this_machine, "{said}");
    let calibrated = head();
    assert!(calibrated.contains(" core, calibrated)"), "{calibrated}");

    let mut other = of_this_machine.clone();
    other["cpuid"] = "GenuineIntel,6,1,1".into();
    fs::write(&file, other.to_string()).unwrap();
    let (noted, said) = record();
    assert!(noted.is_null() && said.contains("a calibration of GenuineIntel,6,1,1"), "{said}");
    assert!(!head().contains("calibrated"));

    for damaged in ["", "[]", "{\"schema\":\"hbbp-calibration/1\"", "{}"] {
        fs::write(&file, damaged).unwrap();
        let (noted, said) = record();
        assert!(noted.is_null() && said.contains("calibration.json"), "{damaged}: {said}");
    }

    // What cannot be is not taken, and what is missing neither.
    for odd in [json!({"memory_cycles": 20.0}), json!({"third_kib": 1}), json!({"second_cycles": null})] {
        let mut calibration = of_this_machine.clone();
        odd.as_object().unwrap().iter().for_each(|(key, value)| calibration[key] = value.clone());
        fs::write(&file, calibration.to_string()).unwrap();
        record();
        let head = head();
        assert!(!head.contains(" core, calibrated)") && head.contains("cannot be one of its machine"), "{odd}: {head}");
    }
}
