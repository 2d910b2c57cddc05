//! What runs in the page of `hbbp report`: its unit tests, its lint, and the whole in a browser with clicks and keys.

#[path = "support/hostile.rs"]
mod hostile;
mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use std::path::{Path, PathBuf};
use std::process::Command;

use support::{Fixture, has, stdout};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("page")
}

/// Files of a folder whose names end so, sorted.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.to_str().unwrap().ends_with(end)).collect();
    files.sort();
    assert!(!files.is_empty(), "{} has no {end}", folder.display());
    files
}

/// Runs tests of JavaScript, of which some must run and none may fail.
fn node_runs(command: &mut Command) {
    let output = command.output().expect("node starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(printed.contains("# fail 0") && !printed.contains("# pass 0\n"), "{printed}");
}

#[test]
fn unit_tests_pass() {
    if has("node") {
        node_runs(
            Command::new("node")
                .args(["--test", "--test-reporter=tap"])
                .args(files(&folder().join("tests"), ".test.js")),
        );
    }
}

/// Text of recordings becomes text of the page, never markup or code. The policy of the page would not let it run, and nothing must rest
/// on that alone.
#[test]
fn nothing_makes_markup_of_text() {
    for file in files(&folder(), ".js") {
        let text = std::fs::read_to_string(&file).unwrap();
        for way in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "DOMParser",
            "createContextualFragment",
            "setHTML",
            "srcdoc",
            "javascript:",
            "fetch(",
            "XMLHttpRequest",
            "WebSocket",
            "import(",
            "localStorage",
            "cookie",
        ] {
            assert!(!text.contains(way), "{} has {way}", file.display());
        }
    }
}

#[test]
fn every_module_is_in_the_page() {
    let list =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands/report/page.rs")).unwrap();
    let mut before = Vec::new();
    for line in list.lines().filter_map(|line| line.trim().strip_prefix("include_str!(\"../../../page/")) {
        let name = line.split('"').next().unwrap();
        let text = std::fs::read_to_string(folder().join(name)).unwrap();
        for imported in text.lines().filter_map(|line| line.strip_prefix("import ")?.split("'./").nth(1)) {
            let imported = imported.trim_end_matches("';");
            assert!(before.contains(&imported.to_owned()), "{name} imports {imported}, which must come before it");
        }
        before.push(name.to_owned());
    }
    let mut files: Vec<String> =
        files(&folder(), ".js").iter().map(|file| file.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    files.retain(|name| name != "eslint.config.js");
    before.sort();
    assert_eq!(before, files);
}

#[test]
fn a_browser_shows_it() {
    if !has("node") || !has("chromium") {
        return;
    }
    let folder_of_pages = tempfile::tempdir().unwrap();
    let path = |name: &str| folder_of_pages.path().join(name).to_str().unwrap().to_owned();
    let Some(hostile) = hostile::recording(folder_of_pages.path()) else { return };
    let (page, changes_page, hostile_page) = (path("page.html"), path("changes.html"), path("hostile.html"));
    let fixture = Fixture::bursts("objects").input();
    stdout(&[&["report", "-o", &page], &fixture.each_ref().map(String::as_str)[..]].concat());
    let before = Fixture::bursts("interpret").input();
    let words =
        ["report", &before[1], &fixture[1], &before[2], &before[3], &fixture[2], &fixture[3], "-o", &changes_page];
    stdout(&words);
    stdout(&["report", &hostile, &hostile, "-o", &hostile_page]);
    let mut command = Command::new("node");
    command.args(["--test", "--test-reporter=tap"]).arg(folder().join("tests/clicks.js"));
    command.env("HBBP_PAGE", &page).env("HBBP_CHANGES_PAGE", &changes_page).env("HBBP_HOSTILE_PAGE", &hostile_page);
    node_runs(&mut command);
}

/// What a page of the guide says of a page of this recording. With `HBBP_UPDATE_PICTURES=1` the pictures of the guide are made anew.
fn the_guide_is_right(test: &str, recording: &[String]) {
    if !has("node") || !has("chromium") {
        return;
    }
    let folder_of_pages = tempfile::tempdir().unwrap();
    let page = folder_of_pages.path().join("page.html").to_str().unwrap().to_owned();
    let recording: Vec<&str> = recording.iter().map(String::as_str).collect();
    stdout(&[&["report", "-o", &page], &recording[..]].concat());
    let mut command = Command::new("node");
    command.args(["--test", "--test-reporter=tap"]).arg(folder().join("tests").join(test));
    command.env("HBBP_PAGE", &page);
    node_runs(&mut command);
}

#[test]
fn the_walk_of_the_guide_leads_where_it_says() {
    the_guide_is_right("walk.js", &Fixture::bursts("objects").input());
}

#[test]
fn the_first_hour_of_the_guide_shows_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    // It is called as the reader's is.
    let recording = folder.path().join("before.data");
    std::fs::copy(testing::fixture_file("tutorial/nearest.data"), &recording).unwrap();
    let binary = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tutorial/nearest");
    let input = [recording.to_str().unwrap().to_owned(), format!("--binary=nearest={}", binary.display())];
    the_guide_is_right("tutorial.js", &input);
}
