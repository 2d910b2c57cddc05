//! One result, many writers: tables, CSV, JSON.

mod colour;
mod evidence;
mod head;
mod idle;
mod layout;
mod number;
mod pager;
mod precision;
pub mod profile;
#[macro_use]
mod say;
mod table;
mod tree;
mod uncertain;
mod writer;
mod xml;

pub use colour::{Colours, Role};
pub use evidence::evidence;
pub use head::{Head, print_line};
pub use idle::idle;
pub use layout::{Layout, in_markdown};
pub use number::{Unit, count, share, with_digits};
pub use pager::page;
pub use precision::Precision;
pub use say::say;
pub use table::{Align, Fit, GAP, Table, cut, printable, terminal_width};
pub use tree::tree;
#[cfg(feature = "training")]
pub use tree::{dot, svg};
pub use uncertain::{MARKED, rounded, share_cells};
pub use writer::{HeadArgs, OutputArgs, write_to, written_to};
pub use xml::escaped;

/// Format of a command's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A table for people, as wide as the terminal
    Table,
    /// A table in Markdown, for notes and pull requests
    Markdown,
    /// Comma-separated values with a header line
    Csv,
    /// JSON in a fixed shape
    Json,
}

/// Format of what is no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TextFormat {
    #[value(alias = "table")]
    Text,
    Json,
}

impl Format {
    /// How many rows of each of several lists to print: fewer in a table than of one list.
    pub fn rows_of_lists(self, top: Option<usize>) -> usize {
        const ROWS_OF_A_TABLE: usize = 20;
        match (top, self) {
            (None, Format::Table | Format::Markdown) => ROWS_OF_A_TABLE,
            (top, format) => format.rows(top),
        }
    }

    /// How many rows of each of many groups to print.
    pub fn rows_of_groups(self, top: Option<usize>) -> usize {
        const ROWS_OF_A_GROUP: usize = 10;
        match (top, self) {
            (None, Format::Table | Format::Markdown) => ROWS_OF_A_GROUP,
            (top, format) => format.rows(top),
        }
    }

    /// How many rows to print when `top` were asked for (0: all): in a table not all where nothing was asked for.
    pub fn rows(self, top: Option<usize>) -> usize {
        const ROWS_OF_A_TABLE: usize = 40;
        match (top, self) {
            (Some(0), _) | (None, Format::Csv | Format::Json) => usize::MAX,
            (Some(top), _) => top,
            (None, Format::Table | Format::Markdown) => ROWS_OF_A_TABLE,
        }
    }
}
