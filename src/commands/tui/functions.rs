//! The functions that ran.

use std::path::Path;

use analyzer::Analysis;
use analyzer::annotate::Ranked;
use analyzer::mix::Dimension;

use super::sheet::{By, Link, Row, Sheet};
use crate::commands::annotate::code::heat_of_share;
use crate::input::title_of;
use crate::output::{Align, count, rounded, share_cells};

/// The functions of a recording, hottest first.
pub fn sheet(recording: usize, analysis: &Analysis, functions: &[Ranked]) -> Sheet {
    let instructions = analysis.instructions();
    let row = |(function, of): (usize, &Ranked)| {
        let path = path_of(analysis, of);
        let mut cells = share_cells(of.executed, instructions, of.share_interval).to_vec();
        cells.push(count(rounded(of.executed, of.executed_interval)));
        cells.extend([of.name.clone(), title_of(Path::new(path))]);
        Row {
            heat: heat_of_share(of.share),
            keys: vec![of.name.clone(), path.to_owned()],
            link: Some(Link { recording, function, at: None }),
            ..Row::new(cells, vec![of.executed])
        }
    };
    let rows = functions.iter().enumerate().map(row).collect();
    let right = ["share", "±", "instructions"].map(|title| (title.to_owned(), Align::Right));
    let left = ["function", "module"].map(|title| (title.to_owned(), Align::Left));
    let orders = [("share", By::Number(0)), ("function", By::Cell(3)), ("module", By::Cell(4))];
    Sheet::new([&right[..], &left].concat(), orders.map(|(name, by)| (name.to_owned(), by)).to_vec(), rows)
        .dispense_with(vec![2, 4])
        .with_keys(vec![Dimension::Function, Dimension::Module])
}

/// The path of the module of a function.
pub fn path_of<'a>(analysis: &'a Analysis, function: &Ranked) -> &'a str {
    analysis.counted.get(function.module).map_or("", |module| &analysis.modules.get(module.counts.module).path)
}
