//! The functions that ran, hottest first.

use std::collections::BTreeMap;

use crate::address::Svma;
use crate::code::demangle;
use crate::counting::Code;
use crate::uncertainty::{Interval, Sampled};
use crate::{Analysis, CountedModule};

/// A function that was seen.
#[derive(Clone, Debug)]
pub struct Ranked {
    /// Index in [`Analysis::counted`].
    pub module: usize,
    /// The address of its symbol.
    pub symbol: Svma,
    /// Its name, demangled.
    pub name: String,
    /// Instructions executed in it.
    pub executed: f64,
    /// How uncertain that is.
    pub executed_interval: Interval,
    /// Its share of all executed instructions, 0 to 1.
    pub share: f64,
    /// How uncertain that is.
    pub share_interval: Interval,
}

/// The replicates of all blocks, and of their sum.
pub(super) struct Replicated {
    /// By module and block, in the order of [`CountedModule::blocks`].
    pub blocks: Vec<Vec<Sampled>>,
    /// Of all executed instructions.
    pub whole: Sampled,
    pub instructions: f64,
}

impl Replicated {
    pub fn of(analysis: &Analysis) -> Self {
        let blocks: Vec<Vec<Sampled>> = analysis.counted.iter().map(CountedModule::sampled_blocks).collect();
        let mut whole = Sampled::default();
        for (module, sampled) in analysis.counted.iter().zip(&blocks) {
            module.blocks.iter().zip(sampled).for_each(|(block, sampled)| whole.add(sampled, block.size.instructions));
        }
        Replicated { blocks, whole, instructions: analysis.instructions() }
    }
}

/// All functions with counts in code that was read, those with the most executed instructions first.
pub(super) fn ranking(analysis: &Analysis, replicated: &Replicated) -> Vec<Ranked> {
    let mut ranked = Vec::new();
    for (index, (module, sampled)) in analysis.counted.iter().zip(&replicated.blocks).enumerate() {
        let Code::Read(code) = &module.counts.code else { continue };
        // Parts of a function between which other symbols lie are one.
        let mut functions: BTreeMap<Svma, (String, f64, Sampled)> = BTreeMap::new();
        for (block, sampled) in module.blocks.iter().zip(sampled) {
            let id = code.blocks.blocks()[block.index as usize].function;
            let name = || demangle(&code.functions.name(id));
            let function = functions.entry(code.functions.get(id).symbol);
            let (_, executed, sum) = function.or_insert_with(|| (name(), 0.0, Sampled::default()));
            *executed += block.count.count * block.size.instructions;
            sum.add(sampled, block.size.instructions);
        }
        ranked.extend(functions.into_iter().map(|(symbol, (name, executed, sampled))| {
            let all = (replicated.instructions, &replicated.whole);
            let executed_interval = analysis.design.interval(executed, &sampled);
            let share_interval = analysis.design.share((executed, &sampled), all);
            let share = if replicated.instructions > 0.0 { executed / replicated.instructions } else { 0.0 };
            Ranked { module: index, symbol, name, executed, executed_interval, share, share_interval }
        }));
    }
    ranked.sort_by(|one, other| {
        let place = |of: &Ranked| (of.module, of.symbol);
        other.executed.total_cmp(&one.executed).then_with(|| place(one).cmp(&place(other)))
    });
    ranked
}
