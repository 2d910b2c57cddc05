//! Every program of tests has a tier, and the alias for the fast ones names just those.

use std::collections::BTreeSet;
use std::fs::{read_dir, read_to_string};
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Strings in quotes.
fn quoted(text: &str) -> Vec<&str> {
    text.split('"').skip(1).step_by(2).collect()
}

/// Programs of tests of a crate, as files or folders from the root.
fn programs(member: &str) -> Vec<String> {
    let folder = Path::new(member).join("tests");
    let Ok(entries) = read_dir(root().join(&folder)) else { return Vec::new() };
    let path = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        let path = folder.join(&name).to_str().unwrap().to_owned();
        match entry.path().join("main.rs").exists() {
            true => Some(path + "/"),
            false => name.ends_with(".rs").then_some(path),
        }
    };
    entries.filter_map(|entry| path(entry.unwrap())).collect()
}

#[test]
fn every_program_of_tests_has_a_tier() {
    let manifest = read_to_string(root().join("Cargo.toml")).unwrap();
    let members = manifest.split("members = [").nth(1).unwrap().split(']').next().unwrap();
    let there: BTreeSet<String> = quoted(members).into_iter().chain([""]).flat_map(programs).collect();
    let readme = read_to_string(root().join("tests/README.md")).unwrap();
    let rows = readme.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let rows: Vec<(&str, &str)> = rows.collect();
    let named: BTreeSet<String> = rows.iter().map(|(path, _)| path.to_string()).collect();
    assert_eq!(there, named, "tests/README.md has a row for each");

    let name = |path: &str| path.trim_end_matches('/').trim_end_matches(".rs").rsplit('/').next().unwrap().to_owned();
    let fast = rows.iter().filter(|(_, tier)| tier.starts_with("fast")).map(|(path, _)| name(path));
    let alias = read_to_string(root().join(".cargo/config.toml")).unwrap();
    let words = quoted(&alias);
    let in_alias = words.windows(2).filter(|pair| pair[0] == "--test").map(|pair| pair[1].to_owned());
    assert_eq!(fast.collect::<BTreeSet<_>>(), in_alias.collect(), ".cargo/config.toml names the fast ones");
    // Names are what cargo chooses by: one that is fast in one crate cannot be slow in another.
    let slow: BTreeSet<String> =
        rows.iter().filter(|(_, tier)| !tier.starts_with("fast")).map(|(path, _)| name(path)).collect();
    assert!(!words.iter().any(|word| slow.contains(*word)), "{slow:?}");
}
