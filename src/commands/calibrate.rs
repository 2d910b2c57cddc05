//! `hbbp calibrate`: how far away data is on this machine.

use std::path::Path;
use std::process::ExitCode;

use collector::KernelOpener;
use collector::calibration::calibrate;
use collector::machine::Machine;
use formats::calibration::Calibration;

use crate::calibration;
use crate::output::{TextFormat, write_to};
use crate::progress::Progress;

/// Measure how far away data is on this machine, for recordings to come
///
/// Bursts that a clock starts are weighed by what code costs, and that depends on which data is near: on servers that others share, no table
/// says how much of the third level of the caches they leave. This takes some seconds. Recordings note the result, and reports say
/// "calibrated". Where memory cannot be told from the caches, nothing is kept, and the exit status is 1. Measure when the machine does what it usually does, and again when it has moved to another host.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Print what is measured, and do not keep it
    #[arg(long)]
    dry_run: bool,

    /// Text, or JSON (`hbbp-calibration/1`)
    #[arg(long, value_enum, default_value_t = TextFormat::Text)]
    format: TextFormat,
}

const EXAMPLES: &str = "\
Examples:
  hbbp calibrate                    measure this machine, and keep the result for `hbbp record`
  hbbp calibrate --dry-run          only look";

/// Measures, prints and keeps.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let file = if args.dry_run { None } else { Some(calibration::file()?) }; // Before it is measured for nothing.
    let machine = Machine::read(Path::new("/"), &mut KernelOpener);
    let progress = Progress::new();
    let measured = calibrate(&machine, &|share| progress.show("measuring", (100.0 * share) as u64, 100));
    drop(progress);
    write_to(None, |out| match args.format {
        TextFormat::Text => Ok(write!(out, "{}", text(&measured))?),
        TextFormat::Json => Ok(writeln!(out, "{}", serde_json::to_string_pretty(&measured)?)?),
    })?;
    if measured.memory_cycles.is_none() {
        say!("the third level of the caches and memory cannot be told apart just now; nothing is kept");
        return Ok(ExitCode::FAILURE);
    }
    if let Some(file) = file {
        calibration::keep(&file, &measured)?;
        say!("kept in {}; recordings of this user note it from now on", file.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn text(measured: &Calibration) -> String {
    let mut text = format!("{:9} {}\n", "CPU", measured.cpuid.as_deref().unwrap_or("unknown"));
    let mut line = |name: &str, value: String| text += &format!("{name:9} {value}\n");
    if let Some(ns) = measured.cycle_ns {
        line("cycle", format!("{ns:.3} ns ({:.2} GHz)", 1.0 / ns));
    }
    let levels = [
        ("L2", measured.second_cycles, measured.second_kib),
        ("L3", measured.third_cycles, measured.third_kib),
        ("memory", measured.memory_cycles, None),
    ];
    for (name, cycles, kib) in levels {
        let Some(cycles) = cycles else { continue };
        let size = kib.map(|kib| format!(", for {kib} KiB")).unwrap_or_default();
        line(name, format!("{cycles:.0} cycles{size}"));
    }
    text
}
