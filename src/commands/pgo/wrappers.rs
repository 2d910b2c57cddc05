//! Scripts with the names of compilers, which give them the options of a build.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::commands::pgo::compilers::{Compiler, Kind, Toolchain};
use crate::commands::pgo::tasks::{quoted, remove_if_there};

/// One build: where its scripts and what it makes are, and which profiles it uses.
pub struct Stage<'a> {
    /// What all builds share: tools such as cmake keep the paths of compilers.
    pub shared: &'a Path,
    pub folder: PathBuf,
    pub profiles: &'a [(Kind, PathBuf)],
    /// Whether the linker keeps relocations, for BOLT.
    pub relocations: bool,
}

impl Stage<'_> {
    /// Where the scripts are.
    pub fn scripts(&self) -> PathBuf {
        self.shared.join("compilers")
    }

    /// What they write the name of each compiler that compiled something into.
    fn used_file(&self) -> PathBuf {
        self.shared.join("used")
    }

    /// Writes a script for each compiler.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn write_scripts(&self, toolchain: &Toolchain) -> anyhow::Result<()> {
        let scripts = self.scripts();
        // Of compilers that are not there any more.
        let removed = if scripts.exists() { fs::remove_dir_all(&scripts) } else { Ok(()) };
        removed
            .and_then(|()| fs::create_dir_all(&scripts))
            .with_context(|| format!("cannot make {}", scripts.display()))?;
        remove_if_there(&self.used_file())?;
        for compiler in &toolchain.compilers {
            let file = scripts.join(&compiler.name);
            let text = if compiler.kind == Kind::Rustc { self.for_rust(compiler) } else { self.for_c(compiler) };
            let written =
                fs::write(&file, text).and_then(|()| fs::set_permissions(&file, PermissionsExt::from_mode(0o755)));
            written.with_context(|| format!("cannot write {}", file.display()))?;
        }
        Ok(())
    }

    /// Which compilers compiled something since the scripts were written.
    pub fn used<'a>(&self, toolchain: &'a Toolchain) -> Vec<&'a Compiler> {
        let text = self.compilations();
        let names: BTreeSet<&str> = text.lines().collect();
        toolchain.compilers.iter().filter(|compiler| names.contains(compiler.name.as_str())).collect()
    }

    /// How often a compiler compiled something since then.
    pub fn count(&self) -> usize {
        self.compilations().lines().count()
    }

    /// The name of the compiler for each time.
    fn compilations(&self) -> String {
        fs::read_to_string(self.used_file()).unwrap_or_default()
    }

    /// The options of this build, without those for debug information.
    pub fn options(&self, compiler: &Compiler) -> Vec<String> {
        let mut options = compiler.options.recorded.clone();
        if let Some((_, profile)) = self.profiles.iter().find(|(kind, _)| *kind == compiler.kind) {
            options.push(format!("{}{}", compiler.options.profile, profile.display()));
            options.extend(compiler.options.with_profile.iter().cloned());
        }
        if self.relocations && compiler.kind == Kind::Rustc {
            options.push("-Clink-arg=-Wl,--emit-relocs".into());
        }
        options
    }

    fn for_c(&self, compiler: &Compiler) -> String {
        let relocations = if self.relocations { "-Wl,--emit-relocs" } else { "" };
        format!(
            r#"#!/bin/sh
# Written by `hbbp pgo`: {name}, with the options of this build.
folder={scripts}
PATH=${{PATH#"$folder":}}
debug={debug} relocations={relocations} compiles= looks=
for word do
    case $word in
        -g | -g[1-3] | -ggdb* | -gdwarf* | -gline*) debug= ;;
        -r) relocations= ;;
        -E | -M | -MM | -fsyntax-only | conftest.* | */conftest.* | CMakeFiles/* | */CMakeScratch/*) looks=yes ;;
        @* | *.c | *.cc | *.cpp | *.cxx | *.c++ | *.C | *.i | *.ii) compiles=yes ;;
    esac
done
[ -z "$compiles" ] || [ -n "$looks" ] || echo {name} >>{used}
exec {file} "$@" $debug $relocations {options}
"#,
            name = compiler.name,
            scripts = quoted(&self.scripts().display().to_string()),
            debug = compiler.options.debug.join(" "),
            used = quoted(&self.used_file().display().to_string()),
            file = quoted(&compiler.file.display().to_string()),
            options = list(&self.options(compiler)),
        )
    }

    /// Cargo calls it with the compiler as its first word. Build scripts try what the compiler can: they get it as it is.
    fn for_rust(&self, compiler: &Compiler) -> String {
        let before = std::env::var("RUSTC_WRAPPER").ok().filter(|wrapper| !wrapper.is_empty());
        format!(
            r#"#!/bin/sh
# Written by `hbbp pgo`: a RUSTC_WRAPPER with the options of this build.
case " $* " in
    *" --crate-type proc-macro "* | *" --crate-name build_script_"* | *" --print "*) exec {before} "$@" ;;
    *" --emit"*) ;;
    *) exec {before} "$@" ;;
esac
[ -z "$NUM_JOBS" ] || exec {before} "$@"
echo {name} >>{used}
export RUSTC_BOOTSTRAP=1
case " $* " in
    *" debuginfo=2 "* | *" debuginfo=full "*) exec {before} "$@" -Cstrip=none {options} ;;
esac
exec {before} "$@" {debug} {options}
"#,
            before = before.map(|wrapper| quoted(&wrapper)).unwrap_or_default(),
            name = compiler.name,
            used = quoted(&self.used_file().display().to_string()),
            debug = list(&compiler.options.debug),
            options = list(&self.options(compiler)),
        )
    }
}

fn list(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// PATH with a folder before all others.
///
/// # Errors
/// The folder's name has a colon in it.
pub fn path_with(folder: &Path) -> anyhow::Result<std::ffi::OsString> {
    let others = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths([folder.to_owned()].into_iter().chain(std::env::split_paths(&others)))
        .with_context(|| format!("{} cannot be in PATH: name another folder with --folder", folder.display()))
}
