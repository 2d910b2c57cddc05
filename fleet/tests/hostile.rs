//! What comes in is not trusted: it is named, left out or kept apart, and no sum is wrong.

mod support;

use std::fmt::Write;
use std::fs;
use std::path::Path;

use support::{Setup, copy};
use testing::Fixture;

#[test]
fn a_build_id_that_lies_adds_nothing_to_the_sum_of_what_ran() {
    let setup = Setup::new();
    let fixture = Fixture::bursts("compress");
    let (recording, honest) = (fixture.recording.to_str().unwrap(), fixture.binary_option());
    // The same build id, but other code: every second byte of it.
    let mut binary = fs::read(&fixture.binary).unwrap();
    let half = binary.len() / 2;
    let text = text_of(&binary);
    for at in text.step_by(2) {
        binary[at] ^= 0x5a;
    }
    assert!(binary.len() / 2 == half);
    let lying = setup.path("lying");
    fs::write(&lying, binary).unwrap();
    let lies = format!("{}={lying}", fixture.recorded_as);
    setup.said(&["ingest", &setup.path("lies"), recording, "--binary", &lies]);
    let left_out = "SELECT left_out_streams > 0.1 * seen FROM recordings";
    assert_eq!(setup.rows("lies", left_out), ["true"]);
    assert_eq!(setup.slice("lies", &[]), setup.merged(&[recording, "--binary", &lies]));
    // Unread, it is kept apart.
    setup.said(&["ingest", &setup.path("apart"), recording]);
    setup.said(&["ingest", &setup.path("apart"), fixture.truth().to_str().unwrap(), "--binary", &honest]);
    let read = "SELECT DISTINCT read FROM flow WHERE module NOT LIKE 'path:%' ORDER BY 1";
    assert_eq!(setup.rows("apart", read), ["false", "true"]);
}

/// Where the code of an ELF file is: the segment that can be executed.
fn text_of(elf: &[u8]) -> std::ops::Range<usize> {
    let number = |at: usize| u64::from_le_bytes(elf[at..at + 8].try_into().unwrap()) as usize;
    let (headers, count) = (number(32), u16::from_le_bytes([elf[56], elf[57]]) as usize);
    let executable = |at: &usize| elf[*at] == 1 && elf[at + 4] & 1 != 0;
    let segment = (0..count).map(|index| headers + index * 56).find(executable).unwrap();
    number(segment + 8)..number(segment + 8) + number(segment + 32)
}

#[test]
fn a_damaged_file_is_named() {
    let setup = Setup::new();
    let store = setup.path("store");
    for (name, day) in [("a", 1), ("b", 2)] {
        let file = setup.flow(name, "01", f64::from(day));
        setup.said(&["ingest", &store, &file, "--time", &format!("2025-01-0{day}T00:00:00Z")]);
    }
    let expected = setup.slice("store", &[]);
    let files: Vec<String> = setup.files("store").into_iter().filter(|file| file.ends_with(".parquet")).collect();
    assert_eq!(files.len(), 6);
    for file in &files {
        let path = Path::new(&store).join(file);
        let good = fs::read(&path).unwrap();
        // A bit somewhere: in what ran, in what says how it is packed, in what says what is in it.
        for at in [10, good.len() / 3, good.len() / 2, good.len() - 40] {
            let mut bytes = good.clone();
            bytes[at] ^= 0x10;
            fs::write(&path, bytes).unwrap();
            for question in
                [&["slice", &store, "-o", "/dev/null"][..], &["query", &store, "SELECT sum(count) FROM flow"]]
            {
                let error = setup.error(question);
                assert!(error.contains(file.as_str()) && error.contains("is damaged"), "{at} of {file}: {error}");
            }
        }
        // What is of another batch is not what was written, as good as it is.
        let other = files.iter().find(|other| other[14..] != file[14..] && ending(other) == ending(file)).unwrap();
        fs::copy(Path::new(&store).join(other), &path).unwrap();
        let error = setup.error(&["slice", &store, "-o", "/dev/null"]);
        assert!(error.contains("is damaged"), "{file}: {error}");
        fs::write(&path, good).unwrap();
    }
    assert_eq!(setup.slice("store", &[]), expected);
    // What is in a damaged table of recordings is not known: nothing may come in that could be there.
    for file in files.iter().filter(|file| file.ends_with(".recordings.parquet")) {
        let path = Path::new(&store).join(file);
        let good = fs::read(&path).unwrap();
        for at in [10, good.len() / 3, good.len() / 2, good.len() - 40] {
            let mut bytes = good.clone();
            bytes[at] ^= 0x10;
            fs::write(&path, bytes).unwrap();
            let error = setup.error(&["ingest", &store, &setup.path("a"), "--time", "2025-01-01T00:00:00Z"]);
            assert!(error.contains(file.as_str()) && error.contains("is damaged"), "{at} of {file}: {error}");
        }
        fs::write(&path, good).unwrap();
    }
    assert_eq!(setup.slice("store", &[]), expected);
    // What `compact` cannot trust stays.
    let more = setup.flow("more", "01", 1.0);
    setup.said(&["ingest", &store, &more, "--time", "2025-01-01T01:00:00Z"]);
    let damaged = setup.path("damaged");
    copy(Path::new(&store), Path::new(&damaged));
    let flow =
        Path::new(&damaged).join(files.iter().find(|file| file.contains("01/i-") && file.contains("flow")).unwrap());
    let mut bytes = fs::read(&flow).unwrap();
    bytes[20] ^= 1;
    fs::write(&flow, bytes).unwrap();
    let error = setup.error(&["compact", &damaged]);
    assert!(error.contains("day=2025-01-01 stays as it is") && error.contains("is damaged"), "{error}");
}

/// As when a store came together from two that had a recording in common.
#[test]
fn a_recording_that_is_there_twice_is_named_and_can_be_taken_out() {
    let setup = Setup::new();
    let (store, other) = (setup.path("store"), setup.path("other"));
    let [file, more] = [("a", 1.0), ("b", 2.0)].map(|(name, count)| setup.flow(name, "01", count));
    for (store, day) in [(&store, "2025-01-01T00:00:00Z"), (&other, "2025-01-02T00:00:00Z")] {
        setup.said(&["ingest", store, &file, "--time", day]);
    }
    copy(Path::new(&other), Path::new(&store));
    let id = blake3::hash(&fs::read(&file).unwrap()).to_string();
    for command in [&["ingest", &store, &more][..], &["slice", &store, "-o", "/dev/null"], &["top", &store]] {
        let error = setup.error(command);
        assert!(error.contains(&id) && error.contains("is in the store twice"), "{error}");
    }
    setup.said(&["remove", &store, "--id", &id]);
    assert_eq!(setup.rows("store", "SELECT count(*) FROM recordings"), ["0"]);
    setup.said(&["ingest", &store, &file, &more, "--time", "2025-01-01T00:00:00Z"]);
    assert_eq!(setup.slice("store", &[]), setup.merged(&[&file, &more]));
}

fn ending(file: &str) -> &str {
    file.split_once('.').unwrap().1
}

#[test]
fn many_modules_are_no_trouble() {
    let setup = Setup::new();
    let modules = 100_000;
    let mut text = String::from(
        r#"{"schema":"hbbp-flow/1","executions":true,"inputs":1,"seen":1,"left_out":{"streams":0,"branches":0,"samples":0},"modules":["#,
    );
    for module in 0..modules {
        let comma = if module > 0 { "," } else { "" };
        write!(
            text,
            r#"{comma}{{"path":"/m/{module:06}","build_id":null,"read":false,"ranges":[[1,2,1]],"branches":[],"samples":[]}}"#
        )
        .unwrap();
    }
    text += "]}";
    let file = setup.path("many");
    fs::write(&file, text).unwrap();
    setup.said(&["ingest", &setup.path("store"), &file]);
    assert_eq!(
        setup.rows("store", "SELECT count(*), sum(count) FROM flow"),
        [format!("{modules},{modules}.000000000")]
    );
    assert_eq!(setup.slice("store", &[]), setup.merged(&[&file]));
}

/// Who reads recordings does not keep others from putting theirs in.
#[test]
fn what_comes_in_twice_at_the_same_time_counts_once() {
    let setup = Setup::new();
    let store = setup.path("store");
    let fixture = Fixture::bursts("threads");
    let recording = fs::read(&fixture.recording).unwrap();
    let files: Vec<String> = (0..4)
        .map(|number| {
            let file = setup.path(&format!("{number}.data"));
            fs::write(&file, [&recording[..], &[number]].concat()).unwrap();
            file
        })
        .collect();
    let start = || {
        let mut fleet = setup.fleet();
        fleet.args(["ingest", &store]).args(&files).stderr(std::process::Stdio::piped()).spawn().unwrap()
    };
    let children = [start(), start(), start()];
    let mut put_in = 0;
    for child in children {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        let line = said.lines().find(|line| line.contains(" of 4 files put into")).unwrap();
        put_in += line.trim_start_matches("hbbp-fleet: ").split(' ').next().unwrap().parse::<usize>().unwrap();
    }
    assert_eq!(put_in, 4);
    assert_eq!(setup.slice("store", &[]), setup.merged(&files.iter().map(String::as_str).collect::<Vec<_>>()));
}
