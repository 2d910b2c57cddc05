//! One result, many writers: tables, CSV, JSON.

mod head;
mod number;
mod table;
mod writer;

pub use head::Head;
pub use number::{Unit, count, share};
pub use table::{Align, Table, printable, terminal_width};
pub use writer::write_to;

/// Format of a command's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people; fits the terminal
    Table,
    /// Comma-separated values with a header line
    Csv,
    /// JSON in a fixed shape
    Json,
}
