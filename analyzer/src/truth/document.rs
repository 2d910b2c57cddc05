//! Counts of blocks as JSON: the list of `hbbp blocks --format json`; exact counts have the source `truth`.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use serde::{Deserialize, Serialize};

use crate::address::Svma;
use crate::build_id::BuildId;
use crate::truth::annotated::{self, AnnotatedDocument};
use crate::truth::{LeftOut, Truth, TruthBlock, TruthModule};

/// The document's shape and its version.
pub const SCHEMA: &str = "hbbp-blocks/1";

/// The source of exact counts, as `hbbp truth` names it.
const TRUTH: &str = "truth";

/// Why a document cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// It is no JSON, or JSON of another shape.
    #[error("it is no list of blocks as `hbbp truth` and `hbbp blocks` write them: {0}")]
    Json(#[from] serde_json::Error),
    /// It says that it is something else.
    #[error("its schema is `{0}`, expected `{SCHEMA}`: make it with `hbbp truth -o FILE -- COMMAND`")]
    Schema(String),
    /// It is a list of estimates.
    #[error("its counts come from `{0}`, not from instrumentation: make it with `hbbp truth -o FILE -- COMMAND`")]
    Source(String),
    /// A number of instructions that cannot be.
    #[error("it says that {0} instructions were executed")]
    Instructions(f64),
    /// A count that cannot be: above 2^53, for one.
    #[error("block {block} says it ran {count} times")]
    Count {
        /// Place of the block in the list, counted from 0.
        block: usize,
        /// The executions that it states.
        count: f64,
    },
    /// A block is of a module that is not there.
    #[error("block {block} is of module {module}, but there are {modules}")]
    Module {
        /// Place of the block in the list, counted from 0.
        block: usize,
        /// The index of a module that the block states.
        module: usize,
        /// How many there are.
        modules: usize,
    },
    /// A block that cannot be.
    #[error("block {block} says it has {instructions} instructions from {start:#x} to {end:#x}")]
    Block {
        /// Place of the block in the list, counted from 0.
        block: usize,
        /// The number of instructions that it states.
        instructions: u64,
        /// The first address that it states.
        start: u64,
        /// The address after its last instruction, as it states it.
        end: u64,
    },
    /// Blocks of a module have instructions in common.
    #[error("{path} has two blocks with the same code: {:#x} to {:#x} and {:#x} to {:#x}", .blocks[0].0, .blocks[0].1, .blocks[1].0, .blocks[1].1)]
    Overlap {
        /// Path of the module.
        path: String,
        /// First address, and address after the last.
        blocks: [(u64, u64); 2],
    },
}

/// Only what says whether the rest can be read.
#[derive(Deserialize)]
struct Kind {
    #[serde(default)]
    schema: String,
    #[serde(default)]
    source: String,
}

#[derive(Serialize, Deserialize)]
struct Document {
    schema: String,
    source: String,
    instructions: u64,
    head: Head,
    modules: Vec<Module>,
    blocks: Vec<Block>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    source: String,
    unit: String,
    engine: String,
    command: String,
    processes: u64,
    counted: u64,
    left_out: Vec<What>,
    environment: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    mnemonics: BTreeMap<String, u64>,
}

#[derive(Serialize, Deserialize)]
struct What {
    what: String,
    instructions: u64,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Module {
    pub path: String,
    pub build_id: Option<String>,
    pub read: bool,
}

#[derive(Serialize, Deserialize)]
struct Block {
    module: usize,
    start: u64,
    end: u64,
    instructions: u32,
    decoded: bool,
    function: Option<String>,
    ebs: u64,
    lbr: u64,
    count: u64,
    chosen: String,
    bias: bool,
    ebs_samples: u64,
    lbr_streams: u64,
}

/// What `hbbp blocks --format json` prints, as far as it is of use.
#[derive(Deserialize)]
pub(super) struct ListedDocument {
    pub source: String,
    pub instructions: f64,
    pub head: ListedHead,
    pub modules: Vec<Module>,
    pub blocks: Vec<ListedBlock>,
}

#[derive(Deserialize)]
pub(super) struct ListedHead {
    unit: String,
    degraded: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct ListedBlock {
    pub module: usize,
    pub start: u64,
    pub end: u64,
    pub instructions: u64,
    pub decoded: bool,
    pub function: Option<String>,
    pub count: f64,
}

/// Counts of blocks that `hbbp blocks --format json` printed.
#[derive(Clone, Debug)]
pub struct ListedBlocks {
    /// The modules, with their blocks whose code was read; executions are rounded, and are one at least.
    pub modules: Vec<TruthModule>,
    /// Whether it was printed of exact counts.
    pub is_exact: bool,
    /// Whether counts are executions; else they are relative.
    pub executions: bool,
    /// Executed instructions of all blocks, those that are not in the list, too.
    pub instructions: f64,
    /// Executed instructions of blocks whose code was not read: they cannot be placed.
    pub unread: f64,
    /// What was weaker in what it was printed of, in sentences.
    pub weaker: Vec<String>,
}

/// A list of blocks, whoever wrote it.
#[derive(Clone, Debug)]
pub enum BlockList {
    /// `hbbp truth`.
    Counted(Truth),
    /// `hbbp blocks`, or `hbbp annotate` of its functions.
    Listed(ListedBlocks),
}

impl BlockList {
    /// Reads either.
    ///
    /// # Errors
    /// It is something else, or contradicts itself.
    pub fn read_json(file: impl Read) -> Result<Self, DocumentError> {
        let (kind, text) = kind_and_text(file)?;
        Ok(match (kind.schema.as_str(), kind.source.as_str()) {
            (annotated::SCHEMA, _) => {
                let document: AnnotatedDocument = serde_json::from_slice(&text)?;
                Self::Listed(ListedBlocks::of_document(document.into())?)
            }
            (_, TRUTH) => Self::Counted(Truth::of_document(serde_json::from_slice(&text)?)?),
            _ => Self::Listed(ListedBlocks::of_document(serde_json::from_slice(&text)?)?),
        })
    }
}

impl ListedBlocks {
    fn of_document(document: ListedDocument) -> Result<Self, DocumentError> {
        /// Up to here, floating-point numbers are exact.
        const MOST: f64 = (1_u64 << 53) as f64;
        let ListedDocument { source, instructions, head, modules, blocks: listed } = document;
        if !(0.0..f64::INFINITY).contains(&instructions) {
            return Err(DocumentError::Instructions(instructions));
        }
        let (mut blocks, mut unread) = (Vec::new(), 0.0);
        for (index, block) in listed.into_iter().enumerate() {
            let ListedBlock { module, start, end, instructions, decoded, function, count } = block;
            if !(0.0..=MOST).contains(&count) {
                return Err(DocumentError::Count { block: index, count });
            }
            let Ok(of_block) = u32::try_from(instructions) else {
                return Err(DocumentError::Block { block: index, instructions, start, end });
            };
            if decoded {
                let count = if count > 0.0 { (count.round() as u64).max(1) } else { 0 };
                blocks.push(Block::new((module, start, end), of_block, count, function));
            } else {
                unread += count * f64::from(of_block);
            }
        }
        Ok(Self {
            modules: placed(modules, blocks)?,
            is_exact: source == "exact",
            executions: head.unit == "executions",
            instructions,
            unread,
            weaker: head.degraded,
        })
    }
}

/// What a document says it is, and its text.
fn kind_and_text(mut file: impl Read) -> Result<(Kind, Vec<u8>), DocumentError> {
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(serde_json::Error::io)?;
    let kind: Kind = serde_json::from_slice(&text)?;
    if ![SCHEMA, annotated::SCHEMA].contains(&kind.schema.as_str()) {
        return Err(DocumentError::Schema(kind.schema));
    }
    Ok((kind, text))
}

impl Block {
    /// One that ran so often.
    fn new((module, start, end): (usize, u64, u64), instructions: u32, count: u64, function: Option<String>) -> Self {
        let (chosen, bias, decoded) = (TRUTH.into(), false, true);
        let [ebs, lbr, ebs_samples, lbr_streams] = [0; 4];
        Block {
            module,
            start,
            end,
            instructions,
            decoded,
            function,
            ebs,
            lbr,
            count,
            chosen,
            bias,
            ebs_samples,
            lbr_streams,
        }
    }
}

impl Truth {
    /// Writes the document, in one line.
    ///
    /// # Errors
    /// `out` could not be written to.
    pub fn write_json(&self, mut out: impl Write) -> std::io::Result<()> {
        serde_json::to_writer(&mut out, &self.to_document())?;
        writeln!(out)
    }

    /// Reads a document that [`write_json`](Self::write_json) wrote.
    ///
    /// # Errors
    /// It is something else, or contradicts itself.
    pub fn read_json(file: impl Read) -> Result<Self, DocumentError> {
        let (kind, text) = kind_and_text(file)?;
        if kind.source != TRUTH || kind.schema != SCHEMA {
            return Err(DocumentError::Source(kind.source));
        }
        Self::of_document(serde_json::from_slice(&text)?)
    }

    fn to_document(&self) -> Document {
        let blocks = self.modules.iter().enumerate().flat_map(|(module, of)| {
            of.blocks.iter().map(move |block| {
                let place = (module, block.start.0, block.end.0);
                Block::new(place, block.instructions, block.executions, block.function.clone())
            })
        });
        let left_out = |left: &LeftOut| What { what: left.what.clone(), instructions: left.instructions };
        let module = |module: &TruthModule| Module {
            path: module.path.clone(),
            build_id: module.build_id.as_ref().map(BuildId::to_string),
            read: true,
        };
        Document {
            schema: SCHEMA.into(),
            source: TRUTH.into(),
            instructions: self.instructions(),
            head: Head {
                source: TRUTH.into(),
                unit: "executions".into(),
                engine: self.engine.clone(),
                command: self.command.clone(),
                processes: self.processes,
                counted: self.counted,
                left_out: self.left_out.iter().map(left_out).collect(),
                environment: self.environment.clone(),
                mnemonics: self.mnemonics.clone(),
            },
            modules: self.modules.iter().map(module).collect(),
            blocks: blocks.collect(),
        }
    }

    fn of_document(document: Document) -> Result<Self, DocumentError> {
        let head = document.head;
        let left_out = |left: What| LeftOut { what: left.what, instructions: left.instructions };
        Ok(Truth {
            engine: head.engine,
            command: head.command,
            processes: head.processes,
            counted: head.counted,
            environment: head.environment,
            modules: placed(document.modules, document.blocks)?,
            left_out: head.left_out.into_iter().map(left_out).collect(),
            mnemonics: head.mnemonics,
        })
    }
}

/// The modules with their blocks, by address.
///
/// # Errors
/// A block is of no module, cannot be, or has code of another one.
fn placed(modules: Vec<Module>, blocks: Vec<Block>) -> Result<Vec<TruthModule>, DocumentError> {
    let empty = |module: Module| TruthModule {
        path: module.path,
        build_id: module.build_id.as_deref().and_then(BuildId::from_hex),
        blocks: Vec::new(),
    };
    let mut modules: Vec<TruthModule> = modules.into_iter().map(empty).collect();
    let known = modules.len();
    for (index, block) in blocks.into_iter().enumerate() {
        let module = modules.get_mut(block.module).ok_or(DocumentError::Module {
            block: index,
            module: block.module,
            modules: known,
        })?;
        // An instruction has a byte at least.
        if block.instructions == 0
            || block.start >= block.end
            || u64::from(block.instructions) > block.end - block.start
        {
            let Block { start, end, .. } = block;
            let instructions = block.instructions.into();
            return Err(DocumentError::Block { block: index, instructions, start, end });
        }
        module.blocks.push(TruthBlock {
            start: Svma(block.start),
            end: Svma(block.end),
            instructions: block.instructions,
            executions: block.count,
            function: block.function,
        });
    }
    for module in &mut modules {
        module.blocks.sort_by_key(|block| block.start);
        let range = |block: &TruthBlock| (block.start.0, block.end.0);
        let mut pairs = module.blocks.iter().zip(module.blocks.iter().skip(1));
        if let Some((first, next)) = pairs.find(|(first, next)| first.end > next.start) {
            let blocks = [range(first), range(next)];
            return Err(DocumentError::Overlap { path: module.path.clone(), blocks });
        }
    }
    Ok(modules)
}
