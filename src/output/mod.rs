//! One result, many writers: tables, CSV, JSON.

mod bar;
mod colour;
mod evidence;
mod head;
mod idle;
mod layout;
mod pager;
mod parquet;
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
pub use head::{head_in_short, head_lines, more, print_below, print_head, print_line, say_head, weaker_in_short};
pub use idle::idle;
pub use layout::{Layout, in_markdown};
pub use pager::page;
pub use reports::number::{Unit, count, counted, share, times, with_digits};
pub use reports::{Head, Precision};
pub use say::{PREFIX, broken, say};
pub use table::{Align, Fit, GAP, Table, columns_of, cut, cut_inside, printable, terminal_width};
pub use tree::tree;
#[cfg(feature = "training")]
pub use tree::{dot, svg};
pub use uncertain::{MARKED, rounded, share_cells};
pub use writer::{HeadArgs, OutputArgs, replace, write_to, written_to};
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
    /// What csv has, for engines and data frames: written by hbbp-fleet, which must be installed
    Parquet,
}

/// Format of what is no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TextFormat {
    #[value(alias = "table")]
    Text,
    Json,
}

impl Format {
    /// Whether it is a table for people, and not for programs.
    pub fn is_for_people(self) -> bool {
        matches!(self, Format::Table | Format::Markdown)
    }

    /// How many rows of each of several lists to print: fewer in a table than of one list.
    pub fn rows_of_lists(self, top: Option<usize>) -> usize {
        self.rows_or(top, 20)
    }

    /// How many rows of each of many groups to print.
    pub fn rows_of_groups(self, top: Option<usize>) -> usize {
        self.rows_or(top, 10)
    }

    /// How many rows to print when `top` were asked for (0: all): in a table not all where nothing was asked for.
    pub fn rows(self, top: Option<usize>) -> usize {
        self.rows_or(top, 40)
    }

    fn rows_or(self, top: Option<usize>, in_a_table: usize) -> usize {
        match top {
            Some(0) => usize::MAX,
            Some(top) => top,
            None if self.is_for_people() => in_a_table,
            None => usize::MAX,
        }
    }
}
