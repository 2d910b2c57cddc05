//! The flow of exact counts: every block is a range. Of the branches it has those that always go to one place.

use iced_x86::{FlowControl, Instruction};

use crate::address::Svma;
use crate::binaries::{Binary, BinarySearch};
use crate::flow::{BranchCount, Flow, FlowBuilder, Place, RangeCount};
use crate::recording::{Module, ModuleKind};
use crate::truth::{Truth, TruthModule, instructions_of};

impl Flow {
    /// Of exact counts. The binaries tell the last instruction of each block, and which end with a direct call or jump, which ran
    /// as often as their block; how often conditional and indirect branches were taken, exact counts of blocks do not tell.
    ///
    /// Returns as well why modules could not be read or have other code, in sentences: their blocks are left out.
    pub fn of_truth(truth: &Truth, search: &BinarySearch) -> (Flow, Vec<String>) {
        let mut builder = FlowBuilder::default();
        let mut notes = Vec::new();
        for of in &truth.modules {
            let build_id = of.build_id.as_deref().and_then(bytes_of_hex);
            let module = Module { path: of.path.clone(), build_id, kind: ModuleKind::File };
            match search.open(&module) {
                Ok(binary) => add_module(of, &module, &binary, &mut builder, &mut notes),
                Err(why) => {
                    notes.push(format!("{}: {why}; its exact counts are left out", of.path));
                    builder.left_out.streams += of.blocks.iter().map(|block| block.executions as f64).sum::<f64>();
                }
            }
        }
        (builder.finish(true), notes)
    }
}

fn add_module(of: &TruthModule, module: &Module, binary: &Binary, builder: &mut FlowBuilder, notes: &mut Vec<String>) {
    let index = builder.module(module, true);
    let mut strange = 0;
    for block in &of.blocks {
        let count = block.executions as f64;
        let Some(last) = instructions_of(block, &binary.image).ok().and_then(|all| all.last().copied()) else {
            builder.left_out.streams += count;
            strange += 1;
            continue;
        };
        let from = Svma(last.ip());
        builder.add_range(index, RangeCount { first: block.start, last: from, count });
        if let Some(to) = only_target(&last).filter(|to| binary.image.is_executable(*to)) {
            let to = Place { module: index, at: to };
            builder.add_branch(index, BranchCount { from, to, count, mispredicted: 0.0 });
        }
    }
    if strange > 0 {
        let blocks = of.blocks.len();
        notes.push(format!("{}: {strange} of {blocks} blocks of the exact counts are not in the file", of.path));
    }
}

/// Where a branch goes whenever it is executed.
fn only_target(instruction: &Instruction) -> Option<Svma> {
    let is_direct = matches!(instruction.flow_control(), FlowControl::UnconditionalBranch | FlowControl::Call);
    is_direct.then(|| Svma(instruction.near_branch_target()))
}

/// The bytes that [`hex`](crate::binaries::hex) wrote.
pub(super) fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
    let digits = digits.filter(|digits| !digits.is_empty() && digits.len() % 2 == 0)?;
    Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}
