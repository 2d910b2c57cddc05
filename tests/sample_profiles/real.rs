//! Branch stacks of real programs, beside what AutoFDO's own tools make of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::place::Place;
use super::support::{Fixture, has, run};

/// Recordings, each with its binary under the recorded name, and a folder.
fn programs(fixtures: Vec<Fixture>) -> Vec<(TempDir, PathBuf, PathBuf)> {
    let with_folder = |fixture: Fixture| {
        let folder = tempfile::tempdir().unwrap();
        let binary = fixture.copy_binary(folder.path());
        (folder, binary, fixture.recording)
    };
    fixtures.into_iter().map(with_folder).collect()
}

/// Of a program with many functions: AutoFDO's tools print broken names of what was inlined, which is most of a small one.
fn of_hardware() -> Vec<(TempDir, PathBuf, PathBuf)> {
    programs(Fixture::westmere().into_iter().collect())
}

fn ours(format: &[&str], binary: &Path, recording: &Path, output: &Path) {
    let [binary, recording, output] = [binary, recording, output].map(|path| path.to_str().unwrap());
    let output = run(&[&["export", "-i", recording, "--binary", binary, "-o", output, "--format"], format].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Counts of a function by line, in the lines of those who called what was inlined: the most of the blocks on a line.
type Lines = BTreeMap<Vec<u32>, f64>;

/// By function: executions by line, and calls of others.
#[derive(Default)]
struct Function {
    lines: Lines,
    targets: BTreeMap<(Vec<u32>, String), f64>,
}

/// Reads a profile as text. `create_llvm_prof` 0.19 prints broken names of what was inlined, and decodes GCC's discriminators as if
/// they were LLVM's, so neither is compared.
fn read(text: &[u8]) -> BTreeMap<String, Function> {
    let mut functions: BTreeMap<String, Function> = BTreeMap::new();
    let (mut name, mut around): (String, Vec<u32>) = Default::default();
    for line in text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let line = String::from_utf8_lossy(line);
        let depth = line.len() - line.trim_start_matches(' ').len();
        if depth == 0 {
            name = line.split([':', ' ']).next().unwrap().to_owned();
            functions.entry(name.clone()).or_default();
            continue;
        }
        let (place, rest) = line.trim_start().split_once(':').unwrap();
        around.truncate(depth - 1);
        let place = place.split('.').next().unwrap().parse().unwrap();
        let mut words = rest.split_whitespace();
        around.push(place);
        let Some(count) = words.next().and_then(|count| count.parse::<f64>().ok()) else { continue };
        let function = functions.get_mut(&name).unwrap();
        let most = function.lines.entry(around.clone()).or_default();
        *most = most.max(count);
        for word in words {
            if let Some((target, calls)) = word.rsplit_once(':') {
                *function.targets.entry((around.clone(), target.to_owned())).or_default() +=
                    calls.parse::<f64>().unwrap();
            }
        }
    }
    functions
}

/// `of` beside `reference`, which counts streams as 1: all functions of the reference, at least so many, and how far counts are apart.
fn compare(of: &[u8], reference: &[u8], functions: usize) {
    let (of, reference) = (read(of), read(reference));
    if let Some(missing) = reference.keys().find(|name| !of.contains_key(*name)) {
        panic!("{missing} is missing: {:?} and {:?}", of.keys(), reference.keys());
    }
    let sum = |functions: &BTreeMap<String, Function>| -> f64 {
        reference.keys().flat_map(|name| functions[name].lines.values()).sum()
    };
    let scale = sum(&of) / sum(&reference);
    assert!(reference.len() >= functions, "{}", reference.len());
    let (mut more, mut all_calls) = (0.0, 0.0);
    for (name, reference) in &reference {
        let found = &of[name];
        assert!(found.lines.keys().eq(reference.lines.keys()), "{name}");
        let error: f64 = reference.lines.iter().map(|(line, count)| (found.lines[line] / scale - count).abs()).sum();
        let all: f64 = reference.lines.values().sum();
        eprintln!("{name}: {all:.0} in {} lines, {error:.1} apart", reference.lines.len());
        assert!(error <= 0.01 * all + 1.0, "{name}: {error} of {all}");
        for ((line, target), calls) in &reference.targets {
            let found = found.targets.get(&(line.clone(), target.clone())).copied().unwrap_or(0.0) / scale;
            // They count each of the 16 branches of a stack, hbbp the 15 whose stream is known.
            assert!(found >= 0.9 * calls - 4.0, "{name} {line:?} {target}: {found} for {calls}");
            more += (found - calls).max(0.0);
            all_calls += calls;
        }
    }
    // Of several calls at one position they keep one.
    assert!(more < 0.05 * all_calls, "{more} of {all_calls}");
    // They leave functions out that ran least.
    for (name, function) in of.iter().filter(|(name, _)| !reference.contains_key(*name)) {
        let most = function.lines.values().fold(0.0_f64, |most, &count| most.max(count));
        assert!(most / scale < 3.0, "{name}: {most}");
    }
}

/// What AutoFDO's tool makes of a recording.
fn created_by_autofdo(folder: &Path, binary: &Path, recording: &Path) -> PathBuf {
    let reference = folder.join("reference");
    let option = |name: &str, path: &Path| format!("--{name}={}", path.display());
    let created = Command::new("create_llvm_prof")
        .envs(testing::LITTLE_LOG)
        .args(["--format=text", &option("profile", recording), &option("binary", binary), &option("out", &reference)])
        .output()
        .unwrap();
    assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
    reference
}

/// Functions with loops and calls, none of which is inlined, and no code without debug information.
const CALLS: &str = "
#define OUT __attribute__((noinline, noclone))
static volatile unsigned sink;
OUT unsigned leaf(unsigned x) {
    if (x & 1)
        return x * 3;
    return x + 7;
}
OUT unsigned inner(unsigned n) {
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++) {
        sum += leaf(i);
        if (sum % 5 == 0)
            sum ^= i;
    }
    return sum;
}
OUT unsigned rare(unsigned x) {
    while (x > 3)
        x /= 3;
    return x;
}
void _start(void) {
    for (unsigned i = 0; i < 20000; i++) {
        sink += inner(i % 40);
        if (i % 8 == 0)
            sink += rare(i);
    }
    __asm__ volatile(\"syscall\" : : \"a\"(60), \"D\"(0));
}
";

/// AutoFDO's tool reads what `hbbp record` writes as what `perf record` does.
#[test]
fn counts_of_own_recordings_are_those_of_create_llvm_prof() {
    let Some(place) = Place::to_trace() else { return };
    if !has("create_llvm_prof") {
        return;
    }
    std::fs::write(place.path("calls.c"), CALLS).unwrap();
    // It reads no later version, and no addresses but those of the file.
    let flags = ["-gdwarf-4", "-no-pie", "-O2", "-nostdlib", "-static"];
    let Some(binary) = testing::c_program(place.folder(), "calls", &[place.path("calls.c")], &flags) else { return };
    let recording = place.path("run.data");
    // It takes the stacks of all events, and hbbp those of branches: here no other has any.
    let options = ["record", "--pmu", "simulated", "--lbr-period", "97", "--ebs-period", "9999991", "-o"];
    let command = [recording.to_str().unwrap(), "--", binary.to_str().unwrap()];
    let recorded = run(&[&options[..], &command].concat());
    assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
    let reference = created_by_autofdo(place.folder(), &binary, &recording);
    let profile = place.path("profile");
    ours(&["llvm-text"], &binary, &recording, &profile);
    compare(&std::fs::read(profile).unwrap(), &std::fs::read(reference).unwrap(), 4);
}

#[test]
fn counts_are_those_of_create_llvm_prof() {
    if !has("create_llvm_prof") {
        return;
    }
    for (folder, binary, recording) in of_hardware() {
        let reference = created_by_autofdo(folder.path(), &binary, &recording);
        let profile = folder.path().join("profile");
        ours(&["llvm-text"], &binary, &recording, &profile);
        compare(&std::fs::read(profile).unwrap(), &std::fs::read(reference).unwrap(), 20);
    }
}

#[test]
fn counts_are_those_of_create_gcov() {
    if !has("create_gcov") || !has("dump_gcov") {
        return;
    }
    for (folder, binary, recording) in of_hardware() {
        let reference = folder.path().join("reference");
        let option = |name: &str, path: &Path| format!("--{name}={}", path.display());
        let created = Command::new("create_gcov")
            .envs(testing::LITTLE_LOG)
            .args([
                "-gcov_version=1",
                &option("profile", &recording),
                &option("binary", &binary),
                &option("gcov", &reference),
            ])
            .output()
            .unwrap();
        assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
        let profile = folder.path().join("profile");
        ours(&["gcov", "--gcov-version", "1"], &binary, &recording, &profile);
        let dump = |file: &Path| {
            let output =
                Command::new("dump_gcov").envs(testing::LITTLE_LOG).arg("-gcov_version=1").arg(file).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            output.stdout
        };
        compare(&dump(&profile), &dump(&reference), 20);
    }
}

#[test]
fn both_of_llvms_formats_are_the_same_profile() {
    if !has("llvm-profdata-19") {
        return;
    }
    for (folder, binary, recording) in programs(Fixture::all_stacks()) {
        let [text, extbin] = ["llvm-text", "llvm-extbin"].map(|format| {
            let file = folder.path().join(format);
            ours(&[format], &binary, &recording, &file);
            file
        });
        let as_it_was = std::fs::read_to_string(&text).unwrap();
        assert_eq!(super::merged(&text), as_it_was);
        assert_eq!(super::merged(&extbin), as_it_was);
        let overlap =
            Command::new("llvm-profdata-19").args(["overlap", "--sample"]).args([&text, &extbin]).output().unwrap();
        let report = String::from_utf8(overlap.stdout).unwrap();
        assert!(report.contains("Whole program profile similarity: 100.000%"), "{report}");
    }
}
