//! What the simulation did.

use std::collections::BTreeMap;

use formats::metadata::SimulationMetadata;

use crate::simulation::settings::PmuSettings;
use crate::simulation::truth::Truth;

/// What the simulation did.
#[derive(Clone, Debug, Default)]
pub struct SimulationStatistics {
    /// Whose events were simulated.
    pub core: &'static str,
    /// Entries of a branch stack.
    pub depth: usize,
    /// Share of the branches that tend to be in the oldest entry.
    pub bias: f64,
    /// The seed of the choice of these branches.
    pub seed: u64,
    /// Instructions executed, all of them.
    pub instructions: u64,
    /// Taken branches among them.
    pub taken_branches: u64,
    /// Instructions that the threads executed themselves, one at a time.
    pub stepped: u64,
    /// How often each reason made them do so.
    pub steps: BTreeMap<&'static str, u64>,
    /// Times memory and registers were written back.
    pub slices: u64,
    /// Signals the program got.
    pub signals: u64,
    /// Threads that were simulated.
    pub threads: u64,
    /// Processes that were simulated.
    pub processes: u64,
    /// Overflows that made no sample because one of the same event was due.
    pub merged: u64,
    /// Samples there was no room for.
    pub lost: u64,
    /// Samples that could not be written, which is a bug.
    pub unwritable: u64,
    /// Threads that went on without being simulated, by reason.
    pub not_followed: BTreeMap<&'static str, u64>,
    /// What went wrong, in sentences.
    pub failures: Vec<String>,
    /// How often each instruction was executed.
    pub truth: Truth,
}

impl SimulationStatistics {
    pub(super) fn new(settings: PmuSettings) -> Self {
        let PmuSettings { core, depth, bias, seed } = settings;
        Self { core: core.as_str(), depth, bias, seed, ..Self::default() }
    }

    /// What the metadata says of it.
    pub(crate) fn metadata(&self) -> SimulationMetadata {
        let histogram = |counts: &BTreeMap<&'static str, u64>| {
            Some(counts.iter().map(|(&name, &count)| (name.to_owned(), count)).collect())
        };
        SimulationMetadata {
            core: Some(self.core.to_owned()),
            depth: Some(self.depth as u64),
            bias: Some(self.bias),
            seed: Some(self.seed),
            instructions: Some(self.instructions),
            taken_branches: Some(self.taken_branches),
            stepped: Some(self.stepped),
            steps: histogram(&self.steps),
            slices: Some(self.slices),
            signals: Some(self.signals),
            threads: Some(self.threads),
            processes: Some(self.processes),
            merged: Some(self.merged),
            lost: Some(self.lost),
            unwritable: Some(self.unwritable),
            not_followed: histogram(&self.not_followed),
            failures: Some(self.failures.clone()),
        }
    }

    /// What is less than it could be, in sentences.
    pub(crate) fn degradations(&self) -> Vec<String> {
        let mut said = self.failures.clone();
        for (why, threads) in &self.not_followed {
            said.push(format!("simulated PMU: {threads} threads were not simulated to their end ({why})"));
        }
        if self.lost > 0 {
            said.push(format!("simulated PMU: {} samples are lost, there was no room for them", self.lost));
        }
        if self.unwritable > 0 {
            said.push(format!(
                "simulated PMU: {} samples could not be written into records and are lost, which is a bug",
                self.unwritable
            ));
        }
        if self.merged > 0 {
            said.push(format!(
                "simulated PMU: {} overflows came before the sample of the one before was taken; use longer periods",
                self.merged
            ));
        }
        said
    }
}
