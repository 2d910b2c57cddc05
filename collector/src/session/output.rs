//! The file a recording goes to.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Seek};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use crate::errno::plain;

/// A new, empty file.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    /// Where it is as long as its place is taken by a recording; dropped, it is removed.
    beside: Option<TempPath>,
    /// Whether nothing of that name was there.
    new: bool,
}

/// Why there is no file to write to.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// Pipes cannot be gone back in.
    #[error("{}: a recording needs a file, not a pipe: its header is written last (`-o -` writes to standard output what needs none)", .0.display())]
    Pipe(PathBuf),
    /// Nobody reads a recording at a terminal.
    #[error(
        "standard output is a terminal: pipe the recording into something (hbbp record -o - -- COMMAND | hbbp mix -i -), or name a file \
         with -o"
    )]
    Terminal,
    /// Two recordings would remove each other's files.
    #[error("{} is being written by another `hbbp record`: give this one another name with -o", .0.display())]
    InUse(PathBuf),
    /// The file cannot be made.
    #[error("cannot write {}: {}", .path.display(), plain(.source))]
    Create {
        /// The file that was to be made.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The recording that is there cannot be put aside.
    #[error("cannot rename {} to {}: {}", .path.display(), .old.display(), plain(.source))]
    Rename {
        /// The recording that was there before.
        path: PathBuf,
        /// The name it was to get.
        old: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Whether a recording goes to standard output.
pub fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-")
}

/// Whether `file` has to be written from its beginning to its end: it is no regular file, or has something in it already.
pub(crate) fn is_stream(file: &mut File) -> bool {
    let appends = || rustix::fs::fcntl_getfl(&file).is_ok_and(|flags| flags.contains(rustix::fs::OFlags::APPEND));
    let is_empty_file = file.metadata().is_ok_and(|there| there.is_file() && there.len() == 0) && !appends();
    !is_empty_file || file.stream_position().map_or(true, |position| position > 0)
}

impl Output {
    /// Creates the file, readable by its owner only: beside a recording that is there, which stays until [`Self::settle`]. `-` is
    /// standard output.
    pub(crate) fn create(path: &Path) -> Result<(Self, File), OutputError> {
        let create_error = |source| OutputError::Create { path: path.to_owned(), source };
        if is_standard_output(path) {
            let stdout = io::stdout();
            if stdout.is_terminal() {
                return Err(OutputError::Terminal);
            }
            let file = stdout.as_fd().try_clone_to_owned().map_err(create_error)?.into();
            return Ok((Self { path: path.to_owned(), beside: None, new: false }, file));
        }
        match fs::metadata(path) {
            Ok(there) if there.file_type().is_fifo() || there.file_type().is_socket() => {
                return Err(OutputError::Pipe(path.to_owned()));
            }
            Ok(there) if there.is_dir() => return Err(create_error(io::ErrorKind::IsADirectory.into())),
            Ok(there) if there.is_file() && there.len() > 0 => {
                let old = aside(path);
                if fs::symlink_metadata(&old).is_ok_and(|there| there.is_dir()) {
                    let source = io::ErrorKind::IsADirectory.into();
                    return Err(OutputError::Rename { path: path.to_owned(), old, source });
                }
                let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
                let beside = tempfile::Builder::new().prefix(".hbbp-").suffix(".data").tempfile_in(dir);
                let (file, beside) = beside.map_err(create_error)?.into_parts();
                return Ok((Self { path: path.to_owned(), beside: Some(beside), new: false }, file));
            }
            _ => {}
        }
        let new = fs::symlink_metadata(path).is_err();
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
        Ok((Self { path: path.to_owned(), beside: None, new }, file.map_err(create_error)?))
    }

    /// Gives the file its name, now that something is recorded. The recording that has it becomes `NAME.old`, as with perf.
    pub(crate) fn settle(&mut self) -> Result<(), OutputError> {
        let Some(beside) = self.beside.take() else { return Ok(()) };
        let old = aside(&self.path);
        let renamed = match fs::rename(&self.path, &old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err((self.path.clone(), old, error)),
            _ => beside.persist(&self.path).map_err(|error| (error.path.to_path_buf(), self.path.clone(), error.error)),
        };
        renamed.map_err(|(path, old, source)| OutputError::Rename { path, old, source })
    }

    /// Takes the file away again: nothing was recorded.
    pub(crate) fn abandon(self) {
        if self.new {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The name that a recording gets which was there before: `PATH.old`.
fn aside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".old");
    name.into()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn recordings_before_stay_until_there_is_a_new_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hbbp.data");
        let old = dir.path().join("hbbp.data.old");
        let record = |text: &[u8]| {
            let (output, mut file) = Output::create(&path).unwrap();
            file.write_all(text).unwrap();
            output
        };
        for text in [b"first", b"again"] {
            record(text).settle().unwrap();
        }
        assert_eq!((fs::read(&path).unwrap(), fs::read(&old).unwrap()), (b"again".to_vec(), b"first".to_vec()));
        record(b"nothing").abandon();
        assert_eq!((fs::read(&path).unwrap(), fs::read(&old).unwrap()), (b"again".to_vec(), b"first".to_vec()));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
        fs::remove_file(&path).unwrap();
        record(b"nothing").abandon();
        assert!(!path.exists());
    }

    #[test]
    fn what_cannot_be_written_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let error = Output::create(&dir.path().join("no/such/dir")).unwrap_err().to_string();
        assert!(error.contains("no/such/dir: No such file"), "{error}");
        let error = Output::create(dir.path()).unwrap_err().to_string();
        assert!(error.contains("directory"), "{error}");
    }
}
