//! Which part of what ran is code that the other side has, too, wherever it lies there.

use std::collections::{BTreeMap, BTreeSet};

use crate::code::{block_hash, demangle};
use crate::counting::AnalysedModule;
use crate::flow::comparison::FunctionName;

/// A block of a function, or several with the same code.
#[derive(Clone, Copy, Debug, Default)]
struct Code {
    /// Executed instructions of each side.
    executed: [f64; 2],
    /// Whether each side has it, executed or not.
    is_on: [bool; 2],
}

impl Code {
    fn add(&mut self, other: &Code) {
        for side in 0..2 {
            self.executed[side] += other.executed[side];
            self.is_on[side] |= other.is_on[side];
        }
    }
}

/// The blocks of the functions that ran, by function and by what their code is.
#[derive(Clone, Debug, Default)]
pub(super) struct SameCode {
    functions: BTreeMap<FunctionName, BTreeMap<u64, Code>>,
}

impl SameCode {
    /// Adds the functions that ran of a file, which is on one side or both. `executed`: instructions of each block.
    pub fn add(&mut self, is_on: [bool; 2], module: &str, code: &AnalysedModule, executed: &[[f64; 2]]) {
        let blocks: Vec<_> = code.blocks.blocks().iter().zip(executed).collect();
        for blocks in blocks.chunk_by(|(one, _), (next, _)| one.function == next.function) {
            let has_run = blocks.iter().any(|(_, executed)| **executed != [0.0; 2]);
            let Some((first, _)) = blocks.first().filter(|_| has_run) else { continue };
            let function = Some(demangle(&code.functions.name(first.function)));
            let function = FunctionName { module: module.to_owned(), function };
            let by_hash = self.functions.entry(function).or_default();
            for (block, executed) in blocks {
                by_hash
                    .entry(block_hash(&code.binary.image, block))
                    .or_default()
                    .add(&Code { executed: **executed, is_on });
            }
        }
    }

    /// Functions of these names are one.
    pub fn join(&mut self, base: &FunctionName, names: &BTreeSet<&String>) {
        for name in names {
            let name = FunctionName { module: base.module.clone(), function: Some((*name).clone()) };
            if name == *base {
                continue;
            }
            let joined = self.functions.remove(&name).unwrap_or_default();
            let by_hash = self.functions.entry(base.clone()).or_default();
            for (hash, code) in joined {
                by_hash.entry(hash).or_default().add(&code);
            }
        }
    }

    /// Executed instructions of each side in blocks that the same function of the other side has, too.
    pub fn executed(&self) -> [f64; 2] {
        let common = self.functions.values().flat_map(BTreeMap::values).filter(|code| code.is_on == [true; 2]);
        common.fold([0.0; 2], |[before, after], code| [before + code.executed[0], after + code.executed[1]])
    }
}
