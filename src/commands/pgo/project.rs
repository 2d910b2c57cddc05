//! What is built and run: by a shell, or by cargo.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde_json::Value;

use crate::commands::pgo::compilers::{Compiler, Kind, Toolchain};
use crate::commands::pgo::tasks::{appended, logged, quoted, shown, tail, words};
use crate::commands::pgo::wrappers::{Stage, path_with};

/// What is built.
pub enum Project {
    Shell { build: String, run: String, clean: Option<String>, binary: PathBuf },
    Cargo { build: Vec<String>, program: CargoProgram, arguments: Vec<OsString> },
}

/// Which program of a package runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CargoProgram {
    Run,
    Bench,
    Test,
}

/// A program that was built, and how it runs.
pub struct Run {
    pub binary: PathBuf,
    how: How,
}

enum How {
    /// The line names the program itself, so it must be in its place.
    Shell(String),
    Arguments {
        arguments: Vec<OsString>,
        package: PathBuf,
        folder: PathBuf,
    },
}

impl Project {
    /// A project that is built and run by lines of a shell.
    ///
    /// # Errors
    /// It is not clear which file is the program.
    pub fn shell(build: &str, run: &str, clean: Option<&str>, binary: Option<&Path>) -> anyhow::Result<Self> {
        let binary = match binary {
            Some(binary) => binary.to_owned(),
            None => match first_program(run) {
                Some(program) => program.into(),
                None => bail!("--run {run:?}: it is not clear which program is meant: name its file with --binary"),
            },
        };
        let binary = std::path::absolute(&binary).with_context(|| format!("the path {}", binary.display()))?;
        Ok(Self::Shell { build: build.into(), run: run.into(), clean: clean.map(Into::into), binary })
    }

    /// A project of cargo, by what would run it: `cargo run --release -- ARGUMENTS`.
    ///
    /// # Errors
    /// It is another command.
    pub fn cargo(command: &[OsString]) -> anyhow::Result<Self> {
        let split = command.iter().position(|word| word == "--").unwrap_or(command.len());
        let (build, arguments) = command.split_at(split);
        let mut build: Vec<String> = build.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let is_cargo = build.first().is_some_and(|word| Path::new(word).file_name() == Some(OsStr::new("cargo")));
        let place = 1 + usize::from(rust_toolchain(&build).is_some());
        let program = match build.get(place).map(String::as_str) {
            Some("run" | "r") if is_cargo => CargoProgram::Run,
            Some("bench") if is_cargo => CargoProgram::Bench,
            Some("test" | "t") if is_cargo => CargoProgram::Test,
            _ => bail!(
                "{}: expected `cargo run`, `cargo bench` or `cargo test`; what others build is for --build and --run, such as \
                 --build 'make' --run './server --bench'",
                words(build)
            ),
        };
        build[place] = match program {
            CargoProgram::Run => "build",
            CargoProgram::Bench => "bench",
            CargoProgram::Test => "test",
        }
        .into();
        if build.iter().any(|word| word.starts_with("--target-dir")) {
            bail!("--target-dir: `hbbp pgo` builds in a folder of its own; name it with --folder");
        }
        if program != CargoProgram::Run {
            build.push("--no-run".into());
        }
        let has_profile = |word: &String| word == "--release" || word == "-r" || word.starts_with("--profile");
        if program != CargoProgram::Bench && !build.iter().any(has_profile) {
            build.push("--release".into());
        }
        build.push("--message-format=json-render-diagnostics".into());
        let arguments = arguments.iter().skip(1).cloned().collect();
        Ok(Self::Cargo { build, program, arguments })
    }

    /// The compilers that may build it.
    ///
    /// # Errors
    /// There are none.
    pub fn toolchain(&self) -> anyhow::Result<Toolchain> {
        match self {
            Self::Shell { .. } => Toolchain::of_path(),
            Self::Cargo { build, .. } => Toolchain::of_rust(rust_toolchain(build)),
        }
    }

    /// Builds it with the options of a stage; the program, and which compilers compiled it.
    ///
    /// # Errors
    /// It cannot be built, or nothing was compiled.
    pub fn build<'a>(&self, stage: &Stage, toolchain: &'a Toolchain) -> anyhow::Result<(Run, Vec<&'a Compiler>)> {
        fs::create_dir_all(&stage.folder).with_context(|| format!("cannot make {}", stage.folder.display()))?;
        stage.write_scripts(toolchain)?;
        let run = match self {
            Self::Shell { build, run, clean, binary } => {
                Self::built_by_shell(build, clean.as_deref(), stage)?;
                Run { binary: binary.clone(), how: How::Shell(run.clone()) }
            }
            Self::Cargo { build, program, arguments } => {
                let Built { binary, package } = built_by_cargo(build, *program, stage)?;
                let bench = (*program == CargoProgram::Bench).then(|| "--bench".into());
                let arguments = bench.into_iter().chain(arguments.iter().cloned()).collect();
                // As cargo runs them.
                let folder = match program {
                    CargoProgram::Run => std::env::current_dir().context("the working directory")?,
                    CargoProgram::Bench | CargoProgram::Test => package.clone(),
                };
                Run { binary, how: How::Arguments { arguments, package, folder } }
            }
        };
        if !run.binary.is_file() {
            bail!("there is no {} after the build: name the program's file with --binary", run.binary.display());
        }
        let used = stage.used(toolchain);
        if used.is_empty() {
            bail!(match self {
                Self::Shell { .. } =>
                    "the build compiled nothing with a compiler of PATH. If all was built already, say how to remove it, such as --clean \
                     'make clean' or --clean 'rm -rf build'. If it names its compiler by a path, let it take the one in PATH",
                Self::Cargo { .. } => "cargo compiled nothing for the program",
            });
        }
        Ok((run, used))
    }

    fn built_by_shell(build: &str, clean: Option<&str>, stage: &Stage) -> anyhow::Result<()> {
        let log = stage.folder.join("build.log");
        let shell = |line: &str| -> anyhow::Result<()> {
            say!("    {line}");
            let mut command = Command::new("sh");
            command.args(["-c", line]).env("PATH", path_with(&stage.scripts())?);
            logged(&mut command, &log, line)
        };
        // What is newer than its sources is not built again because options changed.
        if let Some(clean) = clean.map(ToOwned::to_owned).or_else(|| cleaning(build)) {
            // Where nothing was built yet there may be nothing that knows how to clean.
            shell(&clean).or_else(|error| if stage.profiles.is_empty() { Ok(()) } else { Err(error) })?;
        }
        shell(build)
    }

    /// How to make the same program without `hbbp pgo`.
    pub fn by_hand(&self, stage: &Stage, toolchain: &Toolchain) -> Vec<String> {
        let line = |compiler: &Compiler| {
            let options = compiler.options.debug.iter().cloned().chain(stage.options(compiler));
            match compiler.kind {
                // A list of the configuration is added to those of its files. Cargo runs the compiler in other folders for other packages.
                Kind::Rustc => {
                    let list: Vec<String> = options.map(|option| format!("{option:?}")).collect();
                    let list = quoted(&format!("build.rustflags=[{}]", list.join(", ")));
                    format!("    RUSTC_BOOTSTRAP=1 cargo build --release --config {list}")
                }
                Kind::Clang | Kind::Gcc => format!("    {} {}", compiler.name, shown(options)),
            }
        };
        let first = "to build it so from now on, keep the profile, and give the compiler its options:".to_owned();
        [first].into_iter().chain(stage.used(toolchain).into_iter().map(line)).collect()
    }
}

impl Run {
    /// The words that run a version of the program, with what it prints in a log, which has one run at a time.
    pub fn words(&self, program: &Path, log: &Path) -> Vec<OsString> {
        let shell = |script: &str| -> Vec<OsString> { vec!["sh".into(), "-c".into(), script.into(), log.into()] };
        match &self.how {
            How::Shell(line) => [shell(r#"exec >"$0" 2>&1; eval "$1""#), vec![line.into()]].concat(),
            How::Arguments { arguments, package, folder } => {
                let script = r#"exec >"$0" 2>&1; cd "$1"; export CARGO_MANIFEST_DIR="$2"; shift 2; exec "$@""#;
                let places = [folder, package, program].map(|path| path.as_os_str().to_owned());
                [shell(script), places.to_vec(), arguments.clone()].concat()
            }
        }
    }

    /// Where a version of the program is when it is the one of the project.
    pub fn place<'a>(&'a self, version: &'a Path) -> &'a Path {
        match self.how {
            How::Shell(_) => &self.binary,
            How::Arguments { .. } => version,
        }
    }

    /// Puts a version of the program in its place, if it runs there.
    ///
    /// # Errors
    /// It cannot be written there.
    pub fn install(&self, version: &Path) -> anyhow::Result<()> {
        let place = self.place(version);
        if place == version {
            return Ok(());
        }
        // Never half a program, never one that runs just now, and not in the place of a link.
        let place = place.canonicalize().unwrap_or_else(|_| place.to_owned());
        let mut new = place.as_os_str().to_owned();
        new.push(".new");
        let copied = fs::copy(version, &new).and_then(|_| fs::rename(&new, &place));
        copied.with_context(|| format!("cannot put {} in the place of {}", version.display(), place.display()))
    }
}

/// The toolchain of rustup that a command of cargo names: `+nightly`.
fn rust_toolchain(cargo: &[String]) -> Option<&str> {
    cargo.get(1).map(String::as_str).filter(|word| word.starts_with('+'))
}

/// Builds with cargo into a folder of the stage.
fn built_by_cargo(build: &[String], program: CargoProgram, stage: &Stage) -> anyhow::Result<Built> {
    say!("    {}", words(build.iter().filter(|word| !word.starts_with("--message-format")).cloned()));
    let log = stage.folder.join("build.log");
    let errors = appended(&log)?;
    let from = errors.metadata().map_or(0, |file| file.len());
    let mut cargo = Command::new(&build[0]);
    cargo.args(&build[1..]).stdin(Stdio::null()).stderr(errors).env_remove("NUM_JOBS");
    cargo.env("CARGO_TARGET_DIR", stage.folder.join("target")).env("RUSTC_WRAPPER", stage.scripts().join("rustc"));
    // What was compiled before was compiled with the profile of an earlier time.
    let target = stage.folder.join("target");
    let removed = if target.exists() { fs::remove_dir_all(&target) } else { Ok(()) };
    removed.with_context(|| format!("cannot remove {}", target.display()))?;
    let done = cargo.output().with_context(|| format!("cannot run {}", build[0]))?;
    if !done.status.success() {
        bail!("cargo did not succeed ({}); the end of {}:\n{}", done.status, log.display(), tail(&log, from));
    }
    let default = || default_run(&build[0], rust_toolchain(build));
    the_program(&String::from_utf8_lossy(&done.stdout), program, default)
}

/// What cargo built.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Built {
    binary: PathBuf,
    /// The folder of its package.
    package: PathBuf,
}

/// The program that `cargo run` runs of several, by the manifest in the working directory.
fn default_run(cargo: &str, toolchain: Option<&str>) -> Option<String> {
    let mut metadata = Command::new(cargo);
    metadata.args(toolchain).args(["metadata", "--no-deps", "--format-version", "1", "--offline"]);
    let done = metadata.stdin(Stdio::null()).output().ok()?;
    let metadata: Value = serde_json::from_slice(&done.stdout).ok()?;
    let mut defaults = metadata["packages"].as_array()?.iter().filter_map(|package| package["default_run"].as_str());
    let default = defaults.next()?.to_owned();
    defaults.next().is_none().then_some(default)
}

/// The one program that cargo says it built.
fn the_program(messages: &str, program: CargoProgram, default: impl Fn() -> Option<String>) -> anyhow::Result<Built> {
    let mut programs: Vec<(String, Built)> = Vec::new();
    for message in messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let Some(executable) = message["executable"].as_str() else { continue };
        let kinds: Vec<&str> =
            message["target"]["kind"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let is_wanted = match program {
            CargoProgram::Run => kinds.iter().any(|kind| ["bin", "example"].contains(kind)),
            CargoProgram::Bench => kinds.contains(&"bench"),
            CargoProgram::Test => kinds.contains(&"test"),
        };
        if is_wanted {
            let manifest = Path::new(message["manifest_path"].as_str().unwrap_or_default());
            let package = manifest.parent().unwrap_or(Path::new(".")).to_owned();
            programs.push((
                message["target"]["name"].as_str().unwrap_or_default().to_owned(),
                Built { binary: executable.into(), package },
            ));
        }
    }
    if let [(_, only)] = programs.as_slice() {
        return Ok(only.clone());
    }
    if program == CargoProgram::Run
        && programs.len() > 1
        && let Some(name) = default()
        && let Some((_, built)) = programs.iter().find(|(known, _)| *known == name)
    {
        return Ok(built.clone());
    }
    let (what, option) = match program {
        CargoProgram::Run => ("program", "--bin"),
        CargoProgram::Bench => ("benchmark", "--bench"),
        CargoProgram::Test => ("integration test", "--test"),
    };
    let names: Vec<&str> = programs.iter().map(|(name, _)| name.as_str()).collect();
    match names.first() {
        Some(first) => bail!("there are several {what}s ({}): name one, as in {option} {first}", names.join(", ")),
        None => bail!("cargo built no {what}"),
    }
}

/// The program that a line of a shell runs, if that can be told: its first word that sets no variable.
fn first_program(line: &str) -> Option<&str> {
    let is_setting = |word: &&str| {
        let is_name = |name: &str| !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
        word.split_once('=').is_some_and(|(name, _)| is_name(name))
    };
    let word = line.split_whitespace().find(|word| !is_setting(word))?;
    (word.contains('/') && !word.contains(['\'', '"', '$', '`', '\\', ';', '|', '&', '(', '*'])).then_some(word)
}

/// How to remove what a known tool for building built, if the line is that tool alone.
fn cleaning(build: &str) -> Option<String> {
    if build.contains([';', '|', '&', '<', '>', '(', '`', '#', '\n']) {
        return None;
    }
    match build.split_whitespace().next()?.rsplit('/').next()? {
        "make" | "gmake" => Some(format!("{build} clean")),
        "cmake" if build.contains("--build") => Some(format!("{build} --target clean")),
        "ninja" => Some(format!("{build} -t clean")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cargo(line: &str) -> anyhow::Result<(Vec<String>, CargoProgram, Vec<OsString>)> {
        let words: Vec<OsString> = line.split_whitespace().map(Into::into).collect();
        match Project::cargo(&words)? {
            Project::Cargo { build, program, arguments } => Ok((build, program, arguments)),
            Project::Shell { .. } => unreachable!(),
        }
    }

    #[test]
    fn commands_of_cargo_become_builds() {
        let json = "--message-format=json-render-diagnostics";
        let (build, program, arguments) = cargo("cargo run -p x -- --release in.json").unwrap();
        assert_eq!(
            (build, program),
            (["cargo", "build", "-p", "x", "--release", json].map(String::from).to_vec(), CargoProgram::Run)
        );
        assert_eq!(arguments, ["--release", "in.json"]);
        let (build, ..) = cargo("cargo +nightly r --profile dist").unwrap();
        assert_eq!(build, ["cargo", "+nightly", "build", "--profile", "dist", json]);
        let (build, program, _) = cargo("cargo bench --bench parse").unwrap();
        assert_eq!(
            (build, program),
            (["cargo", "bench", "--bench", "parse", "--no-run", json].map(String::from).to_vec(), CargoProgram::Bench)
        );
        for wrong in ["", "cargo", "cargo build", "make run"] {
            assert!(cargo(wrong).unwrap_err().to_string().contains("--build"), "{wrong}");
        }
    }

    #[test]
    fn the_program_of_a_line() {
        assert_eq!(first_program("./server --bench"), Some("./server"));
        assert_eq!(first_program("LANG=C A=1 bin/x y"), Some("bin/x"));
        for unclear in ["server", "cd x && ./y", "for f in *; do ./x $f; done", "\"./my prog\" 1", "$BIN/x", ""] {
            assert_eq!(first_program(unclear), None, "{unclear}");
        }
    }

    #[test]
    fn what_is_built_already_is_removed_where_that_is_known() {
        assert_eq!(cleaning("make -j2 CC=clang").as_deref(), Some("make -j2 CC=clang clean"));
        assert_eq!(cleaning("cmake --build out").as_deref(), Some("cmake --build out --target clean"));
        for unknown in ["./build.sh", "make 2>&1 | tee log", "./configure && make", "cmake -B out"] {
            assert_eq!(cleaning(unknown), None, "{unknown}");
        }
    }
}
