//! What `llvm-profgen --unsymbolized-profile` reads: ranges and branches of one binary.
//!
//! ```text
//! 2                   how many ranges
//! 147-16e:3000        first and last instruction, executions
//! 170-17f:20
//! 1                   how many branches
//! 16e->147:3000
//! ```
//!
//! Addresses are hexadecimal, without the address at which the first executable segment's page is linked
//! (llvm/tools/llvm-profgen/PerfReader.cpp, `UnsymbolizedProfileReader`).

use std::io::{self, Write};

use analyzer::address::Svma;
use analyzer::flow::{BranchCount, RangeCount, whole};

use super::Profiled;
use super::without_place;

/// Writes the profile. Branches to and from other modules are left out, as that tool does. Returns what else is, in sentences.
pub fn llvm_profgen(profiled: &Profiled<'_>, out: &mut dyn Write) -> io::Result<Vec<String>> {
    const PAGE: u64 = 0x1000;
    let Profiled { module, index, code, .. } = profiled;
    let binary = &code.binary;
    let first = binary.image.segments().iter().find(|segment| segment.executable);
    let base = first.map_or(0, |segment| segment.start.0 & !(PAGE - 1));
    let is_code = |at: Svma| at.0 >= base && binary.image.is_executable(at);
    let is_inside = |range: &RangeCount| is_code(range.first) && is_code(range.last);
    let ranges = || module.ranges.iter().filter(|range| is_inside(range));
    writeln!(out, "{}", ranges().count())?;
    for range in ranges() {
        writeln!(out, "{:x}-{:x}:{}", range.first.0 - base, range.last.0 - base, whole(range.count))?;
    }
    let own = || module.branches.iter().filter(|branch| branch.to.module == *index);
    let is_between = |branch: &BranchCount| is_code(branch.from) && is_code(branch.to.at);
    let branches = || own().filter(|branch| is_between(branch));
    writeln!(out, "{}", branches().count())?;
    for branch in branches() {
        writeln!(out, "{:x}->{:x}:{}", branch.from.0 - base, branch.to.at.0 - base, whole(branch.count))?;
    }
    let ranges_nowhere = module.ranges.iter().filter(|range| !is_inside(range)).map(|range| range.count).sum();
    let branches_nowhere = own().filter(|branch| !is_between(branch)).map(|branch| branch.count).sum();
    let all_branches = own().map(|branch| branch.count).sum();
    let notes = [
        without_place("ranges at addresses that are no code of the file", ranges_nowhere, module.range_total()),
        without_place("branches at addresses that are no code of the file", branches_nowhere, all_branches),
    ];
    Ok(notes.into_iter().flatten().collect())
}
