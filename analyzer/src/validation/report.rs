//! The whole comparison.

use std::collections::BTreeMap;

use crate::binaries::{Binary, BinarySearch, hex};
use crate::code::{FunctionId, FunctionTable, Image, demangle, variants};
use crate::counting::Code;
use crate::recording::ModuleKind;
use crate::truth::{NotComparable, Truth, TruthIndex};
use crate::validation::code_counts::{Column, Counts, ModuleRows};
use crate::validation::metrics::{Shares, mnemonic_shares};
use crate::validation::worst::{Piece, pieces, worst_block};
use crate::validation::{Estimate, Named, Quality, Side, Uncompared, WorstBlock};
use crate::{Analysis, CountedModule};

/// The finished comparison.
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
    /// Largest contribution to the block error of the hybrid first.
    pub worst: Vec<WorstBlock>,
}

/// A function and its module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeName {
    /// Place in [`Validation::modules`].
    pub module: usize,
    /// Demangled.
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
    comparison.finish(halves.is_some(), worst)
}

struct Comparison<'a> {
    analysis: &'a Analysis,
    truth: &'a Truth,
    index: TruthIndex<'a>,
    /// By place in the truth.
    compared: BTreeMap<usize, Module<'a>>,
    /// What the recording has of modules of which the truth has no blocks.
    others: ModuleRows,
    left_out: Vec<Uncompared>,
    /// Instructions of the truth, and of the recording.
    totals: (f64, f64),
}

struct Module<'a> {
    path: String,
    code: ModuleCode<'a>,
    rows: ModuleRows,
}

enum ModuleCode<'a> {
    OfAnalysis(&'a Image, &'a FunctionTable),
    OfTruth(Box<(Binary, FunctionTable)>),
}

impl ModuleCode<'_> {
    fn parts(&self) -> (&Image, &FunctionTable) {
        match self {
            ModuleCode::OfAnalysis(image, functions) => (image, functions),
            ModuleCode::OfTruth(opened) => (&opened.0.image, &opened.1),
        }
    }

    fn name(&self, function: Option<FunctionId>) -> Option<String> {
        Some(demangle(&self.parts().1.name(function?)))
    }
}

impl<'a> Comparison<'a> {
    fn new(analysis: &'a Analysis, truth: &'a Truth) -> Self {
        let totals = (truth.counted as f64, analysis.instructions());
        let mut comparison = Comparison {
            analysis,
            truth,
            index: TruthIndex::of(truth),
            compared: BTreeMap::new(),
            others: ModuleRows::default(),
            left_out: Vec::new(),
            totals,
        };
        for left in &truth.left_out {
            comparison.leave_out(Side::Truth, left.what.clone(), left.instructions as f64);
        }
        comparison
    }

    fn leave_out(&mut self, side: Side, what: String, instructions: f64) {
        let total = if side == Side::Truth { self.totals.0 } else { self.totals.1 };
        if instructions > 0.0 && total > 0.0 {
            self.left_out.push(Uncompared { side, what, share: instructions / total });
        }
    }

    fn find(&self, of: &Analysis, module: &CountedModule) -> Result<usize, NotComparable> {
        match module.counts.code {
            Code::Read(_) => {
                let path = &of.modules.get(module.counts.module).path;
                self.index.find(of.build_id(module).as_deref(), path)
            }
            Code::Unread { .. } => Err(NotComparable::Unread),
        }
    }

    /// The modules that the recording saw running.
    fn add_recorded(&mut self) {
        let analysis = self.analysis;
        for (place, module) in analysis.counted.iter().enumerate() {
            let recorded = analysis.modules.get(module.counts.module);
            let found = self.find(analysis, module).and_then(|found| {
                let Code::Read(code) = &module.counts.code else { return Err(NotComparable::Unread) };
                if let std::collections::btree_map::Entry::Vacant(free) = self.compared.entry(found) {
                    let (image, functions) = (&code.binary.image, &code.functions);
                    let mut rows = ModuleRows::default();
                    rows.add_truth(&self.truth.modules[found], image, functions)?;
                    let code = ModuleCode::OfAnalysis(image, functions);
                    free.insert(Module { path: recorded.path.clone(), code, rows });
                }
                Ok(found)
            });
            match found.map(|found| self.compared.get_mut(&found)) {
                Ok(Some(compared)) => compared.rows.add_estimates(place, module, None),
                Ok(None) => {}
                Err(why) => {
                    if !recorded.kind.is_kernel() {
                        self.others.add_estimates(place, module, None);
                    }
                    let what = match recorded.kind.is_kernel() {
                        true => format!("{}: the truth is of user code only", recorded.path),
                        false => format!("{}: {why}", recorded.path),
                    };
                    self.leave_out(Side::Recording, what, module.instructions());
                }
            }
        }
    }

    /// The modules that were there when it was recorded, but were never seen running, count 0 there.
    fn add_never_hit(&mut self, search: &BinarySearch) {
        let mut mapped: BTreeMap<usize, Result<_, NotComparable>> = BTreeMap::new();
        for (_, module) in self.analysis.modules.iter().filter(|(_, module)| module.kind == ModuleKind::File) {
            match self.index.find(module.build_id.as_deref().map(hex).as_deref(), &module.path) {
                Ok(found) => drop(mapped.insert(found, Ok(module))),
                Err(why @ NotComparable::OtherBinary { .. }) => {
                    if let Ok(found) = self.index.find(None, &module.path) {
                        mapped.entry(found).or_insert(Err(why));
                    }
                }
                Err(_) => {}
            }
        }
        for (place, of_truth) in self.truth.modules.iter().enumerate() {
            if self.compared.contains_key(&place) {
                continue;
            }
            let opened = match mapped.get(&place) {
                Some(Ok(module)) => search.open(module),
                Some(Err(why)) => Err(why.to_string()),
                None => Err("the recording does not name it".into()),
            };
            let added = opened.and_then(|binary| {
                let functions = binary.functions();
                let mut rows = ModuleRows::default();
                rows.add_truth(of_truth, &binary.image, &functions).map_err(|why| why.to_string())?;
                Ok(Module {
                    path: of_truth.path.clone(),
                    code: ModuleCode::OfTruth(Box::new((binary, functions))),
                    rows,
                })
            });
            match added {
                Ok(module) => drop(self.compared.insert(place, module)),
                Err(why) => {
                    let blocks = of_truth.blocks.iter();
                    let instructions =
                        blocks.map(|block| block.executions as f64 * f64::from(block.instructions)).sum();
                    self.leave_out(Side::Truth, format!("{}: {why}", of_truth.path), instructions);
                }
            }
        }
    }

    fn add_halves(&mut self, halves: Option<[&Analysis; 2]>) {
        for (number, half) in halves.into_iter().flatten().enumerate() {
            for (place, module) in half.counted.iter().enumerate() {
                let found = self.find(half, module).ok().and_then(|found| self.compared.get_mut(&found));
                match found {
                    Some(compared) => compared.rows.add_estimates(place, module, Some(number)),
                    None if half.modules.get(module.counts.module).kind.is_kernel() => {}
                    None => self.others.add_estimates(place, module, Some(number)),
                }
            }
        }
    }

    fn leave_out_variants(&mut self) {
        let mut sum = Counts::default();
        for module in self.compared.values_mut() {
            let (image, functions) = module.code.parts();
            let families = variants(image, functions);
            sum.add(&module.rows.take_variants(&families));
        }
        let what = "functions of which the CPU decides which one runs, other ones in truth and recording";
        self.leave_out(Side::Truth, what.into(), sum.get(Column::Truth));
        self.leave_out(Side::Recording, what.into(), sum.get(Column::Whole(Estimate::Hybrid)));
    }

    fn finish(mut self, has_halves: bool, worst: usize) -> Result<Validation, NothingInCommon> {
        let modules: Vec<&ModuleRows> = self.compared.values().map(|module| &module.rows).collect();
        let mut totals = Counts::default();
        modules.iter().for_each(|module| totals.add(&module.total()));
        let mut shares = Shares::of(&modules);
        let mnemonics_of_all_code = !self.truth.mnemonics.is_empty();
        if mnemonics_of_all_code {
            let all: Vec<&ModuleRows> = modules.iter().copied().chain([&self.others]).collect();
            shares.mnemonics = mnemonic_shares(&all, &self.truth.mnemonics);
        }
        let hybrid = Column::Whole(Estimate::Hybrid);
        let both = |counts: &Counts| counts.get(Column::Truth) > 0.0 && counts.get(hybrid) > 0.0;
        if !both(&totals)
            && !(mnemonics_of_all_code && shares.mnemonics.values().any(|counts| counts.get(hybrid) > 0.0))
        {
            return Err(NothingInCommon(self.left_out.into_iter().map(|left| left.what).collect()));
        }
        self.left_out.sort_by(|a, b| a.side.cmp(&b.side).then(b.share.total_cmp(&a.share)).then(a.what.cmp(&b.what)));
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
