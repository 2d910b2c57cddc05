//! One unit for the counts of both sources.

use model::Source;
use serde::{Deserialize, Serialize};

use crate::counting::{BlockSize, BlockSums, Code, ModuleCounts};
use crate::recording::{EventKind, ModuleTable, SourceEvents, Sources, Weight};
use crate::uncertainty::Resampling;

/// Code that none of so many samples is in takes less than a quarter of the time, in 95 of 100 cases (1 - 0.05^(1/n)).
const MANY: u64 = 11;

/// Factors that bring the sources to one unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CountScale {
    /// What the periods of EBS samples are multiplied with.
    pub ebs: f64,
    /// What the weights of streams are multiplied with.
    pub lbr: f64,
    /// The counts are numbers of executions; otherwise they are only proportional to something.
    pub executions: bool,
    /// The one source that is used, where both cannot be brought to one unit.
    pub only: Option<Source>,
}

impl CountScale {
    /// Where both sources count executions they stand as they are. Where one does not, it is scaled so that both see the
    /// same number of instructions in the code that was read; where none was, in all code, by estimate. `samples`: how many EBS has.
    pub fn of(
        sources: &Sources,
        samples: u64,
        counted: &[ModuleCounts],
        modules: &ModuleTable,
        bytes_per_instruction: f64,
    ) -> Self {
        let plain = CountScale { ebs: 1.0, lbr: 1.0, executions: false, only: None };
        let ebs_executes = sources.ebs.as_ref().is_some_and(|ebs| ebs.kind == EventKind::Instructions);
        let lbr_executes = sources.lbr.as_ref().is_some_and(SourceEvents::streams_count_executions);
        let executions = ebs_executes || lbr_executes;
        let (Some(ebs), Some(lbr)) = (&sources.ebs, &sources.lbr) else { return CountScale { executions, ..plain } };
        if ebs_executes && lbr_executes {
            return CountScale { executions, ..plain };
        }
        let code = CodeOfBoth { ebs, lbr, counted, modules, bytes_per_instruction };
        let totals = |all_code| code.instructions_by_source(all_code);
        let seen_by_both = |(by_ebs, by_lbr): &(f64, f64)| *by_ebs > 0.0 && *by_lbr > 0.0;
        match Some(totals(false)).filter(seen_by_both).or_else(|| Some(totals(true)).filter(seen_by_both)) {
            Some((by_ebs, by_lbr)) if ebs_executes => CountScale { lbr: by_ebs / by_lbr, executions, ..plain },
            Some((by_ebs, by_lbr)) => CountScale { ebs: by_lbr / by_ebs, executions, ..plain },
            None => {
                let saw = |has: fn(&BlockSums) -> bool| {
                    counted.iter().flat_map(|module| &module.sums).any(|(_, _, sums)| has(sums))
                };
                // Samples see all code: where many are in none of what streams saw, that ran for a small part of the time. Stacks can all be
                // empty, or bursts all too short to reach a branch.
                let only = match (saw(|sums| sums.ebs_periods > 0), saw(|sums| sums.lbr_weight > Weight::default())) {
                    (true, true) if samples < MANY => Source::Lbr,
                    (true, _) => Source::Ebs,
                    (false, true) => Source::Lbr,
                    (false, false) if ebs_executes => Source::Ebs,
                    (false, false) => Source::Lbr,
                };
                let executions = if only == Source::Ebs { ebs_executes } else { lbr_executes };
                CountScale { executions, only: Some(only), ..plain }
            }
        }
    }

    /// The replicates of counts of this scale, which was made from the same sums.
    pub(crate) fn resampling(
        &self,
        sources: &Sources,
        counted: &[ModuleCounts],
        modules: &ModuleTable,
        bytes_per_instruction: f64,
    ) -> Resampling {
        Resampling::new(counted, self, |visit| {
            let (Some(ebs), Some(lbr)) = (&sources.ebs, &sources.lbr) else { return };
            let code = CodeOfBoth { ebs, lbr, counted, modules, bytes_per_instruction };
            let (by_ebs, by_lbr) = code.instructions_by_source(false);
            code.for_each_row(by_ebs == 0.0 || by_lbr == 0.0, visit);
        })
    }

    /// How often a block of that size ran, by one of the sources.
    pub fn executions_by(&self, source: Source, sums: &BlockSums, size: BlockSize) -> f64 {
        match source {
            Source::Ebs => sums.ebs_periods as f64 / size.instructions.max(1.0) * self.ebs,
            Source::Lbr => sums.lbr_weight.to_f64() * self.lbr,
        }
    }
}

/// Code of the kinds that both sources see.
struct CodeOfBoth<'a> {
    ebs: &'a SourceEvents,
    lbr: &'a SourceEvents,
    counted: &'a [ModuleCounts],
    modules: &'a ModuleTable,
    bytes_per_instruction: f64,
}

impl CodeOfBoth<'_> {
    /// Instructions that each source saw in it: in the modules that were read, or in all.
    fn instructions_by_source(&self, all_code: bool) -> (f64, f64) {
        let (mut by_ebs, mut by_lbr) = (0.0, 0.0);
        self.for_each_row(all_code, &mut |module, row, instructions| {
            let (_, _, sums) = &module.sums[row];
            by_ebs += sums.ebs_periods as f64;
            by_lbr += sums.lbr_weight.to_f64() * instructions;
        });
        (by_ebs, by_lbr)
    }

    /// Calls `visit` with each row of sums, and the number of instructions of its block.
    fn for_each_row(&self, all_code: bool, visit: &mut dyn FnMut(&ModuleCounts, usize, f64)) {
        let Self { ebs, lbr, .. } = self;
        for module in self.counted {
            let code = module.code_kind(self.modules.get(module.module));
            if !ebs.sees(code) || !lbr.sees(code) || !all_code && matches!(module.code, Code::Unread { .. }) {
                continue;
            }
            for (row, (_, index, _)) in module.sums.iter().enumerate() {
                visit(module, row, module.size_of(*index, self.bytes_per_instruction).instructions);
            }
        }
    }
}

/// Executed bytes per executed instruction in the code that could be read, for guessing the rest; 4 where there is none.
pub fn mean_instruction_length(modules: &[ModuleCounts]) -> f64 {
    const WHERE_NOTHING_WAS_READ: f64 = 4.0;
    let (mut bytes, mut instructions) = (0.0, 0.0);
    for module in modules.iter().filter(|module| matches!(module.code, Code::Read(_))) {
        for (_, index, sums) in &module.sums {
            let size = module.size_of(*index, WHERE_NOTHING_WAS_READ);
            let executions = sums.lbr_weight.to_f64() + sums.ebs_periods as f64 / size.instructions.max(1.0);
            bytes += executions * size.bytes as f64;
            instructions += executions * size.instructions;
        }
    }
    if instructions > 0.0 { bytes / instructions } else { WHERE_NOTHING_WAS_READ }
}
