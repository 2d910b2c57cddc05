//! The rows as CSV. Shares are fractions: 0.05 is 5 %.

use std::io::Write;

use analyzer::vectorization::{Domain, Form};
use anyhow::Context;

use super::Report;
use super::answer::WIDTHS;

const TITLES: [&str; 33] = [
    "module",
    "function",
    "loop",
    "header",
    "depth",
    "file",
    "line",
    "instructions",
    "flops",
    "flops_share",
    "flops_share_error",
    "rests_on_little",
    "scalar",
    "scalar_error",
    "x87",
    "packed_64",
    "packed_128",
    "packed_256",
    "packed_512",
    "fma",
    "integer",
    "integer_share",
    "integer_share_error",
    "integer_packed_64",
    "integer_packed_128",
    "integer_packed_256",
    "integer_packed_512",
    "moves",
    "bytes",
    "bytes_masked",
    "bytes_unknown",
    "intensity",
    "intensity_error",
];

/// Prints the first rows.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let of = report.vectorization;
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(TITLES)?;
    for row in of.rows.iter().take(report.top) {
        let (place, work) = (row.place.as_ref(), &row.work);
        let line = place.and_then(|place| place.line.as_ref());
        let [float, integer] = [Domain::Float, Domain::Integer].map(|domain| of.share(work, domain).unzip());
        let scalar = work.float_share(Form::Scalar);
        let mut cells = vec![
            row.module.clone(),
            row.function.clone(),
            text(place.map(|place| &place.name)),
            text(place.map(|place| place.header.0)),
            text(place.map(|place| place.depth)),
            text(line.map(|(file, _)| file)),
            text(line.map(|(_, line)| line)),
            work.instructions.to_string(),
            work.flops().to_string(),
            text(float.0),
            text(float.1.and_then(|interval| interval.half_width)),
            text(float.1.map(|interval| interval.rests_on_little)),
            text(scalar),
            text(scalar.and_then(|_| work.scalar_interval(&of.design).half_width)),
            text(work.float_share(Form::X87)),
        ];
        cells.extend(WIDTHS.map(|width| text(work.float_share(Form::Packed(width)))));
        cells.extend([text(work.fma_share()), work.integer().to_string(), text(integer.0)]);
        cells.push(text(integer.1.and_then(|interval| interval.half_width)));
        cells.extend(WIDTHS.map(|width| text(work.integer_share(width))));
        let (operations, intensity) = (&work.operations.sum, work.intensity(&of.design).unzip());
        cells.extend([work.moves(), operations.bytes(), operations.masked_bytes].map(|number| number.to_string()));
        cells.extend([operations.unknown_bytes.to_string(), text(intensity.0)]);
        cells.push(text(intensity.1.and_then(|interval| interval.half_width)));
        csv.write_record(cells)?;
    }
    csv.flush().context("cannot write the table")
}

fn text<T: ToString>(value: Option<T>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}
