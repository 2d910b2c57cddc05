//! What stands for `--pmu simulated` without the cargo feature `simulated-pmu`.

use std::path::PathBuf;

use collector::SimulationStatistics;
use collector::plan::request::SimulationOptions;

/// An example of a simulated PMU: none.
pub const EXAMPLE: &str = "";

/// What makes the samples: the machine.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct PmuArgs {
    /// What makes the samples: the machine
    #[arg(long, value_name = "PMU", value_parser = ["machine"], hide = true)]
    pmu: Option<String>,
}

impl PmuArgs {
    /// They as words, for another `hbbp`.
    pub fn words(&self) -> Vec<String> {
        self.pmu.iter().map(|pmu| format!("--pmu={pmu}")).collect()
    }

    /// The PMU is not simulated.
    pub fn options(&self) -> anyhow::Result<Option<SimulationOptions>> {
        Ok(None)
    }
}

/// What a simulation writes beside the recording: nothing.
#[derive(clap::Args, Debug)]
pub struct SimulationArgs {
    /// Where exact executions of a simulation are written.
    #[arg(skip)]
    pub truth: Option<PathBuf>,
}

impl SimulationArgs {
    /// Whether exact counts go to standard output.
    pub fn writes_to_standard_output(&self) -> bool {
        false
    }

    /// Nothing is simulated.
    pub fn ask(&self, _: Option<&mut SimulationOptions>) -> anyhow::Result<()> {
        Ok(())
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
