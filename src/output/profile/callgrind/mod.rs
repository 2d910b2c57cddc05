//! What `callgrind_annotate` and KCachegrind read: executed instructions by address, and calls.
//!
//! ```text
//! ob=/bin/four
//! fn=main
//! 0x401000 0 50             address, line (not known), instructions
//! cob=/bin/four
//! cfn=step
//! calls=50 0x401100         how often, where to
//! 0x401005 0 1200           from where; what the calls cost, all in all: see `calls`
//! ```
//!
//! (Valgrind manual, "Callgrind format specification".)

mod calls;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use analyzer::BinarySearch;
use analyzer::address::Svma;
use analyzer::code::{FunctionId, demangle, instructions};
use analyzer::flow::{ExecutedCode, ExecutedModule, Flow, executed_modules, whole};
use calls::{CallGraph, Callee};

use crate::output::printable;

/// Writes the profile. Returns what is not in it because it does not fit its file, in sentences.
pub fn callgrind(flow: &Flow, search: &BinarySearch, out: &mut dyn Write) -> io::Result<Vec<String>> {
    let modules: Vec<ExecutedModule<'_>> = executed_modules(flow, search).collect();
    let has_ranges = flow.range_total() > 0.0;
    let costs: Vec<BTreeMap<Option<FunctionId>, f64>> = modules.iter().map(|of| self_costs(of, has_ranges)).collect();
    let graph = CallGraph::of(flow, &modules, &costs);
    let total: f64 = costs.iter().flat_map(BTreeMap::values).sum();
    writeln!(out, "# callgrind format")?;
    writeln!(out, "version: 1")?;
    writeln!(out, "creator: hbbp-{}", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "desc: Counts: {}", if flow.executions { "estimated executions" } else { "relative" })?;
    writeln!(out, "desc: Calls: costs are shared out as if every call of a function cost the same")?;
    writeln!(out, "positions: instr line")?;
    writeln!(out, "events: {}", if has_ranges || flow.executions { "Ir" } else { "Time" })?;
    writeln!(out, "summary: {total}")?;
    for (place, module) in modules.iter().enumerate() {
        let path = printable(&module.of.module.path);
        writeln!(out, "\nob={path}\nfl=???")?;
        let Ok(executed) = &module.code else {
            writeln!(out, "fn={}", unread_name(&path))?;
            writeln!(out, "0x0 0 {}", costs[place].values().sum::<f64>())?;
            continue;
        };
        let mut current = None;
        for (index, block) in executed.code.blocks.blocks().iter().enumerate() {
            let costs = costs_in_block(module, executed, index, has_ranges);
            let calls = graph.calls_from(place, block.last);
            if costs.is_empty() && calls.is_empty() {
                continue;
            }
            if current != Some(block.function) {
                current = Some(block.function);
                writeln!(out, "fn={}", printable(&demangle(&executed.code.functions.name(block.function))))?;
            }
            for (at, cost) in costs {
                writeln!(out, "{at} 0 {cost}")?;
            }
            for call in calls {
                write_call(&modules, block.last, call, out)?;
            }
        }
    }
    writeln!(out, "\ntotals: {total}")?;
    Ok(modules.into_iter().filter_map(|module| module.code.ok()?.misfit).collect())
}

fn write_call(modules: &[ExecutedModule<'_>], from: Svma, call: &Callee, out: &mut dyn Write) -> io::Result<()> {
    let module = &modules[call.module];
    let name = match (&module.code, call.function) {
        (Ok(executed), Some(function)) => demangle(&executed.code.functions.name(function)),
        _ => unread_name(&module.of.module.path),
    };
    writeln!(out, "cob={}\ncfi=???\ncfn={}", printable(&module.of.module.path), printable(&name))?;
    writeln!(out, "calls={} {} 0", whole(call.count), call.at)?;
    writeln!(out, "{from} 0 {}", call.cost.round())
}

fn unread_name(path: &str) -> String {
    let name = Path::new(path).file_name().map_or(path.into(), |name| name.to_string_lossy());
    format!("[unread code of {name}]")
}

/// What instructions of a block cost, in whole numbers: each as much as it was executed, or where there are no ranges, as samples fell
/// on it.
fn costs_in_block(
    module: &ExecutedModule<'_>,
    executed: &ExecutedCode,
    index: usize,
    has_ranges: bool,
) -> Vec<(Svma, f64)> {
    let block = &executed.code.blocks.blocks()[index];
    let count = executed.counts[index];
    if count <= 0.0 {
        return Vec::new();
    }
    if has_ranges {
        let all = instructions(&executed.binary.image, block);
        all.map(|instruction| (Svma(instruction.ip()), whole(count) as f64)).collect()
    } else {
        let samples = &module.of.samples;
        let first = samples.partition_point(|sample| sample.at < block.start);
        let inside = samples[first..].iter().take_while(|sample| sample.at < block.end);
        inside.filter(|sample| sample.count > 0.0).map(|sample| (sample.at, whole(sample.count) as f64)).collect()
    }
}

/// What each function cost by itself; code that was not read is one function.
fn self_costs(module: &ExecutedModule<'_>, has_ranges: bool) -> BTreeMap<Option<FunctionId>, f64> {
    let Ok(executed) = &module.code else {
        let of = module.of;
        let cost = if has_ranges { of.guessed_instructions() } else { of.sample_total() };
        return BTreeMap::from([(None, whole(cost) as f64)]);
    };
    let mut costs = BTreeMap::new();
    for (index, block) in executed.code.blocks.blocks().iter().enumerate() {
        let in_block = costs_in_block(module, executed, index, has_ranges);
        let cost: f64 = in_block.iter().map(|(_, cost)| cost).sum();
        if cost > 0.0 {
            *costs.entry(Some(block.function)).or_default() += cost;
        }
    }
    costs
}
