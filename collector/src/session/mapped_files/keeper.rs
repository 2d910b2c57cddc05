//! A thread that copies files while the recording goes on.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crate::errno::plain;
use crate::session::mapped_files::folder::Folder;

/// Bytes that a recording copies at most.
const MOST_BYTES: u64 = 1 << 30;

/// What became of the files that were to be kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) failed: u64,
    /// What is wrong with the first that could not be kept.
    pub(super) first_failure: Option<String>,
}

impl Kept {
    pub(super) fn fail(&mut self, name: &[u8], why: &str) {
        self.failed += 1;
        self.first_failure.get_or_insert_with(|| format!("{}: {why}", String::from_utf8_lossy(name)));
    }
}

/// A file to be kept.
struct Wanted {
    name: Vec<u8>,
    id: Vec<u8>,
    file: File,
}

#[derive(Debug)]
pub(super) struct Keeper {
    folder: Option<Folder>,
    kept: Arc<Mutex<Kept>>,
    thread: Option<(Sender<Wanted>, JoinHandle<()>)>,
}

impl Keeper {
    /// Keeps files there.
    pub(super) fn new(folder: Option<Folder>) -> Self {
        Self { folder, kept: Arc::default(), thread: None }
    }

    pub(super) fn folder(&self) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.path().to_owned())
    }

    pub(super) fn kept(&self) -> Kept {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps a file, some time before [`Self::finish`] returns. The error: why not.
    pub(super) fn keep(&mut self, name: &[u8], id: &[u8], file: Option<File>) {
        let fail = |why: &str| self.kept.lock().unwrap_or_else(PoisonError::into_inner).fail(name, why);
        let Some(folder) = &self.folder else {
            return fail(
                "HOME does not say where to keep it, or is a folder of another user, or one that others can write",
            );
        };
        let Some(file) = file else { return fail("it was gone, or may not be read") };
        if self.thread.is_none() {
            let (sender, wanted) = channel::<Wanted>();
            let (folder, kept) = (folder.clone(), self.kept.clone());
            let copy_all = move || {
                let mut room = MOST_BYTES;
                for Wanted { name, id, mut file } in wanted {
                    let copied = folder.put(&name, &id, &mut file, &mut room);
                    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    match copied {
                        Ok(bytes) => {
                            kept.files += 1;
                            kept.bytes += bytes;
                        }
                        Err(error)
                            if matches!(error.kind(), io::ErrorKind::QuotaExceeded | io::ErrorKind::InvalidData) =>
                        {
                            kept.fail(&name, &error.to_string());
                        }
                        Err(error) => kept.fail(&name, &format!("{}: {}", folder.path().display(), plain(&error))),
                    }
                }
            };
            match thread::Builder::new().name("keeper".into()).spawn(copy_all) {
                Ok(thread) => self.thread = Some((sender, thread)),
                Err(error) => return fail(&plain(&error).to_string()),
            }
        }
        if let Some((sender, _)) = &self.thread {
            let _ = sender.send(Wanted { name: name.to_vec(), id: id.to_vec(), file });
        }
    }

    /// Waits until all files are kept.
    pub(super) fn finish(&mut self) {
        if let Some((sender, thread)) = self.thread.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}
