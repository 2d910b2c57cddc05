//! The functions that were asked for.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::Analysis;
use crate::address::{FileOffset, Svma};
use crate::annotate::function::{AnnotatedFunction, Code as FunctionCode};
use crate::annotate::graph::blocks_by_symbol;
use crate::annotate::place::Places;
use crate::annotate::ranking::{Ranked, ranking};
use crate::annotate::source::{self, Inlined, SourcePlace};
use crate::annotate::ways::WaysOf;
use crate::code::demangle;
use crate::counting::Code;
use crate::lines::{SourceIndex, joined, short_names};
use crate::mix::{Dimension, Filter};
use crate::recording::KnownFunctions;
use crate::uncertainty::SampledBlocks;

/// What to annotate.
#[derive(Clone, Debug)]
pub struct Query {
    /// Keeps functions by name; without it all are kept.
    pub functions: Option<Filter>,
    /// Keeps these functions, by module of the analysis and address of their symbol; without it all are kept.
    pub among: Option<BTreeSet<(usize, Svma)>>,
    /// How many functions at most, those with the most executed instructions.
    pub top: usize,
    /// How many instructions their code may have together; the hottest function is there however large it is.
    pub most_instructions: Option<usize>,
    /// Whether debug information is read.
    pub source: bool,
    /// Threads that read it; the result does not depend on them.
    pub threads: usize,
}

/// Functions with what is known of their code.
#[derive(Debug)]
pub struct Annotation {
    /// Those with the most executed instructions first.
    pub functions: Vec<AnnotatedFunction>,
    /// All functions that the names ask for, in the same order; those whose code is left out, too.
    pub ranked: Vec<Ranked>,
    /// Names that no function has that was seen.
    pub unmatched: Vec<NoFunction>,
    /// What was damaged or missing in debug information, each once, in words.
    pub notes: Vec<String>,
    /// What the recording does not have, in words.
    pub lacks: Vec<String>,
    /// The source of the functions, by index of the module.
    sources: HashMap<usize, SourceIndex>,
    /// What files of the source are called, by path.
    names: BTreeMap<String, String>,
}

/// A name that no function has that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoFunction {
    /// As it was given.
    pub name: String,
    /// A function of the recorded binaries has it: nothing was sampled in it.
    pub is_there: bool,
    /// The functions that were seen, in order.
    pub existing: Vec<String>,
}

/// Annotates the hottest functions of an analysis. Where branches went is known if it was made with
/// [`Detail::Branches`](crate::counting::Detail::Branches).
pub fn annotate(analysis: &Analysis, query: &Query) -> Annotation {
    let Ranking { blocks, mut ranked, .. } = Ranking::of(analysis);
    let mut unmatched = Vec::new();
    if let Some(mut filter) = query.functions.clone() {
        let existing: BTreeSet<String> = ranked.iter().map(|of| of.name.clone()).collect();
        unmatched = absent(analysis, &mut filter, &existing);
        ranked.retain(|of| filter.keeps(&of.name));
    }
    if let Some(among) = &query.among {
        ranked.retain(|of| among.contains(&(of.module, of.symbol)));
    }
    let annotation = annotated(analysis, &blocks, hottest(analysis, &ranked, query), query.source, query.threads);
    Annotation { ranked, unmatched, ..annotation }
}

/// The functions of an analysis, to be annotated one by one when somebody looks at them.
pub struct Ranking<'a> {
    analysis: &'a Analysis,
    blocks: SampledBlocks<'a>,
    ranked: Vec<Ranked>,
}

impl<'a> Ranking<'a> {
    /// All functions that ran.
    pub fn of(analysis: &'a Analysis) -> Self {
        let blocks = SampledBlocks::of(analysis);
        let ranked = ranking(analysis, &blocks);
        Ranking { analysis, blocks, ranked }
    }

    /// The functions, those with the most executed instructions first.
    pub fn functions(&self) -> &[Ranked] {
        &self.ranked
    }

    /// Annotates the function at a place of [`Self::functions`]; there is none in the annotation of a place that none has. `source` and `threads`
    /// are those of a [`Query`].
    pub fn annotate(&self, place: usize, source: bool, threads: usize) -> Annotation {
        let function = self.ranked.get(place).cloned().into_iter().collect();
        annotated(self.analysis, &self.blocks, function, source, threads)
    }
}

fn annotated(
    analysis: &Analysis,
    blocks: &SampledBlocks<'_>,
    ranked: Vec<Ranked>,
    source: bool,
    threads: usize,
) -> Annotation {
    let functions = functions(analysis, ranked.clone(), blocks);
    let sources = if source { sources(analysis, &functions, threads) } else { HashMap::new() };
    let notes: BTreeSet<&String> = sources.values().flat_map(SourceIndex::notes).collect();
    let notes = notes.into_iter().cloned().collect();
    let paths = sources.values().flat_map(source::paths).map(str::to_owned).collect();
    let names = short_names(&paths);
    Annotation { functions, ranked, unmatched: Vec::new(), notes, lacks: lacks(analysis), sources, names }
}

impl Annotation {
    /// The line that an instruction of a function comes from, where debug information was read and says so.
    pub fn place(&self, function: &AnnotatedFunction, at: Svma) -> Option<SourcePlace<'_>> {
        source::place(self.sources.get(&function.module)?, at)
    }

    /// The inlined functions that begin at an instruction: those that it is of and the one before is not, outermost
    /// first.
    pub fn begun(&self, function: &AnnotatedFunction, before: Option<Svma>, at: Svma) -> Vec<Inlined<'_>> {
        self.sources.get(&function.module).map_or_else(Vec::new, |index| source::begun(index, before, at))
    }

    /// As much of the end of a file's path as no other file of the source has: `loop.c`, or `a/loop.c` and `b/loop.c`.
    pub fn short_name<'a>(&'a self, path: &'a str) -> &'a str {
        self.names.get(path).map_or(path, String::as_str)
    }

    /// Whether any line of the source is known.
    pub fn has_lines(&self) -> bool {
        self.sources.values().any(|index| !index.spans().is_empty())
    }
}

/// What the filter names and no function has that was seen.
fn absent(analysis: &Analysis, filter: &mut Filter, existing: &BTreeSet<String>) -> Vec<NoFunction> {
    let unmatched = filter.resolve(existing);
    if unmatched.is_empty() {
        return Vec::new();
    }
    // One name after the other: all together can be more than fits.
    let filter_of = |value: &str| Filter::any_of(Dimension::Function, &[value.to_owned()]);
    let mut nowhere: Vec<(&str, Filter)> =
        unmatched.iter().map(|unmatched| (unmatched.value.as_str(), filter_of(&unmatched.value))).collect();
    for module in &analysis.counted {
        let Code::Read(code) = &module.counts.code else { continue };
        for (id, _) in code.functions.iter() {
            if nowhere.is_empty() {
                break;
            }
            let name = BTreeSet::from([demangle(&code.functions.name(id))]);
            nowhere.retain_mut(|(_, filter)| !filter.resolve(&name).is_empty());
        }
    }
    let nowhere: BTreeSet<String> = nowhere.into_iter().map(|(value, _)| value.to_owned()).collect();
    let absent = unmatched.into_iter().map(|unmatched| {
        let is_there = !nowhere.contains(&unmatched.value);
        NoFunction { name: unmatched.value, is_there, existing: unmatched.existing }
    });
    absent.collect()
}

/// The functions whose code is wanted.
fn hottest(analysis: &Analysis, ranked: &[Ranked], query: &Query) -> Vec<Ranked> {
    let top = ranked.iter().take(query.top);
    let Some(most) = query.most_instructions else { return top.cloned().collect() };
    let mut instructions: HashMap<(usize, Svma), usize> = HashMap::new();
    for (index, module) in analysis.counted.iter().enumerate() {
        let Code::Read(code) = &module.counts.code else { continue };
        for block in code.blocks.blocks() {
            let symbol = code.functions.get(block.function).symbol;
            *instructions.entry((index, symbol)).or_default() += block.instructions as usize;
        }
    }
    let mut sum = 0_usize;
    let fitting = top.enumerate().take_while(|(at, of)| {
        sum += instructions.get(&(of.module, of.symbol)).copied().unwrap_or(0);
        *at == 0 || sum <= most
    });
    fitting.map(|(_, of)| of.clone()).collect()
}

/// In the same order.
fn functions(analysis: &Analysis, ranked: Vec<Ranked>, sampled: &SampledBlocks<'_>) -> Vec<AnnotatedFunction> {
    let flow = analysis.flow.as_ref();
    let places = Places::of(analysis);
    let all_ways = WaysOf::new(analysis);
    let has_mispredictions = flow.is_some_and(|flow| flow.flow().knows_mispredictions());
    let mut by_module: BTreeMap<usize, Vec<(usize, Ranked)>> = BTreeMap::new();
    for (rank, of) in ranked.into_iter().enumerate() {
        by_module.entry(of.module).or_default().push((rank, of));
    }
    let mut annotated: BTreeMap<usize, AnnotatedFunction> = BTreeMap::new();
    for (index, of_module) in by_module {
        let module = &analysis.counted[index];
        let code = match &module.counts.code {
            Code::Read(code) => code,
            Code::Unread { functions, .. } => {
                let named = |(rank, of): (usize, Ranked)| {
                    let calls = all_ways.led_to(module.counts.module, of.symbol);
                    (rank, AnnotatedFunction { calls, ..without_code(of, functions) })
                };
                annotated.extend(of_module.into_iter().map(named));
                continue;
            }
        };
        let (flow_index, ways) = all_ways.module(module, code);
        let of_function = FunctionCode {
            code,
            module: index,
            sampled,
            ways: ways.as_ref(),
            flow_index,
            places: &places,
            has_mispredictions,
        };
        let mut blocks = blocks_by_symbol(code, of_module.iter().map(|(_, of)| of.symbol));
        for (rank, of) in of_module {
            let body = of_function.body(of.symbol, &blocks.remove(&of.symbol).unwrap_or_default());
            let function = AnnotatedFunction {
                name: of.name,
                module: index,
                start: of.symbol,
                executed: of.executed,
                executed_interval: of.executed_interval,
                share_interval: of.share_interval,
                time: of.time,
                calls: if ways.is_some() { body.calls } else { all_ways.led_to(module.counts.module, of.symbol) },
                has_ways: ways.is_some(),
                blocks: body.blocks,
                unreadable: body.unreadable,
                loops: body.loops,
                edges: body.edges,
            };
            annotated.insert(rank, function);
        }
    }
    annotated.into_values().collect()
}

/// A function of which nothing but the name is known.
fn without_code(of: Ranked, functions: &KnownFunctions) -> AnnotatedFunction {
    let known = functions.around(FileOffset(of.symbol.0));
    AnnotatedFunction {
        name: of.name,
        module: of.module,
        start: of.symbol,
        executed: of.executed,
        executed_interval: of.executed_interval,
        share_interval: of.share_interval,
        time: of.time,
        calls: None,
        has_ways: false,
        blocks: Vec::new(),
        unreadable: known.map(|known| Svma(known.start.0)..Svma(known.end.0)).into_iter().collect(),
        loops: Some(Vec::new()),
        edges: Vec::new(),
    }
}

/// The debug information of these functions, by module.
fn sources(analysis: &Analysis, functions: &[AnnotatedFunction], threads: usize) -> HashMap<usize, SourceIndex> {
    let mut ranges: BTreeMap<usize, Vec<std::ops::Range<Svma>>> = BTreeMap::new();
    for function in functions {
        let blocks = function.blocks.iter().map(|block| block.start..block.end);
        ranges.entry(function.module).or_default().extend(blocks);
    }
    let mut sources = HashMap::new();
    for (index, mut ranges) in ranges {
        let Code::Read(code) = &analysis.counted[index].counts.code else { continue };
        ranges.sort_by_key(|range| range.start);
        sources.insert(index, SourceIndex::read(&code.binary, &joined(ranges), threads.max(1)));
    }
    sources
}

/// What branch records could tell and do not.
fn lacks(analysis: &Analysis) -> Vec<String> {
    let flow = analysis.flow.as_ref().map(|flow| flow.flow());
    let Some(flow) = flow.filter(|flow| flow.range_total() > 0.0) else {
        return vec!["where branches went, how often loops ran, and calls: there are no branch stacks".to_owned()];
    };
    let mut lacks = Vec::new();
    if !flow.knows_mispredictions() {
        lacks.push("mispredictions: no branch of the stacks is marked as one".to_owned());
    }
    match (&analysis.paths, analysis.summary.stacks.timed) {
        (_, 0) => lacks.push("cycles of blocks: no branch of the stacks has cycles".to_owned()),
        (None, _) => lacks.push("cycles of blocks: the branch stacks have them, `hbbp annotate` reads them".to_owned()),
        (Some(_), _) => {}
    }
    lacks
}
