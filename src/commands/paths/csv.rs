//! Paths as CSV: a row for each. Shares are fractions: 0.05 is 5 %.

use std::io::Write;

use analyzer::paths::FoundStep;
use anyhow::Context;

use super::Report;

/// Prints the first paths.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    let numbers = ["share", "share_error", "rests_on_little", "executions", "executions_error", "seen"];
    if let Some(hot) = &report.paths.hot {
        csv.write_record(["module", "function", "path", "is_cut", "length"].into_iter().chain(numbers))?;
        for path in hot.paths.iter().take(report.top) {
            let blocks: Vec<String> = path.blocks.iter().map(|place| format!("{:x}", place.address.0)).collect();
            csv.write_record([
                path.module.to_string(),
                path.function.as_deref().unwrap_or_default().to_owned(),
                blocks.join("; "),
                path.is_cut.to_string(),
                path.instructions.to_string(),
                path.share.to_string(),
                text(path.share_interval.half_width),
                path.share_interval.rests_on_little.to_string(),
                path.executions.to_string(),
                text(path.executions_interval.half_width),
                path.seen.to_string(),
            ])?;
        }
    }
    if let Some(Ok(history)) = &report.paths.history {
        csv.write_record(["path"].into_iter().chain(numbers))?;
        for path in history.paths.iter().take(report.top) {
            let steps: Vec<String> = path.steps.iter().map(step).collect();
            csv.write_record([
                steps.join("; "),
                path.share.to_string(),
                text(path.share_interval.half_width),
                path.share_interval.rests_on_little.to_string(),
                path.executions.to_string(),
                text(path.executions_interval.half_width),
                path.seen.to_string(),
            ])?;
        }
    }
    csv.flush().context("cannot write the table")
}

fn text(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

fn step(step: &FoundStep) -> String {
    let again = if step.repeats { " again and again" } else { "" };
    format!("{} -> {}{again}", step.from.name(), step.to.name())
}
