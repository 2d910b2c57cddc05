//! Both sources and the choice between them, on a made-up recording whose counts are known by hand.

mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use std::path::{Path, PathBuf};

use perfdata::{BuildIdEntry, Features};
use serde_json::Value;
use synthetic::{A, A_JNE, AROUND, B, B_JMP, C, D, D_JMP, Recorder};

/// 40 stacks around the program, 84 samples in A and 3 in D.
fn recording(binary: &Path, features: &Features) -> Vec<u8> {
    let mut recorder = Recorder::new(binary);
    (0..40).for_each(|_| recorder.stack(&AROUND));
    (0..84).for_each(|i| recorder.sample(A + i % 20));
    (0..3).for_each(|_| recorder.sample(D));
    recorder.finish(features)
}

struct Setup {
    folder: tempfile::TempDir,
    binary: PathBuf,
}

fn setup() -> Option<Setup> {
    let folder = tempfile::tempdir().unwrap();
    let binary = synthetic::program(folder.path(), "four", &["-Wl,--build-id=0x0102030405060708"])?;
    Some(Setup { folder, binary })
}

impl Setup {
    fn write(&self, bytes: &[u8]) -> String {
        let file = self.folder.path().join("run.data");
        std::fs::write(&file, bytes).unwrap();
        file.to_str().unwrap().to_string()
    }

    fn blocks(&self, bytes: &[u8], more: &[&str]) -> Value {
        let file = self.write(bytes);
        let mut arguments = vec!["blocks", "-i", &file, "--format", "json"];
        arguments.extend(more);
        serde_json::from_str(&support::stdout(&arguments)).unwrap()
    }
}

fn block(document: &Value, start: u64) -> &Value {
    let blocks = document["blocks"].as_array().unwrap();
    blocks
        .iter()
        .find(|block| block["start"] == start)
        .unwrap_or_else(|| panic!("no block at {start:#x}: {document:#}"))
}

#[test]
fn short_blocks_come_from_branch_stacks_and_long_ones_from_samples() {
    let Some(setup) = setup() else { return };
    let document = setup.blocks(&recording(&setup.binary, &Features::default()), &[]);
    let check = |start: u64, instructions: u64, ebs: f64, lbr: f64, chosen: &str| {
        let block = block(&document, start);
        assert_eq!(block["instructions"], instructions, "{block}");
        assert_eq!(block["ebs"], ebs, "{block}");
        assert_eq!(block["lbr"], lbr, "{block}");
        assert_eq!(block["chosen"], chosen, "{block}");
        assert_eq!(block["count"], if chosen == "ebs" { ebs } else { lbr }, "{block}");
        assert_eq!(block["function"], "_start");
        assert_eq!(block["bias"], false);
    };
    check(A, 21, 4000.0, 2000.0, "ebs");
    check(B, 4, 0.0, 1000.0, "lbr");
    check(C, 2, 0.0, 1000.0, "lbr");
    check(D, 2, 1500.0, 2000.0, "lbr");
    assert_eq!(document["source"], "hybrid");
    assert_eq!(document["modules"][0]["build_id"], "0102030405060708");
}

#[test]
fn the_mix_is_counts_times_instructions() {
    let Some(setup) = setup() else { return };
    let file = setup.write(&recording(&setup.binary, &Features::default()));
    let json = support::stdout(&["mix", "-i", &file, "--rows", "mnemonic", "--columns", "chosen", "--format", "json"]);
    let document: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["schema"], "hbbp-mix/1");
    assert_eq!(document["instructions"], 94_000.0);
    let rows: Vec<(String, String, f64)> = document["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let text = |key: &str| row[key].as_str().unwrap().to_string();
            (text("mnemonic"), text("chosen"), row["count"].as_f64().unwrap())
        })
        .collect();
    let row = |mnemonic: &str, chosen: &str, count: f64| (mnemonic.to_string(), chosen.to_string(), count);
    assert_eq!(
        rows,
        [
            row("nop", "ebs", 80_000.0),
            row("nop", "lbr", 7_000.0),
            row("jne", "ebs", 4_000.0),
            row("jmp", "lbr", 3_000.0)
        ]
    );
}

#[test]
fn filters_leave_only_what_passes() {
    let Some(setup) = setup() else { return };
    let file = setup.write(&recording(&setup.binary, &Features::default()));
    let csv = support::stdout(&[
        "mix",
        "-i",
        &file,
        "--rows",
        "process,function",
        "--filter",
        "branch!=none",
        "--filter",
        "comm=four",
        "--format",
        "csv",
    ]);
    let first_four = |line: &str| line.split(',').take(4).map(String::from).collect::<Vec<_>>().join(",");
    let lines: Vec<String> = csv.lines().map(first_four).collect();
    assert_eq!(lines, ["process,function,count,share", "7:four,_start,7000,1"]);
    let nothing = support::run(&["mix", "-i", &file, "--filter", "mnemonic=div"]);
    assert_eq!(nothing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("no instruction passes the filters"));
}

#[test]
fn impossible_streams_are_counted_and_never_used() {
    let Some(setup) = setup() else { return };
    let mut recorder = Recorder::new(&setup.binary);
    (0..10).for_each(|_| recorder.stack(&AROUND));
    recorder.stack(&[(D_JMP, A), (0x40_0f00, A)]); // ends before it starts
    recorder.stack(&[(A_JNE, B), (D_JMP, A)]); // runs through B's jmp
    recorder.stack(&[(A_JNE, 0x7fff_0000), (D_JMP, A)]); // backwards and from nowhere
    recorder.stack(&[(A_JNE, 0x30_0000), (D_JMP, A)]); // from nowhere into the program
    let document = setup.blocks(&recorder.finish(&Features::default()), &[]);
    let broken = &document["head"]["lbr_source"]["broken"];
    assert_eq!(broken["backwards"], 2, "{broken}");
    assert_eq!(broken["through_branch"], 1, "{broken}");
    assert_eq!(broken["crosses_module"], 1, "{broken}");
    assert_eq!(document["head"]["lbr_source"]["streams"], 44);
    assert_eq!(block(&document, B)["lbr"], 250.0);
    assert_eq!(block(&document, D)["lbr"], 500.0);
}

#[test]
fn a_branch_that_sits_in_the_oldest_entry_biases_its_block() {
    let Some(setup) = setup() else { return };
    let mut recorder = Recorder::new(&setup.binary);
    for _ in 0..40 {
        recorder.stack(&[(A_JNE, C), (D_JMP, A), (B_JMP, D), (D_JMP, A), (B_JMP, D)]);
    }
    let document = setup.blocks(&recorder.finish(&Features::default()), &[]);
    assert_eq!(block(&document, A)["bias"], true);
    assert_eq!(block(&document, B)["bias"], false);
    assert_eq!(block(&document, D)["bias"], false);
}

#[test]
fn a_binary_that_moved_is_found_and_another_build_is_refused() {
    let Some(setup) = setup() else { return };
    let build_id = |id: Vec<u8>| Features {
        build_ids: vec![BuildIdEntry { build_id: id, path: b"/nowhere/four".to_vec(), pid: -1, misc: 2 }],
        ..Features::default()
    };
    let good = recording(Path::new("/nowhere/four"), &build_id((1..=8).collect()));
    let four = setup.binary.to_str().unwrap();
    let folder = setup.folder.path().to_str().unwrap();
    for place in [vec!["--binary", four], vec!["--binary", &format!("/nowhere/four={four}")], vec!["--symfs", folder]] {
        assert_eq!(block(&setup.blocks(&good, &place), D)["lbr"], 2000.0, "{place:?}");
    }
    let other = recording(Path::new("/nowhere/four"), &build_id(vec![9; 8]));
    let file = setup.write(&other);
    let refused = support::run(&["mix", "-i", &file, "--binary", four]);
    assert_eq!(refused.status.code(), Some(1));
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(message.contains("has build id 0102030405060708, recorded was 0909090909090909"), "{message}");
    // Its blocks are still known by their file offsets, and their lengths are estimates.
    let document = setup.blocks(&other, &["--binary", four]);
    assert_eq!(document["modules"][0]["read"], false);
    assert_eq!(block(&document, 0x1000)["decoded"], false);
    assert_eq!(block(&document, 0x1000)["instructions"], 6);
}

/// Older recordings keep 20 bytes of every build id and not its length.
#[test]
fn zeros_after_a_recorded_build_id_do_not_matter() {
    let Some(setup) = setup() else { return };
    let build_id = [&[1, 2, 3, 4, 5, 6, 7, 8][..], &[0; 12]].concat();
    let entry = BuildIdEntry { build_id, path: b"/nowhere/four".to_vec(), pid: -1, misc: 2 };
    let features = Features { build_ids: vec![entry], ..Features::default() };
    let bytes = recording(Path::new("/nowhere/four"), &features);
    let document = setup.blocks(&bytes, &["--symfs", setup.folder.path().to_str().unwrap()]);
    assert_eq!(document["modules"][0]["build_id"], "0102030405060708");
    assert_eq!(document["head"]["degraded"].as_array().unwrap().len(), 0, "{document:#}");
    assert_eq!(block(&document, D)["lbr"], 2000.0);
}

/// A recording may say that a file has an id of no bytes, or zeros for a file without one.
#[test]
fn a_recorded_build_id_of_nothing_but_zeros_is_none() {
    let Some(setup) = setup() else { return };
    for build_id in [vec![], vec![0; 8], vec![0; 20]] {
        let entry = BuildIdEntry { build_id, path: b"/nowhere/four".to_vec(), pid: -1, misc: 2 };
        let features = Features { build_ids: vec![entry], ..Features::default() };
        let bytes = recording(Path::new("/nowhere/four"), &features);
        let document = setup.blocks(&bytes, &["--symfs", setup.folder.path().to_str().unwrap()]);
        assert_eq!(document["head"]["degraded"].as_array().unwrap().len(), 0, "{document:#}");
        assert_eq!(block(&document, D)["lbr"], 2000.0);
    }
}

#[test]
fn a_file_that_is_named_for_a_recorded_one_may_be_another_build() {
    let Some(setup) = setup() else { return };
    let entry = |path: &[u8]| BuildIdEntry { build_id: vec![9; 8], path: path.to_vec(), pid: -1, misc: 2 };
    let features = Features { build_ids: vec![entry(b"/nowhere/four")], ..Features::default() };
    let bytes = recording(Path::new("/nowhere/four"), &features);
    let file = setup.binary.to_str().unwrap();
    let named = format!("/nowhere/four={file}");
    let document = setup.blocks(&bytes, &["--binary", &named]);
    assert_eq!(block(&document, D)["lbr"], 2000.0);
    let said = format!(
        "{file} has build id 0102030405060708, recorded was 0909090909090909: it stands for /nowhere/four all the same, for --binary says so"
    );
    assert_eq!(document["head"]["degraded"], serde_json::json!([said]));
    let run = setup.write(&bytes);
    let exported = support::run(&["export", "--format", "bolt", "-i", &run, "--binary", &named]);
    assert!(exported.status.success() && !exported.stdout.is_empty());
    assert!(String::from_utf8_lossy(&exported.stderr).contains(&said));
    // Counts of another build that was merged before its file was found.
    let merged = setup.folder.path().join("merged").to_str().unwrap().to_string();
    support::stdout(&["merge", "-o", &merged, &run]);
    let exported = support::run(&["export", "--format", "pprof", "-i", &merged, "--binary", &named, "-o", "/dev/null"]);
    let errors = String::from_utf8_lossy(&exported.stderr);
    assert!(exported.status.success() && errors.contains(&said), "{errors}");
}

/// Of two builds at one path, each has its own code.
#[test]
fn a_file_whose_build_was_recorded_stands_for_no_other() {
    let Some(setup) = setup() else { return };
    let id = |bytes: &[u8]| perfdata::MappedFile::BuildId(perfdata::BuildId::new(bytes).unwrap());
    let mut recorder = Recorder::new(Path::new("/nowhere/other"));
    let map = |start: u64, file| perfdata::Mmap {
        start: perfdata::Avma(start),
        path: b"/nowhere/four",
        file,
        ..Recorder::mapping()
    };
    recorder.map(&map(A, id(&[9; 8])));
    (0..40).for_each(|_| recorder.stack(&AROUND));
    recorder.map(&map(A, id(&[1, 2, 3, 4, 5, 6, 7, 8])));
    (0..20).for_each(|_| recorder.stack(&AROUND));
    let named = format!("/nowhere/four={}", setup.binary.display());
    let document = setup.blocks(&recorder.finish(&Features::default()), &["--binary", &named]);
    let modules = document["modules"].as_array().unwrap();
    let read: Vec<_> = modules.iter().map(|module| (module["build_id"].as_str().unwrap(), &module["read"])).collect();
    assert_eq!(read, [("0909090909090909", &Value::from(false)), ("0102030405060708", &Value::from(true))]);
    assert_eq!(block(&document, D)["lbr"], 1000.0);
    assert!(document["head"]["degraded"].to_string().contains("recorded was 0909090909090909"), "{document:#}");
}

#[test]
fn a_stripped_binary_has_the_names_of_its_debug_file() {
    let Some(setup) = setup() else { return };
    if !support::has("objcopy") {
        return;
    }
    let folder = setup.folder.path();
    let debug_files = folder.join("usr/lib/debug/.build-id/01");
    std::fs::create_dir_all(&debug_files).unwrap();
    let objcopy = |arguments: &[&std::ffi::OsStr]| {
        assert!(std::process::Command::new("objcopy").args(arguments).status().unwrap().success());
    };
    let binary = setup.binary.as_os_str();
    objcopy(&["--only-keep-debug".as_ref(), binary, debug_files.join("02030405060708.debug").as_os_str()]);
    objcopy(&["--strip-all".as_ref(), binary]);
    let bytes = recording(Path::new("/four"), &Features::default());
    let document = setup.blocks(&bytes, &["--symfs", folder.to_str().unwrap()]);
    assert_eq!(block(&document, A)["function"], "_start");
    std::fs::remove_dir_all(folder.join("usr")).unwrap();
    let document = setup.blocks(&bytes, &["--symfs", folder.to_str().unwrap()]);
    assert_eq!(block(&document, A)["function"], "[.text+0x0]");
}

#[test]
fn samples_outside_the_code_of_a_file_are_counted_too() {
    let Some(setup) = setup() else { return };
    let mut recorder = Recorder::new(&setup.binary);
    (0..21).for_each(|_| recorder.sample(A));
    (0..9).for_each(|_| recorder.sample(0x40_1800));
    recorder.sample(u64::MAX);
    let document = setup.blocks(&recorder.finish(&Features::default()), &[]);
    assert_eq!(document["instructions"], 31_000.0);
    assert_eq!(
        document["modules"].as_array().unwrap().iter().map(|module| &module["read"]).collect::<Vec<_>>(),
        [true, false, false]
    );
    assert_eq!(block(&document, A)["count"], 1000.0);
    assert_eq!(block(&document, 0x1800)["count"], 9000.0);
}

#[test]
fn a_loss_is_told_once() {
    let Some(setup) = setup() else { return };
    let mut recorder = Recorder::new(&setup.binary);
    recorder.sample(A);
    recorder.lose(5, 7);
    let note = br#"{"schema":"hbbp-recording/1","lost":6,"throttled":2,"degradations":["it was dark"]}"#.to_vec();
    let document = setup.blocks(
        &recorder.finish(&Features { other: [(perfdata::FeatureBit(250), note)].into(), ..Features::default() }),
        &[],
    );
    assert_eq!(document["head"]["lost"], 7);
    assert_eq!(document["head"]["throttled"], 2);
    assert!(document["head"]["degraded"].to_string().contains("it was dark"));
}
