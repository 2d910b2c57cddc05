//! `--pmu simulated`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::Context;
use collector::plan::request::SimulationOptions;
use collector::simulation::{PmuSettings, SimulatedCore};
use collector::{SimulationStatistics, is_standard_output};
use formats::executions::Executions;

use crate::output::count;

/// What can make the samples.
pub const PMUS: [&str; 2] = ["machine", "simulated"];

/// An example of it.
pub const EXAMPLE: &str = "  hbbp record --pmu simulated --expect seconds -- gzip -k file
                                               samples and branch stacks of a simulated PMU
";

/// What can be chosen of the simulated PMU.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Simulated PMU (--pmu simulated)")]
pub struct SimulationArgs {
    /// Core whose events are simulated, which decides how samples are taken: ivy-bridge (instructions by PREC_DIST, precise branches) or
    /// westmere (instructions by a precise event without PREC_DIST, branch stacks by interrupts) [default: ivy-bridge]
    #[arg(long, value_name = "CORE")]
    pmu_core: Option<SimulatedCore>,
    /// Entries of a branch stack, 2 to 64: Intel's CPUs have 16 up to Broadwell and 32 from Skylake on
    #[arg(long, value_name = "N")]
    lbr_depth: Option<usize>,
    /// Share of the branches that tend to be in the oldest entry of a stack, 0 to 1 [default: 0]
    #[arg(long, value_name = "SHARE")]
    lbr_bias: Option<f64>,
    /// Random seed: it chooses those branches and the random delays of samples
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write exact counts of every instruction to this file (JSON), or - for standard output
    #[arg(long, value_name = "FILE")]
    pub truth: Option<PathBuf>,
    /// Let the program execute everything itself, one instruction at a time: slow, to compare with
    #[arg(long, hide = true)]
    only_steps: bool,
}

impl SimulationArgs {
    /// Whether any of it was asked for.
    pub fn is_used(&self) -> bool {
        let Self { pmu_core, lbr_depth, lbr_bias, seed, truth, only_steps } = self;
        pmu_core.is_some()
            || lbr_depth.is_some()
            || lbr_bias.is_some()
            || seed.is_some()
            || truth.is_some()
            || *only_steps
    }

    /// Whether exact counts go to standard output.
    pub fn writes_to_standard_output(&self) -> bool {
        self.truth.as_deref().is_some_and(is_standard_output)
    }

    /// The options, with defaults for what was left open.
    pub fn options(&self) -> SimulationOptions {
        let default = PmuSettings::default();
        let pmu = PmuSettings {
            core: self.pmu_core.unwrap_or(default.core),
            depth: self.lbr_depth.unwrap_or(default.depth),
            bias: self.lbr_bias.unwrap_or(default.bias),
            seed: self.seed.unwrap_or(default.seed),
        };
        SimulationOptions { pmu, only_steps: self.only_steps }
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
