//! `hbbp control`: the switch of a recording that is being made.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Subcommand;
use control::{Connection, ENVIRONMENT, Message, Order, Recordings, State, named_folder};
use serde_json::json;

use crate::output::{Align, Table, terminal_width, write_to};
use crate::usage::wrong_usage;

/// Switch a recording that is being made on or off, or mark a phase of it
///
/// What is said holds for all processes of the recording. Programs can say the same of themselves: with hbbp.h in C and C++, with
/// the crate hbbp-control in Rust. The latest word counts. Marks become phases: `hbbp mix --rows phase`.
///
/// Recordings of the same user are found by themselves. Where that is not possible, as from another container, give
/// both `hbbp record` and `hbbp control` the same folder in the environment variable HBBP_CONTROL.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The recording, by the process id of its `hbbp record`, if there are several
    #[arg(short, long, value_name = "PID", global = true)]
    recorder: Option<u32>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Record from now on
    On,
    /// Record nothing from now on
    Off,
    /// Begin a phase; it lasts until the next mark
    Mark {
        /// Its name, of at most 100 bytes; an empty one ends the phase before
        name: String,
    },
    /// List the recordings that are being made
    Status {
        /// Text, or JSON (`hbbp-control/1`)
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    #[value(alias = "text")]
    Table,
    Json,
}

const EXAMPLES: &str = "\
Examples:
  hbbp record --off -- ./server               nothing is recorded at first
  hbbp control on                             from now on it is
  hbbp control mark load && ./load-test; hbbp control mark ''
                                              what runs meanwhile is the phase `load`
  hbbp control off                            from now on nothing is recorded
  hbbp control status                         which recordings are being made";

/// How long a recorder may take to answer: it reads messages twice a second.
const PATIENCE: Duration = Duration::from_secs(5);

/// A recording that is being made.
struct Found {
    /// The pid of its recorder, where its folder is not of the user's choice.
    recorder: Option<u32>,
    folder: PathBuf,
}

/// Says it, and waits until it was heard.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.recorder.is_some() && named_folder().is_some() {
        wrong_usage::<Args>("hbbp control", format!("--recorder and {ENVIRONMENT} both say which recording is meant"));
    }
    let message = match &args.action {
        Action::On => Message::of_all(Order::Start, ""),
        Action::Off => Message::of_all(Order::Stop, ""),
        Action::Mark { name } if name.len() > Message::MOST_NAME => {
            bail!("a name has at most {} bytes, this one has {}", Message::MOST_NAME, name.len())
        }
        Action::Mark { name } => Message::of_all(Order::Mark, name),
        Action::Status { format } => return status(*format, &found(args.recorder)?),
    };
    let recordings = found(args.recorder)?;
    let recording = match recordings.as_slice() {
        [] => bail!("{}", nothing(args.recorder)),
        [one] => one,
        several => {
            let pids = several.iter().filter_map(|found| found.recorder).map(|pid| pid.to_string());
            let pids = pids.collect::<Vec<_>>().join(", ");
            bail!(
                "several recordings are being made, by {pids}: choose one with --recorder (`hbbp control status` lists them)"
            )
        }
    };
    let name = recording.folder.display();
    let connection = Connection::open(&recording.folder).with_context(|| format!("cannot speak to {name}"))?;
    let read = |connection: &Connection| connection.state().map(|state| state.read);
    let Some(before) = read(&connection) else { bail!("{name}: what the recorder says cannot be read") };
    if !connection.send(&message) {
        bail!("{name}: the recorder has not read what was said before; try again");
    }
    let sent = Instant::now();
    while read(&connection).is_none_or(|read| read == before) {
        if !connection.is_alive() {
            bail!("{name}: the recording has ended");
        }
        if sent.elapsed() > PATIENCE {
            bail!("{name}: the recorder does not answer; is it stopped?");
        }
        sleep(Duration::from_millis(10));
    }
    Ok(ExitCode::SUCCESS)
}

fn nothing(recorder: Option<u32>) -> String {
    let by = recorder.map_or(String::new(), |pid| format!(" by process {pid}"));
    let place = match named_folder() {
        Some(folder) => format!("in {} ({ENVIRONMENT})", folder.display()),
        None => format!("of this user ({})", Recordings::of_user().folder().display()),
    };
    format!("no recording is being made{by} {place}")
}

/// The recordings that are meant.
fn found(recorder: Option<u32>) -> anyhow::Result<Vec<Found>> {
    if let Some(folder) = named_folder() {
        return match Connection::open(&folder) {
            Ok(_) => Ok(vec![Found { recorder: None, folder }]),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error).with_context(|| format!("cannot speak to {}", folder.display())),
        };
    }
    let recordings = Recordings::of_user();
    let alive = recordings.recorders().into_iter().filter(|&pid| recorder.is_none_or(|wanted| wanted == pid));
    Ok(alive.map(|pid| Found { recorder: Some(pid), folder: recordings.of_recorder(pid) }).collect())
}

fn status(format: Format, recordings: &[Found]) -> anyhow::Result<ExitCode> {
    let described: Vec<(Option<u32>, State, String)> = recordings
        .iter()
        .filter_map(|found| {
            let state = Connection::open(&found.folder).ok()?.state()?;
            let command = found.recorder.map_or(found.folder.display().to_string(), command_line);
            Some((found.recorder, state, command))
        })
        .collect();
    write_to(None, |out| {
        match format {
            Format::Json => {
                let rows = described.iter().map(
                    |(recorder, state, command)| json!({"recorder": recorder, "on": state.on, "command": command}),
                );
                let rows: Vec<_> = rows.collect();
                writeln!(out, "{}", json!({"schema": "hbbp-control/1", "recordings": rows}))?;
            }
            Format::Table if described.is_empty() => writeln!(out, "{}", nothing(None))?,
            Format::Table => {
                let titles = [("recorder", Align::Right), ("is", Align::Left), ("command", Align::Left)];
                let mut table = Table::new(titles.map(|(title, align)| (title.to_owned(), align)).to_vec());
                for (recorder, state, command) in &described {
                    let recorder = recorder.map_or("-".to_owned(), |pid| pid.to_string());
                    table.row(vec![recorder, if state.on { "on" } else { "off" }.to_owned(), command.clone()]);
                }
                table.print(out, terminal_width())?;
            }
        }
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The command line of a process.
fn command_line(pid: u32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = words.split(|&byte| byte == 0).map(String::from_utf8_lossy).collect();
    words.join(" ").trim_end().to_owned()
}
