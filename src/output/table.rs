//! Tables for people: as wide as the terminal, or as wide as they need to be where there is none.

use std::io::{IsTerminal, Write};

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Width, presets};

/// Where the text of a column stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Names.
    Left,
    /// Numbers: never cut or wrapped.
    Right,
}

/// A table of strings under a header.
pub struct Table {
    columns: Vec<(String, Align)>,
    table: comfy_table::Table,
}

impl Table {
    /// A table with these columns.
    pub fn new(columns: Vec<(String, Align)>) -> Self {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(columns.iter().map(|(title, _)| title.clone()));
        Table { columns, table }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        let mut row = comfy_table::Row::from(cells);
        row.max_height(1);
        self.table.add_row(row);
    }

    /// Prints it; on a terminal long names are cut to make it fit, elsewhere nothing is.
    pub fn print(mut self, out: &mut dyn Write, to_terminal: bool) -> std::io::Result<()> {
        if to_terminal && std::io::stdout().is_terminal() {
            self.table.set_content_arrangement(ContentArrangement::Dynamic);
        } else {
            self.table.set_content_arrangement(ContentArrangement::Disabled);
        }
        for (index, (title, align)) in self.columns.iter().enumerate() {
            let Some(column) = self.table.column_mut(index) else { continue };
            column.set_padding((0, 2));
            if *align == Align::Right {
                column.set_cell_alignment(CellAlignment::Right);
                column.set_constraint(ColumnConstraint::ContentWidth);
            } else {
                column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(title.len() as u16 + 2)));
            }
        }
        for line in self.table.lines() {
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
