//! Compares the interpreter with the CPU while a program runs.
//!
//! `cargo run --release -p hbbp-lookahead --example lockstep -- [--steps N] [--windows N] [--pause MS] PROGRAM [ARGUMENT...]`

#[path = "../tests/support/mod.rs"]
mod support;

use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use support::lockstep::{Plan, lockstep};
use support::tracee::Tracee;

fn main() -> ExitCode {
    let mut plan = Plan { steps: 200_000, windows: 1, pause: Duration::from_millis(20) };
    let mut arguments = std::env::args().skip(1).peekable();
    while let Some(option) = arguments.next_if(|a| a.starts_with("--")) {
        let Some(value) = arguments.next().and_then(|v| v.parse::<u64>().ok()) else {
            eprintln!("{option} needs a number");
            return ExitCode::from(2);
        };
        match option.as_str() {
            "--steps" => plan.steps = value,
            "--windows" => plan.windows = value as u32,
            "--pause" => plan.pause = Duration::from_millis(value),
            _ => {
                eprintln!("unknown option {option}");
                return ExitCode::from(2);
            }
        }
    }
    let Some(program) = arguments.next() else {
        eprintln!("usage: lockstep [--steps N] [--windows N] [--pause MS] PROGRAM [ARGUMENT...]");
        return ExitCode::from(2);
    };
    let mut command = Command::new(&program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
    let started = Instant::now();
    let report = match Tracee::start(command) {
        Ok(mut tracee) => lockstep(&mut tracee, plan),
        Err(error) => {
            eprintln!("{program}: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!(
        "{program}: {} steps in {:.1} s; {} divergences, {} unsupported ({:.4} %), {} differences in undefined flags",
        report.steps,
        started.elapsed().as_secs_f64(),
        report.divergences.values().sum::<u64>(),
        report.unsupported_count(),
        100.0 * report.unsupported_count() as f64 / report.steps.max(1) as f64,
        report.undefined.values().sum::<u64>(),
    );
    for (what, counts) in [
        ("divergences", &report.divergences),
        ("unsupported", &report.unsupported),
        ("undefined flags", &report.undefined),
        ("stops", &report.stops),
    ] {
        if !counts.is_empty() {
            println!("  {what}: {counts:?}");
        }
    }
    for example in &report.examples {
        println!("  {example}");
    }
    println!("  {} different mnemonics", report.instructions.len());
    if report.divergences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
