//! How near the counts of the committed recordings are to exact ones, and what they are to the last bit.
//!
//! `INSTA_UPDATE=always cargo test --test accuracy` takes a wanted change over. A change that makes errors larger needs a reason in
//! its message.

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::Fixture;
use testing::{BURSTS, SIMULATED, fixture_file};

/// By how much an error may differ from the stored one, as a share of it.
const ALLOWED: f64 = 0.1;

const SOURCES: [&str; 3] = ["ebs", "lbr", "hybrid"];
const ERRORS: [&str; 3] = ["mnemonic_error", "block_error", "function_error"];
const OVERLAPS: [&str; 2] = ["block_overlap", "function_overlap"];

fn fixtures() -> impl Iterator<Item = Fixture> {
    BURSTS.map(Fixture::bursts).into_iter().chain(SIMULATED.map(Fixture::simulated))
}

fn blocks(fixture: &Fixture) -> Value {
    serde_json::from_str(&support::stdout_of(&["blocks", "--format", "json"], fixture)).unwrap()
}

/// The errors of each source of a recording: how far shares are from exact ones, 0 to 2, and what is missing to an overlap of 1.
fn errors(fixture: &Fixture) -> BTreeMap<String, f64> {
    let truth = fixture.truth();
    let arguments = ["validate", "--format", "json", "--truth", truth.to_str().unwrap()];
    let document: Value = serde_json::from_str(&support::stdout_of(&arguments, fixture)).unwrap();
    assert!(document["compared"]["truth"].as_f64().unwrap() > 0.97, "{}: {}", fixture.name, document["left_out"]);
    let number = |source, key| document["sources"][source][key].as_f64().unwrap();
    let mut found = BTreeMap::new();
    for source in SOURCES {
        for key in ERRORS {
            found.insert(format!("{source} {key}"), number(source, key));
        }
        for key in OVERLAPS {
            found.insert(format!("{source} 1 - {key}"), 1.0 - number(source, key));
        }
    }
    found
}

fn stored() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/accuracy.json")
}

#[test]
fn errors_are_as_small_as_they_were() {
    let found: BTreeMap<&str, _> = fixtures().map(|fixture| (fixture.name, errors(&fixture))).collect();
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(stored(), format!("{:#}\n", json!(found))).unwrap();
    }
    let expected: Value = serde_json::from_slice(&std::fs::read(stored()).unwrap()).unwrap();
    let mut differing = Vec::new();
    for (name, errors) in &found {
        for (key, error) in errors {
            let before = expected[name][key].as_f64().unwrap_or_else(|| panic!("{name}: there is no stored {key}"));
            if (error - before).abs() > ALLOWED * before {
                differing.push(format!("{name}: {key} is {:.3} %, was {:.3} %", 100.0 * error, 100.0 * before));
            }
        }
    }
    assert!(differing.is_empty(), "errors differ by more than a tenth:\n{}", differing.join("\n"));
}

/// Every block that ran: start, count by samples and by branch stacks, the chosen one.
#[test]
fn counts_of_blocks_are_the_same_to_the_last_bit() {
    for fixture in fixtures() {
        let document = blocks(&fixture);
        let path = |block: &Value| document["modules"][block["module"].as_u64().unwrap() as usize]["path"].clone();
        let mut lines = String::new();
        for block in document["blocks"].as_array().unwrap() {
            if path(block).as_str().unwrap().ends_with(fixture.recorded_as) {
                let start = block["start"].as_u64().unwrap();
                let [ebs, lbr, chosen] = ["ebs", "lbr", "chosen"].map(|key| &block[key]);
                assert_eq!(block["count"], block[chosen.as_str().unwrap()], "{block}");
                lines += &format!("{start:x} {ebs} {lbr} {}\n", chosen.as_str().unwrap());
            }
        }
        insta::assert_snapshot!(format!("blocks_{}", fixture.name), lines);
    }
}

/// Two ways of counting exactly that share nothing: valgrind's instrumentation, and the interpreter of the simulated PMU.
#[test]
fn valgrind_and_the_simulated_pmu_count_the_same() {
    let read = |file: &Path| -> Value { serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap() };
    let executed = read(&fixture_file("simulated/compress.executions.json"));
    let executions: BTreeMap<u64, u64> = executed["instructions"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["path"].as_str().unwrap().ends_with("/compress"))
        .map(|one| (one["file_offset"].as_u64().unwrap(), one["count"].as_u64().unwrap()))
        .collect();
    // The program's file lies in memory from here on.
    const BASE: u64 = 0x40_0000;
    let truth = read(&Fixture::simulated("ivy-bridge").truth());
    let (mut all, mut differing) = (0, Vec::new());
    for block in truth["blocks"].as_array().unwrap() {
        let count = |key: &str| block[key].as_u64().unwrap();
        let here = executions.get(&(count("start") - BASE)).copied().unwrap_or(0);
        all += 1;
        if here != count("count") {
            differing.push(format!("{:x} in {}: {} and {here}", count("start"), block["function"], count("count")));
        }
    }
    assert!(all > 300, "{all} blocks");
    // What starts a program looks at its environment, and libraries at the CPU.
    assert!(differing.len() < 12, "{} of {all}:\n{}", differing.len(), differing.join("\n"));
    let in_program =
        |line: &&String| ["main", "put_bit", "get_bit"].iter().any(|name| line.contains(&format!("\"{name}\"")));
    assert_eq!(differing.iter().find(in_program), None);
}
