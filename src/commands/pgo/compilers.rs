//! Which compilers there are, and which options they take for profiles.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::bail;

use crate::search_path;

/// Options of LLVM that make more of a profile of samples (docs/decisions 014, 047 and 048): counts that contradict each other are brought in line,
/// calls are inlined where that saves more than it costs, and where they were in the program that was recorded, also large functions and those
/// that call themselves; blocks are laid out so that little code is jumped over.
const OF_LLVM: [&str; 5] = [
    "sample-profile-use-profi",
    "inline-enable-cost-benefit-analysis=true",
    "sample-profile-hot-inline-threshold=10000",
    "sample-profile-recursive-inline",
    "enable-ext-tsp-block-placement",
];

/// A family of compilers that read the same profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Clang,
    Gcc,
    Rustc,
}

/// A compiler in PATH.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiler {
    /// What it is called by: `cc`, `clang++-19`.
    pub name: String,
    pub file: PathBuf,
    pub kind: Kind,
    /// The first number of its version.
    pub version: u32,
    pub options: Options,
}

/// The options that it takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Debug information, where the build asks for none.
    pub debug: Vec<String>,
    /// What else makes a program whose recording can be placed in its source.
    pub recorded: Vec<String>,
    /// What names the profile, without its file.
    pub profile: String,
    /// What goes with a profile.
    pub with_profile: Vec<String>,
}

impl Compiler {
    /// The version of the gcov format that it reads, if it is GCC.
    pub fn gcov_version(&self) -> &'static str {
        match self.version {
            ..12 => "1",
            12..16 => "2",
            16.. => "3",
        }
    }
}

/// All compilers of a build.
#[derive(Debug, Default)]
pub struct Toolchain {
    pub compilers: Vec<Compiler>,
}

impl Kind {
    /// The format of `hbbp export` for it, and how such files end.
    pub fn format(self) -> (&'static str, &'static str) {
        match self {
            Kind::Clang | Kind::Rustc => ("llvm-extbin", "prof"),
            Kind::Gcc => ("gcov", "gcov"),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Kind::Clang => "clang",
            Kind::Gcc => "GCC",
            Kind::Rustc => "rustc",
        }
    }
}

impl Toolchain {
    /// The compilers for C and C++ in PATH. Those that are too old for profiles are left out.
    ///
    /// # Errors
    /// There are none.
    pub fn of_path() -> anyhow::Result<Self> {
        let mut compilers: Vec<Compiler> = Vec::new();
        // Folders may be in PATH twice.
        let mut known = BTreeMap::new();
        for folder in search_path::folders() {
            let Ok(files) = folder.read_dir() else { continue };
            let mut names: Vec<String> = files
                .flatten()
                .filter_map(|file| file.file_name().into_string().ok())
                .filter(|name| is_compiler(name))
                .collect();
            names.sort_unstable();
            for name in names {
                if compilers.iter().any(|compiler| compiler.name == name) {
                    continue;
                }
                let file = folder.join(&name);
                let Ok(canonical) = file.canonicalize() else { continue };
                // Wrappers such as ccache are one file, which asks what it is called by.
                let found = known.entry((canonical, name.clone())).or_insert_with(|| of_file(&file));
                if let Some((kind, version, options)) = found.clone() {
                    compilers.push(Compiler { name, file, kind, version, options });
                }
            }
        }
        if compilers.is_empty() {
            bail!(
                "no compiler that takes profiles of samples is in PATH: install clang (from 11 on) or GCC (from 5 on)"
            );
        }
        Ok(Self { compilers })
    }

    /// The compiler of Rust, of a toolchain of rustup (`+nightly`) or the usual one.
    ///
    /// # Errors
    /// There is none, or it takes no profiles of samples.
    pub fn of_rust(toolchain: Option<&str>) -> anyhow::Result<Self> {
        let file = std::env::var_os("RUSTC").map_or_else(|| PathBuf::from("rustc"), PathBuf::from);
        let rustc = || {
            let mut rustc = Command::new(&file);
            rustc.args(toolchain);
            rustc
        };
        let Some(said) = output(rustc().arg("-V")) else {
            bail!("there is no rustc in PATH: programs in Rust are built with cargo and rustc")
        };
        let version = said.split('.').nth(1).and_then(|minor| minor.parse().ok()).unwrap_or(0);
        let takes = |names: &[&str]| names.iter().find_map(|name| rust_option(&rustc(), name));
        let Some(profile) = takes(&["profile-sample-use"]) else {
            bail!("{} knows no option profile-sample-use: rustc takes profiles of samples from 1.57 on", said.trim())
        };
        let recorded = takes(&["debuginfo-for-profiling", "debug-info-for-profiling"]);
        let llvm = |option: &str| format!("-Cllvm-args=-{option}");
        let is_taken = |option: &String| output(rustc().arg(option).args(["--print", "sysroot"])).is_some();
        let options = Options {
            debug: vec!["-Cdebuginfo=1".into(), "-Cstrip=none".into()],
            recorded: recorded.into_iter().collect(),
            profile: format!("{profile}="),
            with_profile: OF_LLVM.map(llvm).into_iter().filter(is_taken).collect(),
        };
        Ok(Self {
            compilers: vec![Compiler { name: "rustc".into(), file: file.clone(), kind: Kind::Rustc, version, options }],
        })
    }

    /// What there is, for people.
    pub fn line(&self) -> String {
        let kinds: BTreeSet<_> = self.compilers.iter().map(|compiler| (compiler.kind, compiler.version)).collect();
        let line = |(kind, version): (Kind, u32)| {
            let of_kind: Vec<&str> = self
                .compilers
                .iter()
                .filter(|compiler| (compiler.kind, compiler.version) == (kind, version))
                .map(|compiler| compiler.name.as_str())
                .collect();
            let version = if kind == Kind::Rustc { format!("1.{version}") } else { version.to_string() };
            format!("{} {version} ({})", kind.name(), of_kind.join(", "))
        };
        format!("compilers: {}", kinds.into_iter().map(line).collect::<Vec<_>>().join("; "))
    }
}

/// BOLT's program.
///
/// # Errors
/// It is not in PATH.
pub fn llvm_bolt() -> anyhow::Result<PathBuf> {
    let Some(bolt) = search_path::newest("llvm-bolt") else {
        bail!("llvm-bolt is not in PATH: install BOLT (Debian: bolt-19), or leave out --bolt")
    };
    Ok(bolt)
}

/// Whether a file is called as compilers are: `cc`, `g++`, `clang-19`, `x86_64-linux-gnu-gcc-12`.
fn is_compiler(name: &str) -> bool {
    let name = name.strip_prefix("x86_64-linux-gnu-").unwrap_or(name);
    let (name, version) = name.rsplit_once('-').unwrap_or((name, "0"));
    version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && ["cc", "c++", "gcc", "g++", "clang", "clang++"].contains(&name)
}

/// What a compiler is; `None` if it is none that takes profiles.
fn of_file(file: &Path) -> Option<(Kind, u32, Options)> {
    let said = output(Command::new(file).arg("--version"))?;
    if let Some((_, version)) = said.split_once("clang version ") {
        let version = leading_number(version)?;
        (version >= 11).then(|| (Kind::Clang, version, clang_options(file)))
    } else if said.contains("Free Software Foundation") {
        let version = leading_number(&output(Command::new(file).arg("-dumpversion"))?)?;
        let options = Options { debug: vec!["-g1".into()], profile: "-fauto-profile=".into(), ..Options::default() };
        (version >= 5).then_some((Kind::Gcc, version, options))
    } else {
        None
    }
}

fn clang_options(file: &Path) -> Options {
    let taken = |options: &[&str], with: &[&str]| -> Vec<String> {
        let mut check = Command::new(file);
        check.args(["-fsyntax-only", "-x", "c"]).args(with).args(options).arg("/dev/null");
        let is_taken = output(&mut check).is_some();
        if is_taken { options.iter().map(|option| (*option).to_owned()).collect() } else { Vec::new() }
    };
    let with_profile = ["-fprofile-sample-use=/dev/null"];
    let of_llvm = OF_LLVM.map(|option| format!("-{option}"));
    let recorded =
        ["-fdebug-info-for-profiling", "-funique-internal-linkage-names", "-Wno-unused-command-line-argument"];
    Options {
        debug: vec!["-gline-tables-only".into()],
        recorded: recorded.iter().flat_map(|option| taken(&[option], &[])).collect(),
        profile: "-fprofile-sample-use=".into(),
        with_profile: of_llvm.iter().flat_map(|option| taken(&["-mllvm", option], &with_profile)).collect(),
    }
}

/// How a rustc spells an option: `-C` where it is stable, or else `-Z`.
fn rust_option(rustc: &Command, name: &str) -> Option<String> {
    ["-C", "-Z"].into_iter().find_map(|letter| {
        let mut asked = Command::new(rustc.get_program());
        let help = output(asked.args(rustc.get_args()).args([letter, "help"]).env("RUSTC_BOOTSTRAP", "1"))?;
        let mut words = help.split_whitespace().map(|word| word.trim_start_matches('-'));
        words.any(|word| word.split('=').next() == Some(name)).then(|| format!("{letter}{name}"))
    })
}

/// What a command prints on standard output if it succeeds.
fn output(command: &mut Command) -> Option<String> {
    let done = command.stdin(Stdio::null()).env("LC_ALL", "C").output().ok()?;
    done.status.success().then(|| String::from_utf8_lossy(&done.stdout).into_owned())
}

fn leading_number(text: &str) -> Option<u32> {
    let digits = text.trim_start().split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_compilers() {
        assert!(["cc", "gcc-12", "clang++-19", "x86_64-linux-gnu-g++", "c++"].iter().all(|name| is_compiler(name)));
        assert!(
            ["gcc-ar", "clang-format", "clang-format-19", "c89", "g++-", "distcc"]
                .iter()
                .filter(|name| is_compiler(name))
                .eq(["g++-"].iter())
        );
    }

    #[test]
    fn a_version_begins_with_its_number() {
        assert_eq!(["19.1.7 (3)", "12", " 4.9", "x"].map(leading_number), [Some(19), Some(12), Some(4), None]);
    }

    #[test]
    fn this_rustc_takes_profiles() {
        let rust = Toolchain::of_rust(None).unwrap();
        assert!(rust.compilers[0].options.profile.ends_with("profile-sample-use="), "{rust:?}");
        assert_eq!(rust.compilers[0].options.recorded.len(), 1, "{rust:?}");
    }
}
