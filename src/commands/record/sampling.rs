//! How a program is recorded: what `record` and every command that records first have in common.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::{anyhow, bail};
use collector::machine::cpu_list::CpuList;
use collector::plan::branch_filter::parse_branch_filter;
use collector::plan::event_spec::Levels;
use collector::plan::periods::RunTime;
use collector::plan::request::Request;
use collector::plan::{EventOption, Options};
use collector::tracer::{BurstSize, TracerChoice, TracerOptions};

use crate::commands::record::simulation::PmuArgs;

/// The heading of these options in `--help`.
pub const SAMPLING: &str = "Sampling and tracing";

/// Events, periods, and how branches are traced.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct SamplingArgs {
    /// Stop after this time; a command is then told to end (SIGTERM)
    #[arg(help_heading = SAMPLING, long, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<Duration>,
    /// Begin switched off: nothing is recorded until the program or `hbbp control on` says so
    #[arg(help_heading = SAMPLING, long)]
    off: bool,
    /// Event for event-based samples (EBS), in perf's notation (cycles:pp, r00c0, cpu/event=0xc0/), or none
    #[arg(help_heading = SAMPLING, long, value_name = "EVENT")]
    ebs_event: Option<String>,
    /// Event for branch stacks, or none
    #[arg(help_heading = SAMPLING, long, value_name = "EVENT")]
    lbr_event: Option<String>,
    /// Counts between two EBS samples (nanoseconds, if the event is a clock)
    #[arg(help_heading = SAMPLING, long, value_name = "N", conflicts_with = "freq")]
    ebs_period: Option<u64>,
    /// Counts between two branch stacks
    #[arg(help_heading = SAMPLING, long, value_name = "N", conflicts_with = "freq")]
    lbr_period: Option<u64>,
    /// Samples per second of each event, instead of periods
    #[arg(help_heading = SAMPLING, short = 'F', long, visible_alias = "frequency", value_name = "HZ")]
    freq: Option<u64>,
    /// Expected run time, which decides the periods: seconds (up to 30), minutes or long [default: as --duration, or minutes]
    #[arg(help_heading = SAMPLING, long, value_name = "TIME")]
    expect: Option<RunTime>,
    /// Record user code only
    #[arg(help_heading = SAMPLING, short, long = "user", conflicts_with = "kernel")]
    user: bool,
    /// Record kernel code only
    #[arg(help_heading = SAMPLING, short, long)]
    kernel: bool,
    /// Branches to record: any, any_call, any_ret, ind_call, ind_jmp, cond, call, stack, u, k, hv, in_tx, no_tx, abort_tx,
    /// no_cycles, no_flags, save_type
    #[arg(help_heading = SAMPLING, short = 'j', long = "branch-filter", value_name = "FILTERS")]
    branch_filter: Option<String>,
    /// Pages of the ring buffer of each CPU, a power of two
    #[arg(help_heading = SAMPLING, short, long, value_name = "PAGES")]
    mmap_pages: Option<usize>,
    /// How to trace branches in software: agent (an interpreter follows the program's path, inside a command that is started, by its own
    /// threads), agent-check (the same, and each burst is compared with what its thread does then: slow), timer (agents without perf
    /// events and ptrace, as in containers: the dynamic loader puts them in, and timers of CPU time start the bursts), lookahead (the
    /// interpreter from outside, by stops), breakpoint (a breakpoint at every branch, slow), none, or auto (where there are no hardware
    /// branch records: agent for commands, and with `record --inject`; lookahead for what runs already) [default: auto]
    #[arg(help_heading = SAMPLING, long, value_name = "HOW")]
    tracer: Option<TracerChoice>,
    /// Percent of the program's CPU time that software tracing may take, with the samples of the clock beside it, or these alone: above 0,
    /// up to 100 [default: 1]
    #[arg(help_heading = SAMPLING, long, value_name = "PCT", value_parser = overhead, allow_negative_numbers = true)]
    overhead: Option<f64>,
    /// Milliseconds that software tracing may take on top of that at the beginning of a command, two thirds of them in its first second of
    /// CPU time, so that short commands have enough bursts, too [default: 200]
    #[arg(help_heading = SAMPLING, long, value_name = "MS", value_parser = milliseconds)]
    start_credit: Option<f64>,
    /// Instructions of a burst (a traced path) [default: 10000]
    #[arg(help_heading = SAMPLING, long, value_name = "N", conflicts_with = "depth")]
    burst: Option<u64>,
    /// Taken branches of a burst, instead of a number of instructions
    #[arg(help_heading = SAMPLING, long, value_name = "N")]
    depth: Option<u64>,
    /// Record on these CPUs only, such as 0-3,8
    #[arg(help_heading = SAMPLING, long = "cpu", value_name = "CPUS")]
    pub cpus: Option<CpuList>,
    /// Do not follow threads and processes that start later
    #[arg(help_heading = SAMPLING, long)]
    no_inherit: bool,
    /// Make no copies in ~/.debug of files that only a process has (of containers, deleted, replaced, in memory): their code is unread then
    #[arg(help_heading = SAMPLING, long = "no-buildid-cache")]
    no_copies: bool,
    #[command(flatten)]
    pmu: PmuArgs,
}

impl SamplingArgs {
    /// They as words, for another `hbbp`.
    pub fn words(&self) -> Vec<OsString> {
        let Self {
            duration,
            off,
            ebs_event,
            lbr_event,
            ebs_period,
            lbr_period,
            freq,
            expect,
            user,
            kernel,
            branch_filter,
            mmap_pages,
            tracer,
            overhead,
            start_credit,
            burst,
            depth,
            cpus,
            no_inherit,
            no_copies,
            pmu,
        } = self;
        let text = |option: &str, value: Option<String>| value.map(|value| format!("{option}={value}"));
        let flag = |option: &str, is_given: bool| is_given.then(|| option.to_owned());
        let number = |value: &Option<u64>| value.map(|value| value.to_string());
        [
            text("--duration", duration.map(|duration| duration.as_secs_f64().to_string())),
            flag("--off", *off),
            text("--ebs-event", ebs_event.clone()),
            text("--lbr-event", lbr_event.clone()),
            text("--ebs-period", number(ebs_period)),
            text("--lbr-period", number(lbr_period)),
            text("--freq", number(freq)),
            text("--expect", expect.map(|expect| expect.to_string())),
            flag("--user", *user),
            flag("--kernel", *kernel),
            text("--branch-filter", branch_filter.clone()),
            text("--mmap-pages", mmap_pages.map(|pages| pages.to_string())),
            text("--tracer", tracer.map(|tracer| tracer.to_string())),
            text("--overhead", overhead.map(|overhead| overhead.to_string())),
            text("--start-credit", start_credit.map(|milliseconds| milliseconds.to_string())),
            text("--burst", number(burst)),
            text("--depth", number(depth)),
            text("--cpu", cpus.as_ref().map(|cpus| cpus.to_string())),
            flag("--no-inherit", *no_inherit),
            flag("--no-buildid-cache", *no_copies),
        ]
        .into_iter()
        .flatten()
        .chain(pmu.words())
        .map(OsString::from)
        .collect()
    }

    /// The name of one of them, if any is given.
    pub fn given(&self) -> Option<String> {
        let first = self.words().into_iter().next()?.to_string_lossy().into_owned();
        Some(first.split_once('=').map_or(first.clone(), |(option, _)| option.to_owned()))
    }

    /// Puts what they ask for into a request; the rest of it stays.
    pub fn ask(&self, request: &mut Request) -> anyhow::Result<()> {
        let event = |name: &Option<String>| match name.as_deref() {
            None => EventOption::Best,
            Some("none") => EventOption::None,
            Some(name) => EventOption::Named(name.to_owned()),
        };
        let levels = match (self.user, self.kernel) {
            (true, _) => Some(Levels::User),
            (_, true) => Some(Levels::Kernel),
            _ => None,
        };
        request.options = Options {
            ebs: event(&self.ebs_event),
            lbr: event(&self.lbr_event),
            ebs_period: self.ebs_period,
            lbr_period: self.lbr_period,
            frequency: self.freq,
            levels,
            filter: self.branch_filter.as_deref().map(parse_branch_filter).transpose()?,
            run_time: self.expect.or_else(|| self.duration.map(RunTime::of)).unwrap_or_default(),
            system_wide: request.options.system_wide,
        };
        let usual = TracerOptions::default();
        let start_credit = self.start_credit.map(|milliseconds| Duration::from_secs_f64(milliseconds / 1e3));
        request.tracer = TracerOptions {
            kind: self.tracer.unwrap_or_default(),
            overhead: self.overhead.unwrap_or(usual.overhead),
            start_credit: start_credit.unwrap_or(usual.start_credit),
            size: match (self.depth, self.burst) {
                (Some(branches), _) => BurstSize::Branches(branches),
                (_, Some(instructions)) => BurstSize::Instructions(instructions),
                _ => usual.size,
            },
            inject: request.tracer.inject,
        };
        request.ring_pages = self.mmap_pages;
        request.off = self.off;
        request.duration = self.duration;
        request.cpus.clone_from(&self.cpus);
        request.no_inherit = self.no_inherit;
        request.no_copies = self.no_copies;
        request.simulation = self.pmu.options()?;
        Ok(())
    }
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

/// Percent of CPU time that recording may take.
fn overhead(text: &str) -> anyhow::Result<f64> {
    match text.trim().trim_end_matches('%').trim_end().parse::<f64>() {
        Ok(percent) if TracerOptions::allows(percent) => Ok(percent),
        _ => bail!(
            "expected percent of the program's CPU time, above {} and up to {}",
            TracerOptions::LEAST_OVERHEAD,
            TracerOptions::MOST_OVERHEAD
        ),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(clap::Parser)]
    struct Cli {
        #[command(flatten)]
        sampling: SamplingArgs,
    }

    /// All of them: a command in another `hbbp` is recorded as it would be in this one.
    #[test]
    fn words_ask_for_the_same() {
        let first = ["--duration=2.5", "--off", "--ebs-event=cycles:u", "--lbr-event=none", "--ebs-period=7"];
        let second = ["--lbr-period=9", "--expect=long", "--user", "--branch-filter=any,u", "--mmap-pages=64"];
        let third = ["--tracer=agent-check", "--overhead=5", "--start-credit=20", "--burst=300"];
        let fourth = ["--cpu=0-3,8", "--no-inherit", "--no-buildid-cache"];
        let others = ["--freq=99", "--kernel", "--tracer=none", "--depth=16"];
        #[cfg(feature = "simulated-pmu")]
        let simulated = ["--pmu=simulated", "--pmu-core=westmere", "--lbr-depth=32", "--lbr-bias=0.5", "--seed=3"];
        #[cfg(not(feature = "simulated-pmu"))]
        let simulated: [&str; 0] = [];
        for words in [[&first[..], &second, &third, &fourth].concat(), others.to_vec(), simulated.to_vec(), Vec::new()]
        {
            let parse = |words: &[OsString]| Cli::parse_from([OsString::from("x")].iter().chain(words)).sampling;
            let given = parse(&words.iter().map(OsString::from).collect::<Vec<_>>());
            assert_eq!(given.words(), words);
            let [asked, again] = [given.clone(), parse(&given.words())].map(|sampling| {
                let mut request = Request::default();
                sampling.ask(&mut request).unwrap();
                // Their debugging form has all fields.
                format!("{request:?}")
            });
            assert_eq!(asked, again);
            assert_eq!(asked == format!("{:?}", Request::default()), words.is_empty());
            assert_eq!(given.given().as_deref(), words.first().map(|word| word.split('=').next().unwrap()));
        }
    }

    #[test]
    fn overhead_has_a_range() {
        for (text, percent) in [("1", 1.0), ("0.5", 0.5), ("5%", 5.0), ("100", 100.0)] {
            assert_eq!(overhead(text).unwrap(), percent);
        }
        for text in ["200", "100.1", "0", "-1", "nan", "inf", "x", ""] {
            assert!(overhead(text).unwrap_err().to_string().contains("above 0 and up to 100"), "{text}");
        }
    }
}
