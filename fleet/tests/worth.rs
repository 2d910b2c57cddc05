//! `hbbp-fleet stale --compare`: what evidence of older builds is worth to the newest.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use support::Setup;

/// Functions of four instructions each, so that shares of instructions are shares of calls.
const OLD: &str = r#"FUNCTION("moved", "add $1, %rax; add value(%rip), %rax; add %rax, %rcx")
FUNCTION("changed", "add $1, %rax; add $2, %rcx; add $3, %rdx")
FUNCTION("gone", "add $1, %rax; add $1, %rcx; add $1, %rdx")"#;
const NEW: &str = r#"FUNCTION("fresh", "add $9, %rax; add $9, %rcx; add $9, %rdx")
FUNCTION("unused", "add $8, %rax; add $9, %rcx; add $9, %rdx")
FUNCTION("changed", "add $1, %rax; add $2, %rcx; add $4, %rdx")
FUNCTION("moved", "add $1, %rax; add value(%rip), %rax; add %rax, %rcx")
long more = 3;"#;

const HEAD: &str = r#"
#define FUNCTION(name, code) \
    asm(".text\n.type " name ", @function\n" name ": " code "; ret\n.size " name ", . - " name "\n.previous");
"#;

/// A build of the server, and what ran of it.
struct Build {
    build_id: &'static str,
    program: PathBuf,
    /// By name, the first instruction and the last.
    functions: BTreeMap<String, [u64; 2]>,
}

impl Build {
    fn new(setup: &Setup, name: &str, build_id: &'static str, functions: &str) -> Option<Self> {
        let folder = PathBuf::from(setup.path(name));
        fs::create_dir(&folder).unwrap();
        let source = folder.join("server.c");
        fs::write(&source, format!("{HEAD}{functions}\nlong value = 7;\nint main(void) {{ return 0; }}\n")).unwrap();
        let build_id_option = format!("-Wl,--build-id=0x{build_id}");
        let program = testing::c_program(&folder, "server", &[source], &[&build_id_option])?;
        let functions = functions_of(&program)?;
        Some(Build { build_id, program, functions })
    }

    /// A merged file in which its functions ran so often. In half of it, the burst began after the first instruction, which has four bytes.
    fn ran(&self, setup: &Setup, name: &str, counts: &[(&str, u32)]) -> String {
        let ranges = |(function, count): &(&str, u32)| {
            let ([first, last], half) = (self.functions[*function], f64::from(*count) / 2.0);
            [json!([first, last, half]), json!([first + 4, last, half])]
        };
        let module = json!({"path": "/srv/server", "build_id": self.build_id, "read": true,
            "ranges": counts.iter().flat_map(ranges).collect::<Vec<_>>(), "branches": [], "samples": []});
        let seen: u32 = counts.iter().map(|(_, count)| count).sum();
        let flow = json!({"schema": "hbbp-flow/1", "executions": true, "inputs": 1, "seen": f64::from(seen),
            "left_out": {"streams": 0.0, "branches": 0.0, "samples": 0.0}, "modules": [module]});
        let path = setup.path(name);
        fs::write(&path, flow.to_string()).unwrap();
        path
    }
}

/// `None` if there is no `nm`.
fn functions_of(program: &Path) -> Option<BTreeMap<String, [u64; 2]>> {
    let Ok(output) = Command::new("nm").arg("-S").arg(program).output() else {
        testing::skip!(Tool, "nm");
        return None;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let function = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [start, size, _, name] = words[..] else { return None };
        let [start, size] = [start, size].map(|word| u64::from_str_radix(word, 16).unwrap());
        // It ends with `ret`.
        Some((name.to_owned(), [start, start + size - 1]))
    };
    Some(text.lines().filter_map(function).collect())
}

/// A store of a service with two builds, and one with the newest alone; the options that name the programs.
fn store(setup: &Setup) -> Option<Vec<String>> {
    let old = Build::new(setup, "old", "0123456789abcdef", OLD)?;
    let new = Build::new(setup, "new", "fedcba9876543210", NEW)?;
    assert_ne!(old.functions["moved"], new.functions["moved"]);
    let before = old.ran(setup, "before", &[("moved", 50), ("changed", 30), ("gone", 20)]);
    let after = new.ran(setup, "after", &[("moved", 60), ("changed", 10), ("fresh", 30)]);
    let again = new.ran(setup, "again", &[("moved", 1)]);
    for (file, service, day) in [(&before, "web", 1), (&after, "web", 2), (&again, "mail", 2)] {
        let time = format!("2025-11-0{day}T12:00:00Z");
        setup.said(&["ingest", &setup.path("store"), file, "--service", service, "--time", &time]);
    }
    let programs = [old, new].map(|build| ["--binary".to_owned(), build.program.to_str().unwrap().to_owned()]);
    Some(programs.concat())
}

/// The rows, and what is said beside them.
fn stale(setup: &Setup, options: &[&str], programs: &[String]) -> (Vec<Value>, String) {
    let store = setup.path("store");
    let output = setup
        .fleet()
        .args(["stale", &store, "--compare", "--format", "json"])
        .args(options)
        .args(programs)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    (serde_json::from_slice(&output.stdout).unwrap(), said)
}

/// The columns of the comparison.
fn worth(row: &Value) -> Value {
    json!([row["percent_same_functions"], row["percent_same_code"], row["percent_overlap"], row["new_profile"]])
}

#[test]
fn older_builds_are_compared_by_function_and_code() {
    let setup = Setup::new();
    let Some(programs) = store(&setup) else { return };
    let (rows, said) = stale(&setup, &[], &programs);
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!(rows[0]["service"], "web");
    // moved and changed ran in both builds; moved has the same code; 50 % and 10 % are the smaller shares.
    assert_eq!(worth(&rows[0]), json!([80.0, 50.0, 60.0, "yes"]), "{said}");
    assert_eq!(worth(&rows[1]), json!([null, null, null, null]), "a file without older builds");
    let (rows, _) = stale(&setup, &["--least", "60"], &programs);
    assert_eq!(rows[0]["new_profile"], "no");
    // The other columns are as without it, also where nothing is printed.
    let plain = setup.stdout(&["stale", &setup.path("store"), "--format", "json"]);
    let plain: Vec<Value> = serde_json::from_str(&plain).unwrap();
    for (name, value) in plain[0].as_object().unwrap() {
        assert_eq!(rows[0][name], *value, "{name}");
    }
    let (one, _) = stale(&setup, &["--top", "1", "--service", "web"], &programs);
    assert_eq!(
        one,
        [rows[0].clone()].map(|mut row| {
            row["new_profile"] = json!("yes");
            row
        })
    );
}

#[test]
fn what_cannot_be_read_is_not_known() {
    let setup = Setup::new();
    let Some(programs) = store(&setup) else { return };
    let (rows, said) = stale(&setup, &["--service", "web"], &[]);
    assert_eq!(worth(&rows[0]), json!([null, null, null, "unknown"]));
    assert!(
        said.contains(
            "web /srv/server (executions): 100.00 % of what ran of older builds is in code that could not be read"
        ),
        "{said}"
    );
    // Only the newest build.
    let (rows, _) = stale(&setup, &["--service", "web"], &programs[2..]);
    assert_eq!(rows[0]["new_profile"], "unknown");
    // Of relative counts, only the older build.
    let relative =
        fs::read_to_string(setup.path("before")).unwrap().replace("\"executions\":true", "\"executions\":false");
    fs::write(setup.path("relative"), relative).unwrap();
    let time = ["--service", "web", "--time", "2025-11-01T12:00:00Z"];
    setup.said(&[&["ingest", &setup.path("store"), &setup.path("relative")], &time[..]].concat());
    let (rows, said) = stale(&setup, &["--service", "web"], &programs);
    let of = |counts: &str| worth(rows.iter().find(|row| row["counts"] == counts).unwrap());
    assert_eq!(of("executions"), json!([80.0, 50.0, 60.0, "yes"]));
    assert_eq!(of("relative"), json!([null, null, null, "unknown"]));
    assert!(said.contains("(relative): nothing of the newest build ran in these recordings"), "{said}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let setup = Setup::new();
    setup.said(&["ingest", &setup.path("store"), &setup.flow("a", "01", 1.0)]);
    let store = setup.path("store");
    for options in [&["--least", "50"][..], &["--symfs", "/"], &["--binary", "x"], &["--compare", "--least", "101"]] {
        let output = setup.run(&[&["stale", &store], options].concat());
        assert_eq!(output.status.code(), Some(2), "{options:?}");
    }
    let output = setup.fleet().env("HBBP", "/bin/false").args(["stale", &store, "--compare"]).output().unwrap();
    assert!(output.status.success(), "without older builds nothing is compared");
    setup.said(&["ingest", &store, &setup.flow("b", "02", 1.0)]);
    let output = setup.fleet().env("HBBP", "/bin/false").args(["stale", &store, "--compare"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let unknown = String::from_utf8(output.stdout).unwrap().contains("unknown");
    assert!(output.status.success() && unknown, "one file that cannot be compared: {said}");
    assert!(said.contains("`hbbp diff` has failed (exit status: 1)"), "{said}");
    let output = setup.fleet().env("HBBP", "/nowhere/hbbp").args(["stale", &store, "--compare"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && said.contains("/nowhere/hbbp is neither beside"), "{said}");
}
