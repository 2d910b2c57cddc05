//! What ran of each line of the source, on both sides of a comparison.

use std::collections::BTreeMap;

use crate::address::Svma;
use crate::binaries::Binary;
use crate::code::{Block, instructions};
use crate::lines::{ScopeId, SourceIndex, joined};

/// A line of a function, demangled, counted from the line of its declaration as in profiles for compilers: edits before a function do not
/// matter. Where it was inlined, too.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceLine {
    /// The function that the line is part of.
    pub function: String,
    /// 0 is the line of the declaration.
    pub line: i64,
}

/// What ran of a line in a file.
#[derive(Debug, Default)]
pub(super) struct OfLine {
    /// Instructions that each side executed.
    pub executed: [f64; 2],
    /// Blocks with instructions of it, by where they start, and how many.
    pub blocks: Vec<(Svma, u32)>,
}

/// The lines of what ran. `ran`: blocks by address, and the instructions that each side executed in them. What has no
/// line, or belongs to a function of which nobody says where it starts, is in none.
pub(super) fn source_lines(
    binary: &Binary,
    ran: &[(&Block, [f64; 2])],
    threads: usize,
) -> BTreeMap<SourceLine, OfLine> {
    let source = SourceIndex::read(binary, &joined(ran.iter().map(|(block, _)| block.start..block.end)), threads);
    let mut sums: BTreeMap<(u32, i64), (ScopeId, OfLine)> = BTreeMap::new();
    for (block, executed) in ran {
        let each = executed.map(|executed| executed / f64::from(block.instructions));
        for instruction in instructions(&binary.image, block) {
            let Some(span) = source.at(Svma(instruction.ip())).filter(|span| span.position.line > 0) else { continue };
            let scope = source.scope(span.scope);
            let Some(start) = source.function(scope).start_line else { continue };
            let line = i64::from(span.position.line) - i64::from(start);
            let (_, sum) = sums.entry((scope.function, line)).or_insert_with(|| (span.scope, OfLine::default()));
            sum.executed[0] += each[0];
            sum.executed[1] += each[1];
            match sum.blocks.last_mut() {
                Some((start, number)) if *start == block.start => *number += 1,
                _ => sum.blocks.push((block.start, 1)),
            }
        }
    }
    let mut lines: BTreeMap<SourceLine, OfLine> = BTreeMap::new();
    for ((_, line), (scope, sum)) in sums {
        let Some(function) = source.function(source.scope(scope)).demangled() else { continue };
        let total = lines.entry(SourceLine { function, line }).or_default();
        total.executed[0] += sum.executed[0];
        total.executed[1] += sum.executed[1];
        total.blocks.extend(sum.blocks);
    }
    lines
}
