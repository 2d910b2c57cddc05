use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::{Skip, skip};

/// Compiles `sources` to the program `name` in `folder`, with `flags` too, once in each program of tests; `None`, said on stderr, without a C
/// compiler.
///
/// # Panics
/// It does not compile, unless `flags` ask for something that is not there: static libraries, or those of 32 bits, need not be installed, and
/// an older gcc does not know all flags.
pub fn c_program(folder: &Path, name: &str, sources: &[PathBuf], flags: &[&str]) -> Option<PathBuf> {
    static BUILT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let program = folder.join([&[name], flags].concat().concat());
    if built.contains(&program) && program.exists() {
        return Some(program);
    }
    fs::create_dir_all(folder).unwrap();
    // Other processes with tests may build the same one.
    let unfinished = folder.join(format!("{}-{name}", std::process::id()));
    assert!(sources.iter().all(|source| source.exists()), "{sources:?}");
    let mut gcc = Command::new("gcc");
    gcc.env("LC_ALL", "C");
    // Libraries after what needs them.
    gcc.args(["-std=gnu17", "-O1", "-g", "-Wall", "-Wextra", "-pthread"]).args(sources).args(flags).arg("-o");
    let Ok(compiled) = gcc.arg(&unfinished).output() else {
        skip(Skip::Tool, "gcc is not installed");
        return None;
    };
    let said = String::from_utf8_lossy(&compiled.stderr);
    let says = |words: &[&str]| !compiled.status.success() && words.iter().any(|words| said.contains(words));
    // The linker finds no library, or the compiler no header: a package is missing.
    let is_missing = says(&["cannot find", "unable to find", "library not found", "No such file"]);
    if !flags.is_empty() && (is_missing || says(&["unrecognized", "bad value"])) {
        let why = if is_missing { Skip::Tool } else { Skip::ToolVersion };
        skip(why, format_args!("gcc cannot compile {name} with {flags:?}: {said}"));
        return None;
    }
    assert!(compiled.status.success(), "{name} does not compile: {said}");
    fs::rename(&unfinished, &program).unwrap();
    built.insert(program.clone());
    Some(program)
}
