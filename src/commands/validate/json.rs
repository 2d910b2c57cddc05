//! The comparison for programs. Shares and errors are fractions: 0.05 is 5 %.

use std::io::Write;

use analyzer::validation::{CodeQuality, Coverage, Estimate, Measure, Named, Quality, WorstBlock};
use serde_json::{Map, Value, json};

use super::Report;
use super::verdict::sentence;

/// Prints the whole report.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let (truth, validation) = (report.truth, report.validation);
    let left_out = validation
        .left_out
        .iter()
        .map(|left| json!({"side": left.side.as_str(), "what": left.what, "share": left.share}));
    let sources = Estimate::ALL.iter().zip(&validation.qualities);
    let sources: Map<String, Value> = sources
        .map(|(estimate, quality)| (estimate.as_str().into(), quality.as_ref().map_or(Value::Null, source)))
        .collect();
    let mnemonics = validation.mnemonics.iter().take(report.top);
    let functions = validation.functions.iter().take(report.top);
    let verdict = validation.verdict().map(|verdict| {
        json!({
            "grade": verdict.grade.as_str(),
            "text": sentence(&verdict, validation),
            "mnemonic_error": verdict.mnemonic_error,
            "block_overlap": verdict.block_overlap,
            "worst_mnemonics": verdict.mnemonics.iter().map(|row| &row.name).collect::<Vec<_>>(),
            "worst_functions": verdict.functions.iter().map(|row| &row.name.function).collect::<Vec<_>>(),
        })
    });
    let document = json!({
        "schema": "hbbp-validate/1",
        "source": report.head.source,
        "sources": sources,
        "verdict": verdict,
        "compared": {"truth": validation.compared_truth, "recording": validation.compared_recording},
        "left_out": left_out.collect::<Vec<_>>(),
        "coverage": {
            "mnemonics": coverage(&validation.coverages.mnemonic),
            "functions": validation.coverages.function.as_ref().map(coverage),
            "blocks": validation.coverages.block.as_ref().map(coverage),
        },
        "truth": {
            "engine": truth.engine,
            "command": truth.command,
            "processes": truth.processes,
            "counted": truth.counted,
            "instructions": truth.instructions(),
            "environment": truth.environment,
        },
        "head": report.head,
        "modules": validation.modules,
        "mnemonics_of_all_code": validation.mnemonics_of_all_code,
        "mnemonics": mnemonics.map(|named| named_value(json!({"mnemonic": named.name}), named)).collect::<Vec<_>>(),
        "functions": functions
            .map(|named| named_value(json!({"module": named.name.module, "function": named.name.function}), named))
            .collect::<Vec<_>>(),
        "worst_blocks": validation.worst.iter().map(worst_block).collect::<Vec<_>>(),
    });
    serde_json::to_writer(&mut *out, &document)?;
    Ok(writeln!(out)?)
}

fn source(quality: &Quality) -> Value {
    let code = |value: fn(&CodeQuality) -> f64| quality.code.as_ref().map(value);
    let measures = |value: fn(&Measure) -> Option<f64>| {
        json!({
            "mnemonic_error": value(&quality.mnemonic),
            "block_error": quality.code.as_ref().and_then(|code| value(&code.block)),
            "function_error": quality.code.as_ref().and_then(|code| value(&code.function)),
        })
    };
    json!({
        "mnemonic_error": quality.mnemonic.error,
        "block_error": code(|code| code.block.error),
        "function_error": code(|code| code.function.error),
        "block_overlap": code(|code| code.block_overlap),
        "function_overlap": code(|code| code.function_overlap),
        "noise": measures(|measure| measure.noise),
        "bias": measures(Measure::bias),
    })
}

fn coverage(coverage: &Coverage) -> Value {
    json!({
        "rows": coverage.rows,
        "held": coverage.held,
        "unknown": coverage.unknown,
        "share": coverage.share(),
        "weighted": coverage.weighted(),
    })
}

/// `what` with shares and errors of the truth and all estimates.
fn named_value<N>(mut what: Value, named: &Named<N>) -> Value {
    what["truth"] = json!(named.truth);
    for estimate in Estimate::ALL {
        let share = named.estimates[estimate as usize];
        what[estimate.as_str()] = json!({"share": share, "error": named.error(estimate)});
    }
    what
}

fn worst_block(block: &WorstBlock) -> Value {
    let [ebs, lbr, hybrid] = block.estimates;
    json!({
        "module": block.module,
        "start": block.start,
        "end": block.end,
        "instructions": block.instructions,
        "function": block.function,
        "contribution": block.contribution(),
        "truth": block.truth,
        "ebs": ebs,
        "lbr": lbr,
        "hybrid": hybrid,
        "chosen": block.chosen,
        "ebs_samples": block.ebs_samples,
        "lbr_streams": block.lbr_streams,
        "reason": block.reason,
    })
}
