//! Taxonomies as keys of mixes, and what `hbbp taxonomy` says of files.

mod support;

use std::collections::BTreeMap;
use std::fs::write;

use serde_json::Value;
use support::{Fixture, run, stdout};

const MINE: &str = r#"
name = "mine"
description = "Loads by what loads."
inherits = "flops"

[[group]]
name = "moved"
mnemonic = "mov*"
memory = "read"
length = ">=4"

[[group]]
name = "popped"
stack = true
not = { any = [{ mnemonic = "push" }, { branch = "!=none" }] }
"#;

fn mix(fixture: &Fixture, arguments: &[&str]) -> Value {
    let command = [&["mix"], arguments, &["--format", "json"]].concat();
    serde_json::from_str(&support::stdout_of(&command, fixture)).unwrap()
}

fn by_value(mix: &Value, key: &str) -> BTreeMap<String, f64> {
    let rows = mix["rows"].as_array().unwrap();
    rows.iter().map(|row| (row[key].as_str().unwrap().to_owned(), row["count"].as_f64().unwrap())).collect()
}

fn assert_near(one: f64, other: f64, what: &str) {
    assert!((one - other).abs() <= 1e-9 * other.abs(), "{what}: {one} and {other}");
}

#[test]
fn every_instruction_is_in_one_group() {
    let fixture = Fixture::bursts("objects");
    let all = mix(&fixture, &[])["instructions"].as_f64().unwrap();
    let list: Value = serde_json::from_str(&stdout(&["taxonomy", "list", "--format", "json"])).unwrap();
    let taxonomies = list["taxonomies"].as_array().unwrap();
    assert!(taxonomies.len() >= 9, "{list}");
    for taxonomy in taxonomies {
        let name = taxonomy["name"].as_str().unwrap();
        let groups = taxonomy["groups"].as_array().unwrap().iter().map(|group| &group["name"]);
        let known: Vec<&str> = groups.chain([&taxonomy["other"]]).map(|name| name.as_str().unwrap()).collect();
        let counts = by_value(&mix(&fixture, &["--rows", name]), name);
        assert_near(counts.values().sum(), all, name);
        let is_known = |value: &String| known.contains(&value.as_str()) || value == "[unreadable]";
        assert!(counts.keys().all(is_known), "{name}: {counts:?}");
    }
}

#[test]
fn groups_have_what_filters_with_their_conditions_keep() {
    let fixture = Fixture::bursts("objects");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    write(&file, MINE).unwrap();
    let taxonomy = ["--taxonomy", file.to_str().unwrap()];
    let counts = by_value(&mix(&fixture, &[&taxonomy[..], &["--rows", "mine"]].concat()), "mine");
    let kept = |filters: &[&str]| {
        let filters: Vec<&str> = filters.iter().flat_map(|filter| ["--filter", *filter]).collect();
        mix(&fixture, &[&taxonomy[..], &filters].concat())["instructions"].as_f64().unwrap()
    };
    assert_near(counts["moved"], kept(&["mnemonic=mov*", "memory=read", "length>=4"]), "moved");
    assert_near(counts["popped"], kept(&["stack=stack", "mnemonic!=push", "branch=none"]), "popped");
    assert_near(counts["moved"], kept(&["mine=moved"]), "mine=moved");
    assert_near(counts["moved"] + counts["popped"], kept(&["mine~ed$", "mine!~^\\["]), "mine~ed$");
    // Those of the taxonomy that it inherits.
    assert!(counts["1"] > 0.0, "{counts:?}");
    assert_near(counts["1"], kept(&["flops=1", "mine=1"]), "flops=1");
    let numbers: f64 = counts
        .iter()
        .filter(|(name, _)| name.parse::<u64>().is_ok_and(|flops| flops >= 1))
        .map(|(_, count)| count)
        .sum();
    assert_near(numbers, kept(&["mine>=1"]), "mine>=1");
    // What --top leaves out.
    let top = mix(&fixture, &["--top", "1"]);
    let (row, others) = (top["rows"][0]["count"].as_f64().unwrap(), &top["others"]);
    assert_near(row + others["count"].as_f64().unwrap(), top["instructions"].as_f64().unwrap(), "--top 1");
    let all = mix(&fixture, &[]);
    assert_eq!(others["rows"].as_u64().unwrap() as usize, all["rows"].as_array().unwrap().len() - 1);
    assert!(all["others"].is_null() && others["share_error"].is_f64(), "{others}");
    // As columns, beside another key.
    let pivot = mix(&fixture, &[&taxonomy[..], &["--rows", "memory", "--columns", "mine"]].concat());
    let moved = pivot["rows"].as_array().unwrap().iter().filter(|row| row["mine"] == "moved");
    assert!(moved.clone().count() > 0 && moved.into_iter().all(|row| row["memory"] == "read"), "{pivot}");
}

#[test]
fn wrong_files_are_refused_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let file = folder.path().join(name);
        write(&file, bytes).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let check = |arguments: &[&str], expected: &str| {
        let output = run(&[&["taxonomy", "check"], arguments].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(expected), "{arguments:?}: {said}");
        output.status.code().unwrap()
    };
    let mine = file("mine.toml", MINE.as_bytes());
    assert_eq!(check(&[&mine], "1 taxonomy is right"), 0);
    let child = file("child.toml", b"name = \"child\"\ndescription = \"x\"\ninherits = \"mine\"\n");
    assert_eq!(check(&[&child, &mine], "2 taxonomies are right"), 0);
    assert_eq!(check(&[&child], "child.toml:3:12: there is no taxonomy \"mine\" to inherit"), 1);
    let wrong = file("wrong.toml", MINE.replace("\"read\"", "\"load\"").as_bytes());
    assert_eq!(check(&[&wrong], "wrong.toml:9:10: memory is never \"load\": it is one of none, read"), 1);
    // A regular expression that would need much memory.
    let large = MINE.replace("\"mov*\"", "\"~(a{1000}){1000}\"");
    assert_eq!(check(&[&file("large.toml", large.as_bytes())], "large.toml:8:12: "), 1);
    assert_eq!(check(&[&file("binary.toml", b"\xff\xfe")], "cannot read the taxonomy"), 1);
    assert_eq!(check(&["/dev/zero"], "is too large for a taxonomy"), 1);
    assert_eq!(check(&[folder.path().to_str().unwrap()], "cannot read the taxonomy"), 1);
    assert_eq!(check(&["absent.toml"], "cannot read the taxonomy absent.toml"), 1);

    let hostile = MINE.replace("Loads by", "\\u001b[31mLoads by");
    let shown = stdout(&["taxonomy", "show", "mine", "--taxonomy", &file("hostile.toml", hostile.as_bytes())]);
    assert!(!shown.contains('\x1b') && shown.contains("Loads by what loads."), "{shown}");

    let output = run(&["mix", "--taxonomy", &mine, "--rows", "mnie", "absent.data"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("--rows: there is no key \"mnie\": did you mean mine?"), "{said}");
    assert_eq!(output.status.code(), Some(2));
    let output = run(&["mix", "--columns", "colour", "absent.data"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("--columns: there is no key \"colour\"; the keys are function, "), "{said}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_taxonomy_is_shown_with_its_conditions() {
    let table = stdout(&["taxonomy", "show", "synchronization"]);
    assert!(table.contains("exchange and add      mnemonic=xadd"), "{table}");
    let shown: Value = serde_json::from_str(&stdout(&["taxonomy", "show", "isa-packing", "--format", "json"])).unwrap();
    let group = &shown["groups"][0];
    assert_eq!((&group["name"], &group["inherits"]), (&"avx-512 packed".into(), &"avx-512 none".into()));
    assert_eq!(group["conditions"], "encoding=evex and packing=packed");
    let output = run(&["taxonomy", "show", "absent"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("there is no taxonomy \"absent\"; there are control-flow, "), "{said}");
}

/// Reports of code keep what has instructions of a group.
#[test]
fn groups_are_filters_of_blocks_and_functions() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    write(&file, MINE).unwrap();
    let (file, fixture) = (file.to_str().unwrap(), Fixture::bursts("objects"));
    let kept = ["--taxonomy", file, "--filter", "mine=popped"];
    let json = |command: &[&str]| -> Value {
        serde_json::from_str(&support::stdout_of(&[command, &["--format", "json"]].concat(), &fixture)).unwrap()
    };
    let with = |command: &[&str]| json(&[command, &kept].concat());
    // The same functions as in a mix of what passes.
    let names = |rows: &Value, key: &str| -> BTreeMap<String, f64> {
        rows.as_array().unwrap().iter().map(|row| (row[key].as_str().unwrap_or_default().to_owned(), 1.0)).collect()
    };
    let of_mix = names(&with(&["mix", "--rows", "function"])["rows"], "function");
    assert!(of_mix.len() > 2, "{of_mix:?}");
    assert_eq!(names(&with(&["annotate"])["functions"], "name"), of_mix);
    let blocks = with(&["blocks"]);
    assert_eq!(names(&blocks["blocks"], "function"), of_mix);
    let all = json(&["blocks"]);
    let (blocks, all) = (blocks["blocks"].as_array().unwrap(), all["blocks"].as_array().unwrap());
    assert!(blocks.len() < all.len() && blocks.iter().all(|block| all.contains(block)));
    // Those with most of what passes come first: a block has one such instruction, its last, so it is the one that ran most often.
    let count = |block: &Value| block["count"].as_f64().unwrap();
    let counts_of = |filter: &str, top: &str| -> Vec<f64> {
        let blocks = json(&["blocks", "--filter", filter, "--top", top]);
        blocks["blocks"].as_array().unwrap().iter().map(count).collect()
    };
    let mut is_first_in_file = true;
    for filter in ["mnemonic=ret", "mnemonic=call", "mnemonic=jmp"] {
        let all = counts_of(filter, "0");
        let most = all.iter().copied().fold(0.0, f64::max);
        assert_eq!(counts_of(filter, "1"), [most], "{filter}");
        is_first_in_file &= all[0] == most;
    }
    assert!(!is_first_in_file, "any order would pass");

    let input = fixture.input();
    let refused = |options: &[&str], expected: &str| {
        let output = run(&[options, &input.each_ref().map(String::as_str)].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(expected), "{options:?}: {said}");
    };
    refused(&["blocks", "--filter", "comm=sh"], "`hbbp mix` tells them apart");
    refused(&["annotate", "--filter", "mine=popped"], "there is no key");
    refused(&["blocks", "--filter", "mnemonic=hlt"], "no instruction passes the filters; nothing has the mnemonic");
    refused(&["annotate", "--filter", "mnemonic=hlt"], "no instruction passes the filters; nothing has the mnemonic");
}
