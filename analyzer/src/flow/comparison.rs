//! Two flows side by side: how much they have in common, and what has moved.
//!
//! Each side is shares of its executed instructions (of its samples, where it has no ranges). The overlap of two profiles is
//! sum min(a, b) over all blocks, or functions, as AutoFDO's `profile_diff` defines it: 1 for the same, 0 for nothing in common.
//! Blocks are the same if their address and their file's build id are; functions, if their name and their file's are, so functions can be
//! compared across builds, and where compilers named them differently, if the names without suffixes are (see [`suffixes`](super::suffixes));
//! lines of the source likewise, counted from the start of their function. Which blocks of other builds have the same code is told by a hash.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ::instructions::Attributes;

use crate::address::Svma;
use crate::binaries::{Binary, BinarySearch, NoCode};
use crate::build_id::BuildId;
use crate::code::Block;
use crate::code::{demangle, instructions};
use crate::counting::AnalysedModule;
use crate::flow::same_code::SameCode;
use crate::flow::source_lines::{OfLine, SourceLine, source_lines};
use crate::flow::suffixes::{Joined, Variants};
use crate::flow::{AnalysedFlow, Flow, ModuleFlow};
use crate::recording::{Module, ModuleKind, base_name};

/// Something that ran before and after: shares of all instructions of each side, 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved<N> {
    /// The function, block, line or kind of instruction.
    pub what: N,
    /// Its shares before and after, 0 to 1 each.
    pub shares: [f64; 2],
}

impl<N> Moved<N> {
    /// By how much it grew.
    pub fn change(&self) -> f64 {
        self.shares[1] - self.shares[0]
    }

    /// Whether that is less than its uncertainty, so that it may be no change; `None` where the uncertainty is not known.
    pub fn is_within(&self, error: Option<f64>) -> Option<bool> {
        error.map(|error| self.change().abs() <= error)
    }
}

/// A function, by names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FunctionName {
    /// Base name of its file.
    pub module: String,
    /// Demangled; `None` where the code was not read.
    pub function: Option<String>,
}

/// A block of a file that is the same on both sides.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockName {
    /// The function that holds it.
    pub function: FunctionName,
    /// Address of the first instruction.
    pub start: Svma,
    /// After the last instruction.
    pub end: Svma,
}

/// A kind of instruction, as in HBBP's table 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InstructionKind {
    /// Instruction set extension, such as `avx2`, as [`::instructions::isa_names`] lists them.
    pub isa: &'static str,
    /// What it works on: `packed` (a vector of elements), `scalar` (one of them) or `none`.
    pub packing: &'static str,
}

/// The blocks with instructions of a line of the source, by file.
pub type BlocksOfLine = Vec<(Arc<FileOfLines>, Vec<(Svma, u32)>)>;

/// A file with lines of the source.
#[derive(Debug, PartialEq)]
pub struct FileOfLines {
    /// Its base name.
    pub module: String,
    /// Whether it is on each side.
    pub is_on: [bool; 2],
}

/// What two flows have in common and what not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Executed instructions of each side (or what its samples stand for); of code that was not read, an estimate from its bytes.
    pub instructions: [f64; 2],
    /// Share of each side in files that are the same on both.
    pub same_files: [f64; 2],
    /// Share of each side in blocks whose code the function of the same name has on the other side, too, if it ran there: the same instructions,
    /// wherever they and what they refer to lie. Of files that are the same, all that was read.
    pub same_code: [f64; 2],
    /// Share of each side in code that was not read.
    pub unread: [f64; 2],
    /// Overlap by block within the files that are the same; `None` if there are none.
    pub block_overlap: Option<f64>,
    /// Share of each side that belongs to a line of the source.
    pub with_lines: [f64; 2],
    /// Overlap by line of what belongs to one; `None` if there is nothing on one side.
    pub line_overlap: Option<f64>,
    /// Overlap by function of all code.
    pub function_overlap: f64,
    /// Largest change first. Shares are of all code.
    pub blocks: Vec<Moved<BlockName>>,
    /// Largest change first. Shares are of all code.
    pub lines: Vec<Moved<SourceLine>>,
    /// The blocks of each line.
    pub blocks_of_lines: BTreeMap<SourceLine, BlocksOfLine>,
    /// Functions, the largest change first. Shares are of all code.
    pub functions: Vec<Moved<FunctionName>>,
    /// Of those of `functions` that are named without the suffixes of compilers: the names of each side that were added up.
    pub joined: BTreeMap<FunctionName, [Vec<String>; 2]>,
    /// By kind. Shares are of the code that was read.
    pub mix: Vec<Moved<InstructionKind>>,
    /// What was taken for one, in sentences.
    pub notes: Vec<String>,
    /// Why code was not read, or does not fit what was counted, in sentences.
    pub lacks: Vec<String>,
}

/// Compares two flows, before and after. `threads` read the lines of the source.
pub fn compare(sides: [&AnalysedFlow; 2], search: &BinarySearch, threads: usize) -> Comparison {
    let by_executions = sides.map(AnalysedFlow::counts_executions);
    let versions = versions_of_one_program(sides.map(AnalysedFlow::flow));
    let notes =
        versions.iter().map(|[before, after]| format!("{before} and {after} are taken for versions of one program"));
    let mut sums = Sums { by_executions, threads, notes: notes.collect(), versions, ..Sums::default() };
    // Which module of each side has the same code, in the order of their identities.
    let mut pairs: BTreeMap<Identity<'_>, [Option<usize>; 2]> = BTreeMap::new();
    for (side, flow) in sides.into_iter().enumerate() {
        for (index, of) in flow.flow().modules.iter().enumerate() {
            let Some(identity) = Identity::of(of, flow.copied_code(index)) else { continue };
            pairs.entry(identity).or_default()[side] = Some(index);
        }
    }
    let search = search.among(sides.into_iter().flat_map(|flow| &flow.flow().modules).map(|of| &of.module));
    for pair in pairs.into_values() {
        sums.add(sides, pair, &search);
    }
    sums.finish()
}

/// The base names of the files that ran most on each side, if each is on its side only: a program was built under another name.
fn versions_of_one_program(sides: [&Flow; 2]) -> Option<[String; 2]> {
    let name = |of: &ModuleFlow| base_name(&of.module.path);
    let ran = |of: &ModuleFlow| of.range_total() + of.sample_total();
    let files =
        |side: usize| sides[side].modules.iter().filter(|of| of.module.kind == ModuleKind::File && ran(of) > 0.0);
    let most = |side: usize| files(side).max_by(|a, b| ran(a).total_cmp(&ran(b))).map(name);
    let [before, after] = [most(0)?, most(1)?];
    let is_alone = files(1).all(|of| name(of) != before) && files(0).all(|of| name(of) != after);
    is_alone.then_some([before, after])
}

/// Modules that are the same code: of one build id, or without any, of one path. What recordings, or copies beside them, have of the kernel or of
/// code that was made as it ran is what was there that time: unless all of it is the same, functions are compared.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Identity<'a> {
    BuildId(&'a BuildId, bool),
    Path(&'a str, bool),
    Copy(&'a str, &'a [u8]),
}

impl<'a> Identity<'a> {
    /// `None` if nothing ran in it. `copied`: the copy of what ran that it was counted in.
    fn of(of: &'a ModuleFlow, copied: Option<&'a Binary>) -> Option<Self> {
        let is_empty = of.ranges.is_empty() && of.samples.is_empty();
        let Module { path, build_id, kind, .. } = &of.module;
        let identity = match (build_id, copied) {
            (build_id, Some(copied)) if kind.is_kernel() || build_id.is_none() => {
                Identity::Copy(path, copied.image.bytes())
            }
            (Some(build_id), _) => Identity::BuildId(build_id, of.read),
            (None, _) => Identity::Path(path, of.read),
        };
        (!is_empty).then_some(identity)
    }
}

#[derive(Default)]
struct Sums {
    by_executions: [bool; 2],
    threads: usize,
    total: [f64; 2],
    same_files: [f64; 2],
    unread: [f64; 2],
    same_code: SameCode,
    common_blocks: Vec<[f64; 2]>,
    blocks: BTreeMap<BlockName, [f64; 2]>,
    lines: BTreeMap<SourceLine, [f64; 2]>,
    blocks_of_lines: BTreeMap<SourceLine, BlocksOfLine>,
    functions: BTreeMap<FunctionName, [f64; 2]>,
    mix: BTreeMap<InstructionKind, [f64; 2]>,
    notes: Vec<String>,
    lacks: Vec<String>,
    versions: Option<[String; 2]>,
    /// Names of files that are the same on both sides.
    same: BTreeSet<String>,
    variants: Variants,
}

impl Sums {
    /// Adds a module that is on one side or both.
    fn add(&mut self, sides: [&AnalysedFlow; 2], pair: [Option<usize>; 2], search: &BinarySearch) {
        let parts: Vec<(usize, &AnalysedFlow, usize)> =
            (0..2).filter_map(|side| Some((side, sides[side], pair[side]?))).collect();
        let Some(&(_, flow, index)) = parts.first() else { return };
        let of = &flow.flow().modules[index];
        let mut name = base_name(&of.module.path);
        if let Some(versions) = self.versions.as_ref().filter(|versions| versions.contains(&name)) {
            name = versions.join("|");
        }
        let flows: Vec<(&Flow, usize)> = parts.iter().map(|&(_, flow, index)| (flow.flow(), index)).collect();
        let code = match flows.len() {
            1 => flow.code(index, search),
            // Blocks of both start and end where one of them shows it.
            _ if of.read => {
                // Copies are beside one recording alone: the search for both does not have them.
                let copied = flow.copied_code(index).cloned().map(Ok);
                let binary = copied.unwrap_or_else(|| search.open(&of.module));
                binary.map(|binary| Arc::new(AnalysedModule::of_flows(&flows, binary)))
            }
            _ => Err(NoCode::NotReadBefore),
        };
        let code = match code {
            Ok(code) => code,
            Err(why) => {
                let mut executed = [0.0; 2];
                for (side, flow, index) in parts {
                    executed[side] = flow.unread_count(index);
                }
                if executed == [0.0; 2] {
                    return; // See `Flow::sampled_only`.
                }
                add(&mut self.unread, executed);
                add(&mut self.total, executed);
                let function = FunctionName { module: name, function: None };
                add(self.functions.entry(function).or_default(), executed);
                self.lacks.push(format!("{}: {why}", of.module.path));
                return;
            }
        };
        let binary = &code.binary;
        let mut executions: [Vec<f64>; 2] = Default::default();
        for (side, flow, index) in parts {
            executions[side] = flow.block_counts(index, &code);
            self.lacks.extend(flow.misfits(index, &code));
        }
        let both = pair.iter().all(Option::is_some);
        if both {
            self.same.insert(name.clone());
        }
        for (side, executions) in executions.iter().enumerate().filter(|(side, _)| !both && pair[*side].is_some()) {
            let ran = code.blocks.blocks().iter().zip(executions).filter(|(_, count)| **count > 0.0);
            let symbols = ran.map(|(block, _)| code.functions.get(block.function).symbol).collect();
            self.variants.add(side, &name, &code.functions, &symbols);
        }
        let by_executions = self.by_executions;
        let executed_in = |(index, block): (usize, &Block)| {
            [0, 1].map(|side| {
                let count = executions[side].get(index).copied().unwrap_or(0.0);
                if by_executions[side] { count * f64::from(block.instructions) } else { count }
            })
        };
        let executed: Vec<[f64; 2]> = code.blocks.blocks().iter().enumerate().map(executed_in).collect();
        self.same_code.add(pair.map(|index| index.is_some()), &name, &code, &executed);
        let mut ran: Vec<(&Block, [f64; 2])> = Vec::new();
        for (block, executed) in code.blocks.blocks().iter().zip(executed) {
            let number = f64::from(block.instructions);
            if executed == [0.0; 2] {
                continue;
            }
            add(&mut self.total, executed);
            ran.push((block, executed));
            let function = Some(demangle(&code.functions.name(block.function)));
            let function = FunctionName { module: name.clone(), function };
            add(self.functions.entry(function.clone()).or_default(), executed);
            if both {
                add(&mut self.same_files, executed);
                self.common_blocks.push(executed);
                let block = BlockName { function, start: block.start, end: block.end };
                add(self.blocks.entry(block).or_default(), executed);
            }
            for instruction in instructions(&binary.image, block) {
                let Attributes { isa, packing, .. } = Attributes::of(&instruction);
                let kind = InstructionKind { isa, packing: packing.as_str() };
                add(self.mix.entry(kind).or_default(), executed.map(|executed| executed / number));
            }
        }
        let file = Arc::new(FileOfLines { module: name, is_on: pair.map(|index| index.is_some()) });
        for (line, OfLine { executed, blocks }) in source_lines(binary, &ran, self.threads) {
            self.blocks_of_lines.entry(line.clone()).or_default().push((Arc::clone(&file), blocks));
            add(self.lines.entry(line).or_default(), executed);
        }
    }

    /// Adds up the functions that compilers named differently on both sides.
    fn join_variants(&mut self) -> BTreeMap<FunctionName, [Vec<String>; 2]> {
        let Joined { mut names, mut ambiguous } = self.variants.joined();
        names.retain(|base, _| !self.same.contains(&base.module));
        ambiguous.retain(|base| !self.same.contains(&base.module));
        for (base, names) in &names {
            let exact: BTreeSet<&String> = names.iter().flatten().collect();
            self.same_code.join(base, &exact);
            let mut sums = [0.0; 2];
            for name in exact {
                let name = FunctionName { module: base.module.clone(), function: Some(name.clone()) };
                add(&mut sums, self.functions.remove(&name).unwrap_or_default());
            }
            add(self.functions.entry(base.clone()).or_default(), sums);
        }
        let name = |base: &FunctionName| base.function.clone().unwrap_or_default();
        if !names.is_empty() {
            let said = names.iter().map(|(base, [before, after])| {
                format!("{} ({} before, {} after)", name(base), before.join(" + "), after.join(" + "))
            });
            self.notes
                .push(format!("taken for one function, by names without the suffixes of compilers: {}", few(said)));
        }
        if !ambiguous.is_empty() {
            let said = few(ambiguous.iter().map(name));
            self.notes.push(format!(
                "compared by their whole names, because there may be several functions of the name without suffixes: {said}"
            ));
        }
        names
    }

    fn finish(mut self) -> Comparison {
        let joined = self.join_variants();
        let total = self.total;
        let of_all = |sums: [f64; 2]| [share(sums[0], total[0]), share(sums[1], total[1])];
        let common = self.same_files;
        let in_common = common.iter().all(|sum| *sum > 0.0);
        let smaller = |sums: &[f64; 2], of: [f64; 2]| share(sums[0], of[0]).min(share(sums[1], of[1]));
        let with_lines = self.lines.values().fold([0.0; 2], |all, sums| [all[0] + sums[0], all[1] + sums[1]]);
        let have_lines = with_lines.iter().all(|sum| *sum > 0.0);
        let line_overlap = have_lines.then(|| self.lines.values().map(|sums| smaller(sums, with_lines)).sum());
        let functions = by_change(self.functions, of_all);
        let read = [0, 1].map(|side| total[side] - self.unread[side]);
        let of_read = |sums: [f64; 2]| [share(sums[0], read[0]), share(sums[1], read[1])];
        let mix = self.mix.into_iter().map(|(what, sums)| Moved { what, shares: of_read(sums) });
        Comparison {
            instructions: total,
            same_files: of_all(common),
            same_code: of_all(self.same_code.executed()),
            unread: of_all(self.unread),
            block_overlap: in_common.then(|| self.common_blocks.iter().map(|sums| smaller(sums, common)).sum()),
            with_lines: of_all(with_lines),
            line_overlap,
            function_overlap: functions.iter().map(|moved| moved.shares[0].min(moved.shares[1])).sum(),
            blocks: by_change(self.blocks, of_all),
            lines: by_change(self.lines, of_all),
            blocks_of_lines: self.blocks_of_lines,
            functions,
            joined,
            mix: mix.collect(),
            notes: self.notes,
            lacks: self.lacks,
        }
    }
}

/// The first of some names, and how many more there are.
fn few(names: impl ExactSizeIterator<Item = String>) -> String {
    const NAMED: usize = 5;
    let more = names.len().saturating_sub(NAMED);
    let named = names.take(NAMED).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{named}, and {more} more") } else { named }
}

fn add(sums: &mut [f64; 2], more: [f64; 2]) {
    sums[0] += more[0];
    sums[1] += more[1];
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Largest change first; of equal ones in the order of their names.
fn by_change<N: Ord>(sums: BTreeMap<N, [f64; 2]>, shares: impl Fn([f64; 2]) -> [f64; 2]) -> Vec<Moved<N>> {
    let mut moved: Vec<Moved<N>> = sums.into_iter().map(|(what, sums)| Moved { what, shares: shares(sums) }).collect();
    moved.sort_by(|a, b| b.change().abs().total_cmp(&a.change().abs()));
    moved
}
