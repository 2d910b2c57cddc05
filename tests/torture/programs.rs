//! The programs, compiled when needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Compiles `programs/NAME.c` with `flags` too; `None`, said on stderr, without a C compiler. A program that does not compile fails the
/// test, unless `flags` ask for something else than usual: static libraries need not be installed.
pub fn build(name: &str, flags: &[&str]) -> Option<PathBuf> {
    static BUILDS: AtomicU32 = AtomicU32::new(0);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/torture/programs").join(name).with_extension("c");
    let programs = Path::new(env!("CARGO_TARGET_TMPDIR")).join("torture");
    fs::create_dir_all(&programs).unwrap();
    let program = programs.join([&[name], flags].concat().concat());
    // Other tests, and other processes with tests, may build the same one.
    let unfinished = programs.join(format!("{}-{}", std::process::id(), BUILDS.fetch_add(1, Ordering::Relaxed)));
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=gnu17", "-O1", "-g", "-Wall", "-Wextra", "-pthread"]).args(flags).arg("-o");
    let Ok(compiled) = gcc.arg(&unfinished).arg(&source).output() else {
        testing::skip!(Tool, "gcc is not installed");
        return None;
    };
    let said = String::from_utf8_lossy(&compiled.stderr);
    if !compiled.status.success() && !flags.is_empty() {
        testing::skip!(ToolVersion, "gcc cannot compile {name} with {flags:?}: {said}");
        return None;
    }
    assert!(compiled.status.success(), "{name} does not compile: {said}");
    fs::rename(&unfinished, &program).unwrap();
    Some(program)
}
