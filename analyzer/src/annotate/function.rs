//! A function with its counts.

use std::collections::BTreeMap;
use std::ops::Range;

use iced_x86::{Formatter, Instruction, IntelFormatter, Mnemonic};
use instructions::BranchKind;

use crate::address::Svma;
use crate::annotate::graph::{Graph, Way, stated_target};
use crate::annotate::loops::Loops;
use crate::annotate::place::{Place, Places};
use crate::annotate::time::TimeShare;
use crate::annotate::ways::Ways;
use crate::code::{Block, Evidence, Terminator, instructions};
use crate::counting::{AnalysedModule, BlockCount};
use crate::flow::BranchCount;
use crate::uncertainty::{Interval, SampledBlocks};

/// A function that was seen, and all its blocks.
#[derive(Clone, Debug)]
pub struct AnnotatedFunction {
    /// Its name, demangled.
    pub name: String,
    /// Index of its module in [`Analysis::counted`](crate::Analysis::counted).
    pub module: usize,
    /// The address of its symbol.
    pub start: Svma,
    /// Instructions executed in it.
    pub executed: f64,
    /// How uncertain that is.
    pub executed_interval: Interval,
    /// How uncertain its share of all executed instructions is, 0 to 1.
    pub share_interval: Interval,
    /// Its share of the time; `None` where the recording does not tell time and instructions apart.
    pub time: Option<TimeShare>,
    /// How often control came to its first instruction from elsewhere, by a call or a jump; `None` where that is not
    /// known.
    pub calls: Option<f64>,
    /// Whether branch stacks say where branches went in its module.
    pub has_ways: bool,
    /// By address; those that were not seen, too.
    pub blocks: Vec<AnnotatedBlock>,
    /// Addresses of the function that hold no instructions, by address.
    pub unreadable: Vec<Range<Svma>>,
    /// Its natural loops, outer ones before those inside of them; `None` where the code is too entangled to look for
    /// them.
    pub loops: Option<Vec<CountedLoop>>,
    /// Where control goes on within the function, by block that it comes from and block that it goes to.
    pub edges: Vec<Edge>,
}

/// A way from one block of a function to another that the code states, or that was seen. After a call it leads to where the call comes back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    /// Index of the block that control comes from.
    pub from: usize,
    /// Index of the block that it goes to.
    pub to: usize,
    /// How often it went there; `None` where that is not known.
    pub count: Option<f64>,
}

/// What was seen of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The chosen source counted it.
    Counted,
    /// The chosen source did not see it, the other one did.
    ByOtherSource,
    /// Neither did: it ran seldom or never.
    Not,
    /// Neither did, nothing leads there, and it does nothing: it fills the space before what follows.
    Padding,
}

/// A block of a function.
#[derive(Clone, Debug)]
pub struct AnnotatedBlock {
    /// Address of the first instruction.
    pub start: Svma,
    /// After the last instruction.
    pub end: Svma,
    /// What was seen of it.
    pub seen: Seen,
    /// Its counts; `None` if it was not seen.
    pub count: Option<BlockCount>,
    /// How uncertain its count is.
    pub count_interval: Interval,
    /// How uncertain its share of all executed instructions is, 0 to 1.
    pub share_interval: Interval,
    /// At least one, by address.
    pub instructions: Vec<AnnotatedInstruction>,
    /// What its last instruction does, if that is a branch.
    pub branch: Option<Branch>,
    /// The innermost loop that it is in (of a header, the loop itself), as an index in [`AnnotatedFunction::loops`].
    pub innermost: Option<usize>,
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnotatedInstruction {
    /// Where it is.
    pub address: Svma,
    /// In Intel's syntax.
    pub text: String,
}

/// A jump, call or return, and where it went.
///
/// Example: of a `jne` that was executed 10 times and taken 4 times, `taken` is 4 and `fallen` 6.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    /// What it does.
    pub kind: BranchKind,
    /// The target that it states.
    pub target: Option<Place>,
    /// How often it was taken; `None` where that is not known.
    pub taken: Option<f64>,
    /// How often control went straight on; `None` where that is not known, or cannot be.
    pub fallen: Option<f64>,
    /// How often it was taken and mispredicted; `None` where the recording does not say it.
    pub mispredicted: Option<f64>,
    /// Where it went most often if it states no target and is no return: at most 32 places, the most frequent first.
    pub targets: Vec<Target>,
    /// How many more places it went to.
    pub other_targets: usize,
}

/// Where a computed branch went.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The place.
    pub place: Place,
    /// How often.
    pub count: f64,
}

/// A natural loop.
///
/// Example: of a loop that is entered 10 times and whose header runs 40 times, `entries` is 10, `repeats` 30, and the
/// mean of trips 4.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountedLoop {
    /// The block that every way into it passes, as an index of a block of the function.
    pub header: usize,
    /// The loop around it, as an index of a loop of the function.
    pub parent: Option<usize>,
    /// 1 for an outermost loop.
    pub depth: usize,
    /// Its block with the lowest address.
    pub first: usize,
    /// Its block with the highest address.
    pub last: usize,
    /// How many blocks it has, those of loops inside of it included.
    pub blocks: usize,
    /// How often control came to the header from outside; `None` where that is not known.
    pub entries: Option<f64>,
    /// How often it came to the header from inside; `None` where that is not known.
    pub repeats: Option<f64>,
}

impl AnnotatedFunction {
    /// The innermost loop that a block is in; of its header, the loop itself.
    pub fn innermost(&self, block: &AnnotatedBlock) -> Option<&CountedLoop> {
        self.loops.as_ref()?.get(block.innermost?)
    }
}

impl AnnotatedBlock {
    /// Instructions executed in it.
    pub fn executed(&self) -> f64 {
        self.count.map_or(0.0, |count| count.count) * self.instructions.len() as f64
    }
}

impl Branch {
    /// The part of its executions in which it was taken, 0 to 1, if it is a conditional one that was seen.
    pub fn taken_rate(&self) -> Option<f64> {
        let (taken, fallen) = self.taken.zip(self.fallen)?;
        (self.kind == BranchKind::Conditional && taken + fallen > 0.0).then(|| taken / (taken + fallen))
    }

    /// The part of the times that it was taken in which it was mispredicted, 0 to 1.
    pub fn mispredict_rate(&self) -> Option<f64> {
        let (taken, mispredicted) = self.taken.zip(self.mispredicted)?;
        (taken > 0.0).then(|| mispredicted / taken)
    }
}

impl CountedLoop {
    /// Executions of the header for each time that the loop was entered, 1 at least.
    pub fn mean_trips(&self) -> Option<f64> {
        let (entries, repeats) = self.entries.zip(self.repeats)?;
        (entries > 0.0).then(|| (entries + repeats) / entries)
    }
}

/// So many targets of a branch are named.
const MOST_TARGETS: usize = 32;

/// What a function is made of.
pub(super) struct Code<'a> {
    pub code: &'a AnalysedModule,
    /// Index of the module in [`Analysis::counted`](crate::Analysis::counted).
    pub module: usize,
    /// Blocks with counts, and how uncertain these are.
    pub sampled: &'a SampledBlocks<'a>,
    /// What branch stacks say of the module.
    pub ways: Option<&'a Ways<'a>>,
    /// The module as one of the flow.
    pub flow_index: Option<usize>,
    pub places: &'a Places<'a>,
    /// Whether the recording says what was mispredicted.
    pub has_mispredictions: bool,
}

/// The blocks of a function and what flows between them.
pub(super) struct Body {
    pub blocks: Vec<AnnotatedBlock>,
    pub unreadable: Vec<Range<Svma>>,
    pub loops: Option<Vec<CountedLoop>>,
    pub edges: Vec<Edge>,
    pub calls: Option<f64>,
}

impl Code<'_> {
    /// The blocks with these indices, by address: those of the function with that symbol.
    pub fn body(&self, symbol: Svma, indices: &[usize]) -> Body {
        let graph = Graph::new(self.code, indices, (self.flow_index, self.ways));
        let of = graph.blocks();
        let decoded: Vec<Vec<Instruction>> =
            of.iter().map(|block| instructions(&self.code.binary.image, block).collect()).collect();
        let edges = graph.edges(|node| decoded[node].last().copied());
        let found = Loops::of(of.len(), graph.entry(symbol), edges.keys().copied());
        let outside: Vec<f64> = (0..of.len()).map(|block| graph.arrived(block)).collect();
        let mut formatter = formatter();
        let blocks = indices.iter().zip(of).zip(&decoded).enumerate().map(|(at, ((index, block), decoded))| {
            let innermost = found.as_ref().and_then(|found| found.innermost[at]);
            self.block(*index as u32, block, decoded, innermost, &mut formatter)
        });
        let blocks = blocks.collect();
        Body {
            blocks,
            unreadable: self.unreadable(symbol, of),
            loops: found.map(|found| counted_loops(&found, &edges, &outside, self.ways.is_some())),
            edges: edges
                .iter()
                .map(|(&(from, to), count)| Edge { from, to, count: self.ways.map(|_| *count) })
                .collect(),
            calls: graph.calls(symbol),
        }
    }

    fn block(
        &self,
        index: u32,
        block: &Block,
        decoded: &[Instruction],
        innermost: Option<usize>,
        formatter: &mut IntelFormatter,
    ) -> AnnotatedBlock {
        let counted = self.sampled.block(self.module, index);
        let count = counted.map(|(counted, _)| counted.count);
        let intervals = counted.map(|(counted, replicates)| self.sampled.intervals(counted, replicates));
        let [count_interval, share_interval] = intervals.unwrap_or_default();
        let seen = match count {
            Some(count) if count.count > 0.0 => Seen::Counted,
            Some(count) if count.ebs_samples > 0 || count.lbr_streams > 0 => Seen::ByOtherSource,
            _ if block.evidence == Evidence::Swept && decoded.iter().all(fills) => Seen::Padding,
            _ => Seen::Not,
        };
        let mut text = |instruction: &Instruction| {
            let mut text = String::new();
            formatter.format(instruction, &mut text);
            AnnotatedInstruction { address: Svma(instruction.ip()), text }
        };
        AnnotatedBlock {
            start: block.start,
            end: block.end,
            seen,
            count,
            count_interval,
            share_interval,
            instructions: decoded.iter().map(&mut text).collect(),
            branch: decoded.last().and_then(|last| self.branch(block, last)),
            innermost,
        }
    }

    fn branch(&self, block: &Block, last: &Instruction) -> Option<Branch> {
        let went = self.ways.map(|ways| ways.taken(block.last));
        // Where it is not known that a system call led into the kernel, nothing is said of it.
        let is_call = block.terminator == Terminator::SystemCall && went.is_some_and(|went| !went.is_empty());
        let kind = block.terminator.branch().or(is_call.then_some(BranchKind::SystemCall));
        let kind = kind.filter(|_| last.ip() == block.last.0)?;
        // The sum of nothing is -0.
        let sum = |of: fn(&BranchCount) -> f64| went.map(|went| went.iter().map(of).sum::<f64>() + 0.0);
        let taken = sum(|branch| branch.count);
        let falls = kind == BranchKind::Conditional;
        let is_computed = matches!(kind, BranchKind::IndirectJump | BranchKind::IndirectCall | BranchKind::SystemCall);
        let mut went_to: Vec<&BranchCount> = went.filter(|_| is_computed).into_iter().flatten().collect();
        went_to.sort_by(|one, other| other.count.total_cmp(&one.count));
        let others = went_to.len().saturating_sub(MOST_TARGETS);
        went_to.truncate(MOST_TARGETS);
        let target = |branch: &BranchCount| Target { place: self.places.of_branch(branch.to), count: branch.count };
        Some(Branch {
            kind,
            target: stated_target(block, last).map(|at| self.places.in_module(self.module, at)),
            taken,
            fallen: self.ways.filter(|_| falls).map(|ways| ways.fallen(block.last)),
            mispredicted: sum(|branch| branch.mispredicted).filter(|_| self.has_mispredictions),
            targets: went_to.into_iter().map(target).collect(),
            other_targets: others,
        })
    }

    /// What lies between the blocks of a function and is none.
    fn unreadable(&self, symbol: Svma, of: &[&Block]) -> Vec<Range<Svma>> {
        let functions = &self.code.functions;
        let mut gaps = Vec::new();
        let mut blocks = of.iter().peekable();
        let mut ids: Vec<_> = of.iter().map(|block| block.function).collect();
        ids.dedup();
        for part in ids.into_iter().map(|id| functions.get(id)).filter(|part| part.symbol == symbol) {
            // Without a known end, what comes after the last block may be anything.
            let mut at = part.start;
            while let Some(block) = blocks.next_if(|block| block.start < part.end) {
                if at < block.start {
                    gaps.push(at..block.start);
                }
                at = at.max(block.end);
            }
            if at < part.end && part.has_known_end {
                gaps.push(at..part.end);
            }
        }
        gaps
    }
}

fn counted_loops(found: &Loops, edges: &BTreeMap<Way, f64>, outside: &[f64], is_known: bool) -> Vec<CountedLoop> {
    let known = is_known.then_some(0.0);
    let counted = found.loops.iter().map(|one| CountedLoop {
        header: one.header,
        parent: one.parent,
        depth: one.depth,
        first: one.first,
        last: one.last,
        blocks: one.nodes,
        entries: known.map(|_| outside[one.header]),
        repeats: known,
    });
    let mut counted: Vec<CountedLoop> = counted.collect();
    for (&(from, to), count) in edges {
        let Some(one) = found.innermost[to].map(|one| &mut counted[one]).filter(|one| one.header == to) else {
            continue;
        };
        let sum = if found.repeats(from, to) { &mut one.repeats } else { &mut one.entries };
        if let Some(sum) = sum {
            *sum += count;
        }
    }
    counted
}

/// Whether an instruction is what compilers and assemblers put between code.
fn fills(instruction: &Instruction) -> bool {
    let is_exchange =
        instruction.mnemonic() == Mnemonic::Xchg && instruction.op0_register() == instruction.op1_register();
    matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3) || is_exchange
}

/// Writes instructions as all reports do.
pub(crate) fn formatter() -> IntelFormatter {
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_branch_leading_zeros(false);
    options.set_show_branch_size(false);
    options.set_space_after_operand_separator(true);
    formatter
}
