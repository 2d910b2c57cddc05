//! Recordings from real hardware, read as `perf` reads them.

mod perf_tool;

use std::path::PathBuf;

use perf_tool::{check, check_header, perf_is_here};

/// The recordings, wherever they are; says so loudly when there are none.
fn recordings() -> Vec<PathBuf> {
    let folder = std::env::var_os("HBBP_RECORDINGS")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/recordings"));
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("SKIPPED: no recordings in {}", folder.display());
        return Vec::new();
    };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "data"));
    paths.sort();
    assert!(!paths.is_empty(), "no recording in {}", folder.display());
    paths
}

#[test]
fn every_record_is_read_as_perf_reads_it() {
    if perf_is_here() {
        recordings().iter().for_each(|path| check(path));
    }
}

#[test]
fn features_are_read_as_perf_reads_them() {
    if perf_is_here() {
        recordings().iter().for_each(|path| check_header(path));
    }
}
