//! From instructions counted at addresses to executions of blocks.
//!
//! Callgrind counts a `rep` instruction once per execution and once per iteration, and every other instruction as often as it ran.
//! Blocks are cut where counts change, so any other instruction of a block tells how often the block ran; one of `rep` instructions
//! only ran as often as the block that follows it.

use std::collections::BTreeMap;

use iced_x86::{FlowControl, Instruction};

use crate::address::Svma;
use crate::code::{BlockMap, FunctionTable, Image, Observed, instructions};
use crate::truth::stubs::instruction_at;

/// The blocks of an image that ran, and how often, by index.
#[derive(Debug)]
pub struct ExactCounts {
    /// The blocks of all functions with a count.
    pub blocks: BlockMap,
    /// Executions by the index of the block; blocks that did not run are absent.
    pub executions: BTreeMap<u32, u64>,
    /// Instructions counted at addresses that are no instructions of the file.
    pub outside: u64,
    /// Iterations of `rep` instructions.
    pub repetitions: u64,
}

/// Turns the counts of one object into executions of its blocks. Executions times instructions, and what was left out, are what was
/// counted.
pub fn executions(image: &Image, functions: &FunctionTable, counts: &BTreeMap<Svma, u64>) -> ExactCounts {
    let observed = Observed::new(counts.keys().copied().collect(), changes(image, counts), Vec::new());
    let blocks = BlockMap::build(image, functions, &observed);
    let mut executions = BTreeMap::new();
    let (mut covered, mut repetitions) = (0_u64, 0_u64);
    // From the end: what follows a block is known before it.
    for (index, block) in blocks.blocks().iter().enumerate().rev() {
        let counted = |instruction: &Instruction| counts.get(&Svma(instruction.ip())).copied().unwrap_or(0);
        let in_block = sum(instructions(image, block).map(|instruction| counted(&instruction)));
        if in_block == 0 {
            continue;
        }
        covered = covered.saturating_add(in_block);
        let plain = instructions(image, block).find(|instruction| !repeats(instruction));
        let ran = match plain {
            Some(instruction) => counted(&instruction),
            None => {
                let next = blocks.following(index).and_then(|next| executions.get(&(next as u32)).copied());
                next.unwrap_or(1).clamp(1, in_block.div_ceil(u64::from(block.instructions.max(1))))
            }
        };
        if ran > 0 {
            executions.insert(index as u32, ran);
        }
        let executed = ran.saturating_mul(u64::from(block.instructions));
        repetitions = repetitions.saturating_add(in_block.saturating_sub(executed));
    }
    let outside = sum(counts.values().copied()).saturating_sub(covered);
    ExactCounts { blocks, executions, outside, repetitions }
}

fn sum(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

/// Where an instruction ran more or less often than the one before it: something comes in from elsewhere, or leaves.
fn changes(image: &Image, counts: &BTreeMap<Svma, u64>) -> Vec<Svma> {
    let mut changes = Vec::new();
    let mut before: Option<(Svma, u64)> = None;
    for (&at, &count) in counts {
        let Some(instruction) = instruction_at(image, at) else {
            before = None;
            continue;
        };
        let goes_on = before.is_some_and(|(end, same)| end == at && same == count);
        if !goes_on && !repeats(&instruction) {
            changes.push(at);
        }
        let next = Svma(instruction.next_ip());
        before = match before {
            // Its iterations say nothing of how often it ran.
            Some((end, same)) if repeats(&instruction) && end == at => Some((next, same)),
            _ if instruction.flow_control() == FlowControl::Next => Some((next, count)),
            _ => None,
        };
    }
    changes
}

/// Whether one execution of it is counted as many.
fn repeats(instruction: &Instruction) -> bool {
    instruction.is_string_instruction() && (instruction.has_rep_prefix() || instruction.has_repne_prefix())
}
