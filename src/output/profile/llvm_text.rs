//! LLVM's sample profiles as text, for `-fprofile-sample-use=` (llvm/include/llvm/ProfileData/SampleProfReader.h).
//!
//! ```text
//! main:5021:1         name, sum of all counts, calls
//!  1: 1               lines after the start of the function: executions
//!  3.2: 500 f:300 g:200     line and discriminator, and who was called
//!  4: h:4220          what was inlined there, and the sum of its counts
//!   1: 4220
//! ```

use std::borrow::Cow;
use std::cmp::Reverse;
use std::io::{self, Write};

use analyzer::sample_profile::{FunctionSamples, Location, SampleProfile};

/// Writes the profile, functions with the largest sums first.
pub fn llvm_text(profile: &SampleProfile, out: &mut dyn Write) -> io::Result<()> {
    for (name, function) in largest_first(profile) {
        writeln!(out, "{}:{}:{}", on_one_line(name), function.total, function.head)?;
        body(function, 1, out)?;
    }
    Ok(())
}

/// As LLVM's writers order functions.
pub(super) fn largest_first(profile: &SampleProfile) -> Vec<(&str, &FunctionSamples)> {
    let mut functions: Vec<_> = profile.functions.iter().map(|(name, function)| (name.as_str(), function)).collect();
    functions.sort_by_key(|&(name, function)| (Reverse(function.total), name));
    functions
}

fn body(function: &FunctionSamples, depth: usize, out: &mut dyn Write) -> io::Result<()> {
    for (&location, sample) in &function.body {
        write!(out, "{:depth$}{}: {}", "", place(location), sample.count)?;
        let mut targets: Vec<_> = sample.targets.iter().collect();
        targets.sort_by_key(|&(name, count)| (Reverse(*count), name));
        for (name, count) in targets {
            write!(out, " {}:{count}", on_one_line(name))?;
        }
        writeln!(out)?;
    }
    for ((location, name), inlined) in &function.inlined {
        writeln!(out, "{:depth$}{}: {}:{}", "", place(*location), on_one_line(name), inlined.total)?;
        body(inlined, depth + 1, out)?;
    }
    Ok(())
}

fn place(Location { offset, discriminator }: Location) -> String {
    if discriminator == 0 { offset.to_string() } else { format!("{offset}.{discriminator}") }
}

/// Names that no linker knows, such as `operator new` where debug information has no other, may have what ends one in this format.
fn on_one_line(name: &str) -> Cow<'_, str> {
    let breaks = |c: char| c.is_whitespace() || c.is_control() || c == ':';
    let name = if name.contains(breaks) { Cow::Owned(name.replace(breaks, "_")) } else { Cow::Borrowed(name) };
    if name.starts_with(|c: char| c.is_ascii_digit()) { Cow::Owned(format!("_{name}")) } else { name }
}
