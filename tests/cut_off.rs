//! Recordings whose recorder was killed: they are read as far as they came, and say what they are.

mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use formats::metadata::{Metadata, RECORD_TYPE};
use perfdata::Features;
use serde_json::Value;
use synthetic::{AROUND, Burst, C, Recorder, burst_metadata};
use testing::Alone;

/// What every report of such a recording begins its list of degradations with.
const CUT_OFF: &str = "cut off: the recorder was killed, or could not write on; what it recorded last is missing, and if kernel or JIT code ran, \
                       its bytes or its names";

/// Where a header says how long the data section is, and which features follow it.
const DATA: usize = 40;
const FEATURES: usize = 72;
const HEADER: usize = 104;

fn word(bytes: &[u8], offset: usize) -> usize {
    u64::from_le_bytes(bytes[offset..offset + 8].try_into().unwrap()) as usize
}

/// A record of a tool.
fn record(record_type: u32, body: &[u8]) -> Vec<u8> {
    [&record_type.to_le_bytes()[..], &[0, 0], &(body.len() as u16 + 8).to_le_bytes(), body].concat()
}

/// What comes first in a recording: its metadata, and a name (`PERF_RECORD_EVENT_UPDATE`).
fn first_records(metadata: &Features, event: u64, name: &[u8; 8]) -> Vec<u8> {
    let metadata = Metadata::read(&metadata.other[&perfdata::FeatureBit(250)]).unwrap();
    let body = metadata.to_record_body().unwrap();
    let update = [&2_u64.to_le_bytes()[..], &event.to_le_bytes(), name].concat();
    [record(RECORD_TYPE, &body), record(78, &update)].concat()
}

/// A finished recording as it was before its header was completed: after `first`, with this many bytes of its data.
fn cut_off(recording: &[u8], first: &[u8], size: impl Fn(usize) -> usize) -> Vec<u8> {
    let (start, data) = (word(recording, DATA), word(recording, DATA + 8));
    let mut header = recording[..start].to_vec();
    header[DATA + 8..DATA + 16].fill(0);
    header[FEATURES..HEADER].fill(0);
    [&header, first, &recording[start..start + size(data)]].concat()
}

/// The head of `hbbp mix`, and how many instructions it counts.
fn mix(recording: &Path) -> (Value, f64) {
    let output = support::stdout(&["mix", "-i", recording.to_str().unwrap(), "--format", "json"]);
    let document: Value = serde_json::from_str(&output).unwrap();
    (document["head"].clone(), document["instructions"].as_f64().unwrap())
}

#[test]
fn a_recording_without_its_end_is_read_by_what_it_says_first() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = synthetic::program(folder.path(), "four", &[]) else { return };
    let mut recorder = Recorder::traced(&binary);
    for _ in 0..5 {
        recorder.burst(&Burst { ip: C, branches: &AROUND, instructions: 100, period: 1000 });
    }
    let metadata = burst_metadata("nanoseconds");
    let finished = recorder.finish(&metadata);
    let file = folder.path().join("cut.data");
    let read = |bytes: Vec<u8>| {
        std::fs::write(&file, bytes).unwrap();
        mix(&file)
    };
    let (whole, instructions) = read(finished.clone());
    let first = first_records(&metadata, 2, b"burst:u\0");
    assert!(!whole["degraded"].to_string().contains("cut off"));

    let (head, counted) = read(cut_off(&finished, &first, |size| size));
    assert_eq!(head["degraded"][0], CUT_OFF);
    assert_eq!((&head["lbr_source"], counted), (&whole["lbr_source"], instructions));
    assert_eq!(head["lbr_source"]["provenance"], "software");
    assert_eq!(head["lbr_source"]["event"], "burst:u");

    // The last burst in part.
    let (head, counted) = read(cut_off(&finished, &first, |size| size - 20));
    assert_eq!(head["degraded"][0], CUT_OFF);
    assert_eq!((&head["lbr_source"]["provenance"], &head["lbr_source"]["samples"]), (&"software".into(), &4.into()));
    assert!(counted > 0.0 && head["degraded"].to_string().contains("the recording is damaged"));
    // Nothing else but what comes first.
    let (head, counted) = read(cut_off(&finished, &first, |_| 0));
    assert_eq!((&head["degraded"][0], counted), (&CUT_OFF.into(), 0.0));
}

/// What is said last counts, where both are there.
#[test]
fn metadata_at_the_end_is_taken_before_that_at_the_front() {
    let folder = tempfile::tempdir().unwrap();
    let Some(binary) = synthetic::program(folder.path(), "four", &[]) else { return };
    let mut recorder = Recorder::traced(&binary);
    recorder.burst(&Burst { ip: C, branches: &AROUND, instructions: 100, period: 1000 });
    let last = burst_metadata("nanoseconds");
    let first = first_records(&burst_metadata("instructions"), 2, b"another\0");
    let bytes = recorder.finish(&last);
    // Everything after the front moves.
    let (start, size) = (word(&bytes, DATA), word(&bytes, DATA + 8));
    let mut moved = [&bytes[..start], &first, &bytes[start..]].concat();
    let add = |bytes: &mut Vec<u8>, offset: usize| {
        let sum = (word(bytes, offset) + first.len()) as u64;
        bytes[offset..offset + 8].copy_from_slice(&sum.to_le_bytes());
    };
    add(&mut moved, DATA + 8);
    let sections: u32 = bytes[FEATURES..HEADER].iter().map(|bits| bits.count_ones()).sum();
    (0..sections as usize).for_each(|section| add(&mut moved, start + first.len() + size + 16 * section));
    let file = folder.path().join("both.data");
    std::fs::write(&file, &moved).unwrap();
    let (head, _) = mix(&file);
    assert_eq!(head["lbr_source"]["bursts"]["weighted_by"], "nanoseconds");
    assert_eq!(head["lbr_source"]["event"], "burst:u");
    assert!(!head["degraded"].to_string().contains("cut off"));
}

/// Whether a recording is a file or a stream (`-o -`).
#[derive(Clone, Copy, PartialEq)]
enum To {
    File,
    Stream,
}

/// Records a busy shell in `folder`, and kills the recorder when its recording has this many bytes and this long has passed.
fn killed(folder: &Path, to: To, bytes: u64, after: Duration) {
    let file = folder.join("killed.data");
    let mut recorder = support::hbbp();
    recorder.args(["record", "-q", "--tracer", "lookahead", "-o"]);
    match to {
        To::File => recorder.arg(&file).stdout(Stdio::piped()),
        // What the command prints goes elsewhere then.
        To::Stream => recorder.arg("-").stdout(std::fs::File::create(&file).unwrap()),
    };
    recorder.args(["--", "sh", "-c", "echo $$ >&2; while :; do :; done"]).stderr(Stdio::piped());
    let mut recorder = recorder.spawn().unwrap();
    let mut printed = BufReader::new(recorder.stderr.take().unwrap()).lines().map_while(Result::ok);
    let pid = printed.find(|line| line.trim().parse::<u32>().is_ok()).expect("the command's process id");
    sleep(after);
    let size = || std::fs::metadata(&file).map_or(0, |file| file.len());
    let mut waited = 0;
    while size() < bytes && waited < 60_000 {
        sleep(Duration::from_millis(1));
        waited += 1;
    }
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    // The recorder's end has let it go; it would spin for ever.
    assert!(Command::new("kill").args(["-KILL", pid.trim()]).status().unwrap().success());
    assert!(size() >= bytes, "{} bytes after a minute", size());
}

/// Whether a command can be traced here; says loudly when not.
fn can_trace(folder: &Path) -> bool {
    let probe = folder.join("probe.data");
    let output =
        support::hbbp().args(["record", "-q", "--tracer", "lookahead", "-o"]).arg(probe).args(["--", "true"]).output();
    let output = output.unwrap();
    if !output.status.success() {
        testing::skip!(NoTracing, "tracing is not possible here: {}", String::from_utf8_lossy(&output.stderr));
    }
    output.status.success()
}

/// The head of a mix, and the instructions in it, of a recording whose recorder was killed while it traced; `None` where it cannot.
fn mix_of_killed(to: To) -> Option<(Value, f64)> {
    let folder = tempfile::tempdir().unwrap();
    if !can_trace(folder.path()) {
        return None;
    }
    // One burst takes some 20 KiB.
    killed(folder.path(), to, 40 << 10, Duration::from_secs(1));
    let (head, instructions) = mix(&folder.path().join("killed.data"));
    assert_eq!(head["degraded"][0], CUT_OFF);
    assert_eq!(head["lbr_source"]["provenance"], "software", "{head}");
    Some((head, instructions))
}

#[test]
fn a_recorder_killed_while_it_traces_leaves_counts_and_says_how_they_were_made() {
    let _alone = Alone::wait();
    let Some((head, instructions)) = mix_of_killed(To::File) else { return };
    assert_eq!(head["lbr_source"]["bursts"]["tracer"]["kind"], "lookahead", "{head}");
    assert!(head["lbr_source"]["bursts"]["bursts"].as_u64().unwrap() > 0 && instructions > 0.0, "{head}");
}

#[test]
fn a_stream_says_that_its_recorder_was_killed() {
    let _alone = Alone::wait();
    let Some((head, instructions)) = mix_of_killed(To::Stream) else { return };
    assert!(instructions > 0.0, "{head}");
}

#[test]
fn a_recorder_killed_at_once_leaves_what_it_knew() {
    let _alone = Alone::wait();
    let folder = tempfile::tempdir().unwrap();
    if !can_trace(folder.path()) {
        return;
    }
    killed(folder.path(), To::File, 0, Duration::ZERO);
    let file = folder.path().join("killed.data");
    let recording = perfdata::Recording::open(&file).unwrap();
    assert!(recording.was_cut_off());
    let mut chunk = perfdata::Chunk::new();
    assert!(recording.chunks().next_into(&mut chunk).unwrap());
    let first = chunk.records().next().unwrap();
    let metadata = Metadata::read(Metadata::text_of_record(first.record_type.0, first.body).unwrap()).unwrap();
    assert_eq!(metadata.tracer.and_then(|tracer| tracer.kind).as_deref(), Some("lookahead"));
    assert!(recording.events().iter().any(|event| event.name.starts_with("burst")), "{:?}", recording.events());
    let (head, _) = mix(&file);
    assert_eq!(head["degraded"][0], CUT_OFF);
}
