//! The tutorials of the guide: all of their lines run, and print the words that they show. Numbers are not compared.

#[path = "support/place.rs"]
mod place;
mod support;

use std::path::Path;
use std::process::Command;

use place::Place;
use support::{NO_FOLDER, has};
use testing::guide::{Reader, Step, steps};

/// Does all that a page of the guide says, where these programs are.
fn follow(page: &str, programs: &[&str]) {
    let Some(place) = Place::to_trace_by_default() else { return };
    if !programs.iter().all(|program| has(program)) {
        return;
    }
    let hbbp = Path::new(env!("CARGO_BIN_EXE_hbbp")).parent().unwrap();
    let mut reader = Reader::new(place.folder(), &[hbbp], &[("XDG_CACHE_HOME", NO_FOLDER)]);
    reader.follow(&text(page));
}

fn text(page: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guide").join(page)).unwrap()
}

#[test]
fn the_first_hour_is_true() {
    follow("tutorial.md", &["gcc", "clang-19", "make", "valgrind", "python3"]);
}

#[test]
fn the_tutorial_of_a_server_is_true() {
    follow("tutorial-server.md", &["redis-server", "redis-cli", "redis-benchmark"]);
}

#[test]
fn the_tutorial_of_sqlite_is_true() {
    if has("cargo") && has_sources() {
        follow("tutorial-sqlite.md", &["clang-19", "make"]);
    }
}

/// Whether cargo gets the sources as the page says, from its cache or the registry; says so when not.
fn has_sources() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let lines: Vec<String> = steps(&text("tutorial-sqlite.md"))
        .into_iter()
        .filter_map(|step| match step {
            Step::Run { line, .. } if line.starts_with("cargo ") => Some(line),
            _ => None,
        })
        .collect();
    assert!(!lines.is_empty());
    let output = Command::new("sh").args(["-ec", &lines.join("\n")]).current_dir(folder.path()).output().unwrap();
    if !output.status.success() {
        testing::skip!(Tool, "no sources of SQLite: {}", String::from_utf8_lossy(&output.stderr));
    }
    output.status.success()
}
