//! How often each function was called.

use std::collections::HashMap;

use crate::Analysis;
use crate::address::Svma;
use crate::annotate::graph::{Graph, blocks_by_symbol};
use crate::annotate::ways::WaysOf;
use crate::counting::Code;

/// How often each function that ran was called, or entered by a jump, by index of its module in [`Analysis::counted`] and its symbol;
/// `None` where that is not known: the analysis must be made with [`Detail::Branches`](crate::counting::Detail::Branches).
pub(crate) fn calls_of_functions(analysis: &Analysis) -> HashMap<(usize, Svma), Option<f64>> {
    let mut calls = HashMap::new();
    let all_ways = WaysOf::new(analysis);
    for (index, module) in analysis.counted.iter().enumerate() {
        let led_to = |symbol| all_ways.led_to(module.counts.module, symbol);
        let ran = module.blocks.iter().filter_map(|block| module.function_symbol(block.index));
        let Code::Read(code) = &module.counts.code else {
            calls.extend(ran.map(|symbol| ((index, symbol), led_to(symbol))));
            continue;
        };
        let (flow_index, ways) = all_ways.module(module, code);
        for (symbol, blocks) in blocks_by_symbol(code, ran) {
            let graph = Graph::new(code, &blocks, (flow_index, ways.as_ref()));
            let called = if ways.is_some() { graph.calls(symbol) } else { led_to(symbol) };
            calls.insert((index, symbol), called);
        }
    }
    calls
}
