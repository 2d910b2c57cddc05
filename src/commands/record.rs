//! `hbbp record`: from a running program to a recording.

mod precision;
#[cfg_attr(not(feature = "simulated-pmu"), path = "record/no_simulation.rs")]
mod simulation;
mod tracing;

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::ArgAction;
use collector::CommandStatus;
use collector::machine::Machine;
use collector::machine::cpu_list::CpuList;
use collector::plan::branch_filter::parse_branch_filter;
use collector::plan::event_spec::Levels;
use collector::plan::periods::RunTime;
use collector::plan::request::{Request, Target};
use collector::plan::{EventOption, Options};
use collector::session::{Outcome, Session, Summary};
use collector::tracer::{BurstSize, TracerChoice, TracerOptions};
use collector::{CommandError, KernelOpener, Stop, allocate_in_large_steps, is_standard_output, raise_limits};
use perfdata::Recording;

use crate::calibration;
use crate::commands::record::precision::Goal;
pub use crate::commands::record::precision::Wanted;
use crate::commands::record::simulation::{SimulationArgs, TruthFile};
use crate::output;

/// Record a program's event samples and branch stacks
///
/// Without options, the events are the best the machine has (see `hbbp doctor`), and branches are traced in software where the
/// hardware records none. Whatever is weaker than it could be is printed and written into the recording. The exit status is that of the
/// command: 128 plus the signal's number if a signal killed it, 127 or 126 if it cannot be run, and 1
/// in place of 0 if the recording could not be written to its end.
#[derive(clap::Args, Debug)]
#[command(after_help = [EXAMPLES, simulation::EXAMPLE, MORE_EXAMPLES].concat())]
pub struct Args {
    /// File to write, or - for standard output; an existing one is renamed to FILE.old
    #[arg(short, long, value_name = "FILE", default_value = "hbbp.data")]
    output: PathBuf,
    /// Record running processes, with all their threads and the processes that they start
    #[arg(short, long, value_name = "PID", value_delimiter = ',', conflicts_with_all = ["tid", "all_cpus"])]
    pid: Vec<u32>,
    /// Record running threads
    #[arg(short, long, value_name = "TID", value_delimiter = ',', conflicts_with = "all_cpus")]
    tid: Vec<u32>,
    /// Record everything that runs
    #[arg(short, long)]
    all_cpus: bool,
    /// Record on these CPUs only, such as 0-3,8; without a command, -p or -t, everything that runs there
    #[arg(short = 'C', long = "cpu", value_name = "CPUS")]
    cpus: Option<CpuList>,
    /// Stop after this time; a command is then told to end (SIGTERM)
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<Duration>,
    /// Go on until the largest rows of the instruction mix are right within so many percent by chance (95 %): a command is run again and
    /// again, for five minutes at most, and what runs already is recorded on. How far the numbers got is printed
    #[arg(long, value_name = "PCT", conflicts_with_all = ["off", "tid", "no_inherit"])]
    precision: Option<Wanted>,
    /// Begin switched off: nothing is recorded until the program or `hbbp control on` says so
    #[arg(long)]
    off: bool,
    /// Event for event-based samples (EBS), in perf's notation (cycles:pp, r00c0, cpu/event=0xc0/), or none
    #[arg(long, value_name = "EVENT")]
    ebs_event: Option<String>,
    /// Event for branch stacks, or none
    #[arg(long, value_name = "EVENT")]
    lbr_event: Option<String>,
    /// Counts between two EBS samples (nanoseconds, if the event is a clock)
    #[arg(long, value_name = "N", conflicts_with = "freq")]
    ebs_period: Option<u64>,
    /// Counts between two branch stacks
    #[arg(long, value_name = "N", conflicts_with = "freq")]
    lbr_period: Option<u64>,
    /// Samples per second of each event, instead of periods
    #[arg(short = 'F', long, value_name = "HZ")]
    freq: Option<u64>,
    /// Expected run time, which decides the periods: seconds (up to 30), minutes or long [default: as --duration, or minutes]
    #[arg(long, value_name = "TIME")]
    expect: Option<RunTime>,
    /// Record user code only
    #[arg(short, long = "user", conflicts_with = "kernel")]
    user: bool,
    /// Record kernel code only
    #[arg(short, long)]
    kernel: bool,
    /// Branches to record: any, any_call, any_ret, ind_call, ind_jmp, cond, call, stack, u, k, hv, in_tx, no_tx, abort_tx,
    /// no_cycles, no_flags, save_type
    #[arg(short = 'j', long = "branch-filter", value_name = "FILTERS")]
    branch_filter: Option<String>,
    /// Do not follow threads and processes that start later
    #[arg(short = 'i', long)]
    no_inherit: bool,
    /// Pages of the ring buffer of each CPU, a power of two
    #[arg(short, long, value_name = "PAGES")]
    mmap_pages: Option<usize>,
    /// What makes the samples: the machine, or simulated: a model of a PMU with branch records, which sees every instruction. It is slow,
    /// and not a measurement of any hardware
    #[arg(long, value_name = "PMU", default_value = "machine", value_parser = simulation::PMUS)]
    pmu: String,
    /// How to trace branches in software: agent (an interpreter follows the program's path, inside a command that is started, by its own
    /// threads), agent-check (the same, and each burst is compared with what its thread does then: slow), timer (agents without perf
    /// events and ptrace, as in containers: the dynamic loader puts them in, and timers of CPU time start the bursts), lookahead (the
    /// interpreter from outside, by stops), breakpoint (a breakpoint at every branch, slow), none, or auto (where there are no hardware
    /// branch records: agent for commands, and with --inject; lookahead for what runs already)
    #[arg(long, value_name = "HOW", default_value = "auto")]
    tracer: TracerChoice,
    /// Put the agent into the processes of -p, which run already, and take it out again at the end
    #[arg(long)]
    inject: bool,
    /// Percent of the program's CPU time that software tracing may take, with the samples beside it
    #[arg(long, value_name = "PCT", default_value_t = 1.0)]
    overhead: f64,
    /// Milliseconds that software tracing may take on top of that in the first second of a command's CPU time, so that short commands
    /// have bursts, too
    #[arg(long, value_name = "MS", value_parser = milliseconds,
        default_value_t = TracerOptions::DEFAULT_START_CREDIT.as_secs_f64() * 1e3)]
    start_credit: f64,
    /// Instructions of a burst (a traced path)
    #[arg(long, value_name = "N", conflicts_with = "depth", default_value_t = BurstSize::DEFAULT_INSTRUCTIONS)]
    burst: u64,
    /// Taken branches of a burst, instead of a number of instructions
    #[arg(long, value_name = "N")]
    depth: Option<u64>,
    /// Print errors only
    #[arg(short, long, action = ArgAction::SetTrue)]
    quiet: bool,
    /// Command to record; with -p, -t or -a, the recording lasts as long as this command runs
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    #[command(flatten)]
    simulation: SimulationArgs,
}

const EXAMPLES: &str = "\
Examples:
  hbbp record -- ./server --once               the best events this machine has
  hbbp record -p 1234 --duration 30            a running process and what it starts, for 30 seconds
  hbbp record -p 1234 --inject --duration 30   the same, its bursts taken by an agent inside it
  hbbp record -a -o all.data -- sleep 10       everything that runs meanwhile
  hbbp record -o - -- ./job | hbbp mix -i -    no file; the command prints to stderr
  hbbp record --tracer lookahead --overhead 5 -- make
                                               branches traced in software, in 5 % of CPU time
";
const MORE_EXAMPLES: &str = "  hbbp record --ebs-event cycles:u --lbr-event none -F 999 -- make";

/// Records, and returns what the process should exit with.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    allocate_in_large_steps();
    let quiet = args.quiet;
    let say = move |text: &str| {
        if !quiet {
            output::say(text);
        }
    };
    raise_limits();
    let machine = Machine::read(Path::new("/"), &mut KernelOpener);
    let (truth, wanted) = (args.simulation.truth.clone(), args.precision);
    let mut request = match request(args) {
        Ok(request) => request,
        Err(reason) => return Ok(usage(&reason.to_string())),
    };
    request.calibration = calibration::of_machine(&machine);
    let goal = match wanted.map(|wanted| set_goal(wanted, &mut request, Vec::new())).transpose() {
        Ok(goal) => goal,
        Err(error) => return not_begun(error),
    };
    let mut watch = None;
    let truth = truth.map(TruthFile::open).transpose()?;
    let mut said = Vec::new();
    let result = Session::prepare(&request, &machine).and_then(|mut session| {
        said.extend_from_slice(session.degradations());
        said.iter().for_each(|sentence| say(sentence));
        if session.traces_branches() && request.tracer.kind == TracerChoice::Auto {
            say(&format!("branches are traced in software, at most {} % of CPU time", request.tracer.overhead));
        }
        watch = goal.map(|goal| goal.watch(&mut session, say));
        session.run(&mut |text| say(text))
    });
    match result {
        Ok(outcome) => {
            let late = outcome.summary.metadata.degradations.iter().filter(|sentence| !said.contains(sentence));
            late.for_each(|sentence| say(sentence));
            if !quiet {
                closing_lines(&outcome.summary);
            }
            watch.filter(|_| !quiet).into_iter().for_each(|watch| output::say(watch.conclude()));
            let code = exit_code(&outcome);
            match (truth, &outcome.summary.simulation) {
                (Some(file), Some(done)) => {
                    if let Err(error) = file.write(done) {
                        output::say(crate::describe(&error));
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

/// Records a command as `hbbp record -- COMMAND` does, for a report that follows on standard output. The recording lives in a
/// file that has no name any more.
pub fn record_for_analysis(
    command: &[OsString],
    precision: Option<(Wanted, Vec<OsString>)>,
) -> anyhow::Result<Recording> {
    let folder = tempfile::Builder::new().prefix("hbbp-").tempdir().context("a folder for the recording")?;
    let output = folder.path().join("hbbp.data");
    let mut request = Request {
        command: command.to_vec(),
        stdout_to_stderr: true,
        output: output.clone(),
        cmdline: env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        ..Request::default()
    };
    raise_limits();
    let machine = Machine::read(Path::new("/"), &mut KernelOpener);
    request.calibration = calibration::of_machine(&machine);
    let goal = precision.map(|(wanted, options)| set_goal(wanted, &mut request, options)).transpose()?;
    let mut session = Session::prepare(&request, &machine)?;
    let watch = goal.map(|goal| goal.watch(&mut session, |text| output::say(text)));
    let outcome = session.run(&mut |text| output::say(text))?;
    watch.into_iter().for_each(|watch| output::say(watch.conclude()));
    if let Some(status) = outcome.command
        && status != CommandStatus::Exited(0)
    {
        say!("the command ended with {status}");
    }
    Ok(Recording::open(&output)?)
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

fn usage(reason: &str) -> ExitCode {
    output::say(reason);
    ExitCode::from(2)
}

fn seconds(text: &str) -> anyhow::Result<Duration> {
    let seconds: f64 = text.parse().map_err(|_| anyhow!("`{text}` is not a number of seconds"))?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => bail!("{text} seconds cannot be waited for"),
    }
}

/// Milliseconds that a duration can have.
fn milliseconds(text: &str) -> anyhow::Result<f64> {
    let milliseconds: f64 = text.parse().map_err(|_| anyhow!("`{text}` is not a number of milliseconds"))?;
    match Duration::try_from_secs_f64(milliseconds / 1e3) {
        Ok(_) => Ok(milliseconds),
        Err(_) => bail!("it is a number of milliseconds, 0 or more"),
    }
}

fn request(args: Args) -> anyhow::Result<Request> {
    if args.pmu != "simulated" && args.simulation.is_used() {
        bail!("--pmu-core, --lbr-depth, --lbr-bias, --seed and --truth are for --pmu simulated");
    }
    if is_standard_output(&args.output) && args.simulation.writes_to_standard_output() {
        bail!("recording and exact counts cannot both go to standard output");
    }
    if args.precision.is_some() && is_standard_output(&args.output) {
        bail!("--precision reads the recording while it is written: it needs a file");
    }
    if args.precision.is_some() && !args.command.is_empty() && (args.all_cpus || !args.pid.is_empty()) {
        bail!("--precision decides when a recording of what runs already ends: it cannot be a command that decides");
    }
    let target = if args.all_cpus
        || args.cpus.is_some() && args.command.is_empty() && args.pid.is_empty() && args.tid.is_empty()
    {
        Target::System
    } else if !args.pid.is_empty() {
        Target::Processes(args.pid)
    } else if !args.tid.is_empty() {
        Target::Threads(args.tid)
    } else {
        Target::Command
    };
    let event = |name: Option<String>| match name.as_deref() {
        None => EventOption::Best,
        Some("none") => EventOption::None,
        Some(name) => EventOption::Named(name.to_owned()),
    };
    let filter = args.branch_filter.map(|text| parse_branch_filter(&text)).transpose()?;
    let levels = match (args.user, args.kernel) {
        (true, _) => Some(Levels::User),
        (_, true) => Some(Levels::Kernel),
        _ => None,
    };
    let run_time = args.expect.or_else(|| args.duration.map(RunTime::of)).unwrap_or_default();
    Ok(Request {
        options: Options {
            ebs: event(args.ebs_event),
            lbr: event(args.lbr_event),
            ebs_period: args.ebs_period,
            lbr_period: args.lbr_period,
            frequency: args.freq,
            levels,
            filter,
            run_time,
            system_wide: target == Target::System,
        },
        tracer: TracerOptions {
            kind: args.tracer,
            overhead: args.overhead,
            start_credit: Duration::from_secs_f64(args.start_credit / 1e3),
            size: args.depth.map_or(BurstSize::Instructions(args.burst), BurstSize::Branches),
            inject: args.inject,
        },
        simulation: (args.pmu == "simulated").then(|| args.simulation.options()),
        target,
        command: args.command,
        stdout_to_stderr: is_standard_output(&args.output) || args.simulation.writes_to_standard_output(),
        output: args.output,
        no_inherit: args.no_inherit,
        ring_pages: args.mmap_pages,
        off: args.off,
        cpus: args.cpus,
        duration: args.duration,
        cmdline: env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        calibration: None,
    })
}

/// The command's, unless it was stopped because the time was up.
fn exit_code(outcome: &Outcome) -> u8 {
    match (outcome.stop, outcome.command) {
        (Stop::Duration | Stop::TargetsEnded, _) | (_, None) => 0,
        (_, Some(status)) => status.exit_code(),
    }
}

fn closing_lines(summary: &Summary) {
    let metadata = &summary.metadata;
    let counts = &summary.counts;
    let seconds = summary.duration.as_secs_f64();
    let to: &dyn std::fmt::Display =
        if is_standard_output(&summary.path) { &"standard output" } else { &summary.path.display() };
    say!("{} samples in {seconds:.2} s written to {to} ({} KiB)", counts.samples, summary.bytes.div_ceil(1024));
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
    if let Some(tracer) = &summary.tracer {
        tracing::lines(tracer).iter().for_each(output::say);
    }
    if let Some(done) = &summary.simulation {
        output::say(simulation::line(done));
    }
}
