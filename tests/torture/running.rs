//! Programs that run: where they leave their files, waiting for them, telling them something.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::place::Place;

impl Place {
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
