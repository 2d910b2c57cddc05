//! `--precision`: recording goes on until the numbers are good enough.
//!
//! ```text
//! watch        `hbbp mix` of the recording as far as it is written, in a process of its own: whose time is not the recorder's
//! again        the process that is recorded: runs the command until it is enough
//! ```

use std::ffi::OsString;
use std::fmt::{self, Display, Formatter};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use collector::find_program;
use collector::plan::request::{Request, Target};
use collector::session::Session;
use serde_json::Value;
use tempfile::TempDir;

use crate::commands::again;

/// When it is looked for the first time.
const FIRST: Duration = Duration::from_secs(1);
/// A look takes no more than this part of the time since the last one.
const PART_FOR_LOOKS: u32 = 10;
/// A command is not run again after this time.
const LONGEST: Duration = Duration::from_secs(300);

/// By how much of themselves the largest rows may be wrong by chance, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wanted(f64);

impl FromStr for Wanted {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let number = text.trim().trim_end_matches('%').trim_end();
        match number.parse::<f64>() {
            Ok(percent) if percent > 0.0 && percent < 100.0 => Ok(Self(percent / 100.0)),
            _ => bail!("expected a number of percent, such as 1%"),
        }
    }
}

impl Display for Wanted {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{}%", (self.0 * 1e6).round() / 1e4)
    }
}

/// How far the numbers got.
#[derive(Clone, Copy, Debug, Default)]
struct Reached {
    /// By how much of themselves the largest rows may be wrong by chance; `None` if that cannot be told.
    error: Option<f64>,
    is_enough: bool,
}

/// How good the numbers of a recording are to become.
pub struct Goal {
    look: Look,
    folder: TempDir,
    /// Whether a command is run again until it is enough; else the recording ends then.
    again: bool,
}

/// Looks how good the numbers are while they are recorded.
pub struct Watch {
    goal: Goal,
    began: Instant,
    ended: Sender<()>,
    thread: JoinHandle<()>,
}

/// What is looked at.
#[derive(Clone, Debug)]
struct Look {
    wanted: Wanted,
    recording: PathBuf,
    /// Options of `mix`: what the rows are, how to choose between the sources, where binaries are.
    options: Vec<OsString>,
}

impl Goal {
    /// For a recording that is about to be made.
    pub fn of(request: &Request, wanted: Wanted, options: Vec<OsString>) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("hbbp-").tempdir().context("a folder for --precision")?;
        let look = Look { wanted, recording: request.output.clone(), options };
        Ok(Self { look, folder, again: request.target == Target::Command })
    }

    /// What is to be recorded in place of a command.
    pub fn command(&self, command: &[OsString]) -> anyhow::Result<Vec<OsString>> {
        if !self.again {
            return Ok(command.to_vec());
        }
        command.iter().take(1).try_for_each(find_program)?;
        let own = std::env::current_exe().context("hbbp's own executable")?;
        let before = [own.into(), "again".into(), self.folder.path().into(), "--".into()];
        Ok(before.into_iter().chain(command.iter().cloned()).collect())
    }

    /// Begins to look. `say` hears how far it is. A session blocks signals that are for the recorder: a thread that began before would
    /// take them.
    pub fn watch(self, session: &mut Session<'_>, say: impl Fn(&str) + Send + 'static) -> Watch {
        let began = Instant::now();
        let (ended, is_ended) = channel();
        let enough = Arc::new(AtomicBool::new(false));
        session.ends_when(enough.clone());
        let (watched, again) = (self.look.clone(), self.again);
        let (file, runs) = (again::enough(self.folder.path()), again::runs(self.folder.path()));
        let thread = spawn(move || {
            let mut wait = FIRST;
            while is_ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                let since = Instant::now();
                let is_late = again && began.elapsed() > LONGEST;
                let reached = if is_late { Reached::default() } else { watched.reached() };
                let (passed, took) = (began.elapsed(), since.elapsed());
                if is_late || reached.is_enough {
                    if again {
                        let _ = fs::write(&file, "");
                    } else {
                        enough.store(true, Ordering::Release);
                    }
                    return;
                }
                if let Some(error) = reached.error {
                    let runs = if again { in_runs(&runs) } else { String::new() };
                    say(&format!("after {:.0} s{runs}: {}", passed.as_secs_f64(), watched.words(error)));
                }
                wait = watched.wait(reached, passed).max(took * PART_FOR_LOOKS);
                if again {
                    wait = wait.min(LONGEST.saturating_sub(passed) + FIRST);
                }
            }
        });
        Watch { goal: self, began, ended, thread }
    }
}

impl Watch {
    /// The recording has ended: how far the numbers got, in a sentence.
    pub fn conclude(self) -> String {
        let passed = self.began.elapsed().as_secs_f64();
        drop(self.ended);
        let _ = self.thread.join();
        let runs = in_runs(&again::runs(self.goal.folder.path()));
        let reached = self.goal.look.reached();
        let Some(error) = reached.error else {
            return format!("after {passed:.0} s{runs}, the recording does not tell how right its numbers are");
        };
        let end = if reached.is_enough { "" } else { ": not reached" };
        format!("after {passed:.0} s{runs}: {}{end}", self.goal.look.words(error))
    }
}

impl Look {
    fn reached(&self) -> Reached {
        let error = self.error_by_chance();
        Reached { error, is_enough: error.is_some_and(|error| error <= self.wanted.0) }
    }

    /// As `mix` says it.
    fn error_by_chance(&self) -> Option<f64> {
        let mut mix = Command::new(std::env::current_exe().ok()?);
        mix.args(["mix", "--no-cache", "--format", "json", "--threads", "1", "--top", "1", "-i"]).arg(&self.recording);
        let output = mix.args(&self.options).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
        let report: Value = serde_json::from_slice(&output.stdout).ok()?;
        report.pointer("/head/precision/error_by_chance")?.as_f64()
    }

    /// How long to record until the next look: as long as it is likely to take, and no more than what has passed.
    fn wait(&self, reached: Reached, passed: Duration) -> Duration {
        let times = reached.error.map_or(2.0, |error| (error / self.wanted.0).powi(2));
        passed.mul_f64((times - 1.0).clamp(0.1, 1.0))
    }

    fn words(&self, error: f64) -> String {
        let (error, wanted) = (percent(error), percent(self.wanted.0));
        format!("the largest rows are right within {error} % by chance ({wanted} % wanted)")
    }
}

/// A part in percent, with two digits that mean something.
fn percent(part: f64) -> String {
    let percent = 100.0 * part;
    let decimals = if percent < 1.0 { 2 } else { usize::from(percent < 10.0) };
    format!("{percent:.decimals$}")
}

fn in_runs(file: &Path) -> String {
    let runs = fs::read_to_string(file).unwrap_or_default();
    match runs.as_str() {
        "" => String::new(),
        "1" => " and 1 run".into(),
        runs => format!(" and {runs} runs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_with_and_without_the_sign() {
        assert_eq!(["1%", "1", "0.5 %", " 2"].map(|text| text.parse::<Wanted>().unwrap().0), [0.01, 0.01, 0.005, 0.02]);
        assert!(["", "%", "0", "100", "-1", "x", "nan"].iter().all(|text| text.parse::<Wanted>().is_err()));
    }

    #[test]
    fn the_next_look_comes_when_it_is_likely_to_be_enough() {
        let look = Look { wanted: Wanted(0.01), recording: PathBuf::new(), options: Vec::new() };
        let wait = |error| look.wait(Reached { error, is_enough: false }, Duration::from_secs(10)).as_secs_f64();
        assert_eq!(wait(None), 10.0);
        assert_eq!(wait(Some(0.1)), 10.0);
        assert!((wait(Some(0.0125)) - 5.625).abs() < 1e-9);
        assert_eq!(wait(Some(0.0101)), 1.0);
    }
}
