//! How many of the intervals hold the truth.

use std::borrow::Cow;
use std::collections::BTreeMap;

use iced_x86::Mnemonic;
use instructions::mnemonic_name;

use crate::Analysis;
use crate::code::FunctionId;
use crate::uncertainty::Sampled;
use crate::validation::Estimate;
use crate::validation::code_counts::{ModuleRows, Row};
use crate::validation::counts::{Column, Counts};
use crate::validation::worst::pieces;

/// Rows of less, by truth and estimate, say nothing of intervals.
pub const LEAST_SHARE: f64 = 0.005;

/// How many rows have the truth in the interval of their share by the hybrid, of those that have at least [`LEAST_SHARE`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Coverage {
    /// Rows with an interval.
    pub rows: usize,
    /// Those whose interval holds the truth.
    pub held: usize,
    /// Rows without an interval: the recording does not tell.
    pub unknown: usize,
    /// Share of the truth's instructions that is in rows with an interval, 0 to 1.
    pub weight: f64,
    /// In rows whose interval holds it.
    pub held_weight: f64,
}

impl Coverage {
    /// Share of the rows whose interval holds the truth, 0 to 1; `None` without any.
    pub fn share(&self) -> Option<f64> {
        (self.rows > 0).then(|| self.held as f64 / self.rows as f64)
    }

    /// The same, each row weighing its instructions.
    pub fn weighted(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.held_weight / self.weight)
    }
}

/// The coverage of the rows of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Coverages {
    /// By mnemonic.
    pub mnemonic: Coverage,
    /// By function; `None` where the truth has no blocks.
    pub function: Option<Coverage>,
    /// By block.
    pub block: Option<Coverage>,
}

const HYBRID: Column = Column::Whole(Estimate::Hybrid);

/// Estimates with their replicates.
pub(super) struct Intervals<'a> {
    analysis: &'a Analysis,
    /// By module and block of the analysis.
    sampled: Vec<Cow<'a, [Sampled]>>,
}

impl<'a> Intervals<'a> {
    pub fn of(analysis: &'a Analysis) -> Self {
        Intervals { analysis, sampled: analysis.counted.iter().map(|module| module.sampled_blocks()).collect() }
    }

    /// The coverage of rows of these modules; mnemonics are those of `all`, and have these shares of truth and estimate.
    pub fn coverages(
        &self,
        modules: &[&ModuleRows],
        all: &[&ModuleRows],
        mnemonics: &BTreeMap<String, Counts>,
        has_blocks: bool,
    ) -> Coverages {
        let whole = self.whole(all);
        let mut by_mnemonic: BTreeMap<Mnemonic, Sampled> = BTreeMap::new();
        for row in all.iter().flat_map(|module| module.rows.values()) {
            self.add(by_mnemonic.entry(row.mnemonic).or_default(), row, 1.0);
        }
        let mut mnemonic = Coverage::default();
        for (name, sampled) in &by_mnemonic {
            if let Some(shares) = mnemonics.get(mnemonic_name(*name)) {
                self.look_at(&mut mnemonic, shares, sampled, &whole);
            }
        }
        // The truth may have what the recording never saw.
        let seen = |name: &String| by_mnemonic.keys().any(|mnemonic| mnemonic_name(*mnemonic) == name);
        for (_, shares) in mnemonics.iter().filter(|(name, _)| !seen(name)) {
            self.look_at(&mut mnemonic, shares, &Sampled::default(), &whole);
        }
        let code = || self.coverages_of_code(modules);
        let (function, block) = if has_blocks { Some(code()) } else { None }.unzip();
        Coverages { mnemonic, function, block }
    }

    fn coverages_of_code(&self, modules: &[&ModuleRows]) -> (Coverage, Coverage) {
        let whole = self.whole(modules);
        let mut totals = Counts::default();
        modules.iter().for_each(|module| totals.add(&module.total()));
        let mut functions: BTreeMap<(usize, Option<FunctionId>), (Counts, Sampled)> = BTreeMap::new();
        let (mut function, mut block) = (Coverage::default(), Coverage::default());
        for (place, module) in modules.iter().enumerate() {
            for row in module.rows.values() {
                let (shares, sampled) = functions.entry((place, row.function)).or_default();
                shares.add(&row.counts.shares(&totals));
                self.add(sampled, row, 1.0);
            }
            for piece in pieces(module, &totals) {
                let mut sampled = Sampled::default();
                self.add(&mut sampled, &piece.first, piece.instructions as f64);
                self.look_at(&mut block, &piece.shares, &sampled, &whole);
            }
        }
        functions.values().for_each(|(shares, sampled)| self.look_at(&mut function, shares, sampled, &whole));
        (function, block)
    }

    /// The replicates of the instructions of all rows.
    fn whole(&self, modules: &[&ModuleRows]) -> (f64, Sampled) {
        let (mut count, mut sampled) = (0.0, Sampled::default());
        for row in modules.iter().flat_map(|module| module.rows.values()) {
            count += row.counts.get(HYBRID);
            self.add(&mut sampled, row, 1.0);
        }
        (count, sampled)
    }

    fn add(&self, sum: &mut Sampled, row: &Row, times: f64) {
        if let Some(place) = row.block {
            sum.add(&self.sampled[place.module as usize][place.block as usize], times);
        }
    }

    fn look_at(&self, coverage: &mut Coverage, shares: &Counts, sampled: &Sampled, (count, all): &(f64, Sampled)) {
        let (truth, estimate) = (shares.get(Column::Truth), shares.get(HYBRID));
        if truth.max(estimate) < LEAST_SHARE {
            return;
        }
        let interval = self.analysis.design.share((estimate * count, sampled), (*count, all));
        let Some(half_width) = interval.half_width else {
            coverage.unknown += 1;
            return;
        };
        coverage.rows += 1;
        coverage.weight += truth;
        if (truth - estimate).abs() <= half_width {
            coverage.held += 1;
            coverage.held_weight += truth;
        }
    }
}
