//! Whether a compiler used the profile: which functions it made other code of.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use object::{Object, ObjectSymbol, SymbolKind};

/// Sizes of the functions of a program, by name. Several of one name are added up.
fn functions(program: &Path) -> anyhow::Result<BTreeMap<Vec<u8>, u64>> {
    let bytes = fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    let file = object::File::parse(&*bytes).with_context(|| format!("{} is no program", program.display()))?;
    let mut functions = BTreeMap::new();
    for symbol in file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0) {
        *functions.entry(symbol.name_bytes()?.to_vec()).or_default() += symbol.size();
    }
    Ok(functions)
}

/// Checks that a program is one, and has names of functions.
///
/// # Errors
/// It is something else, such as a script, or was stripped.
pub fn has_names(program: &Path) -> anyhow::Result<()> {
    let functions = functions(program)
        .with_context(|| format!("{}: name the file of the program that is built with --binary", program.display()))?;
    if functions.is_empty() {
        bail!("{} has no names of functions: build it without `strip` and `-s`", program.display());
    }
    Ok(())
}

/// What a profile changed in the code, in a sentence.
///
/// # Errors
/// Nothing: the compiler did not use it.
pub fn of_use(before: &Path, after: &Path) -> anyhow::Result<String> {
    let (old, new) = (functions(before)?, functions(after)?);
    let gone = old.keys().filter(|name| !new.contains_key(*name)).count();
    let changed = old.iter().filter(|(name, size)| new.get(*name).is_some_and(|new| new != *size)).count();
    if gone + changed == 0 && old.len() == new.len() {
        bail!(
            "the profile changed none of {} functions: it was not used. Was the code that matters built anew, with a compiler of PATH? If all was built already, say how to \
             remove it, such as --clean 'make clean'",
            old.len()
        );
    }
    Ok(format!(
        "the profile was used: of {} functions {changed} have code of another size, {gone} are in others now",
        old.len()
    ))
}
