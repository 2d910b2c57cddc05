//! `hbbp pgo`: from sources to a faster program.
//!
//! ```text
//! build with debug information -> record -> export -> build with the profile -> ... (-> record -> BOLT) -> compare
//!                                 ^------------------- --passes ------------'
//! ```
//!
//! Each step is a command that people can give themselves, and is said.

mod compilers;
mod evidence;
mod project;
mod race;
mod stale;
mod tasks;
mod wrappers;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};
use collector::tracer::TracerOptions;

use crate::commands::pgo::compilers::{Compiler, Kind, Toolchain};
use crate::commands::pgo::project::{Project, Run};
use crate::commands::pgo::race::{Variant, Verdict};
use crate::commands::pgo::tasks::{logged, own_step, remove_if_there, shown, tail};
use crate::commands::pgo::wrappers::Stage;
use crate::commands::record::Wanted;
use crate::output::{TextFormat, write_to};

/// Build a program, record it, and build it again with the profile: one command to a faster program
///
/// For programs in C, C++ (clang, GCC) and Rust. Compilers are found in PATH, and get what they need for a profile through small scripts
/// of their names before them in PATH: options of the project stay as they are. The build that is recorded has debug information and is otherwise the
/// project's own; it is what the new program is compared with. At the end both run in turn. All that is made is in one folder.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Shell command that builds the program, such as `make -j4`
    #[arg(long, value_name = "COMMAND", requires = "run", conflicts_with = "command")]
    build: Option<String>,

    /// Shell command that runs the program as it is used; what takes some seconds is best
    #[arg(long, value_name = "COMMAND", requires = "build")]
    run: Option<String>,

    /// Shell command that removes what --build made [default: what make, cmake and ninja have for that]
    #[arg(long, value_name = "COMMAND", requires = "build")]
    clean: Option<String>,

    /// The program's file, which --build makes [default: the first word of --run]
    #[arg(long, value_name = "FILE", requires = "build")]
    binary: Option<PathBuf>,

    /// How often to record the program and build it with the profile: each pass records what the last one built, and finds calls in place
    /// that were inlined there
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=5))]
    passes: u32,

    /// Then record the new program, and lay out its code with BOLT
    #[arg(long)]
    bolt: bool,

    /// How good the profile is to become, by the largest rows of the instruction mix; the program runs again and again until then
    #[arg(long, value_name = "PCT", default_value = "5%")]
    precision: Wanted,

    /// Percent of the program's CPU time that tracing may take while it is recorded
    #[arg(long, value_name = "PCT", default_value_t = 5.0, value_parser = overhead)]
    overhead: f64,

    /// How often each program runs when they are compared, in turn
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Count the instructions of each program exactly as well, with valgrind: some 50 times the time of a run
    #[arg(long)]
    exact: bool,

    /// Only say whether the profile in the folder still fits: build, record, and compare with it. Exit status 3 where less than PCT
    /// of it is the same
    #[arg(long, value_name = "PCT", num_args = 0..=1, require_equals = true, default_missing_value = "80", value_parser = percent)]
    check: Option<f64>,

    /// Folder for all that is made
    #[arg(long, value_name = "FOLDER", default_value = "hbbp-pgo")]
    folder: PathBuf,

    /// The comparison as text, or as JSON (`hbbp-pgo/1`)
    #[arg(long, value_enum, default_value_t = TextFormat::Text)]
    format: TextFormat,

    /// `cargo run`, `cargo bench` or `cargo test`, with its options
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "build")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  hbbp pgo -- cargo run -- input.json                    a Rust program
      (the same: cargo hbbp pgo -- run -- input.json)
  hbbp pgo --bolt -- cargo bench --bench parse           by what a benchmark executes
  hbbp pgo --build 'make -j4' --run './server --bench'
  hbbp pgo --build 'clang -O2 -o sort sort.c' --run './sort words.txt'
  hbbp pgo --check --build make --run './server --bench'      in CI: is the profile stale?

Exit status: 0 done, 1 failed, 2 wrong usage; with --check 3 where the profile is stale.";

/// Exit status of `--check` where the profile does not fit any more.
const STALE: u8 = 3;

/// Does all steps, and says them.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let kept = fs::create_dir_all(&args.folder).and_then(|()| args.folder.canonicalize());
    let folder = kept.with_context(|| format!("cannot make the folder {}", args.folder.display()))?;
    let project = match (&args.build, &args.run) {
        (Some(build), Some(run)) => Project::shell(build, run, args.clean.as_deref(), args.binary.as_deref())?,
        _ => Project::cargo(&args.command)?,
    };
    let toolchain = project.toolchain()?;
    say!("{}", toolchain.line());
    let work = Work { args, project, toolchain, folder };
    match args.check {
        Some(least) => work.check(least),
        None => work.optimize(),
    }
}

fn overhead(text: &str) -> Result<f64, String> {
    percent_of(text, TracerOptions::allows, "expected more than 0, up to 100")
}

fn percent(text: &str) -> Result<f64, String> {
    percent_of(text, |percent| (0.0..=100.0).contains(&percent), "expected 0 to 100")
}

fn percent_of(text: &str, allows: impl Fn(f64) -> bool, expected: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').parse();
    number.ok().filter(|percent| allows(*percent)).ok_or_else(|| expected.to_owned())
}

/// What the steps share.
struct Work<'a> {
    args: &'a Args,
    project: Project,
    toolchain: Toolchain,
    folder: PathBuf,
}

/// A program that was built to be recorded.
struct Built<'a> {
    run: Run,
    /// The compilers that compiled it.
    used: Vec<&'a Compiler>,
    /// How often one compiled something for it.
    compilations: usize,
}

/// The steps, which are said by their numbers.
struct Steps {
    done: u32,
    all: u32,
}

impl Steps {
    fn of(all: u32) -> Self {
        Self { done: 0, all }
    }

    /// The next one begins.
    fn next(&mut self, what: &str) {
        self.done += 1;
        say!("{}/{} {what}", self.done, self.all);
    }
}

impl Work<'_> {
    fn optimize(&self) -> anyhow::Result<ExitCode> {
        // Building first, comparing last, and what is between.
        let mut steps = Steps::of(2 + 3 * self.args.passes + u32::from(self.args.bolt));
        // Before anything takes its time.
        let bolt = self.args.bolt.then(compilers::llvm_bolt).transpose()?;
        let mut built = self.build(&mut steps)?;
        let before = self.kept(&built.run.binary, "before")?;
        let mut profiles = Vec::new();
        for pass in 1..=self.args.passes {
            profiles = self.profile(&built, pass, &mut steps)?;
            steps.next("build again, with the profile");
            let stage = self.stage("optimized", &profiles);
            let (run, used) = self.project.build(&stage, &self.toolchain)?;
            let (compilations, first) = (stage.count(), built.compilations);
            if compilations < first {
                bail!(
                    "the compilers ran {first} times for the program that was recorded, and {compilations} times now: not all of it has \
                     the profile. Say how to remove what was built, such as --clean 'make clean'"
                );
            }
            built = Built { run, used, compilations };
        }
        let optimized = built.run;
        let after = self.kept(&optimized.binary, "after")?;
        say!("    {}", evidence::of_use(&before, &after)?);
        let mut variants = vec![Variant::new("before", before), Variant::new("profile", after)];
        if let Some(bolt) = bolt {
            steps.next("record the new program, and lay out its code with BOLT");
            let bolted = self.bolted(&bolt, &optimized)?;
            variants.push(Variant::new("profile + BOLT", bolted));
        }
        steps.next(&format!("compare: {} times each, in turn", self.args.rounds));
        let result = race::race(&optimized, &variants, self.args.rounds, &self.folder, self.args.exact);
        let last = variants.last().unwrap_or(&variants[0]);
        let is_slower = result.as_ref().is_ok_and(|result| result.verdict() == Verdict::Slower);
        let kept = if is_slower { &variants[0] } else { last };
        // Whatever came between.
        optimized.install(&kept.file)?;
        let result = result?;
        write_to(None, |out| match self.args.format {
            TextFormat::Text => Ok(write!(out, "\n{}", result.text())?),
            TextFormat::Json => Ok(writeln!(out, "{}", serde_json::to_string_pretty(&result.json())?)?),
        })?;
        let file = |path: &Path| shown([path.display().to_string()]);
        if is_slower {
            say!("{} is the program before; the new one is {}", file(optimized.place(&kept.file)), file(&last.file));
        } else {
            say!(
                "the new program is {}; the one before it is {}",
                file(optimized.place(&last.file)),
                file(&variants[0].file)
            );
            let stage = self.stage("optimized", &profiles);
            self.project.by_hand(&stage, &self.toolchain).iter().for_each(|line| say!("{line}"));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Builds the program as it is, to be recorded.
    fn build(&self, steps: &mut Steps) -> anyhow::Result<Built<'_>> {
        steps.next("build with debug information");
        let stage = self.stage("recorded", &[]);
        let (run, used) = self.project.build(&stage, &self.toolchain)?;
        evidence::has_names(&run.binary)?;
        if used.iter().any(|compiler| compiler.kind == Kind::Gcc) {
            say!(
                "    GCC makes less of such profiles than clang, and sometimes a slower program: what is measured at the end decides"
            );
        }
        Ok(Built { run, used, compilations: stage.count() })
    }

    /// Records, and writes profiles: one for each kind of compilers that built it.
    fn profile(&self, built: &Built<'_>, pass: u32, steps: &mut Steps) -> anyhow::Result<Vec<(Kind, PathBuf)>> {
        let Built { run, used, .. } = built;
        let (program, recording) = match pass {
            1 => ("", "run.data".to_owned()),
            _ => (" the new program", format!("run-{pass}.data")),
        };
        steps.next(&format!("record{program} until the profile is right within {} (95 %)", self.args.precision));
        let recording = self.record(run, &recording)?;
        steps.next("write the profile");
        let mut profiles = Vec::new();
        for compiler in used {
            let (kind, (format, ending)) = (compiler.kind, compiler.kind.format());
            let profile = self.folder.join(format!("profile.{ending}"));
            // A check leaves what is kept as it is.
            if self.args.check.is_some() || profiles.iter().any(|(of, _)| *of == kind) {
                continue;
            }
            let mut export = self.exported(format, &recording, &run.binary, &profile)?;
            if kind == Kind::Gcc {
                export.args(["--gcov-version", compiler.gcov_version()]);
            }
            own_step("export", &mut export, &["profile of", "not in the profile"], &self.folder)?;
            profiles.push((kind, profile));
        }
        // What a check compares with is of the program as it is without a profile.
        if pass == 1 {
            let text = self.folder.join(stale::NEW);
            let mut export = self.exported("llvm-text", &recording, &run.binary, &text)?;
            own_step("export", &mut export, &[], &self.folder)?;
            if self.args.check.is_none() {
                fs::rename(&text, self.folder.join(stale::KEPT)).context("cannot keep the profile as text")?;
            }
        }
        Ok(profiles)
    }

    fn check(&self, least: f64) -> anyhow::Result<ExitCode> {
        let kept = stale::read(&self.folder.join(stale::KEPT))?;
        let mut steps = Steps::of(3);
        self.profile(&self.build(&mut steps)?, 1, &mut steps)?;
        let same = 100.0 * stale::overlap(&kept, &stale::read(&self.folder.join(stale::NEW))?);
        let said = format!("{same:.1} % of the profile is the same as of what runs now");
        Ok(if same < least {
            say!("stale: {said}, less than {least} %: make it again with `hbbp pgo`, without --check");
            ExitCode::from(STALE)
        } else {
            say!("up to date: {said}");
            ExitCode::SUCCESS
        })
    }

    /// Records the program until the numbers are as good as was asked for.
    fn record(&self, run: &Run, name: &str) -> anyhow::Result<PathBuf> {
        let recording = self.folder.join(name);
        remove_if_there(&recording)?;
        let mut record = tasks::own_command()?;
        record.arg("record").args(["--overhead", &self.args.overhead.to_string()]);
        record.args(["--precision", &self.args.precision.to_string(), "-o"]).arg(&recording).arg("--");
        let output = tasks::run_log(&self.folder);
        record.args(run.words(&run.binary, &output));
        let done = own_step("record", &mut record, &["after "], &self.folder);
        done.with_context(|| match tail(&output, 0) {
            nothing if nothing.is_empty() => "the program printed nothing".to_owned(),
            printed => format!("the program printed:\n{printed}"),
        })?;
        Ok(recording)
    }

    /// A build with these profiles, and the name of its folder.
    fn stage<'a>(&'a self, name: &str, profiles: &'a [(Kind, PathBuf)]) -> Stage<'a> {
        Stage { shared: &self.folder, folder: self.folder.join(name), profiles, relocations: self.args.bolt }
    }

    fn exported(&self, format: &str, recording: &Path, binary: &Path, output: &Path) -> anyhow::Result<Command> {
        let mut export = tasks::own_command()?;
        export.args(["export", "--format", format]).arg(recording).arg("--binary").arg(binary).arg("-o").arg(output);
        Ok(export)
    }

    /// The new program with its code laid out by BOLT.
    fn bolted(&self, bolt: &Path, optimized: &Run) -> anyhow::Result<PathBuf> {
        let recording = self.record(optimized, "optimized.data")?;
        let data = self.folder.join("profile.fdata");
        let mut export = self.exported("bolt", &recording, &optimized.binary, &data)?;
        own_step("export", &mut export, &["profile of"], &self.folder)?;
        let folder = self.folder.join("bolt");
        fs::create_dir_all(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let bolted = folder.join(optimized.binary.file_name().unwrap_or_default());
        let mut layout = Command::new(bolt);
        layout.arg(&optimized.binary).arg("-o").arg(&bolted).arg(format!("-data={}", data.display())).args([
            "-reorder-blocks=ext-tsp",
            "-reorder-functions=cdsort",
            "-split-functions",
            "-split-all-cold",
        ]);
        logged(&mut layout, &self.folder.join("bolt.log"), "llvm-bolt")?;
        Ok(bolted)
    }

    /// A copy of a program in a folder of its own, under its own name.
    fn kept(&self, program: &Path, folder: &str) -> anyhow::Result<PathBuf> {
        let Some(name) = program.file_name() else { bail!("{} is no file", program.display()) };
        let folder = self.folder.join(folder);
        let copy = folder.join(name);
        let copied = fs::create_dir_all(&folder).and_then(|()| fs::copy(program, &copy));
        copied.with_context(|| format!("cannot copy {} to {}", program.display(), copy.display()))?;
        Ok(copy)
    }
}
