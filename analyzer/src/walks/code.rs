//! The code that streams run through, by function.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::address::{Avma, FileOffset, Svma};
use crate::code::{Block, Terminator};
use crate::counting::{
    AnalysedModule, Code, GroupId, KernelEntries, LocatedStream, ModuleCounts, Spot, UnreadBlock, is_kernel,
};
use crate::recording::{KnownFunctions, ModuleId, Weight};
use crate::uncertainty::SliceSums;
use crate::walks::{FunctionKey, Target, Transfer};
use perfdata::{Branch, BranchKind};

/// The code of all modules with counts.
pub struct WalkedCode<'a> {
    modules: BTreeMap<ModuleId, CodeOfModule<'a>>,
}

enum CodeOfModule<'a> {
    Read {
        code: &'a AnalysedModule,
        /// By block, the instructions of all blocks before it.
        instructions: Vec<u64>,
        /// The blocks that end with system calls.
        calls: Vec<usize>,
    },
    Unread {
        blocks: &'a [UnreadBlock],
        functions: &'a KnownFunctions,
        instructions: Vec<u64>,
    },
}

/// A block of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockKey {
    /// Its module.
    pub module: ModuleId,
    /// Its index there; [`BlockKey::NOWHERE`] where there is none.
    pub index: u32,
}

impl BlockKey {
    /// Of no block.
    pub const NOWHERE: u32 = u32::MAX;
}

/// Straight-line code of one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub function: FunctionKey,
    /// First block, and the one after the last, as indexes of blocks of the module.
    pub blocks: (u32, u32),
    /// Instructions of the blocks that are executed to their end: what blocks are counted by.
    pub instructions: u64,
}

/// A system call in a straight line.
#[derive(Clone, Copy, Debug)]
pub struct SystemCall {
    /// Its instruction.
    pub at: FileOffset,
    /// The instruction after it.
    pub after: FileOffset,
    /// Where it enters the kernel.
    pub entry: Spot,
}

/// Functions that a straight line runs through, most often one. What runs through more is no code that a compiler made.
const MOST_PARTS: usize = 64;

impl<'a> WalkedCode<'a> {
    /// Where a module was read, what comes after it in `counted` are samples at addresses that are no code of it.
    pub fn new(counted: impl Iterator<Item = &'a ModuleCounts>, bytes_per_instruction: f64) -> Self {
        let sums = |sizes: &mut dyn Iterator<Item = u64>| {
            let mut sum = 0_u64;
            let mut sums: Vec<u64> = vec![0];
            sums.extend(sizes.map(|size| {
                sum = sum.saturating_add(size);
                sum
            }));
            sums
        };
        let mut modules = BTreeMap::new();
        for counts in counted {
            modules.entry(counts.module).or_insert_with(|| match &counts.code {
                Code::Read(code) => {
                    let mut sizes = code.blocks.blocks().iter().map(|block| u64::from(block.instructions));
                    let is_call =
                        |(index, block): (usize, &Block)| (block.terminator == Terminator::SystemCall).then_some(index);
                    let calls = code.blocks.blocks().iter().enumerate().filter_map(is_call).collect();
                    CodeOfModule::Read { code, instructions: sums(&mut sizes), calls }
                }
                Code::Unread { blocks, functions, .. } => {
                    let mut sizes =
                        blocks.iter().map(|block| block.estimated_instructions(bytes_per_instruction) as u64);
                    CodeOfModule::Unread { blocks, functions, instructions: sums(&mut sizes) }
                }
            });
        }
        WalkedCode { modules }
    }

    /// The code that a stream executes, by function; `None` if no execution of the code can have made it.
    pub fn parts(&self, start: Spot, end: Spot, to_kernel: bool) -> Option<Vec<Part>> {
        let mut parts: Vec<Part> = Vec::new();
        match self.modules.get(&start.module)? {
            CodeOfModule::Read { code, instructions, .. } => {
                let blocks = code.blocks.blocks();
                let line = straight_line(start.offset, end.offset, to_kernel);
                let mut fits = true;
                let ran = code.lines().for_each_piece(&line, |first, end| {
                    let mut first = first;
                    while let Some(block) = blocks.get(first).filter(|_| first < end && fits) {
                        let function = block.function;
                        let rest = blocks.get(first..end).unwrap_or_default();
                        let next = first + rest.partition_point(|block| block.function <= function).max(1);
                        let key = FunctionKey::of(start.module, &code.functions, function);
                        let blocks = (first as u32, next as u32);
                        parts.push(Part { function: key, blocks, instructions: between(instructions, first..next) });
                        fits = parts.len() < MOST_PARTS;
                        first = next;
                    }
                });
                (ran.is_ok() && fits).then_some(parts)
            }
            CodeOfModule::Unread { blocks, functions, instructions } => {
                let index_of = |at: FileOffset| blocks.partition_point(|block| block.start <= at).checked_sub(1);
                let range = index_of(start.offset)?..index_of(end.offset)? + 1;
                let function = |block: &UnreadBlock| FunctionKey::named(start.module, functions, block.start);
                let mut first = range.start;
                let of_one = blocks.get(range)?.chunk_by(|one, next| function(one) == function(next));
                for of_one in of_one.take(MOST_PARTS) {
                    let range = first..first + of_one.len();
                    first = range.end;
                    let blocks = (range.start as u32, range.end as u32);
                    let instructions = between(instructions, range);
                    parts.extend(of_one.first().map(|block| Part { function: function(block), blocks, instructions }));
                }
                (parts.len() < MOST_PARTS).then_some(parts)
            }
        }
    }

    /// The first system calls that a stream goes on after, so many at most, as far as it is known where they enter the kernel.
    pub fn system_calls(&self, start: Spot, end: Spot, entries: &KernelEntries, most: usize) -> Vec<SystemCall> {
        let Some(CodeOfModule::Read { code, calls, .. }) = self.modules.get(&start.module) else { return Vec::new() };
        let mut found = Vec::new();
        let offset = |at| code.binary.image.file_offset_of_svma(at).map(FileOffset);
        let visit = |first, end_block| {
            let of_piece = calls.get(calls.partition_point(|index| *index < first)..).unwrap_or_default();
            let of_piece = of_piece.iter().take_while(|index| **index < end_block);
            for block in of_piece.take(most - found.len()).filter_map(|index| code.blocks.blocks().get(*index)) {
                let call = offset(block.last).filter(|at| *at != end.offset).and_then(|at| {
                    let entry = entries.of_instruction(code, block.last)?;
                    Some(SystemCall { at, after: offset(block.end)?, entry })
                });
                found.extend(call);
            }
        };
        // What is no straight line has no system calls.
        match code.lines().for_each_piece(&straight_line(start.offset, end.offset, false), visit) {
            Ok(()) => found,
            Err(_) => Vec::new(),
        }
    }

    /// The block around a place.
    pub fn block_at(&self, spot: Spot) -> BlockKey {
        let index = match self.modules.get(&spot.module) {
            Some(CodeOfModule::Read { code, .. }) => {
                let svma = code.binary.image.svma_of_file_offset(spot.offset.0);
                svma.and_then(|svma| code.blocks.block_at(svma))
            }
            Some(CodeOfModule::Unread { blocks, .. }) => {
                blocks.partition_point(|block| block.start <= spot.offset).checked_sub(1)
            }
            None => None,
        };
        BlockKey { module: spot.module, index: index.map_or(BlockKey::NOWHERE, |index| index as u32) }
    }

    /// The block that holds the entry of the kernel, if it was seen running.
    pub fn entered(&self, entry: Spot) -> BlockKey {
        let key = self.block_at(entry);
        let is_in = match self.modules.get(&entry.module) {
            Some(CodeOfModule::Unread { blocks, .. }) => {
                blocks.get(key.index as usize).is_some_and(|block| entry.offset < block.end)
            }
            _ => true,
        };
        if is_in { key } else { BlockKey { index: BlockKey::NOWHERE, ..key } }
    }

    /// The function of a place.
    pub fn target(&self, at: Avma, spot: Spot) -> Target {
        let unread = match self.modules.get(&spot.module) {
            Some(CodeOfModule::Unread { functions, .. }) => {
                let is_entry = functions.around(spot.offset).is_some_and(|function| function.start == spot.offset);
                Target { function: FunctionKey::named(spot.module, functions, spot.offset), at, is_entry }
            }
            _ => Target { function: FunctionKey::unread(spot.module), at, is_entry: false },
        };
        let Some((code, svma)) = self.place(spot) else { return unread };
        let Some(id) = code.functions.at(svma) else { return unread };
        let function = FunctionKey::of(spot.module, &code.functions, id);
        Target { function, at, is_entry: code.functions.is_entry(id, svma) }
    }

    /// What a branch within the program, or within the kernel, does: by the instruction, or where that is not known, by what the record says.
    pub fn transfer(&self, branch: &Branch, from: Spot, to: Spot) -> Transfer {
        let jump = Transfer::Jump { computed: false };
        let block = self.place(from).and_then(|(code, svma)| {
            let block = code.blocks.blocks().get(code.blocks.block_at(svma)?)?;
            (block.last == svma).then_some((block, svma))
        });
        match block {
            Some((block, svma)) => by_instruction(block, svma, branch),
            // Functions of one module that was not read are one, unless they have names; so is the kernel, with all its modules.
            None if self.place(from).is_none()
                && !self.is_named(from)
                && (from.module == to.module || is_kernel(branch.from)) =>
            {
                jump
            }
            None => by_kind(branch),
        }
    }

    /// Whether it is in a function whose name alone is known.
    fn is_named(&self, spot: Spot) -> bool {
        let module = self.modules.get(&spot.module);
        matches!(module, Some(CodeOfModule::Unread { functions, .. }) if functions.at(spot.offset).is_some())
    }

    fn place(&self, spot: Spot) -> Option<(&'a AnalysedModule, Svma)> {
        match self.modules.get(&spot.module)? {
            CodeOfModule::Read { code, .. } => Some((code, code.binary.image.svma_of_file_offset(spot.offset.0)?)),
            CodeOfModule::Unread { .. } => None,
        }
    }
}

fn between(sums: &[u64], blocks: Range<usize>) -> u64 {
    let at = |index: usize| sums.get(index).copied().unwrap_or(0);
    at(blocks.end).saturating_sub(at(blocks.start))
}

fn straight_line(start: FileOffset, end: FileOffset, to_kernel: bool) -> LocatedStream {
    let (group, slices) = (GroupId(0), SliceSums::default());
    LocatedStream { group, burst: None, start, end, to_kernel, seen: 1, weight: Weight::default(), slices }
}

fn by_instruction(block: &Block, svma: Svma, branch: &Branch) -> Transfer {
    match block.terminator {
        Terminator::Call | Terminator::IndirectCall => {
            let back = Avma(branch.from.0.saturating_add(block.end.0.saturating_sub(svma.0)));
            Transfer::Call { returns_to: back..Avma(back.0.saturating_add(1)) }
        }
        Terminator::Return => Transfer::Return,
        Terminator::IndirectJump => Transfer::Jump { computed: true },
        Terminator::Conditional | Terminator::Jump | Terminator::SystemCall | Terminator::Trap => {
            Transfer::Jump { computed: false }
        }
        Terminator::FallThrough | Terminator::Observed | Terminator::Overlap | Terminator::Undecodable => {
            by_kind(branch)
        }
    }
}

fn by_kind(branch: &Branch) -> Transfer {
    const LONGEST_CALL: u64 = 15;
    match branch.flags.kind() {
        BranchKind::CALL | BranchKind::IND_CALL | BranchKind::COND_CALL => {
            let after = |bytes| Avma(branch.from.0.saturating_add(bytes));
            Transfer::Call { returns_to: after(1)..after(LONGEST_CALL + 1) }
        }
        BranchKind::RET | BranchKind::COND_RET => Transfer::Return,
        BranchKind::COND | BranchKind::UNCOND => Transfer::Jump { computed: false },
        BranchKind::IND => Transfer::Jump { computed: true },
        _ => Transfer::Unclear,
    }
}
