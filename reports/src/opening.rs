//! Files of recordings.

use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use analyzer::BinarySearch;
use analyzer::flow::{Counted, CountedError};
use anyhow::Context;
use archive::{Archives, is_archive};
use otlp::is_otlp;
use perfdata::Recording;

use crate::kind::{Reader, Reads, ZSTD, begin_of, is_document};
use crate::recording_of;

/// Whether it is none of our documents: a file of `hbbp merge`, or exact counts.
pub fn is_recording(file: &Path) -> bool {
    !is_document(&begin_of(file))
}

/// What to do about a file that is not there, to be put after its name.
pub type Hint = fn(&Reader, &Path) -> String;

/// Opens a recording, or an archive of one, which is kept with the others. What of an archive cannot be read is said in sentences.
///
/// # Errors
/// It is of another kind, or cannot be read.
pub fn open(
    file: &Path,
    reader: &Reader,
    (archives, search): (&Archives, BinarySearch),
    hint: Hint,
) -> anyhow::Result<(Recording, Vec<String>)> {
    if begin_of(file).starts_with(&ZSTD) && is_archive(file) {
        reader.refuse(file)?;
        return archives.open(file).with_context(|| format!("{}: the archive", file.display()));
    }
    Ok((open_recording(file, reader, &archives.search(search), hint)?, Vec::new()))
}

/// Reads a file of `hbbp merge`, or exact counts.
///
/// # Errors
/// It is of another kind, or cannot be read.
pub fn read_counts(file: &Path, reader: &Reader, search: &BinarySearch) -> anyhow::Result<Counted> {
    let counted = Counted::read(file, search);
    if let Err(CountedError::Exact(_)) = counted {
        reader.refuse(file)?;
    }
    counted.with_context(|| file.display().to_string())
}

/// What is said of an option that changes nothing where counts are read and not made.
pub fn not_for_counts(option: &str) -> String {
    format!(
        "{option} changes nothing here: it is for recordings, and exact counts and merged files are counted already"
    )
}

/// Opens a recording, or says what it is instead. Of profiles of OpenTelemetry one is made, with the programs that `search` finds. `hint` says what
/// to do about a file that is not there, after its name.
///
/// # Errors
/// It is of another kind, or cannot be read.
pub fn open_recording(file: &Path, reader: &Reader, search: &BinarySearch, hint: Hint) -> anyhow::Result<Recording> {
    reader.refuse(file)?;
    if is_otlp(file) {
        let recording = recording_of(file, search).with_context(|| file.display().to_string())?;
        return Recording::open(recording.path()).with_context(|| file.display().to_string());
    }
    Recording::open(file).map_err(|error| {
        let is_none = matches!(error, perfdata::Error::NotPerfData { .. } | perfdata::Error::Empty);
        let what = match is_none {
            true if is_pipe(file) => {
                let others = ": other files have to be named, or piped in (-)";
                let others = if reader.reads == Reads::Recordings { "" } else { others };
                format!(" is a pipe, and no recording comes out of it{others}")
            }
            true => " is not a recording of `hbbp record` or `perf record`".to_owned(),
            false if !file.exists() => hint(reader, file),
            false => String::new(),
        };
        anyhow::Error::new(error).context(format!("{}{what}", file.display()))
    })
}

/// Whether it can be read once only, as what a shell makes of `<(..)`: what it has cannot be looked at first.
fn is_pipe(file: &Path) -> bool {
    file.metadata().is_ok_and(|there| there.file_type().is_fifo())
}
