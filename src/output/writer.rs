//! Where output goes.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context;

/// Calls `print` with the file, or with standard output.
pub fn write_to(file: Option<&Path>, print: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>) -> anyhow::Result<()> {
    match file {
        Some(path) => {
            let context = || format!("cannot write {}", path.display());
            let mut out = BufWriter::new(File::create(path).with_context(context)?);
            print(&mut out)?;
            out.flush().with_context(context)
        }
        None => {
            let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
            print(&mut out)?;
            Ok(out.flush()?)
        }
    }
}
