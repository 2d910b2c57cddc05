//! Stores in folders of their own, and the two programs.
#![allow(dead_code)] // Each test program uses a part of it.

pub mod opentelemetry;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use tempfile::TempDir;

/// The `hbbp` of this repository: the one that `HBBP` names, that of the tests of the other workspace, or one that is built now.
pub fn hbbp() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        if let Some(path) = std::env::var_os("HBBP") {
            return path.into();
        }
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let path = target.join("debug/hbbp");
        if !path.exists() {
            let mut cargo = Command::new(env!("CARGO"));
            cargo
                .args(["build", "--quiet", "--locked", "--bin", "hbbp", "--target-dir"])
                .arg(&target)
                .current_dir(root);
            assert!(cargo.status().unwrap().success(), "{cargo:?}");
        }
        path
    })
}

/// A store, and files beside it.
pub struct Setup {
    folder: TempDir,
}

impl Setup {
    pub fn new() -> Self {
        Setup { folder: TempDir::new().unwrap() }
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    pub fn fleet(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hbbp-fleet"));
        command.env("HBBP", hbbp()).env("XDG_CACHE_HOME", "/dev/null").env("XDG_DATA_HOME", "/nonexistent");
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.fleet().args(arguments).output().unwrap()
    }

    /// What is said on standard error by a run that must succeed.
    pub fn said(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{arguments:?}: {said}");
        said
    }

    /// Standard output of a run that must succeed.
    pub fn stdout(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// What is said by a run that must fail, and not by a signal or a panic.
    pub fn error(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        said
    }

    /// The rows that answer a question, without the line of names.
    pub fn rows(&self, store: &str, sql: &str) -> Vec<String> {
        self.stdout(&["query", &self.path(store), sql, "--format", "csv"]).lines().skip(1).map(str::to_owned).collect()
    }

    /// The bytes of a slice.
    pub fn slice(&self, store: &str, selection: &[&str]) -> String {
        let out = self.path("slice.flow");
        self.said(&[&["slice", &self.path(store), "-o", &out], selection].concat());
        fs::read_to_string(out).unwrap()
    }

    /// What `hbbp merge` makes of files, each with its weight after a colon where it has one.
    pub fn merged(&self, arguments: &[&str]) -> String {
        let out = self.path("merged.flow");
        let mut command = Command::new(hbbp());
        command.args(["merge", "--no-cache", "-o", &out]).args(arguments).env("XDG_DATA_HOME", "/nonexistent");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::read_to_string(out).unwrap()
    }

    /// A merged file as `hbbp` writes it: a module with a range, a branch and a sample, each seen so often.
    pub fn flow(&self, name: &str, build_id: &str, count: f64) -> String {
        let path = self.path(name);
        let text = format!(
            r#"{{"schema":"hbbp-flow/1","executions":true,"inputs":1,"seen":{count},"left_out":{{"streams":0.1,"branches":0.0,"samples":0.7}},
            "modules":[{{"path":"/nowhere/server","build_id":"{build_id}","read":true,"ranges":[[4096,4100,{count}]],
            "branches":[[4100,1,8,{count},0.3],[4100,0,4096,{count},0.0]],"samples":[[4096,{count}]]}},
            {{"path":"/nowhere/library","build_id":null,"read":false,"ranges":[],"branches":[],"samples":[]}},
            {{"path":"[kernel.kallsyms]","build_id":null,"read":false,"ranges":[[1,2,0.5]],"branches":[],"samples":[]}}]}}"#
        );
        fs::write(&path, text).unwrap();
        path
    }

    /// All files of a store, with their paths in it.
    pub fn files(&self, store: &str) -> Vec<String> {
        let mut files = Vec::new();
        let root = self.folder.path().join(store);
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    files.push(path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        files.sort();
        files
    }
}

/// Copies a store, that it may be damaged.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, target).unwrap();
        }
    }
}
