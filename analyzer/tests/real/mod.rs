//! Real files to test on.
#![allow(dead_code, reason = "each test file uses a part")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of recordings made on real hardware.
pub fn recordings() -> PathBuf {
    let given = std::env::var_os("HBBP_RECORDINGS").map(PathBuf::from);
    given.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/recordings"))
}

/// Programs and libraries of the machine, a program of 2010 with symbols, and this test itself. Says loudly which are absent.
pub fn binaries() -> Vec<PathBuf> {
    let candidates = [
        "/bin/bash".into(),
        "/usr/bin/perl".into(),
        "/lib/x86_64-linux-gnu/libc.so.6".into(),
        "/lib/x86_64-linux-gnu/libm.so.6".into(),
        recordings().join("westmere-lbr.binary"),
        std::env::current_exe().unwrap(),
    ];
    let (there, absent): (Vec<_>, Vec<_>) = candidates.into_iter().partition(|path| path.exists());
    for path in absent {
        eprintln!("SKIPPED: no {}", path.display());
    }
    there
}

/// What a tool prints; `None`, and a loud word, if it is not installed.
pub fn output_of(tool: &str, arguments: &[&str]) -> Option<Vec<u8>> {
    match Command::new(tool).args(arguments).output() {
        Ok(output) => {
            assert!(output.status.success(), "{tool} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            Some(output.stdout)
        }
        Err(error) => {
            eprintln!("SKIPPED: {tool}: {error}");
            None
        }
    }
}
