//! Code that costs are told apart by: functions, and parts of them.

use std::collections::BTreeMap;

use crate::address::FileOffset;
use crate::code::{FunctionId, Terminator};
use crate::counting::{AnalysedModule, Code, ModuleCounts};
use crate::estimation::loops::Loops;
use crate::recording::{CodeKind, ModuleId, ModuleTable};

/// Code whose instructions are taken to cost the same: a function, or 1 KiB of code of which it is not known where functions end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Stratum {
    Function(ModuleId, u32),
    Region(ModuleId, u64),
}

/// Bytes of a region, as a power of two.
pub(super) const REGION_BITS: u32 = 10;

/// Bytes of a window, as a power of two.
const WINDOW_BITS: u32 = 8;

/// What a part of a stratum is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Extent {
    /// A short loop, by where it starts, without the loops inside of it.
    Loop(FileOffset),
    /// What is in no short loop of so many bytes.
    Bytes(u64),
}

/// A part of a stratum whose instructions are simulated together: its loops may be of very different speed.
pub(super) type Part = (Stratum, Extent);

/// What a stratum has of so many bytes: what its costs are wrong by is told apart by these.
pub(super) type Window = (Stratum, u64);

/// Finds the strata of places.
pub(super) struct Strata<'a> {
    pub modules: BTreeMap<ModuleId, &'a ModuleCounts>,
    pub loops: Loops,
}

impl Strata<'_> {
    /// The code of a module, if it was read.
    pub fn code(&self, module: ModuleId) -> Option<&AnalysedModule> {
        match &self.modules.get(&module)?.code {
            Code::Read(code) => Some(code),
            Code::Unread { .. } => None,
        }
    }

    /// What kind of code a module has.
    pub fn kind_of(&self, module: ModuleId, modules: &ModuleTable) -> CodeKind {
        let of = modules.get(module);
        self.modules.get(&module).map_or(of.kind_of_unread_code(), |counts| counts.code_kind(of))
    }

    pub fn of(&self, module: ModuleId, at: FileOffset) -> Stratum {
        let code = self.code(module);
        let function = code.and_then(|code| code.functions.at(code.binary.image.svma_of_file_offset(at.0)?));
        stratum(module, code, function, at)
    }

    /// Whether the block around a place ends in a branch within its function, as far as it was read: neither a call nor a return.
    pub fn jumps(&self, module: ModuleId, at: FileOffset) -> bool {
        let terminator = || {
            let (code, counts) = (self.code(module)?, self.modules.get(&module)?);
            Some(code.blocks.blocks()[counts.block_at(at)? as usize].terminator)
        };
        matches!(terminator(), Some(Terminator::Conditional | Terminator::Jump | Terminator::IndirectJump))
    }

    /// What a place is part of.
    pub fn extent(&self, module: ModuleId, at: FileOffset) -> Extent {
        self.loops.around(module, at).map_or(Extent::Bytes(at.0 >> WINDOW_BITS), Extent::Loop)
    }

    /// The window of the block around a place: all that a block executes is counted where it starts, and some are longer than a window.
    pub fn window_of(&self, module: ModuleId, at: FileOffset) -> Window {
        let counts = self.modules.get(&module);
        let of_block = counts.and_then(|counts| Some(self.window_of_block(counts, counts.block_at(at)?)));
        of_block.unwrap_or_else(|| (self.of(module, at), at.0 >> WINDOW_BITS))
    }

    pub fn window_of_block(&self, counts: &ModuleCounts, block: u32) -> Window {
        let (code, function, at) = match &counts.code {
            Code::Read(code) => {
                let block = &code.blocks.blocks()[block as usize];
                let at = code.binary.image.file_offset_of_svma(block.start).unwrap_or_default();
                (Some(&**code), Some(block.function), FileOffset(at))
            }
            Code::Unread { blocks, .. } => (None, None, blocks[block as usize].start),
        };
        (stratum(counts.module, code, function, at), at.0 >> WINDOW_BITS)
    }
}

fn stratum(module: ModuleId, code: Option<&AnalysedModule>, function: Option<FunctionId>, at: FileOffset) -> Stratum {
    match code.zip(function) {
        Some((code, function)) if code.functions.get(function).has_known_end => Stratum::Function(module, function.0),
        _ => Stratum::Region(module, at.0 >> REGION_BITS),
    }
}
