//! `hbbp doctor`: what this machine offers, and what would give more.

use std::path::Path;
use std::process::ExitCode;

use collector::KernelOpener;
use collector::doctor::{Report, TracingReport, examine};
use collector::machine::{Machine, Probe};
use collector::tracer::BurstEnd;

use crate::output::{TextFormat, broken, terminal_width, write_to};
use crate::{calibration, output};

/// Show what this machine offers, what `hbbp record` would use, and what would give more
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Text, or JSON (`hbbp-doctor/1`)
    #[arg(long, value_enum, default_value_t = TextFormat::Text)]
    format: TextFormat,

    /// Print what to paste into a bug report: the same with the version, in Markdown
    #[arg(long, conflicts_with = "format")]
    report: bool,
}

const EXAMPLES: &str = "\
Examples:
  hbbp doctor                                 what would be recorded here, and what would give more
  hbbp doctor --format json > machine.json    the same for scripts
  hbbp doctor --report                        the same for a bug report";

const CALIBRATE: &str = "hbbp calibrate: two seconds that tell what data far away costs here. Bursts that a clock starts are weighed by it.";

/// Examines the machine; that it lacks something is no failure.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut machine = Machine::read(Path::new("/"), &mut KernelOpener);
    machine.try_kernel_memory(&mut KernelOpener);
    let mut report = examine(&machine, &mut KernelOpener);
    if report.would_use.tracer.is_some() && calibration::of_machine(&machine, &|text| output::say(text)).is_none() {
        report.advice.push(CALIBRATE.to_owned());
    }
    write_to(None, |out| match args.format {
        TextFormat::Text if args.report => Ok(write!(out, "{}", for_a_bug_report(&text(&report, COLUMNS)))?),
        TextFormat::Text => Ok(write!(out, "{}", text(&report, terminal_width().unwrap_or(COLUMNS).min(COLUMNS)))?),
        TextFormat::Json => Ok(writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A text of lines, as Markdown, with what made it. Nothing in it names the machine or its user.
fn for_a_bug_report(text: &str) -> String {
    let linked = if cfg!(target_feature = "crt-static") { "static" } else { "dynamic" };
    format!("`hbbp` {}, {} build, linked {linked}\n\n```\n{text}```\n", env!("CARGO_PKG_VERSION"), build())
}

/// Which of the features that can be left out it was built with.
fn build() -> &'static str {
    match (cfg!(feature = "training"), cfg!(feature = "simulated-pmu")) {
        (true, true) => "whole",
        (true, false) => "training",
        (false, true) => "simulated-pmu",
        (false, false) => "lean",
    }
}

/// Columns of the report, where the terminal does not have less.
const COLUMNS: usize = 80;

/// The report in lines of at most so many columns.
fn text(report: &Report, columns: usize) -> String {
    let mut out = Lines { text: String::new(), columns };
    let cpu = &report.cpu;
    let place = if cpu.hypervisor { ", in a virtual machine" } else { "" };
    out.line("CPU", &format!("{} ({}, family {}, model {:#x}{place})", cpu.name, cpu.vendor, cpu.family, cpu.model));
    let container = report.container.as_ref().map_or(String::new(), |kind| format!(", in a container ({kind})"));
    out.line("Kernel", &format!("Linux {}{container}", report.kernel.release));
    if report.pmu.is_empty() {
        out.line("PMU", "none");
    }
    for pmu in &report.pmu {
        let cpus = pmu.cpus.as_ref().map_or(String::new(), |cpus| format!(", CPUs {cpus}"));
        let precise = pmu.max_precise.map_or("unknown".to_owned(), |level| level.to_string());
        out.line(
            "PMU",
            &format!("{}: {} events, precise levels up to {precise}{cpus}", pmu.name, pmu.microarchitecture),
        );
    }
    let records = &report.branch_records;
    let records = match (records.kind, records.depth) {
        (None, _) => "none".to_owned(),
        (Some(kind), None) => kind.to_owned(),
        (Some(kind), Some(depth)) => format!("{kind}, {depth} entries"),
    };
    out.line("Branch records", &records);
    let probes = &report.probes;
    out.line("Instructions", &format!("counted in hardware: {}", probes.instructions));
    out.line("Clock", &format!("task-clock: {}", probes.task_clock));
    out.line("Breakpoints", &probes.breakpoint.to_string());
    out.line("Branch tracing", &software_tracing(&report.software_tracing, probes.task_clock));
    let paranoid = report.kernel.perf_event_paranoid.map_or("unknown".to_owned(), |level| level.to_string());
    let held: Vec<&str> = [
        (report.privileges.perfmon, "CAP_PERFMON"),
        (report.privileges.sys_admin, "CAP_SYS_ADMIN"),
        (report.privileges.sys_ptrace, "CAP_SYS_PTRACE"),
    ]
    .iter()
    .filter_map(|&(has, name)| has.then_some(name))
    .collect();
    let held = if held.is_empty() { "no capabilities".to_owned() } else { held.join(", ") };
    out.line("Permissions", &format!("perf_event_paranoid {paranoid}, {held}"));
    let (kernel, all, group) = (probes.kernel_code, probes.system_wide, probes.control_group);
    let read = match (report.kernel.kernel_symbols, report.kernel.kernel_text) {
        (true, true) => "yes",
        (true, false) => "no, names alone",
        (false, _) => "no",
    };
    let said = format!("sampling: {kernel}; instructions: {read}; all processes: {all}; a control group: {group}");
    out.line("Kernel code", &said);

    out.text.push_str("\nhbbp record would use\n");
    let used = &report.would_use;
    for event in &used.events {
        let branches = if event.branches { ", with branch stacks" } else { "" };
        out.wrap("  ", &format!("{} {} {}{branches}", event.name, event.period, event.unit));
    }
    if let Some(tracer) = &used.tracer {
        let size = match tracer.end {
            BurstEnd::Instructions { instructions } => format!("{instructions} instructions"),
            BurstEnd::Branches { branches } | BurstEnd::Either { branches, .. } => format!("{branches} branches"),
        };
        let text = format!(
            "branches traced in software ({}), in bursts of {size}, at most {} % of CPU time",
            tracer.kind, tracer.overhead
        );
        out.wrap("  ", &text);
    }
    if let Some(error) = &used.error {
        out.wrap("  ", &format!("nothing: {error}"));
    }
    for sentence in &used.degradations {
        out.wrap("  - ", sentence);
    }
    out.text.push_str("\nWhat would give more\n");
    if report.advice.is_empty() {
        out.text.push_str("  Nothing that can be seen from here.\n");
    }
    for sentence in &report.advice {
        out.wrap("  - ", sentence);
    }
    out.text
}

/// Which ways there are, and why not the others.
fn software_tracing(tracing: &TracingReport, clock: Probe) -> String {
    let stops = tracing.ptrace.works() && clock.works();
    let ways = match (tracing.agents, tracing.timers) {
        (true, _) => "yes, of 64-bit code",
        (false, _) if stops => {
            "by stops only (agents need FSGSBASE, Linux 5.9, a clock, and a hbbp that is not linked statically)"
        }
        (false, true) => "with --tracer timer only",
        (false, false) => "no",
    };
    let timers = if tracing.timers { "works" } else { "no (they need timer_create, and FSGSBASE, Linux 5.9)" };
    let running = if tracing.running_processes { "" } else { "; of running processes: no" };
    format!("in software: {ways}; ptrace: {}; timers: {timers}{running}", tracing.ptrace)
}

/// A text of lines that have so many columns at most.
struct Lines {
    text: String,
    columns: usize,
}

impl Lines {
    fn line(&mut self, label: &str, value: &str) {
        self.wrap(&format!("{label:<15} "), value);
    }

    /// Words in lines; the first begins with `lead`, others are indented as far.
    fn wrap(&mut self, lead: &str, text: &str) {
        // Of no words, that would leave nothing.
        self.text += &if text.is_empty() { lead.to_owned() } else { broken(lead, text, self.columns) };
        self.text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lead: &str, text: &str, expected: &str) {
        let mut out = Lines { text: String::new(), columns: COLUMNS };
        out.wrap(lead, text);
        assert_eq!(out.text, expected);
        assert!(out.text.lines().all(|line| line.len() <= 80));
    }

    #[test]
    fn lines_are_wrapped_under_their_beginning() {
        check("  - ", "one two", "  - one two\n");
        let word = "a".repeat(40);
        check("  - ", &format!("{word} {word} b"), &format!("  - {word}\n    {word} b\n"));
        check("x ", "", "x \n");
    }
}
