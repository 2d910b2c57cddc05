//! Exact counts for the blocks of an analysis, which are cut elsewhere than those of the truth.
//!
//! Both are taken apart into instructions: each instruction has the executions of the block that holds it. The reference of a block
//! is the mean of its instructions.

use std::collections::{BTreeMap, HashMap};

use iced_x86::Instruction;

use crate::address::Svma;
use crate::build_id::BuildId;
use crate::code::{Image, LONGEST_INSTRUCTION, instructions};
use crate::counting::Code;
use crate::truth::{Truth, TruthBlock, TruthModule};
use crate::{Analysis, CountedBlock, CountedModule};

/// The truth of every module of an analysis.
///
/// Example: of a block of 4 instructions the first 3 ran 100 times, the last 80 times (a signal handler jumped away, say): its reference
/// is 95 executions.
#[derive(Debug)]
pub struct Reference {
    modules: Vec<Result<ReferenceModule, NotComparable>>,
}

/// The executions of a module's instructions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReferenceModule {
    executions: BTreeMap<Svma, u64>,
}

/// Why there is no reference for a module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotComparable {
    /// Instrumentation sees user code only, and of that what has a file.
    #[error("the truth has no counts of it")]
    NotInTruth,
    /// The analysis did not read its code.
    #[error("the recording's code of it could not be read")]
    Unread,
    /// The truth was made with another file.
    #[error("another binary: the truth has build id {truth}, the recording {recording}")]
    OtherBinary {
        /// Build id of the file that the exact counts are of.
        truth: BuildId,
        /// Of the file that was read.
        recording: BuildId,
    },
    /// The blocks of the truth are not those of the file.
    #[error("another binary: the truth has a block at {0} that is not in the file")]
    OtherCode(Svma),
}

impl Reference {
    /// Finds the truth of every module of an analysis: by build id, or by path where one of them has none.
    pub fn of(analysis: &Analysis, truth: &Truth) -> Self {
        let index = TruthIndex::of(truth);
        let modules = analysis.counted.iter().map(|module| {
            let Code::Read(code) = &module.counts.code else { return Err(NotComparable::Unread) };
            let path = &analysis.modules.get(module.counts.module).path;
            let (_, found) = index.find(analysis.build_id(module), path)?;
            ReferenceModule::of(found, &code.binary.image)
        });
        Reference { modules: modules.collect() }
    }

    /// Of the module at this place in [`Analysis::counted`].
    ///
    /// # Errors
    /// Why there is none.
    pub fn module(&self, index: usize) -> Result<&ReferenceModule, &NotComparable> {
        self.modules.get(index).map_or(Err(&NotComparable::NotInTruth), Result::as_ref)
    }
}

impl ReferenceModule {
    /// The truth's counts of a module, whose file this is.
    ///
    /// # Errors
    /// The file has no such block.
    pub fn of(module: &TruthModule, image: &Image) -> Result<Self, NotComparable> {
        let mut executions = BTreeMap::new();
        for block in &module.blocks {
            for instruction in instructions_of(block, image)? {
                executions.insert(Svma(instruction.ip()), block.executions);
            }
        }
        Ok(ReferenceModule { executions })
    }

    /// How often the instruction at an address ran.
    pub fn executions_at(&self, address: Svma) -> u64 {
        self.executions.get(&address).copied().unwrap_or(0)
    }

    /// How often a block of the analysis ran: the mean of its instructions. `module` is what this is the reference of.
    pub fn executions(&self, module: &CountedModule, block: &CountedBlock) -> f64 {
        let Code::Read(code) = &module.counts.code else { return 0.0 };
        let Some(block) = code.blocks.blocks().get(block.index as usize) else { return 0.0 };
        let (mut sum, mut number) = (0.0, 0.0);
        for instruction in instructions(&code.binary.image, block) {
            sum += self.executions_at(Svma(instruction.ip())) as f64;
            number += 1.0;
        }
        if number > 0.0 { sum / number } else { 0.0 }
    }
}

/// Finds modules of the truth.
pub(crate) struct TruthIndex<'a> {
    by_path: HashMap<&'a str, (usize, &'a TruthModule)>,
    by_build_id: HashMap<&'a BuildId, (usize, &'a TruthModule)>,
}

impl<'a> TruthIndex<'a> {
    pub fn of(truth: &'a Truth) -> Self {
        let modules = || truth.modules.iter().enumerate();
        TruthIndex {
            by_path: modules().map(|found| (found.1.path.as_str(), found)).collect(),
            by_build_id: modules().filter_map(|found| Some((found.1.build_id.as_ref()?, found))).collect(),
        }
    }

    /// A module of the truth, and its place there: the one of the same build id, or of the same path where one of both has none.
    pub fn find(&self, build_id: Option<&BuildId>, path: &str) -> Result<(usize, &'a TruthModule), NotComparable> {
        if let Some(&same) = build_id.and_then(|id| self.by_build_id.get(id)) {
            return Ok(same);
        }
        let &found = self.by_path.get(path).ok_or(NotComparable::NotInTruth)?;
        match (&found.1.build_id, build_id) {
            (Some(truth), Some(recording)) => {
                Err(NotComparable::OtherBinary { truth: truth.clone(), recording: recording.clone() })
            }
            _ => Ok(found),
        }
    }
}

/// The instructions of a block of the truth.
pub(crate) fn instructions_of(block: &TruthBlock, image: &Image) -> Result<Vec<Instruction>, NotComparable> {
    let wrong = || NotComparable::OtherCode(block.start);
    let decoder = image.decoder(block.start, (block.end.0 - block.start.0).saturating_add(LONGEST_INSTRUCTION));
    let found: Vec<Instruction> = decoder
        .into_iter()
        .take(block.instructions as usize)
        .take_while(|instruction| !instruction.is_invalid())
        .collect();
    // The last instruction may reach beyond the end: code jumps over prefixes.
    let last = found.last().ok_or_else(wrong)?;
    let ends_there = last.ip() < block.end.0 && block.end.0 <= last.next_ip();
    if found.len() == block.instructions as usize && ends_there { Ok(found) } else { Err(wrong()) }
}
