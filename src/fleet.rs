//! Where `hbbp-fleet` is: an executable of its own, with an engine that not everybody needs.

use std::path::PathBuf;

/// What is said where it is not there.
pub const NOT_INSTALLED: &str = "hbbp-fleet is not installed: it is neither beside hbbp nor in PATH; `cargo build --release` in the folder \
                                 fleet/ makes it";

const PROGRAM: &str = "hbbp-fleet";

/// The executable beside this one, or its name, which is looked for in PATH.
pub fn program() -> PathBuf {
    let beside = std::env::current_exe().ok().map(|path| path.with_file_name(PROGRAM)).filter(|path| path.is_file());
    beside.unwrap_or_else(|| PathBuf::from(PROGRAM))
}
