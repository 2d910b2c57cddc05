//! Where the programs run and leave their files.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use testing::Alone;

use crate::tracer;

/// A directory for a test.
pub struct Place {
    dir: TempDir,
    _alone: Alone,
}

impl Place {
    /// `None`, said on stderr, where nothing can be recorded.
    pub fn new() -> Option<Self> {
        let alone = Alone::wait();
        let doctor = Command::new(tracer::hbbp()).args(["doctor", "--format", "json"]).output().unwrap();
        let report: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
        if let Some(reason) = report["would_use"]["error"].as_str() {
            testing::skip!(NoSampling, "{reason}");
            return None;
        }
        Some(Self { dir: tempfile::tempdir().unwrap(), _alone: alone })
    }

    /// A file or directory in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// An empty directory in it, for one run of a program.
    pub fn empty(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        if path.exists() {
            fs::remove_dir_all(&path).unwrap();
        }
        fs::create_dir(&path).unwrap();
        path
    }
}

/// Waits, for two minutes at most.
pub fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(120);
    while !done() {
        assert!(Instant::now() < limit, "waiting for {what}");
        sleep(Duration::from_millis(2));
    }
}

/// The process id that a program running in `dir` has announced there.
pub fn announced(dir: &Path) -> u32 {
    let file = dir.join("pid");
    wait_for("the program to start", || file.exists());
    fs::read_to_string(file).unwrap().parse().unwrap()
}

/// Tells the program running in `dir` to end, if it is one that goes on for a certain time.
pub fn tell_to_end(dir: &Path) {
    // The program has the file mapped: its byte is changed, not the file.
    let file = fs::OpenOptions::new().write(true).open(dir.join("enough")).unwrap();
    file.write_all_at(b"!", 0).unwrap();
}

pub fn send(signal: &str, pid: u32) {
    assert!(send_if_it_lives(signal, pid), "{signal} to {pid}");
}

/// Whether the process was still there.
pub fn send_if_it_lives(signal: &str, pid: u32) -> bool {
    Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success()
}
