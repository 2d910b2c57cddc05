//! Recordings of all containers and formats, and those of real hardware where they are, read as `perf` reads them.

mod perf_tool;

use std::path::PathBuf;

use perf_tool::{check, check_header, perf_is_here};
use testing::{fixture_file, hardware_recordings};

/// Those that a tool recorded, with features.
fn recorded() -> impl Iterator<Item = PathBuf> {
    let committed = ["bursts/objects.data", "simulated/ivy-bridge.data"];
    committed.into_iter().map(fixture_file).chain(hardware_recordings())
}

fn written() -> impl Iterator<Item = PathBuf> {
    // Of what is compressed, perf wants to know more.
    let containers = ["file", "pipe", "old", "wide", "several"];
    containers.into_iter().map(|name| fixture_file(&format!("containers/{name}.data")))
}

#[test]
fn every_record_is_read_as_perf_reads_it() {
    if perf_is_here() {
        recorded().chain(written()).for_each(|path| check(&path));
    }
}

#[test]
fn features_are_read_as_perf_reads_them() {
    if perf_is_here() {
        recorded().for_each(|path| check_header(&path));
    }
}
