//! The programs, compiled when needed.

use std::path::{Path, PathBuf};

/// Compiles `programs/NAME.c` with `flags` too; `None`, said on stderr, where that cannot be.
pub fn build(name: &str, flags: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/torture/programs").join(name).with_extension("c");
    testing::c_program(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("torture"), name, &[source], flags)
}
