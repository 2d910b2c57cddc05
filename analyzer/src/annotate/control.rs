//! Where control goes, for mixes: how often each function was called, and which loop each block is in.

use std::collections::HashMap;

use crate::Analysis;
use crate::address::Svma;
use crate::annotate::graph::Graph;
use crate::annotate::loops::Loops;
use crate::annotate::ways::WaysOf;
use crate::code::instructions;
use crate::counting::{AnalysedModule, Code};

/// Calls and loops of all functions that ran.
#[derive(Debug, Default)]
pub(crate) struct Control {
    calls: HashMap<(usize, Svma), Option<f64>>,
    loops: HashMap<(usize, u32), InLoop>,
}

/// The innermost loop that a block is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InLoop {
    /// How many bytes its header is after the function's symbol.
    pub header: i64,
    /// 1 for an outermost loop.
    pub depth: usize,
}

/// A place in a function of that name: `main`, `main+0x20`.
pub(crate) fn in_function(name: &str, offset: i64) -> String {
    match offset {
        0 => name.to_owned(),
        offset if offset < 0 => format!("{name}-{:#x}", offset.unsigned_abs()),
        offset => format!("{name}+{offset:#x}"),
    }
}

impl Control {
    /// Of an analysis: with what was seen of branches if it was made with [`Detail::Branches`](crate::counting::Detail::Branches), else with
    /// what the code states.
    pub fn of(analysis: &Analysis) -> Self {
        let mut control = Control::default();
        let all_ways = WaysOf::new(analysis);
        for (index, module) in analysis.counted.iter().enumerate() {
            let Code::Read(code) = &module.counts.code else { continue };
            let (flow_index, ways) = all_ways.module(module, code);
            let ran = module.blocks.iter().filter_map(|block| module.function_symbol(block.index));
            for (symbol, blocks) in blocks_by_symbol(code, ran) {
                let graph = Graph::new(code, &blocks, (flow_index, ways.as_ref()));
                control.calls.insert((index, symbol), graph.calls(symbol));
                control.add_loops(index, symbol, &graph, &blocks, code);
            }
        }
        control
    }

    /// How often a function was called, by index of its module in [`Analysis::counted`] and its symbol; `None` where that is not known.
    pub fn calls(&self, module: usize, symbol: Svma) -> Option<f64> {
        self.calls.get(&(module, symbol)).copied().flatten()
    }

    /// The innermost loop that a block is in, by index of its module in [`Analysis::counted`] and its own.
    pub fn innermost(&self, module: usize, block: u32) -> Option<InLoop> {
        self.loops.get(&(module, block)).copied()
    }

    fn add_loops(&mut self, module: usize, symbol: Svma, graph: &Graph<'_>, indices: &[usize], code: &AnalysedModule) {
        let blocks = graph.blocks();
        let edges = graph.edges(|node| instructions(&code.binary.image, blocks.get(node)?).last());
        let Some(found) = Loops::of(blocks.len(), graph.entry(symbol), edges.keys().copied()) else { return };
        for (innermost, block) in found.innermost.iter().zip(indices) {
            let Some(of) = innermost.and_then(|innermost| found.loops.get(innermost)) else { continue };
            let header = blocks[of.header].start.0.wrapping_sub(symbol.0) as i64;
            self.loops.insert((module, *block as u32), InLoop { header, depth: of.depth });
        }
    }
}

/// The blocks of the functions with these symbols, by index.
pub(super) fn blocks_by_symbol(
    code: &AnalysedModule,
    symbols: impl Iterator<Item = Svma>,
) -> HashMap<Svma, Vec<usize>> {
    let mut blocks: HashMap<Svma, Vec<usize>> = symbols.map(|symbol| (symbol, Vec::new())).collect();
    for (index, block) in code.blocks.blocks().iter().enumerate() {
        if let Some(of) = blocks.get_mut(&code.functions.get(block.function).symbol) {
            of.push(index);
        }
    }
    blocks
}
