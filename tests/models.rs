//! `hbbp train`, `hbbp model` and `--model` as processes.

#[path = "support/labelled.rs"]
mod labelled;
mod support;
#[path = "support/synthetic.rs"]
mod synthetic;

use std::path::{Path, PathBuf};
use std::process::Output;

use labelled::{blocks, by_length};
use model::training::{LabelledBlock, write_blocks};
use serde_json::Value;
use synthetic::{A, AROUND, Burst, C, D, Recorder, burst_metadata};

struct Setup {
    folder: tempfile::TempDir,
}

impl Setup {
    fn new() -> Self {
        Setup { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_string()
    }

    /// Runs `hbbp` with a data directory of its own.
    fn run(&self, arguments: &[&str]) -> Output {
        support::hbbp()
            .current_dir(self.folder.path())
            .env("XDG_DATA_HOME", self.path("data"))
            .args(arguments)
            .output()
            .unwrap()
    }

    fn stdout(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "hbbp {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn fails(&self, arguments: &[&str], expected: &str) {
        let output = self.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && said.contains(expected), "hbbp {arguments:?}: {said}");
    }

    fn label(&self, name: &str, blocks: &[LabelledBlock]) {
        write_blocks(blocks, std::fs::File::create(self.path(name)).unwrap()).unwrap();
    }

    /// Trains on made-up blocks, with as few combinations as there can be.
    fn train(&self, blocks: &[LabelledBlock], pair: &str, model: &str, more: &[&str]) -> String {
        self.label("blocks.csv", blocks);
        let few = ["--leaves", "4", "--depth", "2", "--weights", "instructions"];
        let arguments = ["train", "blocks.csv", "--for", pair, "-o", model];
        self.stdout(&[&arguments[..], &few, more].concat())
    }

    /// A clock and bursts of the program of four blocks.
    fn bursts(&self, binary: &Path) -> String {
        let mut recorder = Recorder::traced(binary);
        for instructions in [9_995, 10_005] {
            recorder.burst(&Burst { ip: C, branches: &AROUND, instructions, period: 2_000_000 });
        }
        (0..30).for_each(|_| recorder.sample(A));
        std::fs::write(self.path("bursts.data"), recorder.finish(&burst_metadata("nanoseconds"))).unwrap();
        self.text("bursts.data")
    }

    /// Instructions and branch stacks of the hardware.
    fn stacks(&self, binary: &Path) -> String {
        let mut recorder = Recorder::new(binary);
        (0..40).for_each(|_| recorder.stack(&AROUND));
        (0..84).for_each(|i| recorder.sample(A + i % 20));
        (0..3).for_each(|_| recorder.sample(D));
        std::fs::write(self.path("stacks.data"), recorder.finish(&Default::default())).unwrap();
        self.text("stacks.data")
    }

    /// Start and chosen source of the blocks, and the line that says who chose.
    fn chosen(&self, recording: &str, more: &[&str]) -> (Vec<String>, String) {
        let arguments = ["blocks", "-i", recording, "--format", "json"];
        let document: Value = serde_json::from_str(&self.stdout(&[&arguments[..], more].concat())).unwrap();
        let blocks = document["blocks"].as_array().unwrap().iter();
        let chosen = blocks.map(|block| block["chosen"].as_str().unwrap().to_string()).collect();
        (chosen, document["head"]["choice"].as_str().unwrap().to_string())
    }
}

#[test]
fn training_says_what_it_found() {
    let setup = Setup::new();
    let report =
        setup.train(&blocks(4, by_length), "software", "mine.json", &["--svg", "tree.svg", "--dot", "tree.dot"]);
    insta::assert_snapshot!("train", report);
    insta::assert_snapshot!("train_dot", std::fs::read_to_string(setup.path("tree.dot")).unwrap());
    insta::assert_snapshot!("train_svg", std::fs::read_to_string(setup.path("tree.svg")).unwrap());
    insta::assert_snapshot!("model_show", setup.stdout(&["model", "show", "mine.json"]));
    insta::assert_snapshot!("model_json", setup.stdout(&["model", "show", "mine.json", "--format", "json"]));
}

#[test]
fn a_model_that_is_better_chooses_and_one_that_is_not_does_not() {
    let setup = Setup::new();
    let Some(binary) = synthetic::program(setup.folder.path(), "four", &[]) else { return };
    let recording = setup.bursts(&binary);
    setup.train(&blocks(4, by_length), "software", "good.json", &[]);
    let (chosen, choice) = setup.chosen(&recording, &["--model", "good.json"]);
    assert_eq!(chosen, ["ebs", "lbr", "lbr", "lbr"]);
    assert!(choice.starts_with("trained model for software sources (2 leaves; block error "), "{choice}");
    setup.train(&blocks(4, |_, random| random.below(10) < 7), "software", "bad.json", &[]);
    let (chosen, choice) = setup.chosen(&recording, &["--model", "bad.json"]);
    assert_eq!(chosen, ["lbr"; 4]);
    assert_eq!(choice, "lbr outside the kernel: trees trained on such sources do not beat it");
    setup.train(&blocks(4, |_, _| false), "software", "ebs.json", &[]);
    let (chosen, choice) = setup.chosen(&recording, &["--model", "ebs.json"]);
    assert_eq!(chosen, ["ebs"; 4]);
    assert_eq!(choice, "ebs outside the kernel: trees trained on such sources do not beat it");
    let (chosen, choice) = setup.chosen(&recording, &["--model", "published"]);
    assert_eq!(chosen, ["ebs", "lbr", "lbr", "lbr"]);
    assert!(choice.starts_with("published rule"), "{choice}");
}

#[test]
fn a_model_is_for_one_kind_of_sources() {
    let setup = Setup::new();
    let Some(binary) = synthetic::program(setup.folder.path(), "four", &[]) else { return };
    let (bursts, stacks) = (setup.bursts(&binary), setup.stacks(&binary));
    setup.train(&blocks(4, |block, _| block.instructions > 18), "hardware", "mine.json", &[]);
    let with_model = |recording: &str| ["mix", "-i", recording, "--model", "mine.json"].map(str::to_owned);
    let wrong = with_model(&bursts);
    setup.fails(
        &wrong.each_ref().map(String::as_str),
        "mine.json is a model for hardware sources, and the recording has software sources: leave out --model",
    );
    assert_eq!(setup.chosen(&stacks, &["--model", "mine.json"]).0, ["lbr", "ebs", "ebs", "ebs"]);
    let (chosen, choice) = setup.chosen(&stacks, &[]);
    assert_eq!(chosen, ["ebs", "lbr", "lbr", "lbr"]);
    assert_eq!(choice, "published rule (up to 18 instructions: lbr, longer: ebs)");
}

#[test]
fn an_imported_model_is_used_until_it_is_removed() {
    let setup = Setup::new();
    let Some(binary) = synthetic::program(setup.folder.path(), "four", &[]) else { return };
    let recording = setup.bursts(&binary);
    let before = setup.chosen(&recording, &[]);
    setup.train(&blocks(4, by_length), "software", "mine.json", &[]);
    setup.stdout(&["model", "import", "mine.json"]);
    let imported = setup.path("data/hbbp/models/software.json");
    assert_eq!(std::fs::read(&imported).unwrap(), std::fs::read(setup.path("mine.json")).unwrap());
    assert_eq!(setup.chosen(&recording, &[]).0, ["ebs", "lbr", "lbr", "lbr"]);
    let overview = setup.stdout(&["model", "show"]);
    assert!(overview.contains("trained model for software sources (2 leaves"), "{overview}");
    setup.stdout(&["model", "export", "software", "-o", "copy.json"]);
    assert_eq!(std::fs::read(setup.path("copy.json")).unwrap(), std::fs::read(setup.path("mine.json")).unwrap());
    setup.stdout(&["model", "remove", "software"]);
    assert_eq!(setup.chosen(&recording, &[]), before);
    setup.fails(&["model", "remove", "software"], "no model for software sources was imported");
    setup.fails(&["model", "show", "hardware"], "there is no model for hardware sources: train one");
    std::fs::write(&imported, "{}").unwrap();
    setup.fails(&["blocks", "-i", &recording], "remove it with `hbbp model remove software`");
}

#[test]
fn what_is_no_model_is_refused() {
    let setup = Setup::new();
    std::fs::write(setup.path("empty.json"), "").unwrap();
    setup.fails(&["model", "import", "empty.json"], "empty.json: it is no model: EOF while parsing");
    setup.fails(&["mix", "--model", "nowhere.json"], "(a model is a file, or one of published, hardware, software");
    setup.fails(&["validate", "--model", "nowhere.json", "--", "touch", "marker"], "(a model is a file, or one of");
    assert!(!setup.path("marker").exists(), "the command ran for nothing");
    setup.label("two.csv", &blocks(2, by_length));
    setup.fails(&["train", "two.csv"], "the blocks are of 2 programs; leaving one out needs at least 3");
    std::fs::write(setup.path("other.csv"), "a,b\n1,2\n").unwrap();
    setup.fails(&["train", "other.csv"], "other.csv: there is no column \"program\" in its first line");
}

/// What is counted by block is counted by the source that is chosen for it, wherever it is counted; what is not is not asked to.
#[test]
fn the_choice_reaches_all_that_counts_blocks() {
    let setup = Setup::new();
    let Some(binary) = synthetic::program(setup.folder.path(), "four", &[]) else { return };
    let stacks = setup.stacks(&binary);
    let by_choice = ["--model", "published"];
    let blocks = setup.stdout(&[&["blocks", "-i", &stacks, "--format", "json"], &by_choice[..]].concat());
    let blocks: Value = serde_json::from_str(&blocks).unwrap();
    let number = |block: &Value, name: &str| block[name].as_f64().unwrap();
    let instructions = |count: &str| -> f64 {
        let blocks = blocks["blocks"].as_array().unwrap().iter();
        blocks.map(|block| number(block, count).round().max(1.0) * number(block, "instructions")).sum()
    };
    let (chosen, by_stacks) = (instructions("count"), instructions("lbr"));
    assert_ne!(chosen, by_stacks);
    let callgrind = |more: &[&str]| -> f64 {
        let profile = setup.stdout(&[&["export", "--format", "callgrind", "-i", &stacks], more].concat());
        let summary = profile.lines().find_map(|line| line.strip_prefix("summary: ")).unwrap();
        summary.parse().unwrap()
    };
    assert_eq!((callgrind(&[]), callgrind(&by_choice)), (by_stacks, chosen));
    let diff = |more: &[&str]| -> Value {
        serde_json::from_str(&setup.stdout(&[&["diff", &stacks, &stacks, "--format", "json"], more].concat())).unwrap()
    };
    let compared = |more: &[&str]| diff(more)["before"]["instructions"].as_f64().unwrap();
    assert!((compared(&[]) - by_stacks).abs() < 10.0 && (compared(&by_choice) - chosen).abs() < 10.0);
}

#[test]
fn a_choice_that_would_change_nothing_is_wrong_usage() {
    let setup = Setup::new();
    let Some(binary) = synthetic::program(setup.folder.path(), "four", &[]) else { return };
    let stacks = setup.stacks(&binary);
    let refused = |arguments: &[&str], why: &str| {
        let output = setup.run(&[arguments, &["--model", "published"]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(why), "hbbp {arguments:?}: {said}");
    };
    refused(&["merge", "-o", "all.flow", &stacks], "--model is not for merging: what was seen");
    assert!(!setup.path("all.flow").exists());
    for format in ["bolt", "bolt-preagg", "llvm-profgen", "llvm-text", "llvm-extbin", "gcov"] {
        let why =
            "--model is for --format pprof, otlp, callgrind, sde-mix and those of calling contexts, which count blocks";
        refused(&["export", "--format", format, "-i", &stacks, "-o", "profile"], why);
    }
    refused(&["export", "--format", "perf-script", "-i", &stacks], "--model changes nothing here");
    setup.stdout(&["merge", "-o", "all.flow", &stacks]);
    let why = "--model chooses between the sources of recordings: all.flow is none";
    refused(&["diff", &stacks, "all.flow"], why);
    refused(
        &["export", "--format", "callgrind", "-i", "all.flow"],
        "--model chooses between the sources of a recording",
    );
}
