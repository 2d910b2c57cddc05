//! `--rotate` and `--keep`: a recording in several files, each of them whole.

use std::io::{BufRead, BufReader};

use serde_json::Value;

use super::*;

/// The files of the series, the oldest first.
fn files(place: &Place) -> Vec<PathBuf> {
    let names = fs::read_dir(place.folder()).unwrap().map(|entry| entry.unwrap().path());
    let is_of_series = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with("web.2") && name.ends_with(".data")
    };
    let mut files: Vec<PathBuf> = names.filter(is_of_series).collect();
    // In the order in which they began: the second one of a second is `web.TIME-2.data`.
    files.sort_by_key(|path| path.file_stem().map(std::ffi::OsStr::to_owned));
    files
}

/// What `mix` says of a recording alone.
fn mix(file: &Path, rows: &str) -> Value {
    let output = Command::new(hbbp())
        .args(["mix", "--no-cache", "--format", "json", "--top", "0", "--rows", rows])
        .arg(file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}: {}", file.display(), errors(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Of each function, its part of the file.
fn shares(file: &Path) -> BTreeMap<String, f64> {
    let report = mix(file, "function");
    let rows = report["rows"].as_array().unwrap().iter();
    rows.map(|row| (row["function"].as_str().unwrap().to_owned(), row["share"].as_f64().unwrap())).collect()
}

/// Samples of the clock, and what it counted, ns.
fn of_clock(contents: &Contents) -> (u64, u64) {
    let clock = &contents.metadata["events"][0];
    assert_eq!(clock["unit"], "nanoseconds");
    (clock["samples"].as_u64().unwrap(), clock["counted"].as_u64().unwrap())
}

#[test]
fn every_file_is_a_recording_of_its_own() {
    let (Some(place), Some(spin)) = (Place::to_record(), programs::spin()) else { return };
    let spin = spin.to_str().unwrap();
    let record = |more: &[&str]| {
        let clock = ["--tracer", "none", "--ebs-event", "task-clock:u", "--ebs-period", "1000000", "-o", "web.data"];
        let output = place.run(&[&clock, more, &["--", spin, "2", "1500"]].concat());
        assert!(output.status.success(), "{}", errors(&output));
        errors(&output)
    };
    record(&[]);
    let whole = Contents::of(&place.path("web.data"));
    let said = record(&["--rotate", "1s"]);
    let files = files(&place);
    assert!(files.len() >= 2, "{files:?} {said}");
    assert_eq!(said.matches(" s written to web.2").count(), files.len(), "{said}");
    let contents: Vec<Contents> = files.iter().map(|file| Contents::of(file)).collect();
    for (number, (file, contents)) in files.iter().zip(&contents).enumerate() {
        assert_eq!(contents.metadata["file"], number + 1);
        assert_eq!((&contents.metadata["lost"], &contents.metadata["late"]), (&0.into(), &0.into()));
        assert!(
            contents.has_mapped("spin")
                && contents.build_ids.iter().any(|path| path.ends_with("/spin") || path.contains("libc"))
        );
        assert!(contents.times.is_sorted(), "{}", file.display());
        let samples = contents.metadata["samples"].as_u64().unwrap();
        assert_eq!(samples, contents.total());
        // The last one may have a few samples of the end.
        if samples > 100 {
            assert_eq!(contents.names.values().filter(|name| *name == "worker").count(), 1, "{:?}", contents.names);
            let hottest = shares(file).into_iter().max_by(|one, other| one.1.total_cmp(&other.1)).unwrap();
            assert!(hottest.0 != "[unmapped]" && hottest.1 > 0.5, "{hottest:?}");
        }
    }
    // No sample is in two files, and none is missing: files follow each other in time, and the clock has as many of its time in all
    // of them as in one.
    let times: Vec<u64> =
        contents.iter().flat_map(|contents| contents.times.iter().copied().filter(|&time| time > 0)).collect();
    assert!(times.is_sorted());
    let of_files = contents.iter().map(of_clock).fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
    let [in_files, in_one] =
        [of_files, of_clock(&whole)].map(|(samples, counted)| samples as f64 * 1e6 / counted as f64);
    assert!((in_files / in_one - 1.0).abs() < 0.1, "{of_files:?} {:?}", of_clock(&whole));
}

#[test]
fn files_with_bursts_begin_with_one() {
    let (Some(place), Some(spin)) = (Place::to_trace_by_default(), programs::spin()) else { return };
    let args = ["--rotate", "1s", "--keep", "2", "--overhead", "10", "-o", "web.data"];
    let other = place.path("web.2020-01-01T00-00-00Z.txt");
    fs::write(&other, "of somebody else").unwrap();
    let output = place.run(&[&args[..], &["--", spin.to_str().unwrap(), "1", "3500"]].concat());
    let said = errors(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.matches(" s written to ").count() >= 4, "{said}");
    let kept = files(&place);
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert!(other.exists() && fs::read_dir(place.folder()).unwrap().count() == 3);
    for file in &kept {
        let recording = Recording::open(file).unwrap();
        let (mut chunks, mut chunk, mut first) = (recording.chunks(), Chunk::new(), None);
        while chunks.next_into(&mut chunk).unwrap() {
            let sample = chunk.records().find(|raw| raw.is_sample()).map(|raw| recording.sample(&raw).unwrap().event);
            first = first.or(sample);
        }
        let metadata = Contents::of(file).metadata;
        let bursts = metadata["events"][1]["samples"].as_u64().unwrap();
        assert!(bursts == 0 || first == Some(1), "{said}");
        assert_eq!(metadata["lost"], 0);
        assert_eq!(metadata["tracer"]["of_files"].is_u64(), file == &kept[1], "{metadata}");
        assert!(mix(file, "mnemonic")["rows"].as_array().unwrap().len() > 2);
    }
}

#[test]
fn what_a_killed_recorder_was_writing_is_kept() {
    let (Some(place), Some(spin)) = (Place::to_record(), programs::spin()) else { return };
    let spin = spin.to_str().unwrap();
    let args = ["--tracer", "none", "--rotate", "1h", "-o", "web.data"];
    let mut recorder =
        place.command(&[&args[..], &["--", spin, "1", "600000"]].concat()).stderr(Stdio::null()).spawn().unwrap();
    let partial = || {
        let mut names = fs::read_dir(place.folder()).unwrap().map(|entry| entry.unwrap().path());
        names.find(|path| path.to_str().unwrap().ends_with(".partial"))
    };
    wait_for("records", || partial().is_some_and(|path| fs::metadata(path).is_ok_and(|file| file.len() > 8000)));
    let second = place.run(&[&args[..], &["--", "true"]].concat());
    assert_eq!(second.status.code(), Some(1));
    assert!(errors(&second).contains("is being written by another"), "{}", errors(&second));
    // The command goes on, and is no child of the test.
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", recorder.id())).unwrap();
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    children.split_whitespace().for_each(|child| send("-KILL", child.parse().unwrap()));
    let third = place.run(&[&args[..], &["--", "true"]].concat());
    let said = errors(&third);
    assert!(third.status.success() && said.contains("an earlier recording was killed"), "{said}");
    assert!(partial().is_none());
    let (cut, whole): (Vec<PathBuf>, Vec<PathBuf>) =
        files(&place).into_iter().partition(|file| file.to_str().unwrap().ends_with(".cut.data"));
    assert_eq!((cut.len(), whole.len()), (1, 1));
    assert!(mix(&cut[0], "mnemonic")["head"]["degraded"].to_string().contains("cut off"));
}

/// As root, on a disk of 3 MB.
#[test]
fn a_full_disk_is_said_and_recording_goes_on_when_there_is_room() {
    let (Some(place), Some(spin)) = (Place::to_record(), programs::spin()) else { return };
    let disk = place.path("disk");
    fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=3m", "none"]).arg(&disk).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        testing::skip!(Privileges, "no disk can be mounted");
        return;
    }
    let filler = disk.join("filler");
    let fill = || {
        while fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(&filler)
            .and_then(|mut file| file.write_all(&[1; 4096]))
            .is_ok()
        {}
    };
    let args = [
        "--tracer",
        "none",
        "--ebs-event",
        "task-clock",
        "--ebs-period",
        "500000",
        "--rotate",
        "1s",
        "-o",
        "disk/web.data",
    ];
    let mut recorder = place
        .command(&[&args[..], &["--", spin.to_str().unwrap(), "1", "600000"]].concat())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(recorder.stderr.take().unwrap()).lines();
    let mut wait_for_line = |word: &str| {
        lines.by_ref().map(Result::unwrap).find(|line| line.contains(word)).unwrap_or_else(|| panic!("{word}"))
    };
    wait_for_line(" written to ");
    fill();
    let full = wait_for_line("No space left on device");
    fs::remove_file(&filler).unwrap();
    let goes_on = wait_for_line("recording goes on in a file");
    wait_for_line(" written to ");
    send("-INT", recorder.id());
    lines.for_each(drop);
    recorder.wait().unwrap();
    let names = fs::read_dir(&disk).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = names.collect();
    files.sort();
    let (cut, whole): (Vec<&PathBuf>, Vec<&PathBuf>) =
        files.iter().partition(|file| file.to_str().unwrap().ends_with(".cut.data"));
    let contents: Vec<Contents> = whole.iter().map(|file| Contents::of(file)).collect();
    let reports: Vec<Value> = files.iter().map(|file| mix(file, "mnemonic")).collect();
    let unwritten: u64 = contents.iter().filter_map(|contents| contents.metadata["unwritten"].as_u64()).sum();
    let lost: u64 = reports.iter().map(|report| report["head"]["lost"].as_u64().unwrap()).sum();
    let unmounted = Command::new("umount").arg(&disk).status().unwrap();
    assert!(unmounted.success());
    assert!(full.contains("goes on in a file when there is room") && cut.len() <= 1, "{full} {files:?}");
    assert!(unwritten > 0 && goes_on.contains(&format!("; {unwritten} samples")), "{goes_on}: {unwritten}");
    assert_eq!(lost, unwritten);
}

#[test]
fn what_cannot_be_asked_for_is_refused() {
    let Some(place) = Place::to_record() else { return };
    for (args, words) in [
        (&["--rotate", "1s", "-o", "-"][..], "cannot be with -o -"),
        (&["--keep", "2"], "say when a file ends"),
        (&["--rotate", "60"], "expected a time"),
        (&["--rotate", "0s"], "one second at least"),
        (&["--rotate", "1s", "--keep", "0"], "it would keep no file"),
        (&["--rotate", "1s", "--precision", "1%"], "--precision reads one recording"),
    ] {
        let output = place.run(&[args, &["--", "true"]].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?} {}", errors(&output));
        assert!(errors(&output).contains(words), "{args:?} {}", errors(&output));
    }
    assert!(files(&place).is_empty());
    // A command that cannot be run leaves nothing.
    let output = place.run(&["--rotate", "1s", "-o", "web.data", "--", "/no/such/program"]);
    assert_eq!(output.status.code(), Some(127));
    assert_eq!(fs::read_dir(place.folder()).unwrap().count(), 0);
}
