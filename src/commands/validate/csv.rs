//! The comparison as one table: averages, mnemonics, functions, blocks. Shares and errors are fractions: 0.05 is 5 %.

use std::io::Write;

use analyzer::validation::{Coverage, Coverages, Estimate, Measure, Quality};
use anyhow::Context;

use super::Report;
use super::verdict::sentence;

/// Prints the whole report.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let validation = report.validation;
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(["kind", "name", "module", "start", "instructions", "truth", "ebs", "lbr", "hybrid", "reason"])?;
    for (name, value) in averages() {
        let cells = validation.qualities.iter().map(|quality| text(quality.as_ref().and_then(value)));
        let first = ["average", name, "", "", "", ""].map(String::from);
        csv.write_record(first.into_iter().chain(cells).chain([String::new()]))?;
    }
    if let Some(verdict) = validation.verdict() {
        let text = sentence(&verdict, validation);
        csv.write_record(["verdict", verdict.grade.as_str(), "", "", "", "", "", "", "", &text])?;
    }
    let Coverages { mnemonic, function, block } = validation.coverages;
    for (name, coverage) in [("mnemonics", Some(mnemonic)), ("functions", function), ("blocks", block)] {
        for (what, value) in
            [("rows_in_interval", Coverage::share as Covered), ("weight_in_interval", Coverage::weighted)]
        {
            let value = text(coverage.as_ref().and_then(value));
            csv.write_record(["coverage", &format!("{name} {what}"), "", "", "", "", "", "", &value, ""])?;
        }
    }
    for named in validation.mnemonics.iter().take(report.top) {
        let first = ["mnemonic", &named.name, "", "", "", &named.truth.to_string()].map(String::from);
        csv.write_record(first.into_iter().chain(shares(&named.estimates)).chain([String::new()]))?;
    }
    for named in validation.functions.iter().take(report.top) {
        let module = &validation.modules[named.name.module];
        let function = named.name.function.as_deref().unwrap_or_default();
        let first = ["function", function, module, "", "", &named.truth.to_string()].map(String::from);
        csv.write_record(first.into_iter().chain(shares(&named.estimates)).chain([String::new()]))?;
    }
    for block in &validation.worst {
        let function = block.function.clone().unwrap_or_default();
        let module = validation.modules[block.module].clone();
        let numbers = [block.start.to_string(), block.instructions.to_string(), block.truth.to_string()];
        let first = ["block".to_string(), function, module].into_iter().chain(numbers);
        csv.write_record(first.chain(shares(&block.estimates)).chain([block.reason.clone()]))?;
    }
    csv.flush().context("cannot write the table")
}

type Covered = fn(&Coverage) -> Option<f64>;
type Get = fn(&Quality) -> Option<f64>;

fn averages() -> [(&'static str, Get); 11] {
    const MNEMONIC: fn(&Quality) -> Measure = |quality| quality.mnemonic;
    const BLOCK: fn(&Quality) -> Option<Measure> = |quality| Some(quality.code.as_ref()?.block);
    const FUNCTION: fn(&Quality) -> Option<Measure> = |quality| Some(quality.code.as_ref()?.function);
    [
        ("mnemonic_error", |quality| Some(MNEMONIC(quality).error)),
        ("mnemonic_noise", |quality| MNEMONIC(quality).noise),
        ("mnemonic_bias", |quality| MNEMONIC(quality).bias()),
        ("block_error", |quality| Some(BLOCK(quality)?.error)),
        ("block_noise", |quality| BLOCK(quality)?.noise),
        ("block_bias", |quality| BLOCK(quality)?.bias()),
        ("function_error", |quality| Some(FUNCTION(quality)?.error)),
        ("function_noise", |quality| FUNCTION(quality)?.noise),
        ("function_bias", |quality| FUNCTION(quality)?.bias()),
        ("block_overlap", |quality| Some(quality.code.as_ref()?.block_overlap)),
        ("function_overlap", |quality| Some(quality.code.as_ref()?.function_overlap)),
    ]
}

fn shares(estimates: &[f64; 3]) -> [String; 3] {
    Estimate::ALL.map(|estimate| estimates[estimate as usize].to_string())
}

fn text(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}
