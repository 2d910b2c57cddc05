//! Where a test records: in a folder of its own, while no other test of its program does.
#![allow(dead_code)] // Each test program uses a part of it, and adds what it does there.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use testing::Alone;

/// A folder, which goes with it, and the right to record.
pub struct Place {
    folder: TempDir,
    _alone: Alone,
}

impl Place {
    /// `None`, said on stderr, where nothing can be recorded.
    pub fn to_record() -> Option<Self> {
        Self::if_possible(|doctor| {
            let can = opens_events(doctor) && doctor["would_use"]["error"].is_null();
            if !can {
                testing::skip!(NoSampling, "{}", doctor["would_use"]);
            }
            can
        })
    }

    /// `None`, said on stderr, where branches cannot be traced in software.
    pub fn to_trace() -> Option<Self> {
        Self::if_possible(can_trace)
    }

    /// `None`, said on stderr, where timers cannot start bursts.
    pub fn to_time() -> Option<Self> {
        Self::if_possible(|doctor| {
            let can = doctor["software_tracing"]["timers"] == true;
            if !can {
                testing::skip!(NoTracing, "no bursts by timers here: {}", doctor["software_tracing"]);
            }
            can
        })
    }

    /// As [`Self::to_trace`], and `None` where `record` does not trace unless it is told to.
    pub fn to_trace_by_default() -> Option<Self> {
        Self::if_possible(|doctor| {
            if doctor["would_use"]["tracer"].is_null() {
                testing::skip!(HardwareBranches, "this machine records branches in hardware");
                return false;
            }
            can_trace(doctor)
        })
    }

    fn if_possible(is_possible: impl FnOnce(&Value) -> bool) -> Option<Self> {
        let alone = Alone::wait();
        let doctor = Command::new(env!("CARGO_BIN_EXE_hbbp"))
            .args(["doctor", "--format", "json"])
            .output()
            .expect("hbbp starts");
        let report = serde_json::from_slice(&doctor.stdout).expect("doctor prints JSON");
        is_possible(&report).then(|| Self { folder: tempfile::tempdir().expect("a folder"), _alone: alone })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A file in it, or a folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }
}

fn opens_events(doctor: &Value) -> bool {
    doctor["probes"]["dummy"] == "works"
}

fn can_trace(doctor: &Value) -> bool {
    let tracing = &doctor["software_tracing"];
    let can = tracing["available"] == true && tracing["ptrace"] == "works" && opens_events(doctor);
    let can = can && !doctor["would_use"]["error"].is_string();
    if !can {
        testing::skip!(NoTracing, "no software tracing here: {}", doctor["software_tracing"]);
    }
    can
}
