//! The finished comparison.

use crate::Analysis;
use crate::binaries::BinarySearch;
use crate::truth::Truth;
use crate::validation::code_counts::ModuleRows;
use crate::validation::comparison::{Comparison, Module};
use crate::validation::counts::{Column, Counts};
use crate::validation::coverage::{Coverages, Intervals};
use crate::validation::metrics::{Shares, mnemonic_shares};
use crate::validation::worst::{Piece, pieces, worst_block};
use crate::validation::{Estimate, Named, Quality, Side, Uncompared, WorstBlock};

/// Estimates beside exact counts: everything a report of `hbbp validate` is made from.
#[derive(Clone, Debug)]
pub struct Validation {
    /// Paths of the modules compared.
    pub modules: Vec<String>,
    /// How good each estimate is, in the order of [`Estimate::ALL`]; `None` where the recording has no such source.
    pub qualities: [Option<Quality>; 3],
    /// Share of the truth's instructions that is compared, 0 to 1.
    pub compared_truth: f64,
    /// Share of the recording's instructions that is compared, 0 to 1.
    pub compared_recording: f64,
    /// What is not, largest first, the truth's before the recording's.
    pub left_out: Vec<Uncompared>,
    /// Largest share in the truth first.
    pub mnemonics: Vec<Named<String>>,
    /// The mnemonics are those of all user code: the truth counted them beside its blocks.
    pub mnemonics_of_all_code: bool,
    /// Largest error of the hybrid first.
    pub functions: Vec<Named<CodeName>>,
    /// How many intervals of the hybrid hold the truth.
    pub coverages: Coverages,
    /// Largest contribution to the block error of the hybrid first.
    pub worst: Vec<WorstBlock>,
}

/// A function and its module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeName {
    /// Its module, as an index in [`Validation::modules`].
    pub module: usize,
    /// Name of the function, demangled; `None` where no function is known.
    pub function: Option<String>,
}

/// Why there is nothing to compare.
#[derive(Debug, thiserror::Error)]
#[error("truth and recording have no code in common: {}", .0.join("; "))]
pub struct NothingInCommon(pub Vec<String>);

/// Compares. `halves` are analyses of two halves of the same recording; `search` finds files of modules that only the truth saw running;
/// `worst` says how many blocks are named.
///
/// # Errors
/// There is nothing in common.
pub fn validate(
    analysis: &Analysis,
    halves: Option<[&Analysis; 2]>,
    truth: &Truth,
    search: &BinarySearch,
    worst: usize,
) -> Result<Validation, NothingInCommon> {
    let mut comparison = Comparison::new(analysis, truth);
    comparison.add_recorded();
    comparison.add_never_hit(search);
    comparison.add_halves(halves);
    comparison.leave_out_variants();
    comparison.leave_out_rare_blocks();
    comparison.finish(halves.is_some(), worst)
}

impl Comparison<'_> {
    fn finish(mut self, has_halves: bool, worst: usize) -> Result<Validation, NothingInCommon> {
        let modules: Vec<&ModuleRows> = self.compared.values().map(|module| &module.rows).collect();
        let mut totals = Counts::default();
        modules.iter().for_each(|module| totals.add(&module.total()));
        let mut shares = Shares::of(&modules);
        let mnemonics_of_all_code = !self.truth.mnemonics.is_empty();
        let mut all = modules.clone();
        if mnemonics_of_all_code {
            all.extend(&self.others);
            shares.mnemonics = mnemonic_shares(&all, &self.truth.mnemonics);
        }
        let has_blocks = shares.code.iter().any(|shares| shares.get(Column::Truth) > 0.0);
        let coverages = Intervals::of(self.analysis).coverages(&modules, &all, &shares.mnemonics, has_blocks);
        self.left_out.sort_by(|a, b| a.side.cmp(&b.side).then(b.share.total_cmp(&a.share)).then(a.what.cmp(&b.what)));
        let hybrid = Column::Whole(Estimate::Hybrid);
        let both = |counts: &Counts| counts.get(Column::Truth) > 0.0 && counts.get(hybrid) > 0.0;
        if !both(&totals) && !shares.mnemonics.values().any(both) {
            const REASONS: usize = 3;
            let largest = |side| self.left_out.iter().filter(move |left| left.side == side).take(REASONS);
            let reasons = [Side::Recording, Side::Truth].into_iter().flat_map(largest);
            return Err(NothingInCommon(reasons.map(|left| left.what.clone()).collect()));
        }
        let names: Vec<&Module<'_>> = self.compared.values().collect();
        let function_name = |module: usize, function| CodeName { module, function: names[module].code.name(function) };
        let (of_truth, of_recording) = self.totals;
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        Ok(Validation {
            modules: names.iter().map(|module| module.path.clone()).collect(),
            qualities: Estimate::ALL.map(|estimate| {
                let seen = shares.mnemonics.values().any(|counts| counts.get(Column::Whole(estimate)) > 0.0);
                seen.then(|| shares.quality(estimate, has_halves))
            }),
            compared_truth: share(totals.get(Column::Truth), of_truth),
            compared_recording: share(totals.get(hybrid), of_recording),
            left_out: self.left_out,
            mnemonics: shares.named_mnemonics(),
            mnemonics_of_all_code,
            functions: shares.named_functions(function_name),
            coverages,
            worst: worst_blocks(&names, &totals, self.analysis, worst),
        })
    }
}

fn worst_blocks(modules: &[&Module<'_>], totals: &Counts, analysis: &Analysis, number: usize) -> Vec<WorstBlock> {
    let mut all: Vec<(f64, usize, Piece)> = Vec::new();
    for (place, module) in modules.iter().enumerate() {
        for piece in pieces(&module.rows, totals) {
            let hybrid = piece.shares.get(Column::Whole(Estimate::Hybrid));
            all.push(((piece.shares.get(Column::Truth) - hybrid).abs(), place, piece));
        }
    }
    all.retain(|(contribution, ..)| *contribution > 0.0);
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2.start).cmp(&(b.1, b.2.start))));
    all.truncate(number);
    let name = |(_, place, piece): &(f64, usize, Piece)| {
        worst_block(*place, piece, modules[*place].code.name(piece.first.function), analysis)
    };
    all.iter().map(name).collect()
}
