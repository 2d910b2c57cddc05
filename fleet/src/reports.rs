//! `hbbp-fleet mix`, `report` and so on: `hbbp` makes its reports of a slice, which is written for it as a merged file.

use std::ffi::OsString;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use analyzer::flow::Flow;
use anyhow::Context;

use crate::cluster::ClusterArgs;
use crate::engine::Engine;
use crate::selection::{Selection, Slices, sum};
use crate::store::Store;

/// Write a slice as a file that `hbbp` reads like one of `hbbp merge`
#[derive(clap::Args)]
pub struct SliceArgs {
    /// Folder of the store
    store: PathBuf,

    #[command(flatten)]
    selection: Selection,

    #[command(flatten)]
    cluster: ClusterArgs,

    /// File to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Write also what each sixteenth of the recordings has: with it, reports have their ±
    #[arg(long)]
    slices: bool,
}

/// What is handed on.
#[derive(clap::Args)]
pub struct Args {
    /// Folder of the store
    store: PathBuf,

    #[command(flatten)]
    selection: Selection,

    #[command(flatten)]
    cluster: ClusterArgs,

    /// Options of the same command of `hbbp`, from the first on that is none of the above
    #[arg(value_name = "OPTIONS", trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<OsString>,
}

/// The same of two slices.
#[derive(clap::Args)]
#[command(after_help = DIFF_EXAMPLES)]
pub struct DiffArgs {
    /// Folder of the store
    store: PathBuf,

    #[command(flatten)]
    selection: Selection,

    #[command(flatten)]
    cluster: ClusterArgs,

    /// What is different in the slice before: NAME=VALUE, several with commas between them; names are those of the options above
    #[arg(long, value_name = "NAME=VALUE,..", value_parser = overriding)]
    before: Selection,

    /// What is different in the slice after
    #[arg(long, value_name = "NAME=VALUE,..", value_parser = overriding)]
    after: Selection,

    /// Options of `hbbp diff`, from the first on that is none of the above
    #[arg(value_name = "OPTIONS", trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<OsString>,
}

/// Where `hbbp` finds the programs.
#[derive(clap::Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct Programs {
    /// As of `hbbp mix`: read this binary in place of the recorded one
    #[arg(long, value_name = "[RECORDED=]FILE")]
    binary: Vec<PathBuf>,

    /// As of `hbbp mix`: look for binaries under this directory in place of under /
    #[arg(long, value_name = "DIR")]
    symfs: Option<PathBuf>,
}

const DIFF_EXAMPLES: &str = "\
Examples:
  hbbp-fleet diff profiles --service web --before version=4.1 --after version=4.2
  hbbp-fleet diff profiles --service web --before since=14d,until=7d --after since=7d --rows mnemonic";

/// Writes a slice.
pub async fn slice(args: &SliceArgs) -> anyhow::Result<()> {
    let slices = if args.slices { Slices::Apart } else { Slices::Together };
    write(&args.store, (&args.selection, slices), &args.cluster, &args.output).await
}

/// Has `hbbp` make its report of a slice.
pub async fn report(command: &str, args: &Args) -> anyhow::Result<ExitCode> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join(format!("{}.flow", args.selection.title()));
    // Compiler profiles have no ±.
    let slices = if command == "export" { Slices::Together } else { Slices::Apart };
    write(&args.store, (&args.selection, slices), &args.cluster, &file).await?;
    hand_on(command, &[file], &args.options)
}

/// Has `hbbp` compare two slices.
pub async fn diff(args: &DiffArgs) -> anyhow::Result<ExitCode> {
    let folder = tempfile::tempdir()?;
    let mut files = Vec::new();
    for (side, other) in [("before", &args.before), ("after", &args.after)] {
        let selection = args.selection.overridden_by(other);
        // Titles of the two may be the same.
        let folder = folder.path().join(side);
        std::fs::create_dir(&folder)?;
        let file = folder.join(format!("{}.flow", selection.title()));
        write(&args.store, (&selection, Slices::Apart), &args.cluster, &file).await?;
        files.push(file);
    }
    hand_on("diff", &files, &args.options)
}

async fn write(
    store: &Path,
    (selection, slices): (&Selection, Slices),
    cluster: &ClusterArgs,
    file: &Path,
) -> anyhow::Result<()> {
    let engine = Engine::of(&Store::open(store)?).await?.on(cluster.cluster()?);
    let (flow, notes) = sum(&engine, selection, slices).await?;
    notes.iter().for_each(|note| crate::output::say(note));
    write_flow(&flow, file)
}

/// Writes a slice as a merged file.
///
/// # Errors
/// The file cannot be written.
pub fn write_flow(flow: &Flow, file: &Path) -> anyhow::Result<()> {
    let name = || file.display().to_string();
    let mut out = BufWriter::new(File::create(file).with_context(name)?);
    flow.write_json(&mut out).with_context(name)?;
    out.into_inner().map_err(std::io::IntoInnerError::into_error).with_context(name)?;
    Ok(())
}

fn hand_on(command: &str, files: &[PathBuf], options: &[OsString]) -> anyhow::Result<ExitCode> {
    let mut hbbp = hbbp();
    let status = hbbp.arg(command).args(files).args(options).status().map_err(|error| is_not_there(&hbbp, error))?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

/// `hbbp` was started, and makes no report.
#[derive(Debug)]
pub struct HasFailed(String);

impl std::fmt::Display for HasFailed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for HasFailed {}

/// Has `hbbp` write a report of slices into a file, and returns what it says beside it, line by line.
///
/// # Errors
/// It cannot be started, or makes no report.
pub fn make(
    command: &str,
    slices: &[&Path],
    options: &[&str],
    programs: &Programs,
    report: &Path,
) -> anyhow::Result<Vec<String>> {
    let mut hbbp = hbbp();
    hbbp.arg(command).args(slices).args(options).args(["--color", "never"]);
    hbbp.args(programs.binary.iter().flat_map(|binary| ["--binary".as_ref(), binary.as_os_str()]));
    hbbp.args(programs.symfs.iter().flat_map(|folder| ["--symfs".as_ref(), folder.as_os_str()]));
    let output = hbbp.stdin(Stdio::null()).stdout(File::create(report)?).stderr(Stdio::piped()).output();
    let output = output.map_err(|error| is_not_there(&hbbp, error))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let said = said.trim_end().trim_start_matches("hbbp: ");
        let failed = format!("`hbbp {command}` has failed ({}): {said}", output.status);
        return Err(HasFailed(failed).into());
    }
    Ok(said.lines().map(|line| line.trim_start_matches("hbbp: ").to_owned()).collect())
}

/// The command that makes reports: what `HBBP` names, what is beside this program, or what is in PATH.
fn hbbp() -> Command {
    let beside = std::env::current_exe().ok().map(|path| path.with_file_name("hbbp")).filter(|path| path.is_file());
    Command::new(std::env::var_os("HBBP").map(PathBuf::from).or(beside).unwrap_or_else(|| "hbbp".into()))
}

/// Why it cannot be started.
fn is_not_there(hbbp: &Command, error: std::io::Error) -> anyhow::Error {
    let program = Path::new(hbbp.get_program()).display();
    if error.kind() == std::io::ErrorKind::NotFound {
        anyhow::anyhow!(
            "{program} is neither beside this program nor in PATH: install it, or write the slice with `hbbp-fleet slice`"
        )
    } else {
        anyhow::Error::new(error).context(program.to_string())
    }
}

/// `service=web,version=4.2`
fn overriding(text: &str) -> Result<Selection, String> {
    let mut selection = Selection::default();
    for pair in text.split(',') {
        let (name, value) = pair.split_once('=').ok_or(format!("expected NAME=VALUE in place of {pair:?}"))?;
        let value = || Some(value.to_owned());
        match name {
            "service" => selection.service = value(),
            "version" => selection.version = value(),
            "host" => selection.host = value(),
            "build" => selection.build = value(),
            "since" => selection.since = value().map(|text| text.parse()).transpose()?,
            "until" => selection.until = value().map(|text| text.parse()).transpose()?,
            _ => return Err(format!("there is no {name}: service, version, host, since, until, build")),
        }
    }
    Ok(selection)
}
