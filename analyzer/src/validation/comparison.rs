//! Both sides gathered, module by module.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::binaries::{Binary, BinarySearch};
use crate::code::{FunctionId, FunctionTable, Image, demangle, variants};
use crate::counting::Code;
use crate::recording::ModuleKind;
use crate::truth::{NotComparable, Truth, TruthIndex, TruthModule};
use crate::validation::code_counts::ModuleRows;
use crate::validation::counts::{Column, Counts};
use crate::validation::{Estimate, Side, Uncompared};
use crate::{Analysis, CountedModule};

pub(super) struct Comparison<'a> {
    pub analysis: &'a Analysis,
    pub truth: &'a Truth,
    index: TruthIndex<'a>,
    /// By place in the truth.
    pub compared: BTreeMap<usize, Module<'a>>,
    /// What the recording has beside it: user code of which the truth has no blocks.
    pub others: Vec<ModuleRows>,
    pub left_out: Vec<Uncompared>,
    /// Instructions of the truth, and of the recording.
    pub totals: (f64, f64),
}

pub(super) struct Module<'a> {
    pub path: String,
    pub code: ModuleCode<'a>,
    pub rows: ModuleRows,
}

pub(super) enum ModuleCode<'a> {
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

    pub fn name(&self, function: Option<FunctionId>) -> Option<String> {
        Some(demangle(&self.parts().1.name(function?)))
    }
}

impl<'a> Comparison<'a> {
    pub fn new(analysis: &'a Analysis, truth: &'a Truth) -> Self {
        let totals = (truth.counted as f64, analysis.instructions());
        let mut comparison = Comparison {
            analysis,
            truth,
            index: TruthIndex::of(truth),
            compared: BTreeMap::new(),
            others: Vec::new(),
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

    fn find(&self, of: &Analysis, module: &CountedModule) -> Result<(usize, &'a TruthModule), NotComparable> {
        match module.counts.code {
            Code::Read(_) => {
                let path = &of.modules.get(module.counts.module).path;
                self.index.find(of.build_id(module), path)
            }
            Code::Unread { .. } => Err(NotComparable::Unread),
        }
    }

    /// The modules that the recording saw running.
    pub fn add_recorded(&mut self) {
        let analysis = self.analysis;
        for (place, module) in analysis.counted.iter().enumerate() {
            let recorded = analysis.modules.get(module.counts.module);
            let found = self.find(analysis, module).and_then(|(found, of_truth)| {
                let Code::Read(code) = &module.counts.code else { return Err(NotComparable::Unread) };
                if let Entry::Vacant(free) = self.compared.entry(found) {
                    let (image, functions) = (&code.binary.image, &code.functions);
                    let mut rows = ModuleRows::default();
                    rows.add_truth(of_truth, image, functions)?;
                    let code = ModuleCode::OfAnalysis(image, functions);
                    free.insert(Module { path: recorded.path.clone(), code, rows });
                }
                Ok(found)
            });
            match found.map(|found| self.compared.get_mut(&found)) {
                Ok(Some(compared)) => compared.rows.add_estimates(place, module, None),
                Ok(None) => {}
                Err(why) => {
                    self.add_other(recorded.kind, place, module, None);
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
    pub fn add_never_hit(&mut self, search: &BinarySearch) {
        let mut mapped: BTreeMap<usize, Result<_, NotComparable>> = BTreeMap::new();
        for (_, module) in self.analysis.modules.iter().filter(|(_, module)| module.kind == ModuleKind::File) {
            match self.index.find(module.build_id.as_ref(), &module.path) {
                Ok((found, _)) => drop(mapped.insert(found, Ok(module))),
                Err(why @ NotComparable::OtherBinary { .. }) => {
                    if let Ok((found, _)) = self.index.find(None, &module.path) {
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
                Some(Ok(module)) => search.open(module).map_err(|why| why.to_string()),
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

    pub fn add_halves(&mut self, halves: Option<[&Analysis; 2]>) {
        for (number, half) in halves.into_iter().flatten().enumerate() {
            for (place, module) in half.counted.iter().enumerate() {
                let found = self.find(half, module).ok().and_then(|(found, _)| self.compared.get_mut(&found));
                match found {
                    Some(compared) => compared.rows.add_estimates(place, module, Some(number)),
                    None => self.add_other(half.modules.get(module.counts.module).kind, place, module, Some(number)),
                }
            }
        }
    }

    fn add_other(&mut self, kind: ModuleKind, place: usize, module: &CountedModule, half: Option<usize>) {
        if !kind.is_kernel() {
            let mut rows = ModuleRows::default();
            rows.add_estimates(place, module, half);
            self.others.push(rows);
        }
    }

    /// Where the truth counted mnemonics beside its blocks, it has only the blocks that ran most.
    pub fn leave_out_rare_blocks(&mut self) {
        if self.truth.mnemonics.is_empty() {
            return;
        }
        let mut sum = Counts::default();
        for module in self.compared.values_mut() {
            let rare = module.rows.take_without_truth();
            sum.add(&rare.total());
            self.others.push(rare);
        }
        self.leave_out(
            Side::Recording,
            "blocks that the truth does not name".into(),
            sum.get(Column::Whole(Estimate::Hybrid)),
        );
    }

    pub fn leave_out_variants(&mut self) {
        let mut sum = Counts::default();
        for module in self.compared.values_mut() {
            let (image, functions) = module.code.parts();
            let families = variants(image, functions);
            sum.add(&module.rows.take_variants(&families));
        }
        let what = "functions chosen by the CPU at run time; the truth ran other ones than the recording";
        self.leave_out(Side::Truth, what.into(), sum.get(Column::Truth));
        self.leave_out(Side::Recording, what.into(), sum.get(Column::Whole(Estimate::Hybrid)));
    }
}
