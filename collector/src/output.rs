//! The file a recording goes to.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::errno::plain;

/// A new, empty file, and the recording it took the place of.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    old: Option<PathBuf>,
}

/// Why there is no file to write to.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// Standard output and pipes cannot be gone back in.
    #[error("{}: a recording needs a file, not a pipe: its header is written last", .0.display())]
    Pipe(PathBuf),
    /// The file cannot be made.
    #[error("cannot write {}: {}", .path.display(), plain(.source))]
    Create {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The recording that is there cannot be put aside.
    #[error("cannot rename {} to {}: {}", .path.display(), .old.display(), plain(.source))]
    Rename {
        /// What.
        path: PathBuf,
        /// To what.
        old: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl Output {
    /// Creates the file, readable by its owner only. A file of that name that is not empty becomes `NAME.old`, as with perf.
    pub(crate) fn create(path: &Path) -> Result<(Self, File), OutputError> {
        let create_error = |source| OutputError::Create { path: path.to_owned(), source };
        let mut old = None;
        match fs::metadata(path) {
            Ok(there) if there.file_type().is_fifo() || there.file_type().is_socket() => {
                return Err(OutputError::Pipe(path.to_owned()));
            }
            Ok(there) if there.is_dir() => return Err(create_error(io::ErrorKind::IsADirectory.into())),
            Ok(there) if there.is_file() && there.len() > 0 => {
                let aside = aside(path);
                fs::rename(path, &aside).map_err(|source| OutputError::Rename {
                    path: path.to_owned(),
                    old: aside.clone(),
                    source,
                })?;
                old = Some(aside);
            }
            _ => {}
        }
        let output = Self { path: path.to_owned(), old };
        match OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path) {
            Ok(file) => Ok((output, file)),
            Err(source) => {
                output.abandon();
                Err(create_error(source))
            }
        }
    }

    /// Takes the file away again and puts the one before back: nothing was recorded.
    pub(crate) fn abandon(self) {
        if fs::metadata(&self.path).is_ok_and(|there| there.is_file()) {
            let _ = fs::remove_file(&self.path);
        }
        if let Some(old) = self.old {
            let _ = fs::rename(old, &self.path);
        }
    }
}

/// `PATH.old`.
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
    fn the_recording_before_is_put_aside_and_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hbbp.data");
        let old = dir.path().join("hbbp.data.old");
        let (_, mut file) = Output::create(&path).unwrap();
        assert!(!old.exists());
        file.write_all(b"first").unwrap();
        let (output, mut file) = Output::create(&path).unwrap();
        assert_eq!(fs::read(&old).unwrap(), b"first");
        file.write_all(b"second").unwrap();
        output.abandon();
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert!(!old.exists());
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
