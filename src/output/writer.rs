//! Where output goes.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::output::{Format, terminal_width};

/// How and where a report is printed.
#[derive(clap::Args)]
pub struct OutputArgs {
    /// Format of the output
    #[arg(long, value_enum, default_value = "table")]
    pub format: Format,

    /// Write the output to this file instead of standard output
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub file: Option<PathBuf>,
}

impl OutputArgs {
    /// Columns of the terminal the report goes to, if it goes to one.
    pub fn width(&self) -> Option<usize> {
        if self.file.is_none() { terminal_width() } else { None }
    }
}

/// Calls `print` with the file, or with standard output, and returns what it returns.
pub fn write_to<T>(file: Option<&Path>, print: impl FnOnce(&mut dyn Write) -> anyhow::Result<T>) -> anyhow::Result<T> {
    match file {
        Some(path) => {
            let context = || format!("cannot write {}", path.display());
            let mut out = BufWriter::new(File::create(path).with_context(context)?);
            let printed = print(&mut out)?;
            out.flush().with_context(context)?;
            Ok(printed)
        }
        None => {
            let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
            let printed = print(&mut out)?;
            out.flush()?;
            Ok(printed)
        }
    }
}
