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

use analyzer::flow::whole;

use super::Profiled;

/// Writes the profile. Branches to and from other modules are left out, as that tool does.
pub fn llvm_profgen(profiled: &Profiled<'_>, out: &mut dyn Write) -> io::Result<()> {
    const PAGE: u64 = 0x1000;
    let Profiled { module, index, binary, .. } = profiled;
    let code = binary.image.segments().iter().find(|segment| segment.executable);
    let base = code.map_or(0, |segment| segment.start.0 & !(PAGE - 1));
    writeln!(out, "{}", module.ranges.len())?;
    for range in &module.ranges {
        writeln!(out, "{:x}-{:x}:{}", range.first.0 - base, range.last.0 - base, whole(range.count))?;
    }
    let inside = || module.branches.iter().filter(|branch| branch.to.module == *index);
    writeln!(out, "{}", inside().count())?;
    for branch in inside() {
        writeln!(out, "{:x}->{:x}:{}", branch.from.0 - base, branch.to.at.0 - base, whole(branch.count))?;
    }
    Ok(())
}
