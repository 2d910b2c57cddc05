//! Where a recording's bytes are: read at positions, so that several readers can share it.

use std::fmt;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use crate::Error;

pub(crate) enum RecordingBytes {
    /// `opened`: what the file system said of a file that was there before.
    File {
        file: File,
        len: u64,
        opened: Option<Metadata>,
    },
    Bytes(Vec<u8>),
}

impl RecordingBytes {
    /// A regular file is read in place; anything else (a FIFO, say) is copied to a temporary file first.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let doing = "opening the recording";
        let file = File::open(path).map_err(Error::io(doing))?;
        let metadata = file.metadata().map_err(Error::io(doing))?;
        if !metadata.is_file() {
            return Self::spool(file);
        }
        Ok(Self::File { file, len: metadata.len(), opened: Some(metadata) })
    }

    /// Copies a stream to a temporary file that has no name and that only this user can read.
    pub(crate) fn spool(mut stream: impl Read) -> Result<Self, Error> {
        let mut file = unnamed_temporary_file().map_err(Error::io("making a temporary file for the stream"))?;
        let len = io::copy(&mut stream, &mut file).map_err(Error::io("copying the stream to a temporary file"))?;
        Ok(Self::File { file, len, opened: None })
    }

    /// The file that it is read from, and what the file system said of it before anything was read.
    pub(crate) fn file(&self) -> Option<(&File, &Metadata)> {
        match self {
            Self::File { file, opened, .. } => Some((file, opened.as_ref()?)),
            Self::Bytes(_) => None,
        }
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::File { len, .. } => *len,
            Self::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// Fills `buffer` from `offset` on as far as the bytes go; returns how many.
    pub(crate) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        match self {
            Self::Bytes(bytes) => {
                let mut rest = usize::try_from(offset).ok().and_then(|start| bytes.get(start..)).unwrap_or_default();
                rest.read(buffer).map_err(Error::io("reading the recording"))
            }
            Self::File { file, .. } => {
                let mut filled = 0;
                while let Some(room @ [_, ..]) = buffer.get_mut(filled..) {
                    match file.read_at(room, offset.saturating_add(filled as u64)) {
                        Ok(0) => break,
                        Ok(count) => filled += count,
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(source) => return Err(Error::Io { doing: "reading the recording", source }),
                    }
                }
                Ok(filled)
            }
        }
    }

    /// The `size` bytes at `offset`, all of them.
    pub(crate) fn section(&self, what: &'static str, offset: u64, size: u64) -> Result<Vec<u8>, Error> {
        let short = |left| Error::Short { what, offset, needs: size, left };
        let left = self.len().saturating_sub(offset);
        if size > left {
            return Err(short(left));
        }
        let mut bytes = vec![0; usize::try_from(size).map_err(|_| short(left))?];
        match self.read_at(offset, &mut bytes)? {
            count if count == bytes.len() => Ok(bytes),
            count => Err(short(count as u64)),
        }
    }
}

impl fmt::Debug for RecordingBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Self::File { .. } => "a file",
            Self::Bytes(_) => "memory",
        };
        write!(f, "{} bytes in {kind}", self.len())
    }
}

fn unnamed_temporary_file() -> io::Result<File> {
    let directory = std::env::temp_dir();
    let process = std::process::id();
    for attempt in 0..1000u32 {
        let path = directory.join(format!("perfdata-{process}-{attempt}.spool"));
        match OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => {
                std::fs::remove_file(&path)?;
                return Ok(file);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("1000 names tried in {}", directory.display())))
}
