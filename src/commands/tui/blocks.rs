//! The blocks that ran.

use std::collections::HashMap;

use analyzer::Analysis;
use analyzer::address::Svma;
use analyzer::mix::{Dimension, UNREADABLE};
use reports::blocks::{Row as Block, all_rows};

use super::sheet::{By, Link, Row, Sheet};
use crate::commands::annotate::code::heat_of_share;
use crate::commands::blocks::Columns;
use crate::output::Precision;

/// The blocks of a recording, those with the most executed instructions first, and how right the largest are, in words. `functions` are the places of
/// functions by module and symbol.
pub fn sheet(
    recording: usize,
    analysis: &Analysis,
    functions: &HashMap<(usize, Svma), usize>,
) -> (Sheet, Option<String>) {
    let instructions = analysis.instructions();
    let mut blocks = all_rows(analysis);
    blocks.sort_by(|one, other| other.executed().total_cmp(&one.executed()));
    let columns = Columns::of(analysis, &blocks);
    let share = |executed: f64| if instructions > 0.0 { executed / instructions } else { 0.0 };
    let precision = Precision::of(analysis, blocks.iter().map(|row| (share(row.executed()), row.share)));
    let row = |row: &Block<'_>| {
        let (executed, block) = (row.executed(), row.block);
        let symbol = row.module.function_symbol(block.index);
        let function = symbol.and_then(|symbol| functions.get(&(row.module_index, symbol)));
        let numbers = vec![executed, block.count.count, block.size.instructions, -(block.start.0 as f64)];
        let name = row.module.function_name(block.index).unwrap_or(UNREADABLE.into());
        Row {
            keys: vec![name, analysis.modules.get(row.module.counts.module).path.clone()],
            heat: heat_of_share(share(executed)),
            link: function.map(|function| Link { recording, function: *function, at: Some(block.start) }),
            ..Row::new(columns.cells(analysis, instructions, row), numbers)
        }
    };
    let rows = blocks.iter().map(row).collect();
    let titles = columns.titles();
    let column = |wanted: &str| titles.iter().position(|(title, _)| *title == wanted).unwrap_or(0);
    let (module, function) = (column("module"), column("function"));
    let orders = [
        ("share", By::Number(0)),
        ("count", By::Number(1)),
        ("length", By::Number(2)),
        ("start", By::Number(3)),
        ("function", By::Cell(function)),
    ];
    let titled = titles.iter().map(|(title, align)| ((*title).to_owned(), *align)).collect();
    let sheet = Sheet::new(titled, orders.map(|(name, by)| (name.to_owned(), by)).to_vec(), rows)
        .dispense_with([columns.dispensable(), vec![module]].concat())
        .with_keys(vec![Dimension::Function, Dimension::Module]);
    (sheet, precision.map(|precision| precision.text))
}
