//! `--pmu simulated`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, ensure};
use collector::plan::request::SimulationOptions;
use collector::simulation::{PmuSettings, SimulatedCore};
use collector::{SimulationStatistics, is_standard_output};
use formats::executions::Executions;

use crate::commands::record::sampling::SAMPLING;
use crate::output::count;

const HEADING: &str = "Simulated PMU (--pmu simulated)";

/// An example of it.
pub const EXAMPLE: &str = "  hbbp record --pmu simulated --expect seconds -- gzip -k file
                                               samples and branch stacks of a simulated PMU
";

/// What makes the samples, and what can be chosen of the simulated PMU.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct PmuArgs {
    /// What makes the samples: the machine, or simulated: a model of a PMU with branch records, which sees every instruction. It is slow,
    /// and not a measurement of any hardware [default: machine]
    #[arg(long, value_name = "PMU", value_parser = ["machine", "simulated"], help_heading = SAMPLING)]
    pmu: Option<String>,
    /// Core whose events are simulated, which decides how samples are taken: ivy-bridge (instructions by PREC_DIST, precise branches) or
    /// westmere (instructions by a precise event without PREC_DIST, branch stacks by interrupts) [default: ivy-bridge]
    #[arg(long, value_name = "CORE", help_heading = HEADING)]
    pmu_core: Option<SimulatedCore>,
    /// Entries of a branch stack, 2 to 64: Intel's CPUs have 16 up to Broadwell and 32 from Skylake on
    #[arg(long, value_name = "N", help_heading = HEADING)]
    lbr_depth: Option<usize>,
    /// Share of the branches that tend to be in the oldest entry of a stack, 0 to 1 [default: 0]
    #[arg(long, value_name = "SHARE", help_heading = HEADING)]
    lbr_bias: Option<f64>,
    /// Random seed: it chooses those branches and the random delays of samples
    #[arg(long, value_name = "N", help_heading = HEADING)]
    seed: Option<u64>,
}

impl PmuArgs {
    /// They as words, for another `hbbp`.
    pub fn words(&self) -> Vec<String> {
        let Self { pmu, pmu_core, lbr_depth, lbr_bias, seed } = self;
        let words = [
            pmu.as_ref().map(|pmu| format!("--pmu={pmu}")),
            pmu_core.map(|core| format!("--pmu-core={}", core.as_str())),
            lbr_depth.map(|depth| format!("--lbr-depth={depth}")),
            lbr_bias.map(|bias| format!("--lbr-bias={bias}")),
            seed.map(|seed| format!("--seed={seed}")),
        ];
        words.into_iter().flatten().collect()
    }

    /// Whether the PMU is simulated, and how, with defaults for what was left open.
    ///
    /// # Errors
    /// It is not, and something was chosen of it.
    pub fn options(&self) -> anyhow::Result<Option<SimulationOptions>> {
        let Self { pmu, pmu_core, lbr_depth, lbr_bias, seed } = self;
        if pmu.as_deref() != Some("simulated") {
            let is_used = pmu_core.is_some() || lbr_depth.is_some() || lbr_bias.is_some() || seed.is_some();
            ensure!(!is_used, "--pmu-core, --lbr-depth, --lbr-bias and --seed are for --pmu simulated");
            return Ok(None);
        }
        let default = PmuSettings::default();
        let pmu = PmuSettings {
            core: pmu_core.unwrap_or(default.core),
            depth: lbr_depth.unwrap_or(default.depth),
            bias: lbr_bias.unwrap_or(default.bias),
            seed: seed.unwrap_or(default.seed),
        };
        Ok(Some(SimulationOptions { pmu, only_steps: false }))
    }
}

/// What a simulation writes beside the recording, and how it runs.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = HEADING)]
pub struct SimulationArgs {
    /// Write exact counts of every instruction to this file (JSON), or - for standard output
    #[arg(long, value_name = "FILE")]
    pub truth: Option<PathBuf>,
    /// Let the program execute everything itself, one instruction at a time: slow, to compare with
    #[arg(long, hide = true)]
    only_steps: bool,
}

impl SimulationArgs {
    /// Whether exact counts go to standard output.
    pub fn writes_to_standard_output(&self) -> bool {
        self.truth.as_deref().is_some_and(is_standard_output)
    }

    /// Puts them into what was chosen of a simulation.
    ///
    /// # Errors
    /// Nothing is simulated.
    pub fn ask(&self, simulation: Option<&mut SimulationOptions>) -> anyhow::Result<()> {
        match simulation {
            Some(options) => options.only_steps = self.only_steps,
            None => ensure!(self.truth.is_none() && !self.only_steps, "--truth is for --pmu simulated"),
        }
        Ok(())
    }
}

/// What was simulated, in a line.
pub fn line(done: &SimulationStatistics) -> String {
    let [instructions, branches, steps] =
        [done.instructions, done.taken_branches, done.stepped].map(|number| count(number as f64));
    format!(
        "  simulated: {instructions} instructions, {branches} taken branches; {steps} instructions were not interpreted"
    )
}

/// Where exact counts go.
pub struct TruthFile {
    path: PathBuf,
    /// `None` is standard output.
    file: Option<File>,
    /// Whether nothing of that name was there.
    new: bool,
}

impl TruthFile {
    /// Opens the file, before a command runs for nothing; `-` is standard output. What is in it stays until it is known that the
    /// command runs.
    pub fn open(path: PathBuf) -> anyhow::Result<Self> {
        if is_standard_output(&path) {
            return Ok(Self { path, file: None, new: false });
        }
        let new = fs::symlink_metadata(&path).is_err();
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { path, file: Some(file), new })
    }

    /// The path as the user gave it, for messages.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Writes exact executions of every instruction, by file and offset, in place of what is in the file.
    pub fn write(self, done: &SimulationStatistics) -> anyhow::Result<()> {
        let executions = Executions::new(done.truth.instructions().collect());
        let failed = || format!("writing {}", self.path.display());
        self.truncate().with_context(failed)?;
        let out: Box<dyn Write> = match &self.file {
            Some(file) => Box::new(file),
            None => Box::new(io::stdout()),
        };
        let mut out = BufWriter::new(out);
        serde_json::to_writer(&mut out, &executions).with_context(failed)?;
        out.flush().with_context(failed)
    }

    /// Leaves nothing in the file: the command ran, and has no counts.
    pub fn empty(self) {
        let _ = self.truncate();
    }

    /// Leaves everything as it was: no command ran.
    pub fn abandon(self) {
        if self.new {
            let _ = fs::remove_file(&self.path);
        }
    }

    fn truncate(&self) -> io::Result<()> {
        match &self.file {
            // A device or a pipe has no length.
            Some(file) if file.metadata()?.is_file() => file.set_len(0),
            _ => Ok(()),
        }
    }
}
