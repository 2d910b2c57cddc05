//! The loops of all functions that ran, by block.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::Analysis;
use crate::address::Svma;
use crate::annotate::graph::{Graph, blocks_by_symbol};
use crate::annotate::loops::Loops;
use crate::annotate::source;
use crate::annotate::ways::WaysOf;
use crate::code::{demangle, instructions};
use crate::counting::{AnalysedModule, Code};
use crate::lines::short_names;

/// The innermost loop of every block of the functions that ran.
#[derive(Clone, Debug, Default)]
pub struct LoopTable {
    loops: Vec<LoopPlace>,
    /// By index of the module in [`Analysis::counted`] and of the block: an index of `loops`.
    of_blocks: Vec<HashMap<u32, usize>>,
    /// By index of the module: the blocks that no way in the code of their function leads to.
    apart: Vec<HashSet<u32>>,
}

/// Where a natural loop is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopPlace {
    /// Index of its module in [`Analysis::counted`].
    pub module: usize,
    /// Its function, demangled.
    pub function: String,
    /// `function:line` where debug information tells the line of its header, else `function@address`; with both where another loop of the
    /// module would have the same name.
    pub name: String,
    /// The first instruction of the block that every way into it passes.
    pub header: Svma,
    /// 1 for an outermost loop.
    pub depth: usize,
    /// The loop around it, as an index of all loops.
    pub parent: Option<usize>,
    /// As much of the end of its file's path as no other file has, and the line of its header.
    pub line: Option<(String, u32)>,
}

impl LoopTable {
    /// Finds the loops of an analysis as [`annotate`](crate::annotate::annotate) does: computed jumps close loops where it was made with
    /// [`Detail::Branches`](crate::counting::Detail::Branches). Lines are read by so many threads.
    pub fn of(analysis: &Analysis, threads: usize) -> Self {
        let mut table = Self::without_names(analysis);
        table.find_lines(analysis, threads);
        table.name();
        table
    }

    /// The same without lines, as where no debug information is to be read: names are `function@address`.
    pub fn without_lines(analysis: &Analysis) -> Self {
        let mut table = Self::without_names(analysis);
        table.name();
        table
    }

    /// The same without names and lines.
    pub(crate) fn without_names(analysis: &Analysis) -> Self {
        let mut table = LoopTable::default();
        let all_ways = WaysOf::new(analysis);
        for (index, module) in analysis.counted.iter().enumerate() {
            table.of_blocks.push(HashMap::new());
            table.apart.push(HashSet::new());
            let Code::Read(code) = &module.counts.code else { continue };
            let (flow_index, ways) = all_ways.module(module, code);
            let ran = module.blocks.iter().filter(|block| block.count.count > 0.0);
            let symbols: BTreeSet<Svma> = ran.filter_map(|block| module.function_symbol(block.index)).collect();
            let mut blocks = blocks_by_symbol(code, symbols.iter().copied());
            for symbol in symbols {
                let blocks = blocks.remove(&symbol).unwrap_or_default();
                table.add(index, symbol, &Graph::new(code, &blocks, (flow_index, ways.as_ref())), code);
            }
        }
        table
    }

    /// The innermost loop of a block, by the index of its module in [`Analysis::counted`] and its own.
    pub fn innermost(&self, module: usize, block: u32) -> Option<&LoopPlace> {
        self.loops.get(self.index(module, block)?)
    }

    /// The same as an index of all loops.
    pub(crate) fn index(&self, module: usize, block: u32) -> Option<usize> {
        self.of_blocks.get(module)?.get(&block).copied()
    }

    /// Whether no way in the code leads to a block from where its function is entered: where exceptions are caught.
    pub(crate) fn is_apart(&self, module: usize, block: u32) -> bool {
        self.apart.get(module).is_some_and(|apart| apart.contains(&block))
    }

    /// All loops.
    pub fn iter(&self) -> impl Iterator<Item = &LoopPlace> {
        self.loops.iter()
    }

    /// Adds the loops of a function.
    fn add(&mut self, module: usize, symbol: Svma, graph: &Graph<'_>, code: &AnalysedModule) {
        let blocks = graph.blocks();
        let last = |node: usize| instructions(&code.binary.image, blocks.get(node)?).last();
        let edges = graph.edges(last);
        let Some(found) = Loops::of(blocks.len(), graph.entry(symbol), edges.keys().copied()) else { return };
        let first = self.loops.len();
        for one in &found.loops {
            let header = blocks[one.header];
            self.loops.push(LoopPlace {
                module,
                function: demangle(&code.functions.name(header.function)),
                name: String::new(),
                header: header.start,
                depth: one.depth,
                parent: one.parent.map(|parent| first + parent),
                line: None,
            });
        }
        let apart = graph.indices().iter().zip(&found.apart).filter(|(_, is_apart)| **is_apart);
        self.apart[module].extend(apart.map(|(index, _)| *index as u32));
        for (index, innermost) in graph.indices().iter().zip(&found.innermost) {
            if let Some(innermost) = innermost {
                self.of_blocks[module].insert(*index as u32, first + innermost);
            }
        }
    }

    fn find_lines(&mut self, analysis: &Analysis, threads: usize) {
        let mut paths = BTreeSet::new();
        let mut by_module: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, one) in self.loops.iter().enumerate() {
            by_module.entry(one.module).or_default().push(at);
        }
        for (module, of_module) in by_module {
            // Of functions that ran, all is read.
            let Some(index) = analysis.counted[module].source(threads) else { continue };
            for at in of_module {
                let one = &mut self.loops[at];
                one.line = source::place(&index, one.header).map(|place| (place.path.to_owned(), place.line));
                paths.extend(one.line.iter().map(|(path, _)| path.clone()));
            }
        }
        let names = short_names(&paths);
        for (path, _) in self.loops.iter_mut().filter_map(|one| one.line.as_mut()) {
            *path = names.get(path).unwrap_or(path).clone();
        }
    }

    fn name(&mut self) {
        let by_line = |one: &LoopPlace| one.line.as_ref().map(|(_, line)| format!("{}:{line}", one.function));
        let mut of_name: HashMap<(usize, String), usize> = HashMap::new();
        for one in &self.loops {
            *of_name.entry((one.module, by_line(one).unwrap_or_default())).or_default() += 1;
        }
        for one in &mut self.loops {
            let name = by_line(one);
            let is_alone = name.as_ref().is_some_and(|name| of_name.get(&(one.module, name.clone())) == Some(&1));
            let base = name.unwrap_or_else(|| one.function.clone());
            one.name = if is_alone { base } else { format!("{base}@{:x}", one.header.0) };
        }
    }
}
