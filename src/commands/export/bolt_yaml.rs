//! Profiles with hashes of blocks, by which BOLT finds them again in another build.
//!
//! `llvm-bolt` makes them: it hashes what LLVM calls instructions and numbers registers ([decision
//! 044](../../../docs/decisions/044-hashes-by-llvm-bolt.md)).

mod counts;

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, bail};

use crate::output::profile::{self, Profiled};
use crate::output::{self, printable, share, write_to};
use crate::search_path;
use counts::Counts;

/// Lines of what `llvm-bolt` says that an error shows.
const SHOWN: usize = 8;
/// Functions that a sentence names.
const NAMED: usize = 3;
/// The first version of BOLT that hashes blocks.
const FIRST: u32 = 17;
const LATER: &str = "install a later one, or use --format bolt";

/// Writes the profile. What is not in it is said on standard error.
pub fn write(profiled: &Profiled<'_>, output: Option<&Path>) -> anyhow::Result<()> {
    let bolt = Bolt::find()?;
    let binary = &profiled.code.binary;
    let name = binary.file.display();
    if binary.is_recorded {
        bail!("{name} has no file, which llvm-bolt reads: name it with --binary");
    }
    if binary.image.is_stripped() {
        bail!(
            "{name} has no symbols, and BOLT knows functions of other builds by their names: give --binary the file as it was before it was stripped"
        );
    }
    let folder = tempfile::Builder::new()
        .prefix("hbbp-bolt-")
        .tempdir()
        .context("cannot make a folder for what llvm-bolt reads and writes")?;
    let [given, made] = ["given.fdata", "made.yaml"].map(|name| folder.path().join(name));
    let notes = write_to(Some(&given), |out| Ok(profile::bolt(profiled, out)?))?;
    notes.iter().for_each(output::say);
    // BOLT writes down what the program is called: its own name, wherever it is.
    let place = folder.path().join("program");
    fs::create_dir(&place).with_context(|| format!("cannot make {}", place.display()))?;
    let base = binary.file.file_name().unwrap_or("program".as_ref());
    let program = binary.place.canonicalize().with_context(|| format!("cannot find {}", binary.place.display()))?;
    symlink(program, place.join(base)).with_context(|| format!("cannot make a link in {}", place.display()))?;
    let mut command = Command::new(&bolt.file);
    command.current_dir(&place).args(["-o", "/dev/null", "-data=../given.fdata", "-w", "../made.yaml", "--"]).arg(base);
    let done = output_of(&mut command)?;
    if !done.status.success() || !made.is_file() {
        bail!("{bolt} makes no profile of {name} ({}):\n{}", done.status, end_of(&done));
    }
    let notes = bolt.check(&counts(&given, Counts::of_fdata)?, &counts(&made, Counts::of_yaml)?, &name.to_string())?;
    notes.iter().for_each(output::say);
    write_to(output, |out| Ok(io::copy(&mut open(&made)?, out)?))?;
    say!("blocks have hashes of {bolt}: a BOLT that is older may not read the profile");
    Ok(())
}

/// BOLT's program, and which one it is.
pub struct Bolt {
    file: PathBuf,
    /// `Debian LLVM version 19.1.7`
    version: String,
}

impl std::fmt::Display for Bolt {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} ({})", self.file.display(), self.version)
    }
}

impl Bolt {
    /// The one in PATH. Where there is none, or an old one, nothing needs to be recorded.
    pub fn find() -> anyhow::Result<Self> {
        let Some(file) = search_path::newest("llvm-bolt") else {
            bail!(
                "--format bolt-yaml has hashes of blocks that llvm-bolt makes, which is not in PATH: install BOLT {FIRST} or later (Debian: \
                 bolt-19); --format bolt needs no other program"
            )
        };
        // A relative folder in PATH is one of where `hbbp` is: `llvm-bolt` is run elsewhere.
        let file = std::path::absolute(&file).with_context(|| format!("cannot find {}", file.display()))?;
        let said = output_of(Command::new(&file).arg("--version"))?;
        let text = String::from_utf8_lossy(&said.stdout);
        let version = text.lines().find(|line| line.contains("version")).unwrap_or("of unknown version").trim();
        let bolt = Bolt { version: printable(version).into_owned(), file };
        let number =
            version.split_once("version ").and_then(|(_, number)| number.split('.').next()?.parse::<u32>().ok());
        if number.is_some_and(|number| number < FIRST) {
            bail!("{bolt} makes no hashes of blocks, as BOLT does since version {FIRST}: {LATER}");
        }
        Ok(bolt)
    }

    /// Compares what it was given with what it made. Returns what is not the same, in sentences.
    fn check(&self, given: &Counts, made: &Counts, name: &str) -> anyhow::Result<Vec<String>> {
        let (less, more) = (given.more_than(made), made.more_than(given));
        if made.total() == 0 && given.total() > 0 {
            bail!("{self} finds none of the blocks of {name} that ran: those of {}", names(&less));
        }
        if made.hashes == 0 {
            bail!("{self} makes no hashes of blocks, as BOLT does since version {FIRST}: {LATER}");
        }
        let part = |of: &[(&str, u64)]| share(of.iter().map(|(_, count)| *count as f64).sum(), given.total() as f64);
        let mut notes = Vec::new();
        if !less.is_empty() {
            notes.push(format!(
                "not in the profile: {} of the executions, in functions that llvm-bolt cannot read or sees other blocks in: {}",
                part(&less),
                names(&less)
            ));
        }
        if !more.is_empty() {
            notes.push(format!("llvm-bolt counts {} more executions: in {}", part(&more), names(&more)));
        }
        Ok(notes)
    }
}

/// The functions that differ most.
fn names(different: &[(&str, u64)]) -> String {
    let named: Vec<&str> = different.iter().take(NAMED).map(|(name, _)| *name).collect();
    let others = different.len() - named.len();
    named.join(", ") + &if others > 0 { format!(" and {others} more") } else { String::new() }
}

fn output_of(command: &mut Command) -> anyhow::Result<Output> {
    let program = command.get_program().to_owned();
    command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {}", program.display()))
}

/// What it complained about, or else the last that it said.
fn end_of(done: &Output) -> String {
    let said = [&done.stdout, &done.stderr].map(|said| String::from_utf8_lossy(said).into_owned()).join("\n");
    let lines = || said.lines().filter(|line| !line.trim().is_empty());
    let complaints: Vec<&str> = lines().filter(|line| line.to_ascii_lowercase().contains("error")).collect();
    let shown = if complaints.is_empty() { lines().collect() } else { complaints };
    let lines: Vec<_> = shown[shown.len().saturating_sub(SHOWN)..].iter().map(|line| printable(line)).collect();
    lines.join("\n")
}

fn open(file: &Path) -> anyhow::Result<BufReader<File>> {
    Ok(BufReader::new(File::open(file).with_context(|| format!("cannot read {}", file.display()))?))
}

fn counts(file: &Path, of: fn(BufReader<File>) -> io::Result<Counts>) -> anyhow::Result<Counts> {
    of(open(file)?).with_context(|| format!("cannot read {}", file.display()))
}
