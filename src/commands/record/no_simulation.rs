//! What stands for `--pmu simulated` without the cargo feature `simulated-pmu`.

use std::path::{Path, PathBuf};

use collector::SimulationStatistics;
use collector::plan::request::SimulationOptions;

/// What can make the samples.
pub const PMUS: [&str; 1] = ["machine"];

/// An example of a simulated PMU: none.
pub const EXAMPLE: &str = "";

/// What can be chosen of the simulated PMU: nothing.
#[derive(clap::Args, Debug)]
pub struct SimulationArgs {
    /// Where exact executions of a simulation are written.
    #[arg(skip)]
    pub truth: Option<PathBuf>,
}

impl SimulationArgs {
    /// Whether any of it was asked for.
    pub fn is_used(&self) -> bool {
        false
    }

    /// The options, which nobody has.
    pub fn options(&self) -> SimulationOptions {
        SimulationOptions::default()
    }
}

/// What was simulated, in a line.
pub fn line(done: &SimulationStatistics) -> String {
    match *done {}
}

/// Writes exact executions of every instruction.
pub fn write_truth(_: &Path, done: &SimulationStatistics) -> anyhow::Result<()> {
    match *done {}
}
