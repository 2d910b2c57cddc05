//! A command run by the keeper (`programs/keeper.c`), which misses nothing of what the command leaves behind.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use crate::programs::build;
use crate::running::wait_for;

/// The keeper kills everything after so many seconds.
const LIMIT_SECONDS: u32 = 120;

/// A running command, killed with all it started when this is dropped.
pub struct Kept {
    keeper: Child,
    dir: PathBuf,
}

/// How it ended.
#[derive(Debug)]
pub struct Ended {
    /// `exited 3` or `killed 9`.
    pub status: String,
    /// The same of each process whose parent ended first, sorted.
    pub orphans: Vec<String>,
    /// What it wrote to its standard output.
    pub stdout: String,
    /// What it wrote to its standard error.
    pub stderr: String,
}

impl Kept {
    /// Starts a command in `dir`, which gets the files `stdout`, `stderr` and `report`; `None`, said on stderr, without a C compiler.
    pub fn start(dir: &Path, environment: &[(&str, &str)], command: &[String]) -> Option<Self> {
        static KEEPER: OnceLock<Option<PathBuf>> = OnceLock::new();
        let keeper = KEEPER.get_or_init(|| build("keeper", &[])).as_ref()?;
        let file = |name: &str| File::create(dir.join(name)).unwrap();
        let mut kept = Command::new(keeper);
        kept.arg("report").arg(LIMIT_SECONDS.to_string()).args(command).envs(environment.iter().copied());
        kept.current_dir(dir).stdin(Stdio::null()).stdout(file("stdout")).stderr(file("stderr"));
        Some(Self { keeper: kept.spawn().unwrap(), dir: dir.to_owned() })
    }

    /// The command's process id.
    pub fn pid(&self) -> u32 {
        let mut pid = None;
        wait_for("the command to start", || {
            let report = fs::read_to_string(self.dir.join("report")).unwrap_or_default();
            let line = report.split_inclusive('\n').next().and_then(|line| line.strip_suffix('\n'));
            pid = line.and_then(|line| line.strip_prefix("command ")).map(|number| number.parse().unwrap());
            pid.is_some()
        });
        pid.unwrap()
    }

    /// Waits for the end of everything. Something left behind fails the test.
    pub fn end(mut self) -> Ended {
        self.keeper.wait().unwrap();
        let text = |name: &str| String::from_utf8_lossy(&fs::read(self.dir.join(name)).unwrap()).into_owned();
        let (report, stdout, stderr) = (text("report"), text("stdout"), text("stderr"));
        let left: Vec<&str> = report.lines().filter(|line| line.starts_with("left ")).collect();
        assert!(
            left.is_empty(),
            "left behind (process, thread, state, name):\n{}\n{stdout}\n{stderr}",
            left.join("\n")
        );
        let ends = |what: &str| {
            let lines = report.lines().filter_map(|line| line.strip_prefix(what)?.split_once(' '));
            let mut ends: Vec<String> = lines.map(|(_, how)| how.to_owned()).collect();
            ends.sort();
            ends
        };
        let status = ends("ended ").pop().unwrap_or_else(|| panic!("the command has not ended: {report}"));
        Ended { status, orphans: ends("orphan "), stdout, stderr }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Ok(None) = self.keeper.try_wait() {
            let _ = Command::new("kill").args(["-TERM", &self.keeper.id().to_string()]).status();
            let _ = self.keeper.wait();
        }
    }
}
