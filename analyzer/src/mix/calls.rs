//! How often functions were called, by the names that a mix has for them.

use std::collections::{BTreeMap, HashMap};

use crate::Analysis;
use crate::address::Svma;
use crate::annotate::calls_of_functions;

/// Calls of all functions that ran. Functions of one name are one; where calls of one of them are not known, those of the name are not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calls {
    by_name: HashMap<String, Option<f64>>,
    /// By path of the module.
    by_module: HashMap<String, HashMap<String, Option<f64>>>,
}

impl Calls {
    pub(super) fn of(analysis: &Analysis) -> Self {
        let of_functions = calls_of_functions(analysis);
        let mut calls = Calls::default();
        for (index, module) in analysis.counted.iter().enumerate() {
            let path = &analysis.modules.get(module.counts.module).path;
            let ran = module.blocks.iter().map(|block| block.index);
            let by_symbol: BTreeMap<Svma, u32> =
                ran.filter_map(|block| Some((module.function_symbol(block)?, block))).collect();
            for (symbol, block) in by_symbol {
                let Some(name) = module.function_name(block) else { continue };
                let called = of_functions.get(&(index, symbol)).copied().flatten();
                let of_module = calls.by_module.entry(path.clone()).or_default();
                for sums in [of_module, &mut calls.by_name] {
                    let sum = sums.entry(name.clone()).or_insert(Some(0.0));
                    *sum = sum.zip(called).map(|(sum, called)| sum + called);
                }
            }
        }
        calls
    }

    /// How often a function was called: in one module, or in all that have one of that name. `None` where that is not known.
    pub fn of_function(&self, name: &str, module: Option<&str>) -> Option<f64> {
        let of = match module {
            Some(path) => self.by_module.get(path)?,
            None => &self.by_name,
        };
        of.get(name).copied().flatten()
    }
}
