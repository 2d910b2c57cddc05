//! LBR call stacks (`PERF_SAMPLE_BRANCH_CALL_STACK`): the hardware takes a call off its records when that returns, so a sample has the calls
//! that had not returned, newest first.
//!
//! ```text
//! main calls f, f calls g, g returns, f calls h, sample in h     branches: f -> h, main -> f     context: main f h
//! ```
//!
//! The code that runs is that of the sample's address, and callers are the functions of the calls. They hold no path, so nothing is known of
//! what ran between: contexts are samples by their periods.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::CountedModule;
use crate::address::Avma;
use crate::binaries::{Binary, BinarySearch};
use crate::calls::{CallerTree, FunctionKey};
use crate::code::{FunctionTable, demangle};
use crate::counting::{AnalysedModule, Code, Spots, is_kernel};
use crate::recording::{KnownFunctions, ModuleId, ModuleTable};
use crate::walks::{Space, SpaceId, WalkedStack, Walker};

/// The functions of all modules: of those that were counted, and of those that only called them, which are read when they are asked for.
pub struct NamedCode<'a> {
    counted: BTreeMap<ModuleId, &'a AnalysedModule>,
    /// The names of those that were counted, and not read.
    unread: BTreeMap<ModuleId, &'a KnownFunctions>,
    /// By id of the module; none of what cannot be read.
    others: Vec<OnceLock<Option<(Binary, FunctionTable)>>>,
    modules: &'a ModuleTable,
    search: BinarySearch,
    spots: &'a Spots,
    spaces: &'a [Space],
}

impl<'a> NamedCode<'a> {
    /// Of what was counted, and of what `search` finds.
    pub fn new(
        counted: &'a [CountedModule],
        modules: &'a ModuleTable,
        search: &BinarySearch,
        (spots, spaces): (&'a Spots, &'a [Space]),
    ) -> Self {
        let (mut read, mut unread) = (BTreeMap::new(), BTreeMap::new());
        for module in counted {
            match &module.counts.code {
                Code::Read(code) => {
                    read.entry(module.counts.module).or_insert(&**code);
                }
                Code::Unread { functions, .. } => {
                    unread.entry(module.counts.module).or_insert(&**functions);
                }
            }
        }
        let others = modules.iter().map(|_| OnceLock::new()).collect();
        let search = search.among(modules.iter().map(|(_, module)| module));
        NamedCode { counted: read, unread, others, modules, search, spots, spaces }
    }

    fn function(&self, space: SpaceId, at: Avma) -> Option<FunctionKey> {
        let space = self.spaces.get(space.0 as usize)?;
        let spot = self.spots.of(at, &space.view());
        let known = self.code(spot.module).and_then(|(binary, functions)| {
            let id = functions.at(binary.image.svma_of_file_offset(spot.offset.0)?)?;
            Some(FunctionKey::of(spot.module, functions, id))
        });
        let functions = || self.unread.get(&spot.module).copied().unwrap_or(&self.modules.get(spot.module).functions);
        let named = || FunctionKey::named(spot.module, functions(), spot.offset);
        Some(known.unwrap_or_else(named))
    }

    /// The name of a function of a module that was read.
    pub(super) fn name(&self, key: FunctionKey) -> Option<String> {
        let (_, functions) = self.code(key.module())?;
        Some(demangle(&functions.name(key.function()?)))
    }

    fn code(&self, module: ModuleId) -> Option<(&Binary, &FunctionTable)> {
        if let Some(code) = self.counted.get(&module) {
            return Some((&code.binary, &code.functions));
        }
        let open = || {
            let binary = self.search.open(self.modules.get(module)).ok()?;
            let functions = binary.functions();
            Some((binary, functions))
        };
        let (binary, functions) = self.others.get(module.0 as usize)?.get_or_init(open).as_ref()?;
        Some((binary, functions))
    }
}

/// Adds up the call stacks of samples.
pub struct CallStackWalker<'a> {
    code: &'a NamedCode<'a>,
    /// The contexts, by the periods of their samples.
    pub tree: CallerTree,
    /// Samples.
    pub walks: u64,
}

impl<'a> CallStackWalker<'a> {
    /// Nothing was added yet.
    pub fn new(code: &'a NamedCode<'a>) -> Self {
        let tree = CallerTree::new(CallerTree::MOST_NODES, CallerTree::MOST_FRAMES);
        CallStackWalker { code, tree, walks: 0 }
    }
}

impl Walker for CallStackWalker<'_> {
    fn walk(&mut self, stack: &WalkedStack<'_>) {
        let Some(ip) = stack.start else { return };
        // Records of the program alone say nothing of calls within the kernel, which the function that was called last has entered.
        let entered = stack.branches.last().map(|newest| newest.to).filter(|to| is_kernel(ip) && !is_kernel(*to));
        let callers = stack.branches.iter().rev().map(|branch| branch.from);
        let at = [ip].into_iter().chain(entered).chain(callers);
        let functions = at.filter_map(|at| self.code.function(stack.space, at));
        self.tree.add(functions, stack.weight);
        self.walks += 1;
    }

    fn merge(&mut self, other: Self) {
        self.tree.merge(&other.tree);
        self.walks += other.walks;
    }
}
