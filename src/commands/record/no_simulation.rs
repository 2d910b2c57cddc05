//! What stands for `--pmu simulated` without the cargo feature `simulated-pmu`.

use std::path::PathBuf;

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

    /// Whether exact counts go to standard output.
    pub fn writes_to_standard_output(&self) -> bool {
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

/// Where exact counts go: nowhere.
pub enum TruthFile {}

impl TruthFile {
    /// Never called: no such file can be named.
    pub fn open(_: PathBuf) -> anyhow::Result<Self> {
        anyhow::bail!("there is no simulated PMU in this hbbp")
    }

    /// The path as the user gave it, for messages.
    pub fn name(&self) -> String {
        match *self {}
    }

    /// Writes exact executions of every instruction.
    pub fn write(self, _: &SimulationStatistics) -> anyhow::Result<()> {
        match self {}
    }

    /// Leaves nothing in the file.
    pub fn empty(self) {
        match self {}
    }

    /// Leaves everything as it was.
    pub fn abandon(self) {
        match self {}
    }
}
