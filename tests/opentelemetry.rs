//! Profiles of OpenTelemetry are read like recordings: those of others, and our own.

#[path = "../otlp/tests/by_hand/mod.rs"]
mod by_hand;
#[path = "support/report.rs"]
mod page;
mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use std::collections::BTreeMap;
use std::path::PathBuf;

use by_hand::{BEGAN, CPU, SAMPLES, Tables, Value, resource};
use perfdata::Features;
use serde_json::Value as Json;
use support::{Fixture, run, stdout};
use synthetic::*;
use tempfile::TempDir;

const ID: &str = "0123456789abcdef";

/// Where samples are: 3 in A, 1 in C, 2 in D.
const PLACES: [u64; 6] = [A, A + 4, A_JNE, C, D, D_JMP];

/// The program of four blocks, and a profile of it as the eBPF profiler sends it: its name alone, a build id, addresses as the file has them.
struct Setup {
    folder: TempDir,
    binary: PathBuf,
    profile: Vec<u8>,
}

impl Setup {
    fn new() -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let binary = program(folder.path(), "four", &[&format!("-Wl,--build-id=0x{ID}")])?;
        let mut tables = Tables::new();
        let id = [("process.executable.build_id.gnu", Value::Text(ID))];
        let mapping = tables.mapping([0x40_1000, 0x40_2000, 0x1000], "four", &id);
        let of_caller = tables.location(mapping, D_JMP, "native", "");
        let python = tables.location(0, 12, "cpython", "fib");
        let thread = [("thread.name", Value::Text("worker")), ("thread.id", Value::Number(8))];
        let mut samples = Vec::new();
        for (place, time) in PLACES.iter().zip(0..) {
            let location = tables.location(mapping, *place, "native", "");
            let stack = tables.stack(&[location, of_caller]);
            samples.push(tables.sample(stack, &thread, &[], &[BEGAN + 10 * time]));
        }
        let stack = tables.stack(&[python]);
        samples.push(tables.sample(stack, &thread, &[], &[BEGAN + 100]));
        let profile = tables.profile(SAMPLES, (CPU, 1000), &samples);
        let attributes = [
            ("process.pid", Value::Number(7)),
            ("process.executable.path", Value::Text(binary.to_str().unwrap())),
            ("container.id", Value::Text("c0ffee")),
        ];
        let profile = tables.request(&[resource(&attributes, &[profile])]);
        let setup = Setup { folder, binary, profile };
        std::fs::write(setup.file("four.otlp"), &setup.profile).unwrap();
        Some(setup)
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }
}

fn json(arguments: &[&str]) -> Json {
    serde_json::from_str(&stdout(arguments)).unwrap()
}

/// What is in this column of a mix, by another one.
fn mix(arguments: &[&str], row: &str) -> BTreeMap<String, f64> {
    let text = stdout(&[&["mix", "--rows", row, "--format", "csv"], arguments].concat());
    let rows = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    rows.map(|line| {
        let (name, rest) =
            line.rsplit_once(',').map(|(before, _)| before.split_once(',').unwrap_or((before, ""))).unwrap();
        let count = rest.split(',').next().unwrap_or_default();
        (name.to_owned(), count.parse().unwrap_or_else(|_| panic!("{line}")))
    })
    .collect()
}

#[test]
fn profiles_count_as_samples_of_a_recording_do() {
    let Some(setup) = Setup::new() else { return };
    let mut recorder = Recorder::traced(&setup.binary);
    PLACES.iter().for_each(|place| recorder.sample(*place));
    let recording = setup.file("four.data");
    std::fs::write(&recording, recorder.finish(&Features::default())).unwrap();
    let blocks = |file: &str| {
        let report = json(&["blocks", "--format", "json", "-i", file]);
        let blocks = report["blocks"].as_array().unwrap().iter();
        // The code of an interpreter is one more, unread.
        let blocks = blocks.filter(|block| block["decoded"] == true);
        let of = |block: &Json| (block["start"].clone(), block["ebs"].clone(), block["count"].clone());
        (blocks.map(of).collect::<Vec<_>>(), report)
    };
    let (of_recording, _) = blocks(&recording);
    let (of_profile, report) = blocks(&setup.file("four.otlp"));
    assert_eq!(of_recording.len(), 3, "{of_recording:?}");
    assert_eq!(of_profile, of_recording);
    let head = report.to_string();
    for expected in [
        "otlp/cpu-samples/",
        "OTLP profiles of go.opentelemetry.io/ebpf-profiler v0.0.1",
        "cpython: 1",
        "6 samples have callers, which are not used",
    ] {
        assert!(head.contains(expected), "{expected}: {head}");
    }
    let containers =
        stdout(&["mix", "--rows", "cgroup,process,thread,module", "--format", "csv", &setup.file("four.otlp")]);
    assert!(containers.contains("c0ffee,7:four,8:worker,"), "{containers}");
}

/// Containers are a key of pages.
#[test]
fn control_groups_are_a_key_of_a_page() {
    let Some(setup) = Setup::new() else { return };
    let mut tables = Tables::new();
    let id = [("process.executable.build_id.gnu", Value::Text(ID))];
    let mapping = tables.mapping([0x40_1000, 0x40_2000, 0x1000], "four", &id);
    let containers = [(7, "c0ffee", A), (9, "decaf", C)].map(|(pid, container, place)| {
        let thread = [("thread.name", Value::Text("worker")), ("thread.id", Value::Number(pid))];
        let location = tables.location(mapping, place, "native", "");
        let stack = tables.stack(&[location]);
        let sample = tables.sample(stack, &thread, &[], &[BEGAN]);
        let attributes = [
            ("process.pid", Value::Number(pid)),
            ("process.executable.path", Value::Text(setup.binary.to_str().unwrap())),
            ("container.id", Value::Text(container)),
        ];
        resource(&attributes, &[tables.profile(SAMPLES, (CPU, 1000), &[sample])])
    });
    let file = setup.file("two.otlp");
    std::fs::write(&file, tables.request(&containers)).unwrap();
    let page = page::Page::of(&[&file]);
    assert_eq!(page.key("cgroup")["values"], serde_json::json!(["c0ffee", "decaf"]));
}

#[test]
fn profiles_are_known_by_their_content() {
    let Some(setup) = Setup::new() else { return };
    let rows = |file: &str| stdout(&["mix", "--rows", "function", "--format", "csv", file]);
    let expected = rows(&setup.file("four.otlp"));
    assert!(expected.contains("_start"), "{expected}");
    let packed = setup.file("four.zst");
    std::fs::write(&packed, zstd::encode_all(&setup.profile[..], 1).unwrap()).unwrap();
    assert_eq!(rows(&packed), expected);
    let archive = setup.file("four.tar.zst");
    let output = run(&["archive", &setup.file("four.otlp"), "-o", &archive]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::remove_file(&setup.binary).unwrap();
    assert_eq!(rows(&archive), expected);
    let merged = setup.file("four.flow");
    let all = run(&["merge", "-o", &merged, &setup.file("four.otlp"), &archive]);
    assert!(all.status.success(), "{}", String::from_utf8_lossy(&all.stderr));
}

#[test]
fn damaged_profiles_are_named() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("cut.otlp");
    let mut tables = Tables::new();
    let stack = tables.stack(&[]);
    let sample = tables.sample(stack, &[], &[3], &[]);
    let profile = tables.profile(SAMPLES, (CPU, 1000), &[sample]);
    let message = tables.request(&[resource(&[("process.pid", Value::Number(7))], &[profile])]);
    let fails = |bytes: &[u8], expected: &str| {
        std::fs::write(&file, bytes).unwrap();
        let output = run(&["mix", file.to_str().unwrap()]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && told.contains(expected), "{expected}: {told}");
    };
    fails(&message[..message.len() - 3], "cannot be read: field 2 has");
    let allocations = tables.profile(["alloc_space", "bytes"], (["", ""], 0), &[tables_sample(&mut Tables::new())]);
    fails(&tables.request(&[resource(&[], &[allocations])]), "its profiles are of alloc_space (bytes): 1");
    // Exact counts they are not.
    let output = run(&["truth", "--from", file.to_str().unwrap(), "-o", "x"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("is profiles of OpenTelemetry; --from reads files of callgrind"), "{told}");
}

fn tables_sample(tables: &mut Tables) -> Vec<u8> {
    tables.sample(0, &[], &[3], &[])
}

#[test]
fn what_is_exported_is_read_again() {
    let folder = TempDir::new().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for fixture in [Fixture::bursts("compress"), Fixture::simulated("ivy-bridge")] {
        let (flow, out) = (place("a.flow"), place("a.otlp"));
        let binary = ["--binary", &fixture.binary_option()].map(str::to_owned);
        let binary: Vec<&str> = binary.iter().map(String::as_str).collect();
        let recording = fixture.recording.to_str().unwrap();
        let merged = run(&[&["merge", "-o", &flow, recording], &binary[..]].concat());
        assert!(merged.status.success(), "{}", String::from_utf8_lossy(&merged.stderr));
        let shares = |file: &str| {
            let mix = mix(&[&[file], &binary[..]].concat(), "function");
            let all: f64 = mix.values().sum();
            mix.into_iter().map(|(name, count)| (name, count / all)).collect::<BTreeMap<_, _>>()
        };
        let before = shares(&flow);
        assert!(before.len() > 3, "{before:?}");
        // A recording shows calling contexts, too, which have no addresses.
        for from in [flow.as_str(), recording] {
            stdout(&[&["export", "--format", "otlp", "-o", &out, from], &binary[..]].concat());
            let after = shares(&out);
            for (name, share) in before.iter().filter(|(_, share)| **share > 0.001) {
                let again = after.get(name).copied().unwrap_or(0.0);
                assert!((again - share).abs() < 0.01 * share + 1e-4, "{from}: {name}: {share} {again}");
            }
        }
    }
}

/// What `hbbp export` writes of samples of a clock.
#[test]
fn exported_clock_samples_are_read_again() {
    let Some(setup) = Setup::new() else { return };
    let out = setup.file("again.otlp");
    stdout(&["export", "--format", "otlp", "-o", &out, &setup.file("four.otlp")]);
    let of = |file: &str| mix(&[file], "function");
    let (before, after) = (of(&setup.file("four.otlp")), of(&out));
    let all = |mix: &BTreeMap<String, f64>| mix.values().sum::<f64>();
    assert!((before["_start"] / all(&before) - after["_start"] / all(&after)).abs() < 1e-3, "{before:?} {after:?}");
}
