//! The program of all kinds, compiled when needed.

use std::path::{Path, PathBuf};

/// Compiles `programs/*.c` with `flags` too; `None`, said on stderr, where that cannot be.
pub fn kinds(flags: &[&str]) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/harmless/programs");
    let sources =
        ["kinds.c", "waiting.c", "signals.c", "processes.c", "served.c", "jobs.c"].map(|name| folder.join(name));
    testing::c_program(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("harmless"), "kinds", &sources, flags)
}
