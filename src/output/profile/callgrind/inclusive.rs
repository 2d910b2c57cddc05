//! What functions and all that they called executed, by who called them: as far as branch records show it.

use std::collections::HashMap;

use analyzer::calls::Calls;
use analyzer::recording::ModuleTable;

/// Executed instructions by caller and callee.
pub struct InclusiveCosts {
    /// Functions by path of their module and name.
    functions: HashMap<(String, String), usize>,
    costs: HashMap<(usize, usize), f64>,
}

impl InclusiveCosts {
    /// Those of contexts. What one executed counts once for each pair of functions in it, however often the pair is there.
    pub fn of(calls: &Calls, modules: &ModuleTable) -> Self {
        let named = calls.functions.iter().enumerate();
        let functions = named.map(|(index, of)| ((modules.get(of.module).path.clone(), of.name.clone()), index));
        let mut costs: HashMap<(usize, usize), f64> = HashMap::new();
        for context in calls.contexts() {
            let mut pairs: Vec<(usize, usize)> =
                context.frames.iter().copied().zip(context.frames.iter().copied().skip(1)).collect();
            pairs.sort_unstable();
            pairs.dedup();
            for pair in pairs {
                *costs.entry(pair).or_default() += context.instructions;
            }
        }
        InclusiveCosts { functions: functions.collect(), costs }
    }

    /// The function of a name in the module of a path, if any context has it.
    pub fn function(&self, path: &str, name: &str) -> Option<usize> {
        self.functions.get(&(path.to_owned(), name.to_owned())).copied()
    }

    /// What a function executed, with all that it called, while another one had called it.
    pub fn of_pair(&self, caller: usize, callee: usize) -> f64 {
        self.costs.get(&(caller, callee)).copied().unwrap_or(0.0)
    }
}
