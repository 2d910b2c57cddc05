//! How a model was tested.

use std::io::Write;

use model::{Error, Errors, Model};

use crate::output::{Align, Table, count};

/// Prints the errors on each program by a tree that was not trained on it, their means, and what follows from them.
pub fn evidence(model: &Model, out: &mut dyn Write, width: Option<usize>) -> std::io::Result<()> {
    errors(model, "block errors in %, every program by a tree that never saw it", |error| error.blocks, out, width)?;
    errors(model, "errors by kinds of instructions in %", |error| error.kinds, out, width)?;
    writeln!(out, "verdict: {}", model.verdict())
}

fn errors(
    model: &Model,
    title: &str,
    value: fn(&Error) -> f64,
    out: &mut dyn Write,
    width: Option<usize>,
) -> std::io::Result<()> {
    writeln!(out, "# {title}")?;
    let choosers = Errors::default().by_chooser().map(|(name, _)| (name.to_string(), Align::Right));
    let mut titles = vec![("program".to_string(), Align::Left), ("blocks".to_string(), Align::Right)];
    titles.extend(choosers);
    let mut table = Table::new(titles);
    let row = |name: &str, blocks: u64, errors: &Errors| {
        let errors = errors.by_chooser().map(|(_, error)| format!("{:.2}", 100.0 * value(&error)));
        [name.to_string(), count(blocks as f64)].into_iter().chain(errors).collect()
    };
    for program in &model.evidence.leave_one_out {
        table.row(row(&program.program, program.blocks, &program.errors));
    }
    table.row(row("mean", model.evidence.blocks, &model.evidence.mean()));
    table.print(out, width)?;
    writeln!(out)
}
