//! The layout of code, for clang and lld.

use std::path::Path;

use analyzer::propeller::PropellerProfile;
use anyhow::bail;

use crate::output::profile::{self, Profiled, without_place};
use crate::output::{self, write_to};

/// Writes the order of the blocks to `blocks` and, if it is wanted, that of the functions to `functions`. What is in neither is said on
/// standard error.
pub fn write(profiled: &Profiled<'_>, blocks: Option<&Path>, functions: Option<&Path>) -> anyhow::Result<()> {
    let file = profiled.code.binary.file.display();
    let layout = match PropellerProfile::of(profiled.flow, profiled.index, &profiled.code) {
        Ok(layout) => layout,
        Err(why) => bail!("{file}: {why}"),
    };
    let unmapped = without_place("code of no function of the basic block address map", layout.unmapped, 1.0);
    unmapped.iter().chain(&layout.notes).for_each(output::say);
    write_to(blocks, |out| Ok(profile::cc_profile(&layout, out)?))?;
    match functions {
        Some(functions) => write_to(Some(functions), |out| Ok(profile::ld_profile(&layout, out)?)),
        None => Ok(()),
    }
}
