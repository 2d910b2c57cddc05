//! Exact counts of a run: of all its processes and objects.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use crate::address::Svma;
use crate::binaries::{Binary, BinarySearch};
use crate::build_id::BuildId;
use crate::code::{FunctionTable, demangle};
use crate::recording::Module;
use crate::truth::stubs::{Placed, load_bias, place_skipped};
use crate::truth::{Callgrind, MixFile, UNKNOWN, executions};

/// How often everything in a run was executed, user code only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    /// Name and version of the tool that counted: `callgrind-3.19.0`.
    pub engine: String,
    /// The command that ran.
    pub command: String,
    /// How many processes it was.
    pub processes: u64,
    /// Instructions that the engine counted.
    pub counted: u64,
    /// The environment variables that pinned what libraries choose, if any.
    pub environment: BTreeMap<String, String>,
    /// Modules with blocks, by path.
    pub modules: Vec<TruthModule>,
    /// The part of `counted` that is in no block.
    pub left_out: Vec<LeftOut>,
    /// Instructions by mnemonic in all of the run, where the engine gives no blocks that can be placed.
    pub mnemonics: BTreeMap<String, u64>,
}

/// The blocks of a module that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TruthModule {
    /// Where its file was.
    pub path: String,
    /// Build id of that file; `None` where it has none, or the tool does not say.
    pub build_id: Option<BuildId>,
    /// The blocks that ran, by address; no two have an instruction in common.
    pub blocks: Vec<TruthBlock>,
}

/// A block and how often it ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TruthBlock {
    /// Address of the first instruction.
    pub start: Svma,
    /// After the last instruction.
    pub end: Svma,
    /// How many instructions they are.
    pub instructions: u32,
    /// How often it ran.
    pub executions: u64,
    /// Name of its function, demangled.
    pub function: Option<String>,
}

/// Instructions that were counted and are in no block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Which instructions they are, and why they are in no block: a sentence.
    pub what: String,
    /// How many instructions were executed.
    pub instructions: u64,
}

/// Why there are no exact counts.
#[derive(Debug, thiserror::Error)]
pub enum ExactError {
    /// Nothing to make them from.
    #[error("no instruction was counted in any of the files")]
    Nothing,
}

impl Truth {
    /// Instructions executed, of all blocks.
    pub fn instructions(&self) -> u64 {
        executed(&self.modules)
    }
}

/// Instructions executed in all blocks of these modules.
pub(crate) fn executed(modules: &[TruthModule]) -> u64 {
    let blocks = modules.iter().flat_map(|module| &module.blocks);
    blocks.map(|block| block.executions.saturating_mul(u64::from(block.instructions))).fold(0, u64::saturating_add)
}

/// Adds up what instrumentation wrote of the processes of a run.
#[derive(Debug)]
pub struct ExactCounter {
    search: BinarySearch,
    objects: BTreeMap<String, CountedObject>,
    codes: HashMap<String, Rc<ObjectCode>>,
    engines: BTreeSet<String>,
    command: String,
    processes: BTreeSet<u64>,
    counted: u64,
    left_out: Reasons,
    mnemonics: BTreeMap<String, u64>,
}

#[derive(Debug)]
struct CountedObject {
    code: Rc<ObjectCode>,
    counts: BTreeMap<Svma, u64>,
}

impl CountedObject {
    fn of(code: Rc<ObjectCode>) -> Self {
        CountedObject { code, counts: BTreeMap::new() }
    }

    fn add(&mut self, at: Svma, count: u64) {
        let sum = self.counts.entry(at).or_default();
        *sum = sum.saturating_add(count);
    }
}

#[derive(Debug)]
enum ObjectCode {
    Read(Box<Binary>, FunctionTable),
    Unread(String),
}

impl ExactCounter {
    /// Nothing yet. `search` finds the objects' files.
    pub fn new(search: BinarySearch) -> Self {
        ExactCounter {
            search,
            objects: BTreeMap::new(),
            codes: HashMap::new(),
            engines: BTreeSet::new(),
            command: String::new(),
            processes: BTreeSet::new(),
            counted: 0,
            left_out: Reasons::default(),
            mnemonics: BTreeMap::new(),
        }
    }

    /// Adds a file of callgrind.
    pub fn add_callgrind(&mut self, mut profile: Callgrind) {
        self.engines.insert(profile.creator.clone());
        if self.command.is_empty() {
            self.command.clone_from(&profile.command);
        }
        // Of old versions that do not say it, each file is a process.
        self.processes.insert(profile.pid.unwrap_or(u64::MAX - self.processes.len() as u64));
        self.counted = self.counted.saturating_add(profile.total);
        let unknown = profile.objects.remove(UNKNOWN).unwrap_or_default();
        let mut placed = Placed::default();
        let mut binding = 0;
        for (path, object) in &mut profile.objects {
            if let ObjectCode::Read(binary, functions) = &*self.code(path) {
                binding += place_skipped(&binary.image, functions, object);
                if let Some(bias) = load_bias(&binary.image, object) {
                    placed.add(path, &binary.image, bias);
                }
            }
        }
        placed.sort();
        self.left_out.add("lazy binding of functions in stubs (PLT)", binding);
        for (at, count) in [unknown.counts, unknown.after_calls].into_iter().flatten() {
            match placed.find(at) {
                Some((path, at)) => {
                    *profile.objects.entry(path.to_string()).or_default().counts.entry(at).or_default() += count;
                }
                None => self.left_out.add(NO_OBJECT, count),
            }
        }
        for (path, object) in profile.objects {
            let code = self.code(&path);
            let sum = self.objects.entry(path).or_insert_with(|| CountedObject::of(code));
            [object.counts, object.after_calls].into_iter().flatten().for_each(|(at, count)| sum.add(at, count));
        }
    }

    /// Adds a file of Intel SDE's or Pin's mix tool. Blocks of images whose place the file does not tell serve for the mnemonics only.
    pub fn add_mix_file(&mut self, mix: MixFile) {
        self.engines.insert(mix.engine.clone());
        self.processes.insert(u64::MAX - self.processes.len() as u64);
        let total = mix.total();
        self.counted = self.counted.saturating_add(total);
        let mut in_blocks = 0_u64;
        for ((image, at), count) in mix.counts {
            let Some(path) = image else { continue };
            let code = self.code(&path);
            let ObjectCode::Read(binary, _) = &*code else { continue };
            let image = &binary.image;
            // Other images are loaded anywhere, and the file does not say where.
            let at = Some(Svma(at)).filter(|_| image.base_vaddr().0 != 0);
            if let Some(at) = at.filter(|&at| image.is_executable(at)) {
                self.objects.entry(path).or_insert_with(|| CountedObject::of(code.clone())).add(at, count);
                in_blocks = in_blocks.saturating_add(count);
            }
        }
        self.left_out.add(
            "instructions in no block of the file, or in images whose place it does not tell",
            total.saturating_sub(in_blocks),
        );
        for (mnemonic, count) in mix.mnemonics {
            let sum = self.mnemonics.entry(mnemonic).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    /// The sums as executions of blocks.
    ///
    /// # Errors
    /// There are no counts.
    pub fn finish(self) -> Result<Truth, ExactError> {
        if self.counted == 0 {
            return Err(ExactError::Nothing);
        }
        let mut left_out = self.left_out;
        let mut modules = Vec::new();
        for (path, object) in self.objects {
            match &*object.code {
                ObjectCode::Read(binary, functions) => {
                    modules.push(exact_module(path, binary, functions, &object.counts, &mut left_out))
                }
                ObjectCode::Unread(why) => {
                    left_out.add(
                        &format!("code that cannot be read: {why}"),
                        object.counts.values().copied().fold(0, u64::saturating_add),
                    );
                }
            }
        }
        modules.retain(|module| !module.blocks.is_empty());
        Ok(Truth {
            engine: self.engines.into_iter().collect::<Vec<_>>().join(", "),
            command: self.command,
            processes: self.processes.len() as u64,
            counted: self.counted,
            environment: BTreeMap::new(),
            modules,
            left_out: left_out.0.into_iter().map(|(what, instructions)| LeftOut { what, instructions }).collect(),
            mnemonics: self.mnemonics,
        })
    }

    /// The code of an object, opened when it is first asked for.
    fn code(&mut self, path: &str) -> Rc<ObjectCode> {
        if let Some(known) = self.codes.get(path) {
            return known.clone();
        }
        let module = Module::file(path.to_string(), None);
        let code = Rc::new(match self.search.open(&module) {
            Ok(binary) => {
                let functions = binary.functions();
                ObjectCode::Read(Box::new(binary), functions)
            }
            Err(why) => ObjectCode::Unread(why.to_string()),
        });
        self.codes.insert(path.to_string(), code.clone());
        code
    }
}

const NO_OBJECT: &str = "code of no object (generated, or stubs of objects whose place is not known)";

/// Instructions in no block, by the reason.
#[derive(Debug, Default)]
struct Reasons(BTreeMap<String, u64>);

impl Reasons {
    fn add(&mut self, what: &str, instructions: u64) {
        if instructions > 0 {
            let sum = self.0.entry(what.to_string()).or_default();
            *sum = sum.saturating_add(instructions);
        }
    }
}

fn exact_module(
    path: String,
    binary: &Binary,
    functions: &FunctionTable,
    counts: &BTreeMap<Svma, u64>,
    left_out: &mut Reasons,
) -> TruthModule {
    let exact = executions(&binary.image, functions, counts);
    left_out.add("iterations of rep instructions: each execution counts once", exact.repetitions);
    left_out.add(&format!("addresses that are no code of {path}"), exact.outside);
    let block = |(&index, &executions): (&u32, &u64)| {
        let block = exact.blocks.blocks().get(index as usize)?;
        let function = Some(demangle(&functions.name(block.function)));
        let (start, end, instructions) = (block.start, block.end, block.instructions);
        Some(TruthBlock { start, end, instructions, executions, function })
    };
    let blocks = exact.executions.iter().filter_map(block).collect();
    TruthModule { path, build_id: binary.image.build_id().cloned(), blocks }
}
