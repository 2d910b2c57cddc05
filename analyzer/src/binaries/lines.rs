//! Lists that are read by lines: those of the kernel's symbols and modules.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Split, Take};
use std::path::{Path, PathBuf};

use crate::code::ImageError;

/// The lines of a list.
pub(super) struct Lines {
    path: PathBuf,
    lines: Split<BufReader<Take<File>>>,
}

impl Lines {
    /// Those of the first bytes of a file, at most so many. Devices and pipes may wait for ever: they are refused.
    ///
    /// # Errors
    /// It cannot be opened, or is no regular file.
    pub fn of(path: &Path, most: u64) -> Result<Self, ImageError> {
        let unreadable = |source| ImageError::Read { path: path.to_owned(), source };
        if !path.metadata().map_err(unreadable)?.is_file() {
            return Err(ImageError::NotAFile(path.to_owned()));
        }
        let file = File::open(path).map_err(unreadable)?;
        Ok(Lines { path: path.to_owned(), lines: BufReader::new(file.take(most)).split(b'\n') })
    }
}

impl Iterator for Lines {
    type Item = Result<String, ImageError>;

    /// What is no UTF-8 is replaced.
    fn next(&mut self) -> Option<Self::Item> {
        let line = self.lines.next()?;
        let text = line.map(|line| String::from_utf8_lossy(&line).into_owned());
        Some(text.map_err(|source| ImageError::Read { path: self.path.clone(), source }))
    }
}
