//! What scripts for Intel SDE's `-mix` read: the blocks that ran, and how many instructions of each class did.
//!
//! ```text
//! # EMIT_TOP_BLOCK_STATS FOR TID 0 OS-TID 0 EMIT #1
//! BLOCK:     0   PC: 401000   ICOUNT:    210   EXECUTIONS:   10   #BYTES: 22   PCT: ..   CUMLPCT: ..   FN: main   IMG: /bin/four
//! XDIS 401000: BASE     90                       nop
//! # END_TOP_BLOCK_STATS
//! # EMIT_GLOBAL_DYNAMIC_STATS   EMIT# 1
//! # $global-dynamic-counts
//! *isa-ext-BASE                              210
//! NOP                                        210
//! *total                                     210
//! # END_GLOBAL_DYNAMIC_STATS
//! ```
//!
//! Addresses are those that the files state. There are no threads, no stack of calls, no rows by form or category of XED, whose tables these are.

use std::collections::BTreeMap;
use std::io::{self, Write};

use analyzer::BinarySearch;
use analyzer::code::{demangle, instructions};
use analyzer::flow::{AnalysedFlow, ExecutedModule, executed_modules, whole};
use analyzer::truth::{disassembly, iclass, isa_extension, sums};

use crate::output::{count, printable};

/// A block that ran.
struct Ran {
    module: usize,
    block: usize,
    executions: u64,
    /// Instructions that it executed.
    executed: u64,
}

/// Writes the text; `threads` read the debug information. Returns what is not in it, in sentences.
pub fn sde_mix(
    flow: &AnalysedFlow,
    search: &BinarySearch,
    threads: usize,
    out: &mut dyn Write,
) -> io::Result<Vec<String>> {
    let modules: Vec<ExecutedModule<'_>> = executed_modules(flow, search, threads).collect();
    let (mut ran, mut notes) = (Vec::new(), Vec::new());
    for (place, module) in modules.iter().enumerate() {
        match &module.code {
            Ok(executed) => {
                ran.extend(blocks(place, module));
                notes.extend_from_slice(&executed.notes);
            }
            Err(why) => {
                let unread = count(module.unread_count);
                notes.push(format!("not in it: about {unread} instructions of {}: {why}", module.of.module.path));
            }
        }
    }
    ran.sort_by_key(|of| std::cmp::Reverse(of.executed));
    let total = ran.iter().fold(0, |total: u64, of| total.saturating_add(of.executed));
    writeln!(out, "# Mix output version 14")?;
    writeln!(out, "# hbbp {}: estimated, not counted by Intel SDE", env!("CARGO_PKG_VERSION"))?;
    let unit = if flow.flow().executions { "executions" } else { "relative, to be compared with each other only" };
    writeln!(out, "# counts: {unit}; addresses: those that the files state")?;
    writeln!(out, "#\n# EMIT_TOP_BLOCK_STATS FOR TID 0 OS-TID 0 EMIT #1\n#")?;
    let (mut totals, mut before) = (Totals::default(), 0);
    for (number, of) in ran.iter().enumerate() {
        before = u64::saturating_add(before, of.executed);
        block(
            &modules[of.module],
            (number, of),
            [of.executed, before].map(|part| percent(part, total)),
            &mut totals,
            out,
        )?;
    }
    writeln!(out, "# END_TOP_BLOCK_STATS\n#")?;
    totals.write(total, out)?;
    Ok(notes)
}

/// The blocks of a module that ran, each with whole executions.
fn blocks(place: usize, module: &ExecutedModule<'_>) -> Vec<Ran> {
    let Ok(executed) = &module.code else { return Vec::new() };
    let all = executed.code.blocks.blocks().iter().zip(&executed.counts).enumerate();
    let ran = all.filter(|(_, (_, executions))| **executions > 0.0).map(|(block, (code, executions))| {
        let size = instructions(&executed.code.binary.image, code).count();
        // What samples stand for is instructions of the block.
        let executions = if module.by_executions { *executions } else { executions / size.max(1) as f64 };
        let executions = whole(executions);
        Ran { module: place, block, executions, executed: executions.saturating_mul(size as u64) }
    });
    ran.filter(|of| of.executed > 0).collect()
}

fn block(
    module: &ExecutedModule<'_>,
    (number, of): (usize, &Ran),
    [part, sum]: [f64; 2],
    totals: &mut Totals,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Ok(executed) = &module.code else { return Ok(()) };
    let code = &executed.code.blocks.blocks()[of.block];
    let (image, path) = (&executed.code.binary.image, printable(&module.of.module.path));
    let name = demangle(&executed.code.functions.name(code.function));
    writeln!(
        out,
        "BLOCK: {number:5}   PC: {:x}   ICOUNT: {:6}   EXECUTIONS: {:6}   #BYTES: {}   PCT: {part:.2}   CUMLPCT: {sum:.2}   FN: {}   IMG: {path}",
        code.start.0,
        of.executed,
        of.executions,
        code.end.0.saturating_sub(code.start.0),
        printable(&name),
    )?;
    for instruction in instructions(image, code) {
        let bytes = image.bytes_up_to(analyzer::address::Svma(instruction.ip()), instruction.len() as u64);
        let bytes: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let extension = isa_extension(&instruction);
        writeln!(out, "XDIS {:x}: {extension:<8} {bytes:<24} {}", instruction.ip(), disassembly(&instruction))?;
        totals.add(iclass(&instruction), sums(&instruction), of.executions);
    }
    writeln!(out)
}

/// Executed instructions of all blocks.
#[derive(Default)]
struct Totals {
    by_class: BTreeMap<String, u64>,
    /// Of sums whose names begin with a star.
    by_sum: BTreeMap<String, u64>,
}

impl Totals {
    fn add(&mut self, class: String, sums: Vec<String>, executions: u64) {
        let add = |all: &mut BTreeMap<String, u64>, name: String| {
            let sum = all.entry(name).or_default();
            *sum = sum.saturating_add(executions);
        };
        add(&mut self.by_class, class);
        sums.into_iter().for_each(|name| add(&mut self.by_sum, name));
    }

    fn write(&self, total: u64, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "# EMIT_GLOBAL_DYNAMIC_STATS   EMIT# 1\n#\n# $global-dynamic-counts\n#")?;
        writeln!(out, "# {:<45} {:>20}\n#", "iclass", "count")?;
        self.by_sum.iter().try_for_each(|(name, count)| writeln!(out, "*{name:<46} {count:>20}"))?;
        self.by_class.iter().try_for_each(|(name, count)| writeln!(out, "{name:<47} {count:>20}"))?;
        writeln!(out, "*{:<46} {total:>20}\n# END_GLOBAL_DYNAMIC_STATS", "total")
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole > 0 { 100.0 * part as f64 / whole as f64 } else { 0.0 }
}
