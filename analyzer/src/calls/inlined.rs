//! What was inlined into the functions that ran: frames after theirs, where debug information tells them.
//!
//! Which instructions of a function are of what was inlined is known, and how often each was executed, but not in which context: a function's
//! parts are the same in all of its contexts. Where in a caller a call was is not known, so what was inlined into callers is not shown.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use foldhash::HashMap as FastMap;

use crate::address::Svma;
use crate::calls::FunctionKey;
use crate::calls::contexts::{CalledFunction, Calls};
use crate::code::{FunctionId, demangle, instructions};
use crate::counting::Code;
use crate::lines::{ScopeId, SourceIndex};
use crate::recording::ModuleId;
use crate::{Analysis, CountedModule};

/// After the names of functions that were inlined, as `perf` writes it.
const INLINED: &str = " (inlined)";

/// So many functions that were inlined into one another are shown, the outermost.
const MOST_FRAMES: usize = 32;

/// What is less of all instructions is not divided: so no more than a million contexts are added.
const LEAST: f64 = 1e-6;

/// By function, the part of its instructions that each chain of inlined functions executed, outermost first; the largest parts come first.
type Parts = HashMap<usize, Vec<(Vec<usize>, f64)>>;

impl Calls {
    /// The same contexts with what was inlined into the functions that ran. Also what is wrong with debug information, in words. `threads` read it.
    /// LBR call stacks stay as they are: periods of samples are not divided as executed instructions are.
    pub fn with_inlined(mut self, analysis: &Analysis, threads: usize) -> (Calls, Vec<String>) {
        if self.events.is_some() {
            return (self, Vec::new());
        }
        let mut inlined = Inlined::default();
        for (index, function) in self.functions.iter().enumerate() {
            inlined.indexes.insert(function.clone(), index);
        }
        inlined.functions = std::mem::take(&mut self.functions);
        for module in &analysis.counted {
            inlined.add(module, threads);
        }
        let mut found: BTreeMap<Vec<usize>, f64> = BTreeMap::new();
        let parts = inlined.parts();
        for (frames, instructions) in &self.contexts {
            let frames = self.frames.get(frames.clone()).unwrap_or_default();
            let mut rest = *instructions;
            for (chain, part) in frames.last().and_then(|ran| parts.get(ran)).into_iter().flatten() {
                let of_chain = part * instructions;
                // The largest come first.
                if of_chain <= LEAST * self.instructions {
                    break;
                }
                *found.entry([frames, chain].concat()).or_default() += of_chain;
                rest -= of_chain;
            }
            // Nothing but what rounding leaves is no context.
            if rest > 1e-9 * instructions {
                *found.entry(frames.to_vec()).or_default() += rest;
            }
        }
        self.set(inlined.functions, found);
        (self, inlined.notes.into_iter().collect())
    }
}

#[derive(Default)]
struct Inlined {
    functions: Vec<CalledFunction>,
    indexes: HashMap<CalledFunction, usize>,
    /// Executed instructions by function that was called and chain of what was inlined into it.
    sums: BTreeMap<(usize, Vec<usize>), f64>,
    notes: BTreeSet<String>,
}

impl Inlined {
    /// The instructions of a module.
    fn add(&mut self, module: &CountedModule, threads: usize) {
        let (Code::Read(code), Some(index)) = (&module.counts.code, module.source(threads)) else { return };
        self.notes.extend(index.notes().iter().cloned());
        let id = module.counts.module;
        let mut called: FastMap<FunctionId, Option<usize>> = FastMap::default();
        let mut sums: BTreeMap<(usize, Option<ScopeId>), f64> = BTreeMap::new();
        for counted in module.blocks.iter().filter(|block| block.count.count > 0.0) {
            let Some(block) = code.blocks.blocks().get(counted.index as usize) else { continue };
            let function = called.entry(block.function).or_insert_with(|| {
                let function = FunctionKey::of(id, &code.functions, block.function).function()?;
                let name = demangle(&code.functions.name(function));
                self.indexes.get(&CalledFunction { name, module: id }).copied()
            });
            let Some(function) = *function else { continue };
            for instruction in instructions(&code.binary.image, block) {
                let scope = index.at(Svma(instruction.ip())).map(|span| span.scope);
                *sums.entry((function, scope)).or_default() += counted.count.count;
            }
        }
        let mut chains: HashMap<ScopeId, Vec<usize>> = HashMap::new();
        for ((function, scope), executed) in sums {
            let chain = match scope {
                None => Vec::new(),
                Some(scope) => chains.entry(scope).or_insert_with(|| self.chain(&index, scope, id)).clone(),
            };
            *self.sums.entry((function, chain)).or_default() += executed;
        }
    }

    /// The functions that were inlined into one another there, outermost first.
    fn chain(&mut self, index: &SourceIndex, scope: ScopeId, module: ModuleId) -> Vec<usize> {
        let caller = |scope: &ScopeId| index.scope(*scope).caller.map(|(caller, _)| caller);
        let mut scopes: Vec<ScopeId> = std::iter::successors(Some(scope), caller).collect();
        // The outermost is the function itself.
        scopes.pop();
        let named = scopes.iter().rev().take(MOST_FRAMES);
        let names = named.filter_map(|scope| index.function(index.scope(*scope)).demangled());
        names.map(|name| self.index(CalledFunction { name: name + INLINED, module })).collect()
    }

    fn index(&mut self, function: CalledFunction) -> usize {
        let next = self.functions.len();
        let index = *self.indexes.entry(function.clone()).or_insert(next);
        if index == next {
            self.functions.push(function);
        }
        index
    }

    /// The parts of each function that has any.
    fn parts(&self) -> Parts {
        let mut wholes: HashMap<usize, f64> = HashMap::new();
        for ((function, _), executed) in &self.sums {
            *wholes.entry(*function).or_default() += executed;
        }
        let mut parts = Parts::new();
        for ((function, chain), executed) in self.sums.iter().filter(|((_, chain), _)| !chain.is_empty()) {
            let whole = wholes.get(function).copied().unwrap_or_default();
            parts.entry(*function).or_default().push((chain.clone(), executed / whole));
        }
        parts.values_mut().for_each(|chains| chains.sort_by(|(_, one), (_, other)| other.total_cmp(one)));
        parts
    }
}
