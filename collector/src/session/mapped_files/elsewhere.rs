//! A file that is not at its path for the recorder: held open until it is kept, or nobody has it any more.

use std::fs::File;
use std::sync::{Mutex, PoisonError};

use formats::file_identity::FileIdentity;

use crate::session::mapped_files::find::Key;

/// A file that is not at its path for the recorder.
#[derive(Debug, Default)]
pub(super) struct Elsewhere {
    pub(super) key: Key,
    pub(super) id: Vec<u8>,
    /// Open from when it is mapped until it is kept, or nobody has it any more.
    file: Mutex<Option<File>>,
    is_kept: Mutex<bool>,
}

impl Elsewhere {
    pub(super) fn new(key: Key, id: Vec<u8>) -> Self {
        Self { key, id, ..Self::default() }
    }

    pub(super) fn is_kept(&self) -> bool {
        *self.is_kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_open(&self) -> bool {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Of the file that is open.
    pub(super) fn state(&self) -> Option<FileIdentity> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        Some(FileIdentity::of(&file.as_ref()?.metadata().ok()?))
    }

    /// Holds this file open if none is. Returns whether it does.
    pub(super) fn hold(&self, file: Option<File>) -> bool {
        let mut open = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let takes = open.is_none() && file.is_some();
        if takes {
            *open = file;
        }
        takes
    }

    /// From now on it is kept. Returns whether it was before.
    pub(super) fn set_kept(&self) -> bool {
        std::mem::replace(&mut *self.is_kept.lock().unwrap_or_else(PoisonError::into_inner), true)
    }

    pub(super) fn take_file(&self) -> Option<File> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
