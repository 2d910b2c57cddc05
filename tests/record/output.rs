//! Where recordings go, and what comes first in them.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use perfdata::{Chunk, Recording};

use crate::contents::Contents;
use crate::processes::with_default_signals;
use crate::{Place, SOME_WORK, errors, hbbp, installed, programs};

/// `hbbp record -o - ARGS`, with its standard output in a pipe; that is in the file `stream`.
fn streamed(place: &Place, args: &[&str]) -> Output {
    let output = place.run(&[&["-o", "-"], args].concat());
    fs::write(place.path("stream"), &output.stdout).unwrap();
    output
}

/// What a file has, a stream has, and what the command prints is not in it.
#[test]
fn a_stream_has_what_a_file_has() {
    let Some(place) = Place::to_record() else { return };
    let script = format!("{SOME_WORK}: > ran; echo printed; exit 7");
    let args = ["--expect", "seconds", "--", "sh", "-c", &script];
    let output = streamed(&place, &args);
    assert_eq!(output.status.code(), Some(7), "{}", errors(&output));
    assert!(errors(&output).contains("printed") && errors(&output).contains("written to standard output"));
    assert!(!place.path("-").exists() && place.path("ran").exists());
    assert_eq!(place.run(&args).status.code(), Some(7));
    let (stream, file) = (Contents::of(&place.path("stream")), place.contents());
    assert!(stream.total() > 0);
    assert_eq!(stream.events, file.events);
    assert_eq!(stream.names.values().collect::<Vec<_>>(), file.names.values().collect::<Vec<_>>());
    let programs = |contents: &Contents| contents.mapped.iter().map(|(_, path)| path.clone()).collect::<Vec<_>>();
    assert_eq!(programs(&stream), programs(&file));
    assert_eq!(stream.build_ids, file.build_ids);
    let keys = |contents: &Contents| {
        let metadata = contents.metadata.as_object().unwrap();
        metadata.keys().filter(|key| *key != "before_first_burst").cloned().collect::<Vec<_>>()
    };
    assert_eq!(keys(&stream), keys(&file));
    assert_eq!(stream.metadata["samples"], stream.total());
    let features = |file: &Path| {
        let mut features = Recording::open(file).unwrap().features().clone();
        features.other.clear();
        (features.sample_time, features.total_mem) = (None, None);
        features.cmdline.retain(|word| word != "-o" && word != "-");
        features.build_ids.sort_by(|one, other| one.path.cmp(&other.path));
        features.build_ids.iter_mut().for_each(|entry| entry.pid = 0);
        features
    };
    assert_eq!(features(&place.path("stream")), features(&place.recording()));
}

/// `hbbp record -o - -- COMMAND | hbbp mix -i -`.
#[test]
fn a_stream_is_analysed_as_it_comes() {
    let Some(place) = Place::to_record() else { return };
    let mut record = place.command(&["-o", "-", "--expect", "seconds", "--", "sh", "-c", SOME_WORK]);
    let mut record = record.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let stream = record.stdout.take().unwrap();
    let output =
        Command::new(hbbp()).args(["mix", "-i", "-", "--rows", "comm", "--format", "csv"]).stdin(stream).output();
    let output = output.unwrap();
    assert!(record.wait().unwrap().success());
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && table.contains("\nsh,"), "{table} {}", errors(&output));
    if installed("perf") {
        let stream = streamed(&place, &["--expect", "seconds", "--", "sh", "-c", SOME_WORK]);
        assert!(stream.status.success(), "{}", errors(&stream));
        for command in [&["script", "-F", "comm,event", "-i", "-"][..], &["report", "--stdio", "-i", "-"]] {
            let stdin = File::open(place.path("stream")).unwrap();
            let output = Command::new("perf").args(command).stdin(stdin).current_dir(place.folder()).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains("task-clock"), "{command:?}: {text} {}", errors(&output));
        }
    }
}

/// A file that standard output is redirected to can be gone back in, unless something is in it.
#[test]
fn redirected_standard_output_is_a_file() {
    let Some(place) = Place::to_record() else { return };
    let redirect = |file: File| {
        let output = place.command(&["-o", "-", "--", "true"]).stdout(file).stderr(Stdio::piped()).output().unwrap();
        assert!(output.status.success(), "{}", errors(&output));
    };
    redirect(File::create(place.recording()).unwrap());
    place.contents();
    assert_ne!(fs::read(place.recording()).unwrap()[8], 16, "the header of a file");
    let append = || File::options().create(true).append(true).open(place.path("appended")).unwrap();
    redirect(append());
    Contents::of(&place.path("appended"));
    assert_eq!(fs::read(place.path("appended")).unwrap()[8], 16, "the header of a stream");
}

#[test]
fn recordings_are_not_shown_at_a_terminal() {
    let Some(place) = Place::to_record() else { return };
    if !installed("script") {
        return;
    }
    let command = format!("{} record -o - -- touch ran", hbbp().display());
    let mut script = with_default_signals("script");
    script.args(["-qec", &command, "/dev/null"]).env("SHELL", "/bin/sh").current_dir(place.folder());
    let output = script.stdin(Stdio::null()).output().unwrap();
    let screen = String::from_utf8_lossy(&output.stdout);
    assert!(screen.contains("standard output is a terminal") && screen.contains("| hbbp mix -i -"), "{screen}");
    assert!(!place.path("ran").exists());
}

/// Nobody reads on: the command is not to suffer.
#[test]
fn a_pipe_that_is_closed_ends_the_recording_only() {
    let Some(place) = Place::to_record() else { return };
    let script = format!("{SOME_WORK}: > ran; exit 7");
    let mut record = place.command(&["-o", "-", "--expect", "seconds", "--", "sh", "-c", &script]);
    let mut record = record.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(record.stdout.take());
    let output = record.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", errors(&output));
    assert!(errors(&output).contains("Broken pipe") && place.path("ran").exists(), "{}", errors(&output));
}

/// Events of the samples of a recording, in the order of their times.
fn events_by_time(file: &Path) -> Vec<String> {
    let recording = Recording::open(file).unwrap();
    let (mut chunks, mut chunk, mut samples) = (recording.chunks(), Chunk::new(), Vec::new());
    while chunks.next_into(&mut chunk).unwrap() {
        for raw in chunk.records().filter(|raw| raw.is_sample()) {
            let sample = recording.sample(&raw).unwrap();
            samples.push((sample.time.unwrap(), recording.events()[sample.event].name.clone()));
        }
    }
    samples.sort_by_key(|(time, _)| *time);
    samples.into_iter().map(|(_, event)| event).collect()
}

/// The recording that was made, if it has an event of bursts; says so when not.
fn traced(place: &Place, output: &Output) -> Option<Contents> {
    assert!(output.status.success(), "{}", errors(output));
    let contents = place.contents();
    if !contents.events.iter().any(|event| event == "burst:u") {
        testing::skip!(NoTracing, "branches are not traced in software: {}", errors(output));
        return None;
    }
    Some(contents)
}

/// Others tell by the first sample whether there are branch stacks.
#[test]
fn a_burst_comes_first() {
    let (Some(place), Some(spin)) = (Place::to_record(), programs::spin()) else { return };
    let mut left_out = 0;
    for round in 0..3 {
        // Clock samples come much more often than bursts.
        let output = place.run(&["--ebs-period", "1000000", "--", spin.to_str().unwrap(), "2", "400"]);
        let Some(contents) = traced(&place, &output) else { return };
        let events = events_by_time(&place.recording());
        assert!(events.iter().any(|event| event == "burst:u"), "round {round}: no burst in 800 ms at 1 %");
        assert_eq!(events[0], "burst:u", "round {round}");
        let before = contents.metadata["before_first_burst"].as_u64().unwrap_or(0);
        assert_eq!(errors(&output).contains("before the first burst"), before > 0, "{}", errors(&output));
        left_out += before;
        if installed("llvm-profgen-19") {
            let output = Command::new("llvm-profgen-19")
                .args(["--perfdata", "hbbp.data", "--output", "profile", "--show-mmap-events=false", "--binary"])
                .arg(&spin)
                .current_dir(place.folder())
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", errors(&output));
        }
    }
    assert!(left_out > 0, "a clock sample a millisecond, and none before the first burst in three recordings");
}

/// A program that ends before its first burst: the samples of the clock are all there is.
#[test]
fn without_a_burst_samples_are_kept() {
    let Some(place) = Place::to_record() else { return };
    // A burst a second of CPU time, or less: the first comes at a random time, as a rule after the end of this program.
    for _ in 0..10 {
        let output = place.run(&[
            "--overhead",
            "0.01",
            "--start-credit",
            "0",
            "--ebs-period",
            "1000000",
            "--",
            "sh",
            "-c",
            SOME_WORK,
        ]);
        let Some(contents) = traced(&place, &output) else { return };
        let events = events_by_time(&place.recording());
        if !events.iter().any(|event| event == "burst:u") {
            assert!(events.len() > 20, "{events:?}");
            assert_eq!(contents.metadata["before_first_burst"], serde_json::Value::Null);
            return;
        }
    }
    panic!("a burst came early in each of ten recordings");
}
