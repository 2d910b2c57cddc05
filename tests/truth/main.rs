//! Exact counts of small programs whose counts are known by hand.

#[path = "../support/mod.rs"]
mod support;
#[path = "../support/synthetic.rs"]
mod synthetic;

mod files;
mod processes;
mod programs;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A folder with programs.
struct Workshop {
    folder: tempfile::TempDir,
}

impl Workshop {
    /// `None` (said loudly) where there is no compiler or no valgrind.
    fn new() -> Option<Self> {
        (support::has("gcc") && support::has("valgrind")).then(|| Self { folder: tempfile::tempdir().unwrap() })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Compiles a source (`name.c`, `name.s`) to a file with these arguments of gcc.
    fn compile(&self, source: &str, text: &str, output: &str, arguments: &[&str]) -> PathBuf {
        std::fs::write(self.path(source), text).unwrap();
        let mut gcc = Command::new("gcc");
        gcc.current_dir(self.folder.path()).args(["-o", output, source]).args(arguments);
        assert!(gcc.status().unwrap().success(), "{gcc:?}");
        self.path(output)
    }

    /// What `hbbp truth` with these arguments counts; the written document.
    fn truth(&self, arguments: &[&str]) -> Value {
        let file = self.path("truth.json");
        let mut hbbp = support::hbbp();
        hbbp.current_dir(self.folder.path()).args(["truth", "-o"]).arg(&file).args(arguments);
        let output = hbbp.output().unwrap();
        assert!(output.status.success(), "{hbbp:?}: {}", String::from_utf8_lossy(&output.stderr));
        let document: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        assert_adds_up(&document);
        document
    }
}

/// Instructions in blocks, and what was left out, are what callgrind counted.
fn assert_adds_up(document: &Value) {
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{value} is no number"));
    let head = &document["head"];
    let blocks = document["blocks"].as_array().unwrap();
    let in_blocks: u64 = blocks.iter().map(|block| number(&block["count"]) * number(&block["instructions"])).sum();
    let left_out: u64 = head["left_out"].as_array().unwrap().iter().map(|left| number(&left["instructions"])).sum();
    assert_eq!(number(&document["instructions"]), in_blocks);
    assert_eq!(number(&head["counted"]), in_blocks + left_out, "{head:#}");
}

/// Executions of the blocks of a module, by the block's first address.
fn executions(document: &Value, module: &Path) -> BTreeMap<u64, u64> {
    let path = module.canonicalize().unwrap();
    let modules = document["modules"].as_array().unwrap();
    let index = modules.iter().position(|module| module["path"] == path.to_str().unwrap());
    let index = index.unwrap_or_else(|| panic!("{} is not among {modules:?}", path.display()));
    let blocks = document["blocks"].as_array().unwrap().iter().filter(|block| block["module"] == index);
    blocks.map(|block| (block["start"].as_u64().unwrap(), block["count"].as_u64().unwrap())).collect()
}

/// The address of a symbol in a file.
fn symbol(file: &Path, name: &str) -> u64 {
    let output = Command::new("nm").arg(file).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.ends_with(&format!(" {name}")));
    let line = line.unwrap_or_else(|| panic!("{} has no {name}: {text}", file.display()));
    u64::from_str_radix(line.split_whitespace().next().unwrap(), 16).unwrap()
}
