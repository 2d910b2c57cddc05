//! Where output goes.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{BufWriter, IsTerminal, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use analyzer::Analysis;
use anyhow::Context;
use collector::is_standard_output;
use reports::lacks::without_samples;

use crate::output::{Colours, Format, Layout, parquet, say, terminal_width};

/// How and where a report is printed.
#[derive(clap::Args)]
pub struct OutputArgs {
    /// Format of the output
    #[arg(long, value_enum, default_value = "table")]
    pub format: Format,

    /// Write the output to this file instead of standard output (-)
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// Colours in tables, and bars beside shares: on a terminal (auto: none where NO_COLOR is set), always or never
    #[arg(long, alias = "color", value_enum, value_name = "WHEN", default_value = "auto")]
    colour: When,
}

/// When there are colours and bars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum When {
    Auto,
    Always,
    Never,
}

/// How much is said of a recording.
#[derive(clap::Args)]
pub struct HeadArgs {
    /// Print all that is known of the recording above a table
    #[arg(short, long)]
    pub verbose: bool,
}

impl OutputArgs {
    /// What the report is laid out for: the terminal that it goes to, if it goes to one.
    pub fn layout(&self) -> Layout {
        match self.format {
            Format::Markdown => Layout::Markdown,
            _ if self.is_file() => Layout::Text,
            _ => terminal_width().into(),
        }
    }

    /// Whether people read it at once: a table on a terminal.
    pub fn is_read_at_once(&self) -> bool {
        self.format == Format::Table && !self.is_file() && std::io::stdout().is_terminal()
    }

    /// What there is to say of a recording without samples. Where that is not the first thing in the head of a table, it is said on standard error.
    pub fn say_without_samples(&self, analysis: &Analysis) -> Option<String> {
        let nothing = without_samples(analysis)?;
        if !self.format.is_for_people() || analysis.summary.shortcomings.first() != Some(&nothing) {
            say(&nothing);
        }
        Some(nothing)
    }

    /// Whether the output can be written so, as far as that is known before there is any.
    ///
    /// # Errors
    /// Parquet would go to a terminal, or there is nothing that writes it.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.format == Format::Parquet { parquet::check(self.file.as_deref()) } else { Ok(()) }
    }

    /// Calls `print` with where the output goes. What is to be Parquet takes CSV; `keys` are those that name columns of a pivot.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(
        &self,
        keys: &[String],
        print: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        match self.format {
            Format::Parquet => parquet::write(self.file.as_deref(), keys, print),
            _ => write_to(self.file.as_deref(), print),
        }
    }

    /// The colours of a table; there are bars where there are any.
    pub fn colours(&self) -> Colours {
        match self.colour {
            When::Always if self.format == Format::Table => Colours::ALL,
            When::Auto if self.is_read_at_once() => Colours::of_terminal(),
            _ => Colours::NONE,
        }
    }

    fn is_file(&self) -> bool {
        self.file.as_deref().is_some_and(|file| !is_standard_output(file))
    }
}

/// What a file is called in sentences: `-` is standard output.
pub fn written_to(file: &Path) -> String {
    if is_standard_output(file) { "standard output".into() } else { file.display().to_string() }
}

/// Calls `print` with the file, or with standard output (without a file, and for `-`), and returns what it returns.
pub fn write_to<T>(file: Option<&Path>, print: impl FnOnce(&mut dyn Write) -> anyhow::Result<T>) -> anyhow::Result<T> {
    match file.filter(|path| !is_standard_output(path)) {
        Some(path) => {
            let out = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            print_to(out, path, print)
        }
        None => {
            let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
            let printed = print(&mut out)?;
            out.flush()?;
            Ok(printed)
        }
    }
}

/// The same, but what the file had stays until all is written. Pipes and devices are written to, and links are followed.
pub fn replace<T>(file: &Path, print: impl FnOnce(&mut dyn Write) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let old = fs::metadata(file).ok();
    let place = match &old {
        _ if is_standard_output(file) => None,
        Some(old) if old.is_file() => file.canonicalize().ok(),
        Some(_) => None,
        None => (!file.is_symlink()).then(|| file.to_owned()),
    };
    let Some(place) = place else { return write_to(Some(file), print) };
    let context = || format!("cannot write {}", file.display());
    let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let permissions = match &old {
        Some(old) => {
            // Who may not write to the file may not replace it either.
            OpenOptions::new().write(true).open(&place).with_context(context)?;
            old.permissions()
        }
        None => Permissions::from_mode(0o666),
    };
    let mut builder = tempfile::Builder::new();
    let new = builder.prefix(".hbbp-").permissions(permissions).tempfile_in(folder).with_context(context)?;
    let printed = print_to(new.reopen().with_context(context)?, file, print)?;
    new.persist(&place).with_context(context)?;
    Ok(printed)
}

/// Calls `print` with a file of this name.
fn print_to<T>(out: File, path: &Path, print: impl FnOnce(&mut dyn Write) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let context = || format!("cannot write {}", path.display());
    let mut out = BufWriter::new(out);
    let printed = print(&mut out).or_else(|error| match error.downcast_ref::<std::io::Error>() {
        Some(_) => Err(error).with_context(context),
        None => Err(error),
    })?;
    out.flush().with_context(context)?;
    Ok(printed)
}
