//! Files of taxonomies.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use analyzer::mix::Taxonomies;
use anyhow::{Context, ensure};

/// The taxonomies that come with the program, and those of files.
///
/// # Errors
/// A file cannot be read, or is no taxonomy.
pub fn with_files(files: &[PathBuf]) -> anyhow::Result<Taxonomies> {
    let named = |file: &PathBuf| Ok((file.display().to_string(), text(file)?));
    let texts: Vec<(String, String)> = files.iter().map(named).collect::<anyhow::Result<_>>()?;
    let texts: Vec<(&str, &str)> = texts.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
    Ok(Taxonomies::default().with(&texts)?)
}

fn text(file: &Path) -> anyhow::Result<String> {
    /// More than a taxonomy can have.
    const MOST_BYTES: u64 = 1 << 20;
    let context = || format!("cannot read the taxonomy {}", file.display());
    let mut text = String::new();
    let read =
        File::open(file).and_then(|file| file.take(MOST_BYTES).read_to_string(&mut text)).with_context(context)?;
    ensure!((read as u64) < MOST_BYTES, "{} is too large for a taxonomy", file.display());
    Ok(text)
}
