//! Paths as CSV: a row for each. Shares are fractions: 0.05 is 5 %.

use std::io::Write;

use analyzer::paths::{FoundStep, Frequency};
use anyhow::Context;

use super::Report;

/// The columns of [`cells`].
const NUMBERS: [&str; 6] = ["share", "share_error", "rests_on_little", "executions", "executions_error", "seen"];

/// Prints the first paths.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    if let Some(hot) = &report.paths.hot {
        csv.write_record(["module", "function", "path", "is_cut", "length"].into_iter().chain(NUMBERS))?;
        for path in hot.paths.iter().take(report.top) {
            let blocks: Vec<String> = path.blocks.iter().map(|place| format!("{:x}", place.address.0)).collect();
            let path_cells = [
                path.module.to_string(),
                path.function.as_deref().unwrap_or_default().to_owned(),
                blocks.join("; "),
                path.is_cut.to_string(),
                path.instructions.to_string(),
            ];
            csv.write_record(path_cells.into_iter().chain(cells(&path.frequency)))?;
        }
    }
    if let Some(Ok(history)) = &report.paths.history {
        csv.write_record(["path"].into_iter().chain(NUMBERS))?;
        for path in history.paths.iter().take(report.top) {
            let steps: Vec<String> = path.steps.iter().map(step).collect();
            csv.write_record([steps.join("; ")].into_iter().chain(cells(&path.frequency)))?;
        }
    }
    csv.flush().context("cannot write the table")
}

fn cells(of: &Frequency) -> [String; 6] {
    [
        of.share.to_string(),
        text(of.share_interval.half_width),
        of.share_interval.rests_on_little.to_string(),
        of.executions.to_string(),
        text(of.executions_interval.half_width),
        of.seen.to_string(),
    ]
}

fn text(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

fn step(step: &FoundStep) -> String {
    let again = if step.repeats { " again and again" } else { "" };
    format!("{} -> {}{again}", step.from.name(), step.to.name())
}
