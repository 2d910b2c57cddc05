//! A progress bar for work that takes long enough to be waited for.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use analyzer::Step;
use indicatif::{ProgressBar, ProgressStyle};

/// Shows nothing for the first moments, and nothing at all where standard error is no terminal.
pub struct Progress {
    started: Instant,
    terminal: bool,
    bar: Mutex<Option<ProgressBar>>,
}

const QUIET_FOR: Duration = Duration::from_millis(400);

impl Progress {
    /// Work begins now; nothing is shown before it has taken a while.
    pub fn new() -> Self {
        Progress { started: Instant::now(), terminal: std::io::stderr().is_terminal(), bar: Mutex::new(None) }
    }

    /// Shows a step of an analysis.
    pub fn step(&self, step: Step) {
        match step {
            Step::Reading { done, of } => self.show("reading samples", done, of),
            Step::Counting { done, of } => self.show("counting blocks", done as u64, of as u64),
        }
    }

    /// Shows how much is done.
    pub fn show(&self, message: &'static str, done: u64, of: u64) {
        if !self.terminal || self.started.elapsed() < QUIET_FOR {
            return;
        }
        let Ok(mut bar) = self.bar.try_lock() else { return };
        let bar = bar.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{msg:>20} [{bar:40}] {percent:>3}% {eta}");
            ProgressBar::new(1).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        bar.set_message(message);
        bar.set_length(of.max(1));
        bar.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Ok(bar) = self.bar.get_mut()
            && let Some(bar) = bar
        {
            bar.finish_and_clear();
        }
    }
}
