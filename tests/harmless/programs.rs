//! The programs of all kinds, compiled when needed.

use std::path::{Path, PathBuf};

/// Compiles the program of most kinds with `flags` too; `None`, said on stderr, where that cannot be.
pub fn kinds(flags: &[&str]) -> Option<PathBuf> {
    compile("kinds", &["kinds.c", "waiting.c", "signals.c", "processes.c", "served.c", "jobs.c"], flags)
}

/// The same of the kinds with filters of system calls.
pub fn filtering(flags: &[&str]) -> Option<PathBuf> {
    compile("filtering", &["kinds.c", "filtering.c"], &[flags, &["-DFILTERING"]].concat())
}

fn compile(name: &str, sources: &[&str], flags: &[&str]) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/harmless/programs");
    let sources: Vec<PathBuf> = sources.iter().map(|name| folder.join(name)).collect();
    testing::c_program(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("harmless"), name, &sources, flags)
}
