//! Code that programs make while they run: is it counted as what it was?

use std::collections::BTreeMap;
use std::process::Command;

use crate::place::Place;
use crate::{errors, programs, text};

/// Counts of mnemonics by function, in code without a file.
pub fn mix(place: &Place) -> BTreeMap<(String, String), f64> {
    let keys = ["--rows", "function,mnemonic", "--filter", "module=[jit]", "--top", "0", "--format", "csv"];
    let output = place.hbbp(&["mix", "-i", text(&place.recording())]).args(keys).output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    let row = |line: &str| {
        let mut fields = line.rsplitn(6, ',').skip(4);
        let count = fields.next()?.parse().ok()?;
        let (function, mnemonic) = fields.next()?.rsplit_once(',')?;
        Some(((function.to_owned(), mnemonic.to_owned()), count))
    };
    String::from_utf8(output.stdout).unwrap().lines().skip(1).map(|line| row(line).expect(line)).collect()
}

/// Shares of the instructions by module.
pub fn modules(place: &Place) -> BTreeMap<String, f64> {
    let mix = place.json(&["mix", "-i", text(&place.recording()), "--rows", "module", "--format", "json"]);
    let row = |row: &serde_json::Value| (row["module"].as_str().unwrap().to_owned(), row["share"].as_f64().unwrap());
    mix["rows"].as_array().unwrap().iter().map(row).collect()
}

fn rewritten(place: &Place, tracer: &str, how: &str) {
    let Some(program) = place.program("rewrite", programs::REWRITE) else { return };
    let output = place.record(&["--tracer", tracer, "--", text(&program), how]);
    assert!(output.status.success(), "{}", errors(&output));
    // The program's own output: where its map is.
    let map = String::from_utf8_lossy(&output.stdout);
    let map = map.lines().find(|line| line.starts_with("/tmp/perf-")).expect("the program says where its map is");
    std::fs::remove_file(map).unwrap();
    let counts = mix(place);
    let of = |mnemonic: &str| counts.get(&("rewritten code".to_owned(), mnemonic.to_owned())).copied().unwrap_or(0.0);
    let (loops, add, multiply) = (of("dec"), of("add"), of("imul"));
    assert!(add > 0.0 && multiply > 0.0, "{tracer} {how}: {counts:?}");
    // Each turn is of one version. A burst may begin in the middle of one.
    let is_as_often = |count: f64| (count - loops).abs() < 1e-3 * loops;
    assert!(is_as_often(add + multiply) && is_as_often(of("jne")), "{tracer} {how}: {counts:?}");
    let other: Vec<_> = counts.keys().filter(|(name, _)| name != "rewritten code").collect();
    let is_counting = |name: &str| ["xor", "inc", "dec", "jne", "ret"].contains(&name);
    assert!(other.iter().all(|(name, mnemonic)| name.starts_with("[jit 0x") && is_counting(mnemonic)), "{counts:?}");
    // A burst that goes on after the system calls that rewrite it executed both: it is unread.
    assert!(modules(place).get("//anon").copied().unwrap_or(0.0) < 0.1, "{tracer} {how}: it is read");
}

#[test]
fn code_that_is_rewritten_is_counted_as_what_ran() {
    let Some(place) = Place::to_trace() else { return };
    for how in ["wx", "rwx", "twice"] {
        rewritten(&place, &place.default_tracer(), how);
        rewritten(&place, "lookahead", how);
    }
    // Code that is mapped when the mappings were read a moment ago.
    rewritten(&place, "lookahead", "late");
}

/// What is patched in the middle of all bursts is unread, and nothing beside it.
#[test]
fn code_beside_what_is_patched_is_read() {
    let Some(place) = Place::to_trace() else { return };
    let Some(program) = place.program("patch", programs::PATCH) else { return };
    for tracer in [place.default_tracer(), "lookahead".into()] {
        let output = place.record(&["--tracer", &tracer, "--", text(&program)]);
        assert!(output.status.success(), "{}", errors(&output));
        let said = String::from_utf8_lossy(&output.stdout);
        std::fs::remove_file(said.trim()).unwrap();
        let counts = mix(&place);
        let of = |mnemonic: &str| counts.get(&("stays".to_owned(), mnemonic.to_owned())).copied().unwrap_or(0.0);
        let (add, turns) = (of("add"), of("dec"));
        assert!(turns > 0.0 && (add - turns).abs() < 1e-3 * turns, "{tracer}: {counts:?}");
        assert!((of("jne") - turns).abs() < 1e-3 * turns, "{tracer}: {counts:?}");
        // Each call has 300 turns. Bursts begin and end amid some.
        let turns_of_call = turns / of("ret");
        assert!((270.0..330.0).contains(&turns_of_call), "{tracer}: {turns_of_call} {counts:?}");
        // Of some 940 instructions 32 are of the other function, whose memory is a `memfd`.
        let share = |module: &str| {
            modules(&place).iter().filter(|(name, _)| name.starts_with(module)).map(|(_, share)| share).sum::<f64>()
        };
        let unread = share("/memfd:") / (share("/memfd:") + share("[jit]"));
        assert!(unread < 0.1, "{tracer}: {unread} of the code is unread");
    }
}

#[test]
fn bursts_of_timers_have_such_code_too() {
    let Some(place) = Place::to_time() else { return };
    rewritten(&place, "timer", "wx");
}

/// The program names its code in `how`: a perf map that it appends to, or a jitdump. Code is rewritten and named anew, and named anew as it is.
fn renamed(place: &Place, tracer: &str, how: &str) {
    let Some(program) = place.program("rename", programs::RENAME) else { return };
    let output = place.record(&["--tracer", tracer, "--", text(&program), how]);
    assert!(output.status.success(), "{}", errors(&output));
    let said = String::from_utf8_lossy(&output.stdout);
    std::fs::remove_file(place.path(said.trim())).unwrap();
    let counts = mix(place);
    let of = |name: &str, mnemonic: &str| counts.get(&(name.to_owned(), mnemonic.to_owned())).copied().unwrap_or(0.0);
    for (name, ran, other) in
        [("adds", "add", "imul"), ("multiplies", "imul", "add"), ("renamed", "imul", "add"), ("moved", "add", "imul")]
    {
        if name == "moved" && how == "map" {
            continue;
        }
        let (ran, other, turns) = (of(name, ran), of(name, other), of(name, "dec"));
        assert!(ran > 0.0 && other == 0.0, "{tracer} {how} {name}: {counts:?}");
        assert!((ran - turns).abs() < 1e-3 * turns, "{tracer} {how} {name}: {counts:?}");
    }
    let (before, after) = (of("multiplies", "imul"), of("renamed", "imul"));
    assert!((0.25..=0.75).contains(&(after / (before + after))), "as often under each name: {tracer} {how} {counts:?}");
    assert!(counts.keys().all(|(name, _)| !name.starts_with("[jit")), "{tracer} {how}: {counts:?}");
}

#[test]
fn code_is_counted_by_the_name_of_its_time() {
    let Some(place) = Place::to_trace() else { return };
    for how in ["map", "dump"] {
        renamed(&place, &place.default_tracer(), how);
        renamed(&place, "lookahead", how);
    }
}

#[test]
fn calls_of_the_page_of_the_vsyscalls_are_no_unknown_code() {
    let Some(place) = Place::to_trace() else { return };
    let Some(program) = place.program("vsyscalls", programs::VSYSCALLS) else { return };
    for tracer in [place.default_tracer(), "lookahead".into()] {
        let output = place.record(&["--tracer", &tracer, "--", text(&program), "300"]);
        assert!(output.status.success(), "{}", errors(&output));
        if String::from_utf8_lossy(&output.stdout).contains("no vsyscalls") {
            testing::skip!(Kernel, "this kernel has no vsyscalls (vsyscall=none)");
            return;
        }
        let modules = modules(&place);
        assert!(modules.keys().any(|name| name.ends_with("vsyscalls")), "{tracer}: {modules:?}");
        assert!(!modules.contains_key("[unknown]"), "{tracer}: {modules:?}");
        let said = place.hbbp(&["mix", "-v", "-i", text(&place.recording())]).output().unwrap();
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(!said.contains("no mapping explains"), "{tracer}: {said}");
    }
}

/// Mnemonics of code without a file, by function, as samples of the clock alone have it.
fn sampled(place: &Place, how: &[&str]) -> Option<BTreeMap<(String, String), f64>> {
    let program = place.program("make", programs::MAKE)?;
    let output = place.record(&[&["--tracer", "none", "--", text(&program)], how].concat());
    assert!(output.status.success(), "{}", errors(&output));
    let said = String::from_utf8_lossy(&output.stdout);
    let maps = said.lines().filter(|line| line.starts_with("/tmp/perf-"));
    maps.for_each(|map| std::fs::remove_file(map).unwrap());
    // It is read while the program runs, and the program runs long enough.
    assert!(modules(place).get("//anon").copied().unwrap_or(0.0) < 0.02, "{:?}", modules(place));
    let counts = mix(place);
    let is_code = |name: &str| ["xor", "add", "sub", "dec", "jne", "ret"].contains(&name);
    assert!(counts.keys().all(|(_, mnemonic)| is_code(mnemonic)), "decoded from where it begins: {counts:?}");
    Some(counts)
}

fn sum(counts: &BTreeMap<(String, String), f64>, mnemonic: &str) -> f64 {
    counts.iter().filter(|((_, name), _)| name == mnemonic).map(|(_, count)| count).sum()
}

#[test]
fn samples_bring_the_code_they_fell_in() {
    let Some(place) = Place::to_trace() else { return };
    for how in [&["once"][..], &["once", "named"]] {
        let Some(counts) = sampled(&place, how) else { return };
        let (add, dec, jne) = (sum(&counts, "add"), sum(&counts, "dec"), sum(&counts, "jne"));
        assert!(add > 0.0 && add == dec && dec == jne, "one block: {counts:?}");
        let is_called = |name: &str| if how.len() > 1 { name == "made code" } else { name.starts_with("[jit 0x") };
        assert!(counts.keys().all(|(name, _)| is_called(name)), "{counts:?}");
    }
}

#[test]
fn samples_bring_code_again_that_has_changed() {
    let Some(place) = Place::to_trace() else { return };
    let Some(counts) = sampled(&place, &["twice"]) else { return };
    assert!(sum(&counts, "add") > 0.0 && sum(&counts, "sub") > 0.0, "{counts:?}");
}

#[test]
fn samples_bring_the_code_of_node() {
    let Some(place) = Place::to_trace() else { return };
    if Command::new("node").arg("--version").output().is_err() {
        testing::skip!(Tool, "node is not installed");
        return;
    }
    let script = "function hot(n) { let sum = 0; for (let i = 0; i < n; i++) sum = (sum * 3 + i) | 0; return sum; }
                  let sum = 0; const end = Date.now() + 2000; while (Date.now() < end) sum ^= hot(2e6);
                  console.log(`/tmp/perf-${process.pid}.map`, sum);";
    std::fs::write(place.path("hot.js"), script).unwrap();
    let output = place.record(&["--tracer", "none", "--", "node", "--perf-basic-prof", text(&place.path("hot.js"))]);
    assert!(output.status.success(), "{}", errors(&output));
    let said = String::from_utf8_lossy(&output.stdout);
    let map = said.split_whitespace().find(|word| word.starts_with("/tmp/perf-")).expect("its map");
    std::fs::remove_file(map).unwrap();
    let counts = mix(&place);
    let all: f64 = counts.values().sum();
    let hot: f64 = counts.iter().filter(|((name, _), _)| name.contains("hot ")).map(|(_, count)| count).sum();
    assert!(hot > 0.5 * all, "{counts:?}");
    assert!(modules(&place).get("//anon").copied().unwrap_or(0.0) < 0.02, "{:?}", modules(&place));
}
