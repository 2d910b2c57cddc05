//! Counts per instruction, exact and estimated, side by side.

use std::collections::BTreeMap;

use iced_x86::{Instruction, Mnemonic};

use crate::CountedModule;
use crate::address::Svma;
use crate::code::{FunctionId, FunctionTable, Image, instructions};
use crate::counting::Code;
use crate::truth::{NotComparable, TruthModule, instructions_of};
use crate::validation::counts::{Column, Counts, Estimate};
use crate::validation::left_out::is_variant_of_one_side;

/// An instruction that ran on any side.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub counts: Counts,
    pub mnemonic: Mnemonic,
    /// The address after the instruction.
    pub next: Svma,
    /// A block of the truth, or of the whole recording's analysis, starts here.
    pub starts: bool,
    /// The function that holds it.
    pub function: Option<FunctionId>,
    /// The block of the whole recording's analysis that holds it.
    pub block: Option<BlockPlace>,
}

/// A block of an analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockPlace {
    /// Index of its module in [`Analysis::counted`](crate::Analysis::counted).
    pub module: u32,
    /// Index of the block in [`CountedModule::blocks`].
    pub block: u32,
}

/// The instructions of a module.
#[derive(Debug, Default)]
pub(super) struct ModuleRows {
    pub rows: BTreeMap<Svma, Row>,
}

impl ModuleRows {
    fn row(&mut self, instruction: &Instruction, functions: &FunctionTable) -> &mut Row {
        let at = Svma(instruction.ip());
        self.rows.entry(at).or_insert_with(|| Row {
            counts: Counts::default(),
            mnemonic: instruction.mnemonic(),
            next: Svma(instruction.next_ip()),
            starts: false,
            function: functions.at(at),
            block: None,
        })
    }

    pub fn add_truth(
        &mut self,
        truth: &TruthModule,
        image: &Image,
        functions: &FunctionTable,
    ) -> Result<(), NotComparable> {
        for block in &truth.blocks {
            for (index, instruction) in instructions_of(block, image)?.iter().enumerate() {
                let row = self.row(instruction, functions);
                row.starts |= index == 0;
                row.counts.increase(Column::Truth, block.executions as f64);
            }
        }
        Ok(())
    }

    /// Adds what an analysis of all samples counted, or of one half of them.
    pub fn add_estimates(&mut self, place: usize, module: &CountedModule, half: Option<usize>) {
        let Code::Read(code) = &module.counts.code else { return };
        for (number, block) in module.blocks.iter().enumerate() {
            let in_file = &code.blocks.blocks()[block.index as usize];
            for (index, instruction) in instructions(&code.binary.image, in_file).enumerate() {
                let row = self.row(&instruction, &code.functions);
                if half.is_none() {
                    row.starts |= index == 0;
                    row.block = Some(BlockPlace { module: place as u32, block: number as u32 });
                }
                for estimate in Estimate::ALL {
                    let column = half.map_or(Column::Whole(estimate), |half| Column::Half(half, estimate));
                    row.counts.increase(column, estimate.of(&block.count));
                }
            }
        }
    }

    /// Takes out functions of which the CPU decided which one runs, where the two sides did not run the same. Returns their counts.
    pub fn take_variants(&mut self, families: &[Vec<FunctionId>]) -> Counts {
        let mut by_function: BTreeMap<FunctionId, Counts> = BTreeMap::new();
        for row in self.rows.values() {
            if let Some(function) = row.function {
                by_function.entry(function).or_default().add(&row.counts);
            }
        }
        let taken = is_variant_of_one_side(families, &by_function);
        self.rows.retain(|_, row| !row.function.is_some_and(|function| taken.contains(&function)));
        let mut sum = Counts::default();
        taken.iter().filter_map(|function| by_function.get(function)).for_each(|counts| sum.add(counts));
        sum
    }

    /// Takes out the instructions that the truth does not have.
    pub fn take_without_truth(&mut self) -> ModuleRows {
        let (with, without) =
            std::mem::take(&mut self.rows).into_iter().partition(|(_, row)| row.counts.get(Column::Truth) > 0.0);
        self.rows = with;
        ModuleRows { rows: without }
    }

    pub fn total(&self) -> Counts {
        let mut sum = Counts::default();
        self.rows.values().for_each(|row| sum.add(&row.counts));
        sum
    }
}
