//! The flow of exact counts: ranges and branches that give every block the executions it had.
//!
//! Exact counts say how often each block ran, not what came after what. Direct jumps and calls ran as often as their blocks; how often
//! conditional branches were taken follows from the executions around them ([`conservation`](super::conservation)); where
//! indirect jumps, calls and returns went is not known. Ranges begin where more control comes to a block than falls into it, and end where not all of
//! it falls on; those that begin last end first.

use iced_x86::{FlowControl, Instruction};

use crate::address::Svma;
use crate::binaries::{Binary, BinarySearch};
use crate::code::{FunctionId, FunctionTable};
use crate::flow::conservation::{Exit, KnownBlock, Outflow, outflows};
use crate::flow::{BranchCount, Flow, FlowBuilder, ModuleAddress, RangeCount};
use crate::recording::Module;
use crate::truth::{ListedBlocks, Truth, TruthBlock, TruthModule, executed, instructions_of};

impl Flow {
    /// Of exact counts, whose binaries are looked for. Returns as well what could not be read or had to be guessed, in sentences.
    pub fn of_truth(truth: &Truth, search: &BinarySearch) -> (Flow, Vec<String>) {
        Self::of_counts(&truth.modules, ("exact counts", true), search)
    }

    /// Of a list of blocks: of those whose code was read. What is not in it is said first.
    pub fn of_list(list: &ListedBlocks, search: &BinarySearch) -> (Flow, Vec<String>) {
        let (flow, of_counts) = Self::of_counts(&list.modules, ("counts of blocks", list.executions), search);
        let part = |instructions: f64| 100.0 * instructions / list.instructions.max(f64::MIN_POSITIVE);
        let missing = part(list.instructions - list.unread - executed(&list.modules) as f64);
        let mut notes = Vec::new();
        // Each count is rounded.
        if missing > 0.1 {
            notes.push(format!("blocks with {missing:.2} % of the instructions are not in the list"));
        }
        if missing < -0.1 {
            notes.push(format!(
                "counts were rounded, and are {:.2} % of the instructions more than in the list",
                -missing
            ));
        }
        if list.unread > 0.0 {
            let unread = part(list.unread);
            notes.push(format!("{unread:.2} % of the instructions are in code that was not read: left out"));
        }
        if !list.is_exact {
            notes.push("the counts are those that a report printed: nothing is known of their ±".to_owned());
        }
        notes.extend(of_counts.into_iter().chain(list.weaker.iter().cloned()));
        (flow, notes)
    }

    /// What the counts are, in words, and whether they are executions.
    fn of_counts(
        modules: &[TruthModule],
        (what, executions): (&str, bool),
        search: &BinarySearch,
    ) -> (Flow, Vec<String>) {
        let mut builder = FlowBuilder::default();
        let mut notes = Vec::new();
        let (mut conditional, mut guessed) = (0.0, 0.0);
        for of in modules {
            let module = Module::file(of.path.clone(), of.build_id.clone());
            match search.open(&module) {
                Ok(binary) => {
                    notes.extend(binary.other_build.clone());
                    let code = ExactCode::of(of, &binary);
                    let all = of.blocks.iter().filter(|block| block.executions > 0).count();
                    let strange = all - code.blocks.len();
                    if strange > 0 {
                        notes.push(format!("{}: {strange} of {all} blocks of the {what} are not in the file", of.path));
                    }
                    let executions = |blocks: &mut dyn Iterator<Item = &TruthBlock>| -> f64 {
                        blocks.map(|block| block.executions as f64).sum()
                    };
                    builder.left_out.streams += executions(&mut of.blocks.iter())
                        - executions(&mut code.blocks.iter().map(|(block, _)| *block));
                    let index = builder.module(&module, true);
                    let (all, without_equation) = code.add_to(index, &mut builder);
                    conditional += all;
                    guessed += without_equation;
                }
                Err(why) => {
                    notes.push(format!("{}: {why}; its {what} are left out", of.path));
                    builder.left_out.streams += of.blocks.iter().map(|block| block.executions as f64).sum::<f64>();
                }
            }
        }
        if conditional > 0.0 {
            notes.push(format!(
                "{what} do not say how often branches were taken: {:.2} % of the conditional ones follow from the blocks \
                 around them, the others are guessed; returns and indirect branches are not known",
                100.0 * (conditional - guessed) / conditional
            ));
        }
        (builder.finish(executions), notes)
    }
}

/// The blocks of a module that are in its file, with their last instructions.
struct ExactCode<'a> {
    binary: &'a Binary,
    functions: FunctionTable,
    blocks: Vec<(&'a TruthBlock, Instruction)>,
}

impl<'a> ExactCode<'a> {
    fn of(of: &'a TruthModule, binary: &'a Binary) -> Self {
        let with_last = |block: &'a TruthBlock| {
            let all = instructions_of(block, &binary.image).ok()?;
            Some((block, *all.last()?))
        };
        let blocks = of.blocks.iter().filter(|block| block.executions > 0).filter_map(with_last).collect();
        ExactCode { binary, functions: binary.functions(), blocks }
    }

    /// Adds ranges and branches; returns how often conditional branches were executed, and how often of these it is a guess where to.
    fn add_to(&self, module: usize, builder: &mut FlowBuilder) -> (f64, f64) {
        let known = self.known_blocks();
        let flows = outflows(&known);
        let (mut conditional, mut guessed) = (0.0, 0.0);
        // Ranges that have begun: their first instruction, executions.
        let mut begun: Vec<(Svma, f64)> = Vec::new();
        let mut fell_in = 0.0;
        for (((block, last), known), flow) in self.blocks.iter().zip(&known).zip(&flows) {
            let from = Svma(last.ip());
            if known.executions > fell_in {
                begun.push((block.start, known.executions - fell_in));
            }
            let Outflow { taken, fallen, is_guess } = *flow;
            let mut ending = f64::max(known.executions, fell_in) - fallen;
            while ending > 0.0
                && let Some((first, count)) = begun.pop()
            {
                let ends = f64::min(ending, count);
                builder.add_range(module, RangeCount { first, last: from, count: ends });
                ending -= ends;
                if count > ends {
                    begun.push((first, count - ends));
                }
            }
            fell_in = fallen;
            if matches!(known.exit, Exit::Branches(_)) {
                conditional += known.executions;
                guessed += if is_guess { known.executions } else { 0.0 };
            }
            let count = if last.flow_control() == FlowControl::Call { known.executions } else { taken };
            if let Some(at) = target_of(last).filter(|at| count > 0.0 && self.binary.image.is_executable(*at)) {
                let to = ModuleAddress { module, at };
                builder.add_branch(module, BranchCount { from, to, count, mispredicted: 0.0 });
            }
        }
        (conditional, guessed)
    }

    fn known_blocks(&self) -> Vec<KnownBlock> {
        let function = |at: Svma| self.functions.at(at);
        let mut jumps_anywhere: Vec<FunctionId> = Vec::new();
        for (_, last) in self.blocks.iter().filter(|(_, last)| last.flow_control() == FlowControl::IndirectBranch) {
            jumps_anywhere.extend(function(Svma(last.ip())));
        }
        jumps_anywhere.dedup();
        let at = |target: Svma| self.blocks.binary_search_by_key(&target, |(block, _)| block.start).ok();
        let known = |(index, (block, last)): (usize, &(&TruthBlock, Instruction))| {
            let of = function(block.start);
            let starts = of.is_none_or(|id| self.functions.get(id).start == block.start);
            KnownBlock {
                executions: block.executions as f64,
                exit: match last.flow_control() {
                    FlowControl::ConditionalBranch => Exit::Branches(target_of(last).and_then(at)),
                    FlowControl::UnconditionalBranch => Exit::Jumps(target_of(last).and_then(at)),
                    FlowControl::Call | FlowControl::IndirectCall => Exit::Calls,
                    FlowControl::Next | FlowControl::Interrupt => Exit::Falls,
                    _ => Exit::Leaves,
                },
                has_next: self.blocks.get(index + 1).is_some_and(|(next, _)| next.start.0 == last.next_ip()),
                is_open: starts || of.is_some_and(|id| jumps_anywhere.binary_search(&id).is_ok()),
            }
        };
        self.blocks.iter().enumerate().map(known).collect()
    }
}

/// Where a direct branch goes when it is taken.
fn target_of(instruction: &Instruction) -> Option<Svma> {
    let control = instruction.flow_control();
    let is_direct =
        matches!(control, FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch | FlowControl::Call);
    (is_direct && instruction.near_branch_target() != 0).then(|| Svma(instruction.near_branch_target()))
}
