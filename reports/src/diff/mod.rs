//! Two profiles side by side.

mod described;
mod names;
mod pivot;
mod work;

use analyzer::flow::{AnalysedFlow, BlockName, Comparison, FunctionName, InstructionKind, Moved, SourceLine, compare};
use analyzer::uncertainty::{CountKind, RowName, Rows, Side, change_error, width_of_many};
use analyzer::{Analysis, BinarySearch, Origin};

use crate::left_out::sampled_only;
pub use described::{nothing_to_choose, said_of_mix};
pub use names::Names;
pub use pivot::{Pivot, Row};
pub use work::Work;

/// How two profiles differ.
pub struct Changes<'a> {
    /// What the sides are called.
    pub files: [String; 2],
    /// Whether the counts of each side are executions.
    pub executions: [bool; 2],
    /// By function, block, line and kind of instruction.
    pub comparison: &'a Comparison,
    /// What is known of the uncertainty of each.
    pub sides: [&'a Side; 2],
}

/// Two analyses, compared: for what shows more of them than how they differ.
pub struct Compared {
    /// How they differ.
    comparison: Comparison,
    /// What is known of the uncertainty of each.
    pub sides: [Side; 2],
    executions: [bool; 2],
    /// What is not compared of each, in a sentence.
    pub left_out: [Option<String>; 2],
}

impl Compared {
    /// Of analyses with branches, before and after.
    pub fn of(analyses: [&Analysis; 2], with: (&BinarySearch, usize)) -> Self {
        let nothing = AnalysedFlow::default();
        let flows = analyses.map(|analysis| analysis.flow.as_ref().unwrap_or(&nothing));
        let sides = analyses.map(side);
        Compared::of_flows(flows, sides, with)
    }

    /// Of flows, of which so much is known. Sources of programs are looked for, by so many threads.
    pub fn of_flows(flows: [&AnalysedFlow; 2], sides: [Side; 2], (search, threads): (&BinarySearch, usize)) -> Self {
        let executions = flows.map(|flow| flow.flow().executions);
        let left_out = flows.map(left_out);
        Compared { comparison: compare(flows, search, threads), sides, executions, left_out }
    }

    /// How they differ, with what the sides are called.
    pub fn changes(&self, files: [String; 2]) -> Changes<'_> {
        let Compared { comparison, sides, executions, .. } = self;
        Changes { files, executions: *executions, comparison, sides: [&sides[0], &sides[1]] }
    }
}

/// What is known of the uncertainty of an analysis.
fn side(analysis: &Analysis) -> Side {
    match analysis.origin {
        Origin::Flow if analysis.design.kind == CountKind::Unknown => Side::Unknown,
        Origin::Recording | Origin::Flow => Side::Sampled(Rows::of(analysis).into()),
        Origin::Exact => Side::Exact,
    }
}

/// How far a change is from none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Noise {
    /// Half the width of the interval of the change, as a share of all; `None` where it is not known.
    pub error: Option<f64>,
    /// Whether the change is less than that, and may be none.
    pub is_within: Option<bool>,
    /// Whether it is more than chance does in any of all the rows of its list.
    pub is_finding: Option<bool>,
}

impl Changes<'_> {
    /// How far the change of a function is from none.
    pub fn of_function(&self, of: &Moved<FunctionName>) -> Noise {
        let rows = self.rows_of_function(&of.what);
        self.noise(of, [&rows[0], &rows[1]], self.comparison.functions.len())
    }

    /// The rows of each side that are a function.
    pub fn rows_of_function(&self, name: &FunctionName) -> [Vec<RowName>; 2] {
        let modules = modules(&name.module);
        [0, 1].map(|side| {
            let of = |function| RowName::Function(modules[side].clone(), function);
            self.names_of_function(name, side).into_iter().map(of).collect()
        })
    }

    /// What a function is called on a side: it may be several there that were added up. `None` is code that was not read.
    pub fn names_of_function(&self, name: &FunctionName, side: usize) -> Vec<Option<String>> {
        match self.comparison.joined.get(name) {
            Some(names) => names[side].iter().cloned().map(Some).collect(),
            None => vec![name.function.clone()],
        }
    }

    /// How far the change of a block is from none.
    pub fn of_block(&self, of: &Moved<BlockName>) -> Noise {
        let rows = modules(&of.what.function.module).map(|module| [RowName::Block(module, of.what.start)]);
        self.noise(of, [&rows[0], &rows[1]], self.comparison.blocks.len())
    }

    /// How far the change of a line of the source is from none.
    pub fn of_line(&self, of: &Moved<SourceLine>) -> Noise {
        let files = self.comparison.blocks_of_lines.get(&of.what).map_or(&[][..], Vec::as_slice);
        let rows = [0, 1].map(|side| -> Vec<RowName> {
            let of_side = files.iter().filter(|(file, _)| file.is_on[side]);
            of_side
                .flat_map(|(file, blocks)| {
                    let module = modules(&file.module)[side].clone();
                    let part = move |&(start, instructions)| RowName::PartOfBlock(module.clone(), start, instructions);
                    blocks.iter().map(part)
                })
                .collect()
        });
        self.noise(of, [&rows[0], &rows[1]], self.comparison.lines.len())
    }

    /// How far the change of a kind of instructions is from none.
    pub fn of_kind(&self, of: &Moved<InstructionKind>) -> Noise {
        let row = [kind(&of.what)];
        self.noise(of, [&row, &row], self.comparison.mix.len())
    }

    /// How far the change of an instruction set is from none.
    pub fn of_isa(&self, of: &Moved<&str>) -> Noise {
        let of_set = self.comparison.mix.iter().filter(|kind| kind.what.isa == of.what);
        let rows: Vec<RowName> = of_set.map(|of| kind(&of.what)).collect();
        self.noise(of, [&rows, &rows], self.comparison.mix.len())
    }

    /// How far the change of a value of an attribute of instructions is from none, one of so many values.
    pub fn of_value(&self, key: &str, of: &Moved<&str>, values: usize) -> Noise {
        let row = [RowName::Value(key.to_owned(), of.what.to_owned())];
        self.noise(of, [&row, &row], values)
    }

    fn noise<N>(&self, of: &Moved<N>, names: [&[RowName]; 2], rows: usize) -> Noise {
        noise(of, self.sides, names, rows)
    }
}

fn kind(of: &InstructionKind) -> RowName {
    RowName::Kind(of.isa.into(), of.packing.into())
}

/// How far a change is from none, of a list of so many rows.
fn noise<N>(of: &Moved<N>, sides: [&Side; 2], names: [&[RowName]; 2], rows: usize) -> Noise {
    let error = change_error(sides, names);
    let is_finding = of.is_within(error.map(|error| error * width_of_many(rows, sides))).map(|within| !within);
    Noise { error, is_within: of.is_within(error), is_finding }
}

/// What is not compared of a flow, in a sentence.
fn left_out(flow: &AnalysedFlow) -> Option<String> {
    if flow.is_by_choice() { None } else { sampled_only(flow.flow()) }
}

/// The name of a module on each side: versions of one program may be named differently.
pub fn modules(name: &str) -> [String; 2] {
    let (before, after) = name.split_once('|').unwrap_or((name, name));
    [before, after].map(String::from)
}
