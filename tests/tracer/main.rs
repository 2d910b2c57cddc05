//! `hbbp record` with branches traced in software: are they real, do other tools read them, does the tracer keep what it promises?
//!
//! These tests need perf events (software events suffice), ptrace, and a C compiler; they say so and stop where there are none.

mod agents;
mod agreement;
mod attaching;
mod bursts;
mod by_cpu;
mod chosen;
mod code;
mod counts;
mod injected;
mod made_code;
#[path = "../support/place.rs"]
mod place;
mod programs;
mod runtimes;
mod timers;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use place::Place;
use serde_json::Value;

impl Place {
    fn program(&self, name: &str, source: &str) -> Option<PathBuf> {
        programs::compile(self.folder(), name, source)
    }

    fn recording(&self) -> PathBuf {
        self.path("hbbp.data")
    }

    fn hbbp(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hbbp"));
        command.args(args).current_dir(self.folder()).stdin(Stdio::null()).env("XDG_CACHE_HOME", "/dev/null");
        command
    }

    /// `hbbp record` with these arguments.
    fn record(&self, args: &[&str]) -> Output {
        self.hbbp(&["record"]).args(args).output().unwrap()
    }

    /// How a command is traced without options: agents, or stops where instructions are counted or the CPU allows no agents.
    fn default_tracer(&self) -> String {
        let doctor = self.json(&["doctor", "--format", "json"]);
        doctor["would_use"]["tracer"]["kind"].as_str().unwrap().to_owned()
    }

    /// Standard output of `hbbp` with these arguments, as JSON.
    fn json(&self, args: &[&str]) -> Value {
        let output = self.hbbp(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", errors(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(30);
    while !done() {
        assert!(Instant::now() < limit, "waiting for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
