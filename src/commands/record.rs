//! `hbbp record`: from a running program to a recording.

mod command_output;
mod precision;
mod rotation;
mod sampling;
#[cfg_attr(not(feature = "simulated-pmu"), path = "record/no_simulation.rs")]
mod simulation;
mod tracing;

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::stderr;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use clap::ArgAction;
use collector::CommandStatus;
use collector::machine::Machine;
use collector::plan::Options;
use collector::plan::request::{Request, Target};
use collector::session::{Outcome, Session, Summary};
use collector::tracer::{TracerChoice, TracerOptions};
use collector::{
    CommandError, ControlGroup, ControlGroupError, KernelOpener, Stop, allocate_in_large_steps, is_standard_output,
    processes_named, raise_limits,
};
use perfdata::Recording;
use reports::nearest::nearest;

use crate::cache::Searches;
use crate::calibration;
pub use crate::commands::record::command_output::{CommandOutput, OpenedOutput};
use crate::commands::record::precision::Goal;
pub use crate::commands::record::precision::Wanted;
use crate::commands::record::rotation::RotationArgs;
pub use crate::commands::record::sampling::{SAMPLING, SamplingArgs};
use crate::commands::record::simulation::{SimulationArgs, TruthFile};
use crate::output;

/// Record a command, a process, a container or the whole machine
///
/// Without options, the events are the best the machine has (see `hbbp doctor`), and branches are traced in software where the
/// hardware records none. Whatever is weaker than it could be is printed and written into the recording. The exit status is that of the
/// command: 128 plus the signal's number if a signal killed it, 127 or 126 if it cannot be run, and 1
/// in place of 0 if the recording could not be written to its end.
#[derive(clap::Args, Debug)]
#[command(after_help = [EXAMPLES, simulation::EXAMPLE, MORE_EXAMPLES].concat())]
#[command(mut_arg("cpus", |cpus| cpus.short('C').help(CPUS)))]
#[command(mut_arg("no_inherit", |no_inherit| no_inherit.short('i')), mut_arg("no_copies", |no_copies| no_copies.short('N')))]
pub struct Args {
    /// File to write, or - for standard output; an existing one is renamed to FILE.old
    #[arg(short, long, value_name = "FILE", default_value = "hbbp.data")]
    output: PathBuf,
    /// Record running processes, with all their threads and the processes that they start: by number, or all of a name
    #[arg(short, long, value_name = "PID|NAME", value_delimiter = ',', conflicts_with_all = ["tid", "all_cpus"])]
    pid: Vec<String>,
    /// Record running threads
    #[arg(short, long, value_name = "TID", value_delimiter = ',', conflicts_with = "all_cpus")]
    tid: Vec<u32>,
    /// Record everything that runs
    #[arg(short, long)]
    all_cpus: bool,
    /// Record what runs in a control group (a container, a service), and what comes into it: by its folder, its path in
    /// the hierarchy, or a name that no other has, such as nginx.service, nginx, or the id of a container. Needs the rights of -a
    #[arg(long, value_name = "GROUP", conflicts_with_all = ["pid", "tid", "all_cpus"])]
    cgroup: Option<OsString>,
    /// Go on until the largest rows of the instruction mix are right within so many percent by chance (95 %): a command is run again and
    /// again, for five minutes at most, and what runs already is recorded on. How far the numbers got is printed
    #[arg(long, value_name = "PCT", conflicts_with_all = ["off", "tid", "no_inherit"])]
    precision: Option<Wanted>,
    #[command(flatten)]
    rotation: RotationArgs,
    #[command(flatten)]
    sampling: SamplingArgs,
    /// Search all code anew before an agent is put in, and keep nothing: else what was found is kept in ~/.cache/hbbp for the next recording
    #[arg(long)]
    no_cache: bool,
    /// Put the agent into the processes of -p, which run already, and take it out again at the end
    #[arg(long)]
    inject: bool,
    /// Print errors only
    #[arg(short, long, action = ArgAction::SetTrue)]
    quiet: bool,
    /// Say more of what the tracer did: how often it had to evaluate, why bursts ended, what was not interpreted
    #[arg(short, long, action = ArgAction::SetTrue, conflicts_with = "quiet")]
    verbose: bool,
    /// Command to record; with -p, -t, --cgroup or -a, the recording lasts as long as this command runs
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    #[command(flatten)]
    simulation: SimulationArgs,
}

/// No process has this name.
#[derive(Debug)]
struct NoSuchProcess(String);

impl fmt::Display for NoSuchProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.0;
        write!(f, "there is no process called {name:?}: start it by `hbbp record -- {name}`, or name one by its number")
    }
}

impl std::error::Error for NoSuchProcess {}

/// The control group that is meant is not there, or cannot be told.
#[derive(Debug)]
struct NoSuchGroup(ControlGroupError);

impl fmt::Display for NoSuchGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = &self.0;
        match error {
            ControlGroupError::NoSuch { name, existing, .. } => match nearest(name, existing).as_slice() {
                [] => write!(f, "{error}: `systemd-cgls` and /proc/PID/cgroup say which there are"),
                names => write!(f, "{error}: did you mean {}?", names.join(" or ")),
            },
            _ => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for NoSuchGroup {}

const CPUS: &str =
    "Record on these CPUs only, such as 0-3,8; without a command, -p, -t or --cgroup, everything that runs there";

const EXAMPLES: &str = "\
Examples:
  hbbp record -- ./server --once               the best events this machine has
  hbbp record -p 1234 --duration 30            a running process and what it starts, for 30 seconds
  hbbp record -p nginx --duration 30           all processes of that name
  hbbp record -p 1234 --inject --duration 30   the same, its bursts taken by an agent inside it
  hbbp record -a -o all.data -- sleep 10       everything that runs meanwhile
  hbbp record --cgroup nginx.service -- sleep 60
                                               what runs in a service or a container
  hbbp record -o - -- ./job | hbbp mix -i -    no file; the command prints to stderr
  hbbp record -a --rotate 60s --keep 24        on and on, in files of a minute; 24 are kept
  hbbp record --tracer lookahead --overhead 5 -- make
                                               branches traced in software, in 5 % of CPU time
";
const MORE_EXAMPLES: &str = "  hbbp record --ebs-event cycles:u --lbr-event none -F 999 -- make";

/// Records, and returns what the process should exit with.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    allocate_in_large_steps();
    let (quiet, verbose) = (args.quiet, args.verbose);
    let say = speaker(quiet);
    raise_limits();
    let machine = Machine::read(Path::new("/"), &mut KernelOpener);
    let (truth, wanted) = (args.simulation.truth.clone(), args.precision);
    let no_cache = args.no_cache;
    let mut request = match request(args, &say) {
        Ok(request) => request,
        Err(error) => return Ok(usage(&error)),
    };
    request.calibration = calibration::of_machine(&machine, &say);
    let goal = match wanted.map(|wanted| set_goal(wanted, &mut request, Vec::new())).transpose() {
        Ok(goal) => goal,
        Err(error) => return not_begun(error),
    };
    let mut watch = None;
    let truth = truth.map(TruthFile::open).transpose()?;
    let mut said = Vec::new();
    let result = with_searches(no_cache, &mut request, |request| {
        let mut session = Session::prepare(request, &machine)?;
        said.extend_from_slice(session.degradations());
        said.iter().for_each(|sentence| say(sentence));
        if session.traces_branches() && request.tracer.kind == TracerChoice::Auto {
            let (percent, credit) = (request.tracer.overhead, tracing::on_top(request.start_credit()));
            say(&format!("branches are traced in software, at most {percent} % of CPU time{credit}"));
        }
        watch = goal.map(|goal| goal.watch(&mut session, say));
        session.run(&mut |text| say(text))
    });
    match result {
        Ok(outcome) => {
            let late = outcome.summary.metadata.degradations.iter().filter(|sentence| !said.contains(sentence));
            late.for_each(|sentence| say(sentence));
            if !quiet {
                closing_lines(&outcome.summary, verbose);
            }
            watch.filter(|_| !quiet).into_iter().for_each(|watch| output::say(watch.conclude()));
            let code = exit_code(&outcome);
            match (truth, &outcome.summary.simulation) {
                (Some(file), Some(done)) => {
                    if let Err(error) = file.write(done) {
                        output::say(reports::sentence(&error));
                        return Ok(ExitCode::from(code.max(1)));
                    }
                }
                (Some(file), None) => no_exact_counts(file),
                (None, _) => {}
            }
            Ok(ExitCode::from(code))
        }
        Err(error) => {
            output::say(error.to_string());
            match truth {
                Some(file) if error.command_ran() => no_exact_counts(file),
                Some(file) => file.abandon(),
                None => {}
            }
            Ok(ExitCode::from(error.exit_code()))
        }
    }
}

/// What was counted is of a part of the run: it is not written, and what was in the file is of another run.
fn no_exact_counts(file: TruthFile) {
    say!("{}: no exact counts, for they would be of a part of the run only", file.name());
    file.empty();
}

/// Records with what earlier recordings found in the code of files, and keeps what this one finds.
fn with_searches<T>(no_cache: bool, request: &mut Request, record: impl FnOnce(&Request) -> T) -> T {
    let searches = (!no_cache).then(Searches::of_user).flatten();
    request.searched = Arc::new(searches.as_ref().map(Searches::known).unwrap_or_default());
    let recorded = record(request);
    searches.iter().for_each(|searches| searches.keep(&request.searched));
    recorded
}

/// What was recorded for a report, and what the process should exit with.
pub struct Recorded {
    /// The recording.
    pub recording: Recording,
    /// The status of the command, as `hbbp record` passes it on.
    pub status: u8,
}

/// How a command is recorded for a report.
pub struct Manner<'a> {
    /// Where its standard output goes.
    pub stdout: Option<&'a CommandOutput>,
    /// Whether only errors are printed.
    pub quiet: bool,
    /// Whether nothing is kept for later recordings.
    pub no_cache: bool,
}

/// Records a command as `hbbp record -- COMMAND` does, for a report that follows on standard output. The recording lives in a
/// file that has no name any more.
pub fn record_for_analysis(
    command: &[OsString],
    sampling: &SamplingArgs,
    manner: Manner<'_>,
    precision: Option<(Wanted, Vec<OsString>)>,
) -> anyhow::Result<Recorded> {
    let Manner { stdout, quiet, no_cache } = manner;
    let say = speaker(quiet);
    let folder = tempfile::Builder::new().prefix("hbbp-").tempdir().context("a folder for the recording")?;
    let output = folder.path().join("hbbp.data");
    let mut stdout = OpenedOutput::open(stdout)?;
    let mut request = Request {
        command: command.to_vec(),
        stdout: Some(stdout.descriptor()),
        output: output.clone(),
        cmdline: cmdline(),
        ..Request::default()
    };
    sampling.ask(&mut request)?;
    raise_limits();
    let machine = Machine::read(Path::new("/"), &mut KernelOpener);
    request.calibration = calibration::of_machine(&machine, &say);
    let goal = precision.map(|(wanted, options)| set_goal(wanted, &mut request, options)).transpose()?;
    let (outcome, watch) = with_searches(no_cache, &mut request, |request| {
        let mut session = Session::prepare(request, &machine)?;
        stdout.begin();
        let watch = goal.map(|goal| goal.watch(&mut session, say));
        anyhow::Ok((session.run(&mut |text| say(text))?, watch))
    })?;
    stdout.end();
    watch.into_iter().for_each(|watch| say(&watch.conclude()));
    if let Some(status) = outcome.command
        && status != CommandStatus::Exited(0)
    {
        say(&format!("the command ended with {status}"));
    }
    Ok(Recorded { recording: Recording::open(&output)?, status: exit_code(&outcome) })
}

/// What hears what is not an error.
fn speaker(quiet: bool) -> impl Fn(&str) + Copy + Send + Sync + 'static {
    move |text| {
        if !quiet {
            output::say(text);
        }
    }
}

/// The command of a request becomes one that is run again until its numbers are good enough. `options`: those of `mix`.
fn set_goal(wanted: Wanted, request: &mut Request, options: Vec<OsString>) -> anyhow::Result<Goal> {
    let goal = Goal::of(request, wanted, options)?;
    request.command = goal.command(&request.command)?;
    Ok(goal)
}

/// What the process exits with if it cannot begin: as a shell does, if there is no such command.
fn not_begun(error: anyhow::Error) -> anyhow::Result<ExitCode> {
    let code = error.downcast_ref::<CommandError>().ok_or_else(|| anyhow!("{error:#}"))?.exit_code();
    output::say(error.to_string());
    Ok(ExitCode::from(code))
}

/// What the process exits with if nothing can be asked for: that is wrong usage, unless a process is missing.
fn usage(error: &anyhow::Error) -> ExitCode {
    output::say(error.to_string());
    if error.is::<NoSuchProcess>() || error.is::<NoSuchGroup>() { ExitCode::FAILURE } else { ExitCode::from(2) }
}

fn request(args: Args, say: &dyn Fn(&str)) -> anyhow::Result<Request> {
    if is_standard_output(&args.output) && args.simulation.writes_to_standard_output() {
        bail!("recording and exact counts cannot both go to standard output");
    }
    if args.precision.is_some() && is_standard_output(&args.output) {
        bail!("--precision reads the recording while it is written: it needs a file");
    }
    if args.precision.is_some()
        && !args.command.is_empty()
        && (args.all_cpus || args.cgroup.is_some() || !args.pid.is_empty())
    {
        bail!("--precision decides when a recording of what runs already ends: it cannot be a command that decides");
    }
    let rotation = args.rotation.rotation();
    if rotation.is_some() && args.precision.is_some() {
        bail!("--precision reads one recording while it is written: it cannot be with --rotate");
    }
    let target = if let Some(word) = &args.cgroup {
        Target::Group(control_group(word, say)?)
    } else if args.all_cpus
        || args.sampling.cpus.is_some() && args.command.is_empty() && args.pid.is_empty() && args.tid.is_empty()
    {
        Target::System
    } else if !args.pid.is_empty() {
        let named = args.pid.iter().map(|word| processes(word, say)).collect::<Result<Vec<_>, _>>()?;
        Target::Processes(named.concat().into_iter().collect::<BTreeSet<u32>>().into_iter().collect())
    } else if !args.tid.is_empty() {
        Target::Threads(args.tid)
    } else {
        Target::Command
    };
    let mut request = Request {
        options: Options { system_wide: matches!(target, Target::System | Target::Group(_)), ..Options::default() },
        tracer: TracerOptions { inject: args.inject, ..TracerOptions::default() },
        target,
        command: args.command,
        stdout: (is_standard_output(&args.output) || args.simulation.writes_to_standard_output())
            .then(|| stderr().as_raw_fd()),
        output: args.output,
        rotation,
        cmdline: cmdline(),
        ..Request::default()
    };
    args.sampling.ask(&mut request)?;
    args.simulation.ask(request.simulation.as_mut())?;
    Ok(request)
}

/// The command line, for the recording.
fn cmdline() -> Vec<String> {
    env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// The control group that a word names.
fn control_group(word: &OsStr, say: &dyn Fn(&str)) -> anyhow::Result<ControlGroup> {
    let group = ControlGroup::find(word).map_err(NoSuchGroup)?;
    if Path::new(word) != Path::new(group.name()) {
        say(&format!("the control group is {}", group.name()));
    }
    Ok(group)
}

/// The processes that a word of `-p` names: a number, or the name of all of them.
fn processes(word: &str, say: &dyn Fn(&str)) -> anyhow::Result<Vec<u32>> {
    if let Ok(pid) = word.parse() {
        return Ok(vec![pid]);
    }
    let found = processes_named(word);
    let numbers: Vec<String> = found.iter().map(u32::to_string).collect();
    match numbers.as_slice() {
        [] => bail!(NoSuchProcess(word.to_owned())),
        [one] => say(&format!("{word} is process {one}")),
        all => say(&format!("{word} is {} processes, and all are recorded: {}", all.len(), all.join(", "))),
    }
    Ok(found)
}

/// The command's, unless it was stopped because the time was up.
fn exit_code(outcome: &Outcome) -> u8 {
    match (outcome.stop, outcome.command) {
        (Stop::Duration | Stop::TargetsEnded, _) | (_, None) => 0,
        (_, Some(status)) => status.exit_code(),
    }
}

fn closing_lines(summary: &Summary, verbose: bool) {
    // Of several files, each has been named.
    if summary.metadata.file.is_none() {
        lines_of_file(summary);
    }
    if let Some(tracer) = &summary.tracer {
        tracing::lines(tracer, summary.metadata.idle(), verbose).iter().for_each(output::say);
    }
    if let Some(done) = &summary.simulation {
        output::say(simulation::line(done));
    }
}

fn lines_of_file(summary: &Summary) {
    let metadata = &summary.metadata;
    let counts = &summary.counts;
    output::say(summary.line());
    if counts.before_first_burst > 0 {
        say!("  {} more before the first burst are left out", counts.before_first_burst);
    }
    if counts.switched_off > 0 {
        say!("  {} more were made while recording was switched off, and are left out", counts.switched_off);
    }
    if metadata.events.len() > 1 {
        for event in &metadata.events {
            say!("  {}: {} samples", event.name, event.samples.unwrap_or(0));
        }
    }
    if counts.phase_marks > 0 {
        say!("{} marks of phases (hbbp mix --rows phase)", counts.phase_marks);
    }
    if counts.lost + counts.lost_by_hardware > 0 {
        say!(
            "{} records lost, {} by the hardware: use larger rings (-m) or longer periods",
            counts.lost + counts.lost_by_hardware,
            counts.lost_by_hardware
        );
    }
    if counts.throttled > 0 {
        say!("throttled {} times: the kernel found the sampling too costly; use longer periods", counts.throttled);
    }
}
