//! What `perf2bolt -pa` reads: branches and ranges of one binary, by address. BOLT finds functions and blocks itself.
//!
//! ```text
//! B 1360 1090 25 3          taken branch: from, to (hexadecimal), executions, mispredictions; 0 is outside of the binary
//! F 1350 1360 204           range that was entered from inside its function: first and last instruction, executions
//! f 1355 1360 25            range that was entered from outside: by a call, or by a return to it
//! ```
//!
//! (bolt/lib/Profile/DataAggregator.cpp of LLVM 19, `parseAggregatedLBREntry`.)

use std::collections::HashMap;
use std::io::{self, Write};

use analyzer::address::Svma;
use analyzer::bolt::BoltFunctions;
use analyzer::flow::whole;

use super::Profiled;

/// Writes the profile; all of it has a place.
pub fn bolt_preagg(profiled: &Profiled<'_>, out: &mut dyn Write) -> io::Result<Vec<String>> {
    let functions = BoltFunctions::of(&profiled.code.binary.image);
    let function_of = |at: Svma| functions.at(at).map(|function| function.start);
    // By target: how often it was branched to from inside its function, and in all.
    let mut entries: HashMap<Svma, (f64, f64)> = HashMap::new();
    for (index, module) in profiled.flow.modules.iter().enumerate() {
        for branch in &module.branches {
            let from = if index == profiled.index { branch.from } else { Svma(0) };
            let to = if branch.to.module == profiled.index { branch.to.at } else { Svma(0) };
            if (from, to) == (Svma(0), Svma(0)) {
                continue;
            }
            writeln!(out, "B {:x} {:x} {} {}", from.0, to.0, whole(branch.count), branch.mispredicted.round())?;
            let (inside, all) = entries.entry(to).or_default();
            *all += branch.count;
            if from != Svma(0) && function_of(from) == function_of(to) {
                *inside += branch.count;
            }
        }
    }
    let is_plt = |at: Svma| functions.at(at).is_some_and(|function| functions.is_plt(function));
    for range in profiled.module.ranges.iter().filter(|range| !is_plt(range.first)) {
        let share = entries.get(&range.first).map_or(1.0, |(inside, all)| inside / all);
        for (kind, count) in [('F', range.count * share), ('f', range.count * (1.0 - share))] {
            if count > 0.0 {
                writeln!(out, "{kind} {:x} {:x} {}", range.first.0, range.last.0, whole(count))?;
            }
        }
    }
    Ok(Vec::new())
}
