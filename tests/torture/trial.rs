//! A program alone and recorded, and the comparison.

use std::path::PathBuf;

use crate::contents::Contents;
use crate::kept::{Ended, Kept};
use crate::place::Place;
use crate::programs::build;
use crate::tracer;

/// A program that finds out by itself whether it was disturbed.
pub struct Trial {
    pub place: Place,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// More for its environment.
    pub environment: Vec<(&'static str, &'static str)>,
    /// What it exits with.
    pub code: i32,
}

impl Trial {
    /// `programs/NAME.c` without arguments; `None`, said on stderr, where that cannot be tried.
    pub fn of(name: &str) -> Option<Self> {
        Self::built(name, &[])
    }

    /// The same compiled with more flags.
    pub fn built(name: &str, flags: &[&str]) -> Option<Self> {
        let place = Place::to_record()?;
        let program = build(name, flags)?;
        Some(Self { place, command: vec![program.display().to_string()], environment: Vec::new(), code: 0 })
    }

    /// The same with arguments.
    pub fn with(mut self, arguments: &[&str]) -> Self {
        self.command.extend(arguments.iter().map(|&word| word.to_owned()));
        self
    }
}

/// Runs the program alone: it must be right without being recorded.
fn alone(trial: &Trial) -> Option<Ended> {
    let ended = Kept::start(&trial.place.empty("alone"), &trial.environment, &trial.command)?.end();
    check_right(trial, &ended);
    Some(ended)
}

/// It has ended as it should, and found nothing wrong.
pub fn check_right(trial: &Trial, ended: &Ended) {
    assert_eq!(ended.status, format!("exited {}", trial.code), "{:?}: {ended:?}", trial.command);
    assert!(is_right(&ended.stdout), "{:?}: {ended:?}", trial.command);
}

/// Whether this is what a program says when it finds nothing wrong.
pub fn is_right(stdout: &str) -> bool {
    stdout.lines().count() == 1 && !stdout.contains("VIOLATION")
}

/// Runs it alone and recorded, and compares. Returns what was recorded.
pub fn check(trial: &Trial) -> Option<Contents> {
    check_run(trial).map(|dir| Contents::of(&dir.join("hbbp.data")))
}

/// The same, where there need not be any bursts. Returns where it was recorded.
pub fn check_run(trial: &Trial) -> Option<PathBuf> {
    let alone = alone(trial)?;
    let dir = trial.place.empty("recorded");
    let recorded = Kept::start(&dir, &trial.environment, &tracer::record_command(&trial.command))?.end();
    check_same(&alone, &recorded);
    Some(dir)
}

/// Both have ended in the same way.
pub fn check_same(alone: &Ended, recorded: &Ended) {
    let said = &recorded.stderr;
    assert_eq!(recorded.stdout, alone.stdout, "recorded, {}: {said}", recorded.status);
    assert_eq!(recorded.status, alone.status, "recorded: {said}");
    assert_eq!(recorded.orphans, alone.orphans, "recorded: {said}");
}
