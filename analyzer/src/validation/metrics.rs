//! Errors and overlaps, in shares of the code compared.
//!
//! Counts of a recording may be relative, so each side is divided by its own total. With r and m the shares of a mnemonic (or block, or
//! function) in truth and estimate, HBBP's error (section VI) is |r - m| / r, and the average weighted error
//!
//! ```text
//! sum over all  |r - m| / r  x  r   =   sum |r - m|
//! ```
//!
//! in which what only the recording has, r = 0, counts with its m. Blocks are compared on the union of the cuts of both sides: as all
//! instructions of a piece have the same counts on each side, cutting finer would change no sum.
//! The overlap (*Break Dancing*, table 4) is sum min(r, m).
//!
//! Noise: let a and b be the shares in two halves of the samples. If they vary by chance only, each as half a recording does, then
//! |a - b| / 2 varies as the error of the whole recording. What the error has beyond it, in quadrature, is bias.

use instructions::mnemonic_name;
use std::collections::BTreeMap;

use iced_x86::Mnemonic;

use crate::code::FunctionId;
use crate::validation::Estimate;
use crate::validation::code_counts::ModuleRows;
use crate::validation::counts::{Column, Counts};

/// An average weighted error, and how much of it is chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// 0 (none) to 2 (nothing in common).
    pub error: f64,
    /// What chance alone would make it; `None` where the recording was not divided.
    pub noise: Option<f64>,
}

impl Measure {
    /// What chance does not explain.
    pub fn bias(&self) -> Option<f64> {
        self.noise.map(|noise| (self.error * self.error - noise * noise).max(0.0).sqrt())
    }
}

/// How good an estimate is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// Errors by mnemonic, each weighing its instructions.
    pub mnemonic: Measure,
    /// By block and by function; `None` where the truth has no blocks.
    pub code: Option<CodeQuality>,
}

/// How good an estimate is at telling where the instructions ran.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CodeQuality {
    /// By block, each weighing its instructions.
    pub block: Measure,
    /// By function, each weighing its instructions.
    pub function: Measure,
    /// Overlap of the block profiles, 0 to 1.
    pub block_overlap: f64,
    /// Overlap of the function profiles, 0 to 1.
    pub function_overlap: f64,
}

/// A mnemonic or a function, with its share in the truth and in the estimates.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<N> {
    /// The mnemonic, or the function and its module.
    pub name: N,
    /// Share of all instructions of the truth that are compared, 0 to 1.
    pub truth: f64,
    /// The same in the estimates: EBS, branch stacks, hybrid.
    pub estimates: [f64; 3],
}

impl<N> Named<N> {
    fn of(name: N, shares: &Counts) -> Self {
        let estimates = Estimate::ALL.map(|estimate| shares.get(Column::Whole(estimate)));
        Named { name, truth: shares.get(Column::Truth), estimates }
    }

    /// What it adds to the average weighted error of the hybrid.
    pub fn contribution(&self) -> f64 {
        (self.truth - self.estimates[Estimate::Hybrid as usize]).abs()
    }

    /// The larger of its shares in the truth and in the hybrid.
    pub fn weight(&self) -> f64 {
        self.truth.max(self.estimates[Estimate::Hybrid as usize])
    }

    /// HBBP's error: |truth - estimate| / truth; `None` where the truth has none.
    pub fn error(&self, estimate: Estimate) -> Option<f64> {
        let difference = (self.truth - self.estimates[estimate as usize]).abs();
        (self.truth > 0.0).then(|| difference / self.truth)
    }
}

/// Shares of the code compared, grouped in three ways.
pub(super) struct Shares {
    pub mnemonics: BTreeMap<String, Counts>,
    /// By place of the module and function.
    pub functions: BTreeMap<(usize, Option<FunctionId>), Counts>,
    /// Shares of each instruction that ran on any side.
    pub code: Vec<Counts>,
}

impl Shares {
    pub fn of(modules: &[&ModuleRows]) -> Self {
        let mut totals = Counts::default();
        modules.iter().for_each(|module| totals.add(&module.total()));
        let mut functions: BTreeMap<(usize, Option<FunctionId>), Counts> = BTreeMap::new();
        let mut code = Vec::with_capacity(modules.iter().map(|module| module.rows.len()).sum());
        for (place, module) in modules.iter().enumerate() {
            for row in module.rows.values() {
                let shares = row.counts.shares(&totals);
                functions.entry((place, row.function)).or_default().add(&shares);
                code.push(shares);
            }
        }
        Shares { mnemonics: mnemonic_shares(modules, &BTreeMap::new()), functions, code }
    }

    pub fn quality(&self, estimate: Estimate, has_halves: bool) -> Quality {
        let whole = Column::Whole(estimate);
        let code = self.code.iter().any(|shares| shares.get(Column::Truth) > 0.0).then(|| CodeQuality {
            block: measure(self.code.iter(), estimate, has_halves),
            function: measure(self.functions.values(), estimate, has_halves),
            block_overlap: overlap(self.code.iter(), whole),
            function_overlap: overlap(self.functions.values(), whole),
        });
        Quality { mnemonic: measure(self.mnemonics.values(), estimate, has_halves), code }
    }

    /// Largest share in the truth first.
    pub fn named_mnemonics(&self) -> Vec<Named<String>> {
        let mut named: Vec<_> = self.mnemonics.iter().map(|(name, shares)| Named::of(name.clone(), shares)).collect();
        named.sort_by(|a, b| b.truth.total_cmp(&a.truth).then_with(|| a.name.cmp(&b.name)));
        named
    }

    /// Largest error of the hybrid first.
    pub fn named_functions<N>(&self, name: impl Fn(usize, Option<FunctionId>) -> N) -> Vec<Named<N>> {
        let mut named: Vec<_> =
            self.functions.iter().map(|(key, shares)| (*key, Named::of(name(key.0, key.1), shares))).collect();
        named.sort_by(|(a_key, a), (b_key, b)| b.contribution().total_cmp(&a.contribution()).then(a_key.cmp(b_key)));
        named.into_iter().map(|(_, named)| named).collect()
    }
}

/// Shares by mnemonic of all these instructions. Where the truth has counts by mnemonic beside its blocks, they are taken.
pub(super) fn mnemonic_shares(modules: &[&ModuleRows], truth: &BTreeMap<String, u64>) -> BTreeMap<String, Counts> {
    let mut by_mnemonic: BTreeMap<Mnemonic, Counts> = BTreeMap::new();
    for row in modules.iter().flat_map(|module| module.rows.values()) {
        by_mnemonic.entry(row.mnemonic).or_default().add(&row.counts);
    }
    let name = |(mnemonic, counts)| (mnemonic_name(mnemonic).to_string(), counts);
    let mut by_name: BTreeMap<String, Counts> = by_mnemonic.into_iter().map(name).collect();
    if !truth.is_empty() {
        by_name.values_mut().for_each(|counts| counts.increase(Column::Truth, -counts.get(Column::Truth)));
        for (name, &count) in truth {
            by_name.entry(name.clone()).or_default().increase(Column::Truth, count as f64);
        }
    }
    let mut totals = Counts::default();
    by_name.values().for_each(|counts| totals.add(counts));
    by_name.values_mut().for_each(|counts| *counts = counts.shares(&totals));
    by_name
}

fn measure<'a>(shares: impl Iterator<Item = &'a Counts> + Clone, estimate: Estimate, has_halves: bool) -> Measure {
    let difference =
        |a: Column, b: Column| -> f64 { shares.clone().map(|shares| (shares.get(a) - shares.get(b)).abs()).sum() };
    Measure {
        error: difference(Column::Truth, Column::Whole(estimate)),
        noise: has_halves.then(|| difference(Column::Half(0, estimate), Column::Half(1, estimate)) / 2.0),
    }
}

fn overlap<'a>(shares: impl Iterator<Item = &'a Counts>, column: Column) -> f64 {
    shares.map(|shares| shares.get(Column::Truth).min(shares.get(column))).sum()
}
