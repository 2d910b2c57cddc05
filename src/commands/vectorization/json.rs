//! The answer and its rows as JSON: hbbp-vectorization/1.

use std::io::Write;

use analyzer::vectorization::{Domain, Form, Part, Row, Vectorization, Work};
use serde_json::{Value, json};

use super::Report;
use super::answer::{WIDTHS, answer};

/// Prints the first rows.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let of = report.vectorization;
    let rows: Vec<Value> = of.rows.iter().take(report.top).map(|row| with_name(numbers(of, &row.work), row)).collect();
    let others = of.rows.len().saturating_sub(report.top);
    let others = (others > 0).then(|| {
        let mut numbers = numbers(of, &of.rest(report.top));
        numbers["rows"] = json!(others);
        numbers
    });
    let document = json!({
        "schema": "hbbp-vectorization/1",
        "source": report.head.source,
        "instructions": of.all.instructions,
        "head": report.head,
        "answer": answer(of, report.by_loop),
        "by": if report.by_loop { "loop" } else { "function" },
        "all": numbers(of, &of.all),
        "rows": rows,
        "others": others,
        "without_work": {
            "rows": of.without,
            "instructions": of.all.instructions - of.rest(0).instructions,
        },
    });
    serde_json::to_writer(&mut *out, &document)?;
    Ok(writeln!(out)?)
}

fn with_name(mut numbers: Value, row: &Row) -> Value {
    numbers["module"] = json!(row.module);
    numbers["function"] = json!(row.function);
    numbers["loop"] = json!(row.place.as_ref().map(|place| json!({
        "name": place.name,
        "header": place.header.0,
        "depth": place.depth,
        "file": place.line.as_ref().map(|(file, _)| file),
        "line": place.line.as_ref().map(|(_, line)| line),
    })));
    numbers
}

fn numbers(of: &Vectorization, work: &Work) -> Value {
    let mut float = in_all(of, work, Domain::Float, work.flops());
    let scalar = work.float_share(Form::Scalar);
    float["scalar"] = json!(scalar);
    float["scalar_error"] = json!(scalar.and_then(|_| work.scalar_interval(&of.design).half_width));
    float["x87"] = json!(work.float_share(Form::X87));
    float["fma"] = json!(work.fma_share());
    let mut integer = in_all(of, work, Domain::Integer, work.integer());
    for width in WIDTHS {
        let name = format!("packed_{width}");
        float[&name] = json!(work.float_share(Form::Packed(width)));
        integer[&name] = json!(work.integer_share(width));
    }
    json!({
        "instructions": work.instructions,
        "share": if of.all.instructions > 0.0 { work.instructions / of.all.instructions } else { 0.0 },
        "flops": float,
        "integer": integer,
        "moves": work.moves(),
        "memory": memory(of, work),
        "parts": work.parts.iter().map(part).collect::<Vec<_>>(),
    })
}

/// Bytes that are read and written, and floating-point operations for each of them.
fn memory(of: &Vectorization, work: &Work) -> Value {
    let (operations, intensity) = (&work.operations.sum, work.intensity(&of.design));
    json!({
        "bytes_read": operations.bytes_read,
        "bytes_written": operations.bytes_written,
        "bytes_masked": operations.masked_bytes,
        "bytes_unknown": operations.unknown_bytes,
        "flops_masked": operations.masked_flops,
        "intensity": intensity.map(|(intensity, _)| intensity),
        "intensity_error": intensity.and_then(|(_, interval)| interval.half_width),
    })
}

/// The share of the work of a domain of all rows.
fn in_all(of: &Vectorization, work: &Work, domain: Domain, count: f64) -> Value {
    let share = of.share(work, domain);
    json!({
        "count": count,
        "share": share.map(|(share, _)| share),
        "share_error": share.and_then(|(_, interval)| interval.half_width),
        "rests_on_little": share.is_some_and(|(_, interval)| interval.rests_on_little),
    })
}

fn part(part: &Part) -> Value {
    json!({
        "work": part.domain.as_str(),
        "form": part.form.as_str(),
        "width": part.form.width(),
        "element": part.element,
        "fma": part.fma,
        "instructions": part.instructions,
        "operations": part.operations(),
    })
}
