//! The finished result: what each function executed, by who called it.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::CountedModule;
use crate::calls::{CallStackWalker, CallWalker, CallerTree, FunctionKey, NamedCode};
use crate::code::demangle;
use crate::counting::Code;
use crate::recording::{KnownFunctions, ModuleId, ModuleTable, base_name};

/// Executed instructions by calling context, as far as branch records show it.
///
/// What each function executed is what its blocks say that were counted: a mix has the same sums. Branch records say how that is shared
/// between its callers. Example: of 100 instructions of `f`, 2 of 4 bursts with equal weights saw it called by `main`, and 2 began in it and
/// never left it: `main -> f` has 50, `f` without a known caller 50.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calls {
    /// All functions of the contexts, by name and module.
    pub functions: Vec<CalledFunction>,
    /// The counts are numbers of executed instructions; otherwise they are only proportional to them.
    pub executions: bool,
    /// The events whose LBR call stacks these are: what is called instructions here are periods of their samples.
    pub events: Option<String>,
    /// Instructions of all contexts.
    pub instructions: f64,
    /// Of them, those executed where the caller is known.
    pub with_caller: f64,
    /// Of them, those in functions that no branch record shows running: only samples do.
    pub without_branches: f64,
    /// Of them, those whose outer callers were left out for want of room.
    pub cut: f64,
    /// Frames that there was room for.
    pub depth: u32,
    /// Bursts or stacks that were walked.
    pub walks: u64,
    /// How often such a walk could not go on from what it knew of callers, and began anew.
    pub lost: u64,
    pub(super) contexts: Vec<(Range<usize>, f64)>,
    pub(super) frames: Vec<usize>,
}

/// A function in contexts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CalledFunction {
    /// Its name, demangled; of code that was not read `[unread code of libc.so.6]`.
    pub name: String,
    /// Its module.
    pub module: ModuleId,
}

/// What was executed in a function that was called in one way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallContext<'a> {
    /// The outermost known caller, the function that it called, .., what ran: indexes of [`Calls::functions`].
    pub frames: &'a [usize],
    /// Instructions that the last of them executed itself.
    pub instructions: f64,
}

impl Calls {
    /// All contexts in which something was executed, sorted by their frames.
    pub fn contexts(&self) -> impl ExactSizeIterator<Item = CallContext<'_>> {
        self.contexts.iter().map(|(frames, instructions)| CallContext {
            frames: self.frames.get(frames.clone()).unwrap_or_default(),
            instructions: *instructions,
        })
    }

    pub(crate) fn of(
        walked: &CallWalker<'_>,
        counted: &[CountedModule],
        modules: &ModuleTable,
        executions: bool,
    ) -> Self {
        let counts = instructions_by_function(counted);
        let mut walked_sums: HashMap<FunctionKey, f64> = HashMap::new();
        let mut contexts: Vec<_> = walked.tree.contexts().collect();
        contexts.sort_unstable_by(|one, other| one.functions.cmp(&other.functions));
        for context in &contexts {
            if let Some(&ran) = context.functions.first() {
                *walked_sums.entry(ran).or_default() += context.instructions.to_f64();
            }
        }
        let mut calls = Calls {
            executions,
            depth: walked.tree.depth(),
            walks: walked.walks,
            lost: walked.lost,
            ..Calls::default()
        };
        let mut names = Names::of(counted, modules);
        let mut found: BTreeMap<Vec<usize>, f64> = BTreeMap::new();
        for context in contexts {
            let Some(ran) = context.functions.first() else { continue };
            let by_walks = walked_sums.get(ran).copied().unwrap_or(0.0);
            let counted = counts.get(ran).copied().unwrap_or(0.0);
            if by_walks <= 0.0 || counted <= 0.0 {
                continue;
            }
            let instructions = context.instructions.to_f64() / by_walks * counted;
            let cut = context.cut.to_f64() / by_walks * counted;
            calls.with_caller += if context.functions.len() > 1 { instructions } else { cut };
            calls.cut += cut;
            let frames = context.functions.iter().rev().map(|key| names.index(*key)).collect();
            *found.entry(frames).or_default() += instructions;
        }
        for (key, instructions) in counts {
            if instructions > 0.0 && !walked_sums.contains_key(&key) {
                calls.without_branches += instructions;
                *found.entry(vec![names.index(key)]).or_default() += instructions;
            }
        }
        calls.set(names.functions, found);
        calls
    }

    /// Of the LBR call stacks of these events.
    pub(crate) fn of_call_stacks(
        walked: &CallStackWalker<'_>,
        code: &NamedCode<'_>,
        (counted, modules): (&[CountedModule], &ModuleTable),
        events: String,
    ) -> Self {
        let mut calls =
            Calls { events: Some(events), depth: walked.tree.depth(), walks: walked.walks, ..Calls::default() };
        let mut names = Names { code: Some(code), ..Names::of(counted, modules) };
        let mut found: BTreeMap<Vec<usize>, f64> = BTreeMap::new();
        let mut contexts: Vec<_> = walked.tree.contexts().collect();
        contexts.sort_unstable_by(|one, other| one.functions.cmp(&other.functions));
        for context in contexts {
            let (periods, cut) = (context.instructions.to_f64(), context.cut.to_f64());
            calls.with_caller += if context.functions.len() > 1 { periods } else { cut };
            calls.cut += cut;
            let frames = context.functions.iter().rev().map(|key| names.index(*key)).collect();
            *found.entry(frames).or_default() += periods;
        }
        calls.set(names.functions, found);
        calls
    }

    /// Takes these contexts, whose frames are indexes of `functions`, in place of those that there are.
    pub(super) fn set(&mut self, functions: Vec<CalledFunction>, found: BTreeMap<Vec<usize>, f64>) {
        let (functions, places) = sorted(functions);
        let place = |frame: &usize| places.get(*frame).copied().unwrap_or_default();
        let mut sorted: Vec<(Vec<usize>, f64)> =
            found.into_iter().map(|(frames, count)| (frames.iter().map(place).collect(), count)).collect();
        sorted.sort_by(|one, other| one.0.cmp(&other.0));
        self.functions = functions;
        (self.instructions, self.frames, self.contexts) = (0.0, Vec::new(), Vec::new());
        for (frames, instructions) in sorted {
            self.instructions += instructions;
            let first = self.frames.len();
            self.frames.extend(frames);
            self.contexts.push((first..self.frames.len(), instructions));
        }
    }

    /// Whether everything that it refers to is there, of so many modules.
    pub(crate) fn is_sound(&self, modules: usize) -> bool {
        self.functions.iter().all(|function| (function.module.0 as usize) < modules)
            && self.frames.iter().all(|frame| *frame < self.functions.len())
    }

    /// Whether outer callers were left out beyond the usual depth.
    pub fn is_cut_for_room(&self) -> bool {
        self.depth < CallerTree::MOST_FRAMES
    }
}

/// What the blocks of each function executed, by the source that was chosen for each.
fn instructions_by_function(counted: &[CountedModule]) -> BTreeMap<FunctionKey, f64> {
    let mut sums = BTreeMap::new();
    for module in counted {
        let id = module.counts.module;
        for block in &module.blocks {
            let key = match &module.counts.code {
                Code::Read(code) => match code.blocks.blocks().get(block.index as usize) {
                    Some(block) => FunctionKey::of(id, &code.functions, block.function),
                    None => continue,
                },
                Code::Unread { blocks, functions, .. } => match blocks.get(block.index as usize) {
                    Some(block) => FunctionKey::named(id, functions, block.start),
                    None => continue,
                },
            };
            *sums.entry(key).or_default() += block.count.count * block.size.instructions;
        }
    }
    sums
}

/// The functions of contexts by name: those of one name in one module are one.
struct Names<'a> {
    /// Of modules that were not counted, too.
    code: Option<&'a NamedCode<'a>>,
    counted: BTreeMap<ModuleId, &'a CountedModule>,
    /// Of code that was not read.
    named: BTreeMap<ModuleId, &'a KnownFunctions>,
    modules: &'a ModuleTable,
    known: HashMap<FunctionKey, usize>,
    indexes: HashMap<CalledFunction, usize>,
    functions: Vec<CalledFunction>,
}

impl<'a> Names<'a> {
    fn of(counted: &'a [CountedModule], modules: &'a ModuleTable) -> Self {
        let of_module = |module: &'a CountedModule| match &module.counts.code {
            Code::Unread { functions, .. } => Some((module.counts.module, &**functions)),
            Code::Read(_) => None,
        };
        let recorded =
            modules.iter().map(|(id, module)| (id, &module.functions)).filter(|(_, known)| !known.is_empty());
        let named = recorded.chain(counted.iter().filter_map(of_module)).collect();
        // Where a module was read, what comes after it is what is no code of it.
        let counted = counted.iter().rev().map(|module| (module.counts.module, module)).collect();
        let (known, indexes, functions) = (HashMap::new(), HashMap::new(), Vec::new());
        Names { code: None, counted, named, modules, known, indexes, functions }
    }

    fn index(&mut self, key: FunctionKey) -> usize {
        if let Some(&index) = self.known.get(&key) {
            return index;
        }
        let module = key.module();
        let function = CalledFunction { name: self.name(key), module };
        let next = self.functions.len();
        let index = *self.indexes.entry(function.clone()).or_insert(next);
        if index == next {
            self.functions.push(function);
        }
        self.known.insert(key, index);
        index
    }

    fn name(&self, key: FunctionKey) -> String {
        if let Some(name) = self.code.and_then(|code| code.name(key)) {
            return name;
        }
        if let Some(name) = key.known().and_then(|index| self.named.get(&key.module())?.get(index)) {
            return demangle(&name.name);
        }
        let code = self.counted.get(&key.module()).map(|module| &module.counts.code);
        match (key.function(), code) {
            (Some(id), Some(Code::Read(code))) => demangle(&code.functions.name(id)),
            _ => {
                let path = &self.modules.get(key.module()).path;
                format!("[unread code of {}]", base_name(path))
            }
        }
    }
}

/// The functions in order, and by index of before which one each is now.
fn sorted(functions: Vec<CalledFunction>) -> (Vec<CalledFunction>, Vec<usize>) {
    let mut order: Vec<usize> = (0..functions.len()).collect();
    order.sort_by(|&one, &other| functions.get(one).cmp(&functions.get(other)));
    let mut places = vec![0; order.len()];
    for (place, &before) in order.iter().enumerate() {
        if let Some(of) = places.get_mut(before) {
            *of = place;
        }
    }
    let functions = order.iter().filter_map(|&before| functions.get(before).cloned()).collect();
    (functions, places)
}
