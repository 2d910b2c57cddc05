//! What `callgrind_annotate` and KCachegrind read: executed instructions by address and line, and calls.
//!
//! ```text
//! ob=(1) /bin/four          a name is written once, and is its number from then on
//! fl=(1) /src/four.c
//! fn=(1) main
//! 0x401000 5 50             address, line, instructions
//! fi=(2) /src/list.h        what follows was inlined from another file, until fe= of the function's own
//! 0x401003 71 50
//! fe=(1)
//! cob=(1)
//! cfi=(1)
//! cfn=(2) step
//! calls=50 0x401100 12      how often, where to
//! 0x401005 6 1200           from where; what the calls cost, all in all: see `calls`
//! ```
//!
//! (Valgrind manual, "Callgrind format specification".)

mod calls;
mod inclusive;
mod names;

use std::collections::BTreeMap;
use std::io::{self, Write};

use analyzer::BinarySearch;
use analyzer::address::Svma;
use analyzer::code::{FunctionId, demangle};
use analyzer::flow::{AnalysedFlow, ExecutedCode, ExecutedModule, executed_modules, whole};
use analyzer::recording::base_name;
use calls::{CallGraph, Callee};
pub use inclusive::InclusiveCosts;
use names::Names;

/// Writes the profile; `threads` read the debug information. `inclusive`: what functions executed by who called them, where that is known. Returns
/// what is not in it, in sentences.
pub fn callgrind(
    flow: &AnalysedFlow,
    inclusive: Option<&InclusiveCosts>,
    (search, threads): (&BinarySearch, usize),
    out: &mut dyn Write,
) -> io::Result<Vec<String>> {
    let modules: Vec<ExecutedModule<'_>> = executed_modules(flow, search, threads).collect();
    let costs: Vec<BTreeMap<Option<FunctionId>, f64>> = modules.iter().map(self_costs).collect();
    let graph = CallGraph::of(flow.flow(), &modules, &costs, inclusive);
    let total: f64 = costs.iter().flat_map(BTreeMap::values).sum();
    writeln!(out, "# callgrind format")?;
    writeln!(out, "version: 1")?;
    writeln!(out, "creator: hbbp-{}", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "desc: Counts: {}", if flow.flow().executions { "estimated executions" } else { "relative" })?;
    let shared = match inclusive {
        Some(_) => "as branch records show them",
        None => "as if every call of a function cost the same",
    };
    writeln!(out, "desc: Calls: costs are shared out {shared}")?;
    writeln!(out, "positions: instr line")?;
    writeln!(out, "events: {}", if flow.counts_executions() || flow.flow().executions { "Ir" } else { "Time" })?;
    writeln!(out, "summary: {total}")?;
    let mut writer = Writer {
        modules: &modules,
        objects: Names::default(),
        files: Names::default(),
        functions: Names::default(),
        out,
    };
    for (place, module) in modules.iter().enumerate() {
        match &module.code {
            Ok(executed) => writer.module(place, executed, &graph)?,
            Err(_) => writer.unread(module, costs[place].values().sum())?,
        }
    }
    writeln!(writer.out, "\ntotals: {total}")?;
    Ok(modules.into_iter().filter_map(|module| Some(module.code.ok()?.notes)).flatten().collect())
}

struct Writer<'a> {
    modules: &'a [ExecutedModule<'a>],
    objects: Names,
    files: Names,
    functions: Names,
    out: &'a mut dyn Write,
}

impl<'a> Writer<'a> {
    fn module(&mut self, place: usize, executed: &'a ExecutedCode, graph: &CallGraph) -> io::Result<()> {
        let module = &self.modules[place];
        writeln!(self.out, "\nob={}", self.objects.short(&module.of.module.path))?;
        let mut current = None;
        // The function's file, and that of the line before.
        let (mut own, mut file) = (UNKNOWN_FILE, UNKNOWN_FILE);
        for (index, block) in executed.code.blocks.blocks().iter().enumerate() {
            let costs = module.costs(executed, index);
            let calls = graph.calls_from(place, block.last);
            if costs.is_empty() && calls.is_empty() {
                continue;
            }
            if current != Some(block.function) {
                current = Some(block.function);
                own = file_of(executed, block.function);
                file = own;
                writeln!(self.out, "fl={}", self.files.short(own))?;
                writeln!(self.out, "fn={}", self.functions.short(&name_of(executed, block.function)))?;
            }
            for (at, cost) in costs {
                let line = self.enter(executed, at, own, &mut file)?;
                writeln!(self.out, "{at} {line} {}", whole(cost))?;
            }
            for call in calls {
                let line = self.enter(executed, block.last, own, &mut file)?;
                self.call(call)?;
                writeln!(self.out, "{} {line} {}", block.last, call.cost.round())?;
            }
        }
        Ok(())
    }

    /// Says which file an address comes from, if it is not `file`, and returns its line.
    fn enter(&mut self, executed: &'a ExecutedCode, at: Svma, own: &str, file: &mut &'a str) -> io::Result<u32> {
        let position = executed.source.at(at).map(|span| span.position).unwrap_or_default();
        let here = executed.source.file(position.file).unwrap_or(UNKNOWN_FILE);
        if here != *file {
            *file = here;
            let key = if here == own { "fe" } else { "fi" };
            writeln!(self.out, "{key}={}", self.files.short(here))?;
        }
        Ok(position.line)
    }

    fn call(&mut self, call: &Callee) -> io::Result<()> {
        let module = &self.modules[call.module];
        let (file, name, line) = match (&module.code, call.function) {
            (Ok(executed), Some(function)) => {
                (file_of(executed, function), name_of(executed, function), own_position(executed, call.at).1)
            }
            _ => (UNKNOWN_FILE, unread_name(&module.of.module.path), 0),
        };
        writeln!(self.out, "cob={}", self.objects.short(&module.of.module.path))?;
        writeln!(self.out, "cfi={}", self.files.short(file))?;
        writeln!(self.out, "cfn={}", self.functions.short(&name))?;
        writeln!(self.out, "calls={} {} {line}", whole(call.count), call.at)
    }

    /// Code that was not read is one function.
    fn unread(&mut self, module: &ExecutedModule<'_>, cost: f64) -> io::Result<()> {
        let path = &module.of.module.path;
        writeln!(self.out, "\nob={}", self.objects.short(path))?;
        writeln!(self.out, "fl={}", self.files.short(UNKNOWN_FILE))?;
        writeln!(self.out, "fn={}", self.functions.short(&unread_name(path)))?;
        writeln!(self.out, "0x0 0 {cost}")
    }
}

/// What the tools call a file that is not known.
const UNKNOWN_FILE: &str = "???";

fn name_of(executed: &ExecutedCode, function: FunctionId) -> String {
    demangle(&executed.code.functions.name(function))
}

/// The file of a function: that of its start, outside of what was inlined there.
fn file_of(executed: &ExecutedCode, function: FunctionId) -> &str {
    own_position(executed, executed.code.functions.get(function).start).0
}

/// File and line of an address in the function whose code it is, not in what was inlined there.
fn own_position(executed: &ExecutedCode, at: Svma) -> (&str, u32) {
    let source = &executed.source;
    let outermost = source.at(at).and_then(|span| source.frames(span).last());
    let position = outermost.map(|(_, position)| position).unwrap_or_default();
    (source.file(position.file).unwrap_or(UNKNOWN_FILE), position.line)
}

fn unread_name(path: &str) -> String {
    format!("[unread code of {}]", base_name(path))
}

/// What each function cost by itself, in whole numbers; code that was not read is one function.
fn self_costs(module: &ExecutedModule<'_>) -> BTreeMap<Option<FunctionId>, f64> {
    let Ok(executed) = &module.code else {
        return BTreeMap::from([(None, whole(module.unread_count) as f64)]);
    };
    let mut costs = BTreeMap::new();
    for (index, block) in executed.code.blocks.blocks().iter().enumerate() {
        let cost: f64 = module.costs(executed, index).iter().map(|(_, cost)| whole(*cost) as f64).sum();
        if cost > 0.0 {
            *costs.entry(Some(block.function)).or_default() += cost;
        }
    }
    costs
}
