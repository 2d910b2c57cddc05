//! What `llvm-bolt -data` reads (fdata): executions of branches and of fall-throughs between blocks, by function and offset.
//!
//! ```text
//! 1 main 6d 1 collatz/1 0 3 195         1 function offset (hexadecimal), twice; mispredictions, executions
//! 1 main 9c 1 main 9e 0 1               a conditional branch that was not taken
//! 0 [unknown] 0 1 cmp/1 0 0 645         from another binary
//! ```
//!
//! Where there are no ranges, `no_lbr` and a line for each sampled instruction:
//!
//! ```text
//! no_lbr time
//! 1 main 6d 195
//! ```
//!
//! BOLT takes blocks that ran less than 100 times for noise, so counts that are only proportional to executions are written in numbers of
//! branches that were seen. (bolt/lib/Profile/DataReader.cpp, DataAggregator.cpp; bolt/lib/Passes/BinaryPasses.cpp, `PrintProfileStats`.)

use std::io::{self, Write};

use analyzer::address::Svma;
use analyzer::bolt::{BoltEdge, BoltFunctions, bolt_edges};
use analyzer::flow::{Flow, whole};

use super::Profiled;
use super::without_place;
use crate::output::printable;

/// Writes the profile. Returns what is in no function of BOLT's, and how much was inferred, in sentences.
pub fn bolt(profiled: &Profiled<'_>, out: &mut dyn Write) -> io::Result<Vec<String>> {
    let functions = BoltFunctions::of(&profiled.code.binary.image);
    let known = |at: Svma| {
        let function = functions.at(at)?;
        Some(format!("1 {} {:x}", escaped(&functions.name(function)), at.0 - function.start.0))
    };
    let place = |at: Option<Svma>| at.and_then(known).unwrap_or("0 [unknown] 0".into());
    let mut nowhere = 0.0;
    if profiled.module.ranges.is_empty() {
        writeln!(out, "no_lbr {}", if profiled.flow.executions { "instructions" } else { "time" })?;
        for sample in &profiled.module.samples {
            match known(sample.at) {
                Some(place) => writeln!(out, "{place} {}", whole(sample.count))?,
                None => nowhere += sample.count,
            }
        }
        let what = "samples in no function that BOLT knows";
        return Ok(Vec::from_iter(without_place(what, nowhere, profiled.module.sample_total())));
    }
    let edges = bolt_edges(profiled.flow, profiled.index, &profiled.code, &functions, per_stream(profiled.flow));
    let (mut written, mut inferred) = (0.0, 0.0);
    for BoltEdge { from, to, count, mispredicted, seen } in edges {
        let has_function = [from, to].into_iter().flatten().any(|at| functions.at(at).is_some());
        if has_function {
            written += seen;
            inferred += count.abs_diff(whole(seen)) as f64;
            writeln!(out, "{} {} {mispredicted} {count}", place(from), place(to))?;
        } else {
            nowhere += seen;
        }
    }
    let what = "branches and fall-throughs in no function that BOLT knows";
    let mut notes = Vec::from_iter(without_place(what, nowhere, nowhere + written));
    let part = 100.0 * inferred / written;
    if part >= 0.005 {
        notes.push(format!(
            "what flows into a block flows out of it: {part:.2} % of the executions were added or taken away for that"
        ));
    }
    Ok(notes)
}

/// What a stream that was seen counts in the mean; 1 where counts are executions.
fn per_stream(flow: &Flow) -> f64 {
    let all = flow.range_total() + flow.left_out.streams;
    if flow.executions || flow.seen <= 0.0 || all <= 0.0 { 1.0 } else { all / flow.seen }
}

/// Spaces and backslashes in names stand behind a backslash; control characters would break lines.
fn escaped(name: &str) -> String {
    printable(name).replace('\\', "\\\\").replace(' ', "\\ ")
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn names_stay_on_their_line() {
        assert_eq!(escaped("operator new"), "operator\\ new");
        assert_eq!(escaped("a\nb"), "a\\\\nb");
    }
}
