//! The code of functions, for a page: what `hbbp annotate` prints, with every text once.

use std::collections::HashMap;

use analyzer::address::Svma;
use analyzer::annotate::{AnnotatedBlock, AnnotatedFunction, Branch, CountedLoop, Edge, Place, Seen};
use serde::Serialize;

use super::address::Address;
use super::composed::Composed;
use super::short::Short;
use super::source::Source;
use crate::commands::annotate::{notes, word};
use crate::output::cut;

/// Different instructions, by column, and what is said of branches, each once.
#[derive(Default, Serialize)]
pub struct Texts {
    text: Vec<String>,
    /// Bytes of the instruction.
    length: Vec<u64>,
    notes: Vec<String>,
    /// Names of inlined functions.
    functions: Vec<String>,
    #[serde(skip)]
    of: HashMap<(String, u64), usize>,
    #[serde(skip)]
    of_notes: HashMap<String, usize>,
    #[serde(skip)]
    of_functions: HashMap<String, usize>,
}

/// Columns of what is said of a branch: names in it can be long, and there can be many.
const LONGEST_NOTE: usize = 400;

impl Texts {
    fn index(&mut self, text: &str, length: u64) -> usize {
        *self.of.entry((text.to_owned(), length)).or_insert_with(|| {
            self.text.push(text.to_owned());
            self.length.push(length);
            self.text.len() - 1
        })
    }

    fn function(&mut self, name: String) -> usize {
        *self.of_functions.entry(name).or_insert_with_key(|name| {
            self.functions.push(name.clone());
            self.functions.len() - 1
        })
    }

    fn note(&mut self, mut note: String) -> usize {
        cut(&mut note, LONGEST_NOTE);
        *self.of_notes.entry(note).or_insert_with_key(|note| {
            self.notes.push(note.clone());
            self.notes.len() - 1
        })
    }
}

/// A function.
#[derive(Serialize)]
pub struct FunctionCode {
    function: Option<usize>,
    calls: Option<Short>,
    blocks: Vec<BlockCode>,
    /// Addresses that hold no instructions: start, and end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_readable: Vec<[Address; 2]>,
    /// Null where they were not looked for.
    loops: Option<Vec<LoopData>>,
    /// Of blocks that were seen: from, to, and how often.
    edges: Vec<(usize, usize, Option<Short>)>,
}

/// A block. What is not there is null, nothing or false.
#[derive(Serialize)]
struct BlockCode {
    start: Address,
    seen: &'static str,
    /// Its place among the blocks that were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count_error: Option<Short>,
    #[serde(skip_serializing_if = "Option::is_none")]
    share_error: Option<Short>,
    #[serde(skip_serializing_if = "is_false")]
    rests_on_little: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    ebs: Option<Short>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lbr: Option<Short>,
    #[serde(skip_serializing_if = "is_false")]
    bias: bool,
    #[serde(rename = "loop", skip_serializing_if = "Option::is_none")]
    innermost: Option<usize>,
    /// What the source saw that was not chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    by_other_source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<BranchData>,
    /// Index of each instruction.
    instructions: Vec<usize>,
    /// Where a line of the source begins: the place in the block, and the index of the line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lines: Vec<(usize, u32)>,
    /// Where an inlined function begins: the place in the block, the index of its name, and that of the line that calls it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inlined: Vec<(usize, Option<usize>, Option<u32>)>,
}

#[derive(Serialize)]
struct BranchData {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Address>,
    /// The function of the target, if it is one of the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    taken: Option<Short>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fallen: Option<Short>,
    #[serde(skip_serializing_if = "Option::is_none")]
    taken_rate: Option<Short>,
    /// What people are told of it: an index.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<usize>,
}

#[derive(Serialize)]
struct LoopData {
    header: usize,
    parent: Option<usize>,
    depth: usize,
    first: usize,
    last: usize,
    size: usize,
    entries: Option<Short>,
    repeats: Option<Short>,
    trips: Option<Short>,
    note: String,
}

/// Where functions and blocks of other parts of the page are.
pub struct Known<'a> {
    pub composed: &'a Composed,
    /// Whether counts of both sources are worth showing.
    pub has_both: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// The code of a function.
pub fn code(
    known: &Known<'_>,
    function: &AnnotatedFunction,
    texts: &mut Texts,
    source: &mut Source<'_>,
) -> FunctionCode {
    let mut before = None;
    let blocks = function.blocks.iter().map(|block| of_block(known, (function, block), texts, source, &mut before));
    FunctionCode {
        function: known.composed.by_symbol.get(&(function.module, function.start)).copied(),
        calls: function.calls.map(Short),
        blocks: blocks.collect(),
        not_readable: function.unreadable.iter().map(|gap| [gap.start, gap.end].map(Address)).collect(),
        loops: function.loops.as_ref().map(|loops| loops.iter().map(of_loop).collect()),
        edges: seen_edges(function).map(|edge| (edge.from, edge.to, edge.count.map(Short))).collect(),
    }
}

/// The ways between blocks that were seen, but for those that were not taken.
fn seen_edges(function: &AnnotatedFunction) -> impl Iterator<Item = &Edge> {
    let is_seen = |index: usize| function.blocks.get(index).is_some_and(|block| block.seen == Seen::Counted);
    function.edges.iter().filter(move |edge| is_seen(edge.from) && is_seen(edge.to) && edge.count != Some(0.0))
}

/// `before`: the instruction before the block, which becomes its last.
fn of_block(
    known: &Known<'_>,
    (function, block): (&AnnotatedFunction, &AnnotatedBlock),
    texts: &mut Texts,
    source: &mut Source<'_>,
    before: &mut Option<Svma>,
) -> BlockCode {
    let ends = block.instructions.iter().skip(1).map(|next| next.address).chain([block.end]);
    let lengths = block.instructions.iter().zip(ends).map(|(one, end)| end.0.saturating_sub(one.address.0));
    let instructions = block.instructions.iter().zip(lengths).map(|(one, length)| texts.index(&one.text, length));
    let instructions = instructions.collect();
    let (mut lines, mut inlined) = (Vec::new(), Vec::new());
    for (at, one) in block.instructions.iter().enumerate() {
        let begun = source.begun(function, before.replace(one.address), one.address);
        lines.extend(begun.line.map(|line| (at, line)));
        let names = begun.inlined.into_iter().map(|(name, line)| (name.map(|name| texts.function(name)), line));
        inlined.extend(names.map(|(name, line)| (at, name, line)));
    }
    let both = block.count.filter(|_| known.has_both);
    BlockCode {
        start: Address(block.start),
        seen: word(block.seen),
        block: (block.seen == Seen::Counted)
            .then(|| known.composed.by_start.get(&(function.module, block.start)).copied())
            .flatten(),
        count_error: block.count_interval.half_width.map(Short),
        share_error: block.share_interval.half_width.map(Short),
        rests_on_little: block.share_interval.rests_on_little,
        ebs: both.filter(|count| count.ebs_samples > 0).map(|count| Short(count.ebs)),
        lbr: both.filter(|count| count.lbr_streams > 0).map(|count| Short(count.lbr)),
        bias: block.count.is_some_and(|count| count.bias),
        innermost: block.innermost,
        by_other_source: notes::by_other_source(block),
        branch: block.branch.as_ref().map(|branch| of_branch(known, (function, block), branch, texts)),
        instructions,
        lines,
        inlined,
    }
}

fn of_branch(
    known: &Known<'_>,
    (function, block): (&AnnotatedFunction, &AnnotatedBlock),
    branch: &Branch,
    texts: &mut Texts,
) -> BranchData {
    // What an instruction states is in its own module.
    let known_function = |place: &Place| known.composed.by_symbol.get(&(function.module, place.symbol()?)).copied();
    BranchData {
        kind: branch.kind.as_str(),
        target: branch.target.as_ref().map(|place| Address(place.address)),
        function: branch.target.as_ref().and_then(known_function),
        taken: branch.taken.map(Short),
        fallen: branch.fallen.map(Short),
        taken_rate: branch.taken_rate().map(Short),
        note: notes::of_branch(function, block).map(|note| texts.note(note)),
    }
}

fn of_loop(one: &CountedLoop) -> LoopData {
    LoopData {
        header: one.header,
        parent: one.parent,
        depth: one.depth,
        first: one.first,
        last: one.last,
        size: one.blocks,
        entries: one.entries.map(Short),
        repeats: one.repeats.map(Short),
        trips: one.mean_trips().map(Short),
        note: notes::of_loop(one),
    }
}
