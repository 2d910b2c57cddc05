//! The comparison for programs. Shares are fractions: 0.05 is 5 %.

use std::io::Write;

use analyzer::flow::Moved;
use reports::diff::{Noise, Work};
use serde_json::{Value, json};

use super::limit::Kept;
use super::{Report, pivot};

/// Prints the whole comparison.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let comparison = report.changes.comparison;
    let functions = comparison.functions.iter().take(report.top).map(|of| {
        let what = json!({"module": of.what.module, "function": of.what.function});
        let mut row = with_noise(moved(what, of), report.changes.of_function(of));
        row["names"] =
            json!(comparison.joined.get(&of.what).map(|[before, after]| json!({"before": before, "after": after})));
        row
    });
    let blocks = comparison.blocks.iter().take(report.top).map(|of| {
        let name = &of.what.function;
        let (start, end) = (of.what.start, of.what.end);
        let what = json!({"module": name.module, "function": name.function, "start": start, "end": end});
        with_noise(moved(what, of), report.changes.of_block(of))
    });
    let lines = comparison.lines.iter().take(report.top).map(|of| {
        let what = json!({"function": of.what.function, "line": of.what.line});
        with_noise(moved(what, of), report.changes.of_line(of))
    });
    let mix = comparison.mix.iter().map(|of| {
        let what = json!({"isa": of.what.isa, "packing": of.what.packing});
        with_noise(moved(what, of), report.changes.of_kind(of))
    });
    let mut document = json!({
        "schema": "hbbp-diff/1",
        "before": report.changes.side(0),
        "after": report.changes.side(1),
        "overlap": report.changes.overlap(),
        "work": Work::of(&report.changes).described(&report.changes),
        "limits": report.limits.iter().map(Kept::json).collect::<Vec<_>>(),
        "degraded": comparison.notes.iter().chain(&comparison.lacks).collect::<Vec<_>>(),
        "functions": functions.collect::<Vec<_>>(),
        "blocks": blocks.collect::<Vec<_>>(),
        "lines": lines.collect::<Vec<_>>(),
        "mix": mix.collect::<Vec<_>>(),
    });
    if let Some(pivot) = report.pivot {
        document["rows"] = json!(pivot::rows(pivot, report.top));
    }
    serde_json::to_writer(&mut *out, &document)?;
    Ok(writeln!(out)?)
}

/// `what` with the uncertainty of the change.
fn with_noise(mut what: Value, noise: Noise) -> Value {
    what["change_error"] = json!(noise.error);
    what["within_error"] = json!(noise.is_within);
    what["finding"] = json!(noise.is_finding);
    what
}

/// `what` with the shares of both sides.
fn moved<N>(mut what: Value, of: &Moved<N>) -> Value {
    what["before"] = json!(of.shares[0]);
    what["after"] = json!(of.shares[1]);
    what["change"] = json!(of.change());
    what
}
