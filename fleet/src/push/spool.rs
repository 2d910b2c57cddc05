//! What a recorder left in a folder: which of its files are finished.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context;

use crate::places::{id_in, is_recording};

/// A file that says nowhere that it is whole is taken for whole when it did not change for so long.
const QUIET: Duration = Duration::from_secs(120);

/// The recordings in a folder.
#[derive(Default)]
pub struct Found {
    /// Those that are finished, in the order of their names.
    pub files: Vec<PathBuf>,
    /// What is to be said of others.
    pub notes: Vec<String>,
    /// Those that cannot be read, and why.
    pub errors: Vec<String>,
}

impl Found {
    /// Looks at each.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn in_folder(folder: &Path) -> anyhow::Result<Self> {
        let context = || folder.display().to_string();
        let mut found = Found::default();
        for entry in fs::read_dir(folder).with_context(context)? {
            let path = entry.with_context(context)?.path();
            if is_recording(&path.file_name().unwrap_or_default().to_string_lossy()) {
                found.add(path);
            }
        }
        found.files.sort();
        found.notes.sort();
        found.errors.sort();
        Ok(found)
    }

    fn add(&mut self, path: PathBuf) {
        let name = path.display().to_string();
        match state_of(&path) {
            Ok(State::Finished) => self.files.push(path),
            // What a recorder that was killed has left is called so by the next one.
            Ok(State::Unfinished) if is_cut(&name) => self.files.push(path),
            Ok(State::Unfinished) => self.notes.push(format!(
                "{name} is being written or copied, or who did so was killed: it stays here"
            )),
            Ok(State::Recent) => self.notes.push(format!(
                "{name} is of a pipe, which does not say that it is whole, and changed less than {} seconds ago: it stays here for now",
                QUIET.as_secs()
            )),
            Ok(State::Other) => self.notes.push(format!("{name} is no recording: it stays here")),
            Ok(State::NoFile) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => self.errors.push(format!("not sent: {name}: {error}")),
        }
    }
}

/// Whether a name is that of a recording that was cut off, sent already or not.
fn is_cut(name: &str) -> bool {
    let plain = id_in(name).and_then(|id| name.strip_suffix(&format!(".{id}.data")));
    plain.or(name.strip_suffix(".data")).is_some_and(|plain| plain.ends_with(".cut"))
}

/// Whether a recorder is done with a file.
enum State {
    Finished,
    Unfinished,
    /// It may be whole.
    Recent,
    Other,
    NoFile,
}

fn state_of(path: &Path) -> std::io::Result<State> {
    // Opening a named pipe would wait for who writes to it.
    if !fs::metadata(path)?.is_file() {
        return Ok(State::NoFile);
    }
    let mut file = File::open(path)?;
    let mut begin = Vec::new();
    (&file).take(HEADER).read_to_end(&mut begin)?;
    if begin.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return Ok(State::Finished);
    }
    if !begin.starts_with(b"PERFILE2") {
        return Ok(State::Other);
    }
    let metadata = file.metadata()?;
    if number(&begin, 8) == Some(16) {
        let now = SystemTime::now();
        let changed = metadata.modified()?;
        // The clock of a file server may be a little ahead.
        let since = now.duration_since(changed).or_else(|_| changed.duration_since(now)).unwrap_or_default();
        return Ok(if since < QUIET { State::Recent } else { State::Finished });
    }
    // The size of the data is written last.
    let (Some(offset), Some(size @ 1..)) = (number(&begin, 40), number(&begin, 48)) else {
        return Ok(State::Unfinished);
    };
    // After the data come the places of what the file says of itself, one for each bit of the header, and then these.
    let bits: u32 = begin.get(72..).unwrap_or_default().iter().map(|byte| byte.count_ones()).sum();
    let end = offset.checked_add(size).filter(|end| end.saturating_add(16 * u64::from(bits)) <= metadata.len());
    let Some(end) = end else { return Ok(State::Unfinished) };
    let mut places = Vec::new();
    file.seek(SeekFrom::Start(end))?;
    (&file).take(16 * u64::from(bits)).read_to_end(&mut places)?;
    let is_there = |place: &[u8]| {
        let (Some(offset), Some(size)) = (number(place, 0), number(place, 8)) else { return false };
        offset.checked_add(size).is_some_and(|end| end <= metadata.len())
    };
    Ok(if places.chunks(16).all(is_there) { State::Finished } else { State::Unfinished })
}

/// Bytes of the header of a recording.
const HEADER: u64 = 104;

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
