//! The program of all kinds, compiled when needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Compiles `programs/*.c`, with `flags` too; `None`, said on stderr, without a C compiler, or one that knows the flags.
pub fn kinds(flags: &[&str]) -> Option<PathBuf> {
    static BUILDS: AtomicU32 = AtomicU32::new(0);
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/harmless/programs");
    let programs = Path::new(env!("CARGO_TARGET_TMPDIR")).join("harmless");
    fs::create_dir_all(&programs).unwrap();
    let program = programs.join(["kinds", &flags.concat()].concat());
    // Other processes with tests may build the same one.
    let unfinished = programs.join(format!("{}-{}", std::process::id(), BUILDS.fetch_add(1, Ordering::Relaxed)));
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=gnu17", "-O1", "-g", "-Wall", "-Wextra", "-pthread"]).args(flags).arg("-o").arg(&unfinished);
    gcc.args(["kinds.c", "waiting.c", "signals.c", "processes.c"].map(|name| sources.join(name))).arg("-lrt");
    let Ok(compiled) = gcc.output() else {
        testing::skip!(Tool, "gcc is not installed");
        return None;
    };
    let said = String::from_utf8_lossy(&compiled.stderr);
    if !compiled.status.success() && !flags.is_empty() {
        testing::skip!(ToolVersion, "gcc cannot compile with {flags:?}: {said}");
        return None;
    }
    assert!(compiled.status.success(), "the program does not compile: {said}");
    fs::rename(&unfinished, &program).unwrap();
    Some(program)
}
