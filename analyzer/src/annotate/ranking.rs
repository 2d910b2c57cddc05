//! The functions that ran, hottest first.

use std::collections::BTreeMap;

use crate::Analysis;
use crate::address::Svma;
use crate::annotate::time::{TimeShare, Times};
use crate::uncertainty::{Interval, Sampled, SampledBlocks};

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
    /// Its share of the time; `None` where the recording does not tell time and instructions apart.
    pub time: Option<TimeShare>,
}

/// All functions with counts whose names are known, those with the most executed instructions first.
pub(super) fn ranking(analysis: &Analysis, blocks: &SampledBlocks<'_>) -> Vec<Ranked> {
    let instructions = analysis.instructions();
    let times = Times::of(analysis);
    let mut ranked = Vec::new();
    for (index, module) in analysis.counted.iter().enumerate() {
        // Parts of a function between which other symbols lie are one.
        let mut functions: BTreeMap<Svma, (String, f64, Sampled)> = BTreeMap::new();
        for (block, sampled) in blocks.of_module(index) {
            let Some(symbol) = module.function_symbol(block.index) else { continue };
            let name = || module.function_name(block.index).unwrap_or_default();
            let function = functions.entry(symbol);
            let (_, executed, sum) = function.or_insert_with(|| (name(), 0.0, Sampled::default()));
            *executed += block.count.count * block.size.instructions;
            sum.add(sampled, block.size.instructions);
        }
        ranked.extend(functions.into_iter().map(|(symbol, (name, executed, sampled))| {
            let executed_interval = analysis.design.interval(executed, &sampled);
            let share_interval = blocks.share((executed, &sampled));
            let share = if instructions > 0.0 { executed / instructions } else { 0.0 };
            let time = times.as_ref().map(|times| times.of_function(index, Some(symbol)));
            Ranked { module: index, symbol, name, executed, executed_interval, share, share_interval, time }
        }));
    }
    ranked.sort_by(|one, other| {
        let place = |of: &Ranked| (of.module, of.symbol);
        other.executed.total_cmp(&one.executed).then_with(|| place(one).cmp(&place(other)))
    });
    ranked
}
