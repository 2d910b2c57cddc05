//! Folded stacks, which `flamegraph.pl`, inferno and others read: one line for each context.
//!
//! ```text
//! [unknown callers];main;parse 1200
//! ```
//!
//! A `;` in a name is written as `:`, and control characters are escaped. Names may have spaces: the number is what follows the last one.

use std::io::{self, Write};

use crate::output::profile::contexts::{Contexts, UNKNOWN_CALLERS};

/// Writes one line for each context.
pub fn folded(contexts: &Contexts<'_>, out: &mut dyn Write) -> io::Result<Vec<String>> {
    for (frames, instructions) in contexts.stacks() {
        write!(out, "{UNKNOWN_CALLERS}")?;
        for &frame in frames {
            write!(out, ";{}", contexts.name(frame).replace(';', ":"))?;
        }
        writeln!(out, " {instructions}")?;
    }
    Ok(Vec::new())
}
