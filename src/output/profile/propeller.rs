//! What clang's `-fbasic-block-sections=list=` and lld's `--symbol-ordering-file=` read (Propeller): the order of blocks, and of functions.
//!
//! ```text
//! v1
//! m src/parse.c       the file of the next function, where another function has its name
//! f parse parse_alias its names
//! c 0 3 2 5           its blocks that ran, in their order; clang puts the others into a section of their own
//! ```
//!
//! ```text
//! parse               the blocks that ran of each function, in the order of the functions
//! parse.cold          the others of each function
//! ```
//!
//! (llvm/lib/CodeGen/BasicBlockSectionsProfileReader.cpp.)

use std::collections::HashSet;
use std::io::{self, Write};

use analyzer::propeller::{LaidOutFunction, PropellerProfile};

/// Writes the order of the blocks of each function.
pub fn cc_profile(profile: &PropellerProfile, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "v1")?;
    for LaidOutFunction { names, unit, hot, .. } in &profile.functions {
        if let Some(unit) = unit {
            writeln!(out, "m {unit}")?;
        }
        writeln!(out, "f {}", names.join(" "))?;
        let hot: Vec<String> = hot.iter().map(u32::to_string).collect();
        writeln!(out, "c {}", hot.join(" "))?;
    }
    Ok(())
}

/// Writes the order of the functions. Only one of the names of a function is that of its parts, and it is not known which.
pub fn ld_profile(profile: &PropellerProfile, out: &mut dyn Write) -> io::Result<()> {
    let in_order = || profile.order.iter().map(|&index| &profile.functions[index]);
    let mut known = HashSet::new();
    for name in in_order().flat_map(|function| &function.names).filter(|name| known.insert(name.as_str())) {
        writeln!(out, "{name}")?;
    }
    let mut known = HashSet::new();
    let cold = in_order().filter(|function| function.has_cold);
    for name in cold.flat_map(|function| &function.names).filter(|name| known.insert(name.as_str())) {
        writeln!(out, "{name}.cold")?;
    }
    Ok(())
}
