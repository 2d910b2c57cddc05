//! The Python package `hbbp`: recordings as data frames.
//!
//! ```text
//! recording   a file that was opened; its analyses, each made once
//! sides       two of them, compared
//! pivot, blocks, samples, document   tables
//! table       Arrow's PyCapsule interface, which polars, pandas, pyarrow and DuckDB take without a copy
//! words       arguments; exceptions
//! ```
//!
//! Numbers and sentences are those of the command: both are made by `reports` and `analyzer`. The lock of the interpreter is
//! released while these work.

mod blocks;
mod columns;
mod document;
mod pivot;
mod recording;
mod samples;
mod sides;
mod table;
mod values;
mod words;

use pyo3::prelude::*;

/// Recordings of hbbp as data frames.
#[pymodule]
mod _hbbp {
    #[pymodule_export]
    use crate::document::{Report, read_report};
    #[pymodule_export]
    use crate::recording::{Recording, open};
    #[pymodule_export]
    use crate::samples::Stream;
    #[pymodule_export]
    use crate::sides::{Diff, diff};
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::words::HbbpError;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
