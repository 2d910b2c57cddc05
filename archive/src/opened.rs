//! Archives that were opened.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use analyzer::code::{Image, ImageError};
use analyzer::recording::KERNEL;
use analyzer::{BinarySearch, BuildId, FileIdentity, PackedFile, PackedFiles};
use anyhow::Context;
use formats::archive::{Contents, RECORDING, ROOT};
use perfdata::Recording;
use tempfile::TempDir;

use crate::unpack;

/// An archive, unpacked until this is dropped.
pub struct Opened {
    folder: TempDir,
    files: Arc<PackedFiles>,
    notes: Vec<String>,
}

impl Opened {
    /// Unpacks an archive.
    ///
    /// # Errors
    /// It is damaged, or there is no room for its files.
    pub fn new(file: &Path) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("hbbp-archive-").tempdir().context("a folder for its files")?;
        let Contents { modules, .. } = unpack(file, folder.path())?;
        let mut files = PackedFiles::below(folder.path().join(ROOT));
        let mut notes = Vec::new();
        for module in modules {
            let debug_file = module.found.as_ref().and_then(|found| found.debug_file.as_ref());
            let opened = debug_file.map(|name| Image::open_debug(&folder.path().join(name)));
            // Of a kernel without symbols it is a list of them.
            let is_list = |why: &ImageError| matches!(why, ImageError::NotElf(_)) && module.path.starts_with(KERNEL);
            if let Some(why) = opened.and_then(Result::err).filter(|why| !is_list(why)) {
                notes.push(format!("the debug file of {} cannot be read: {why}", module.path));
            }
            let found = match module.found {
                Some(found) => Ok(PackedFile {
                    file: found.file.into(),
                    place: folder.path().join(found.name),
                    debug_file: found.debug_file.map(|name| folder.path().join(name)),
                    other_build: found.other_build,
                }),
                None => Err(module.missing.unwrap_or_else(|| "its file is not in the archive".to_owned())),
            };
            let build_id = module.build_id.as_deref().and_then(BuildId::from_hex);
            if let Some(names) = module.names {
                files.insert_names(module.path.clone(), build_id.clone(), folder.path().join(names));
            }
            files.insert(module.path, build_id, found);
        }
        Ok(Opened { folder, files: Arc::new(files), notes })
    }

    /// Where its recording is, as long as this lives.
    pub fn place(&self) -> PathBuf {
        self.folder.path().join(RECORDING)
    }

    /// Where the files of its recording are found.
    pub fn search(&self, search: BinarySearch) -> BinarySearch {
        search.of_packed(Arc::clone(&self.files))
    }

    /// What of it cannot be read, in sentences.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Its recording.
    ///
    /// # Errors
    /// It is none.
    pub fn recording(&self) -> Result<Recording, perfdata::Error> {
        Recording::open(&self.place())
    }
}

/// The archives that a command opened, each with the identity of its recording.
#[derive(Clone, Default)]
pub struct Archives(Arc<Mutex<Vec<(FileIdentity, Opened)>>>);

impl Archives {
    /// The recording of an archive, and what else of it cannot be read, in sentences.
    ///
    /// # Errors
    /// The archive is damaged, or there is no room for its files, or its recording is none.
    pub fn open(&self, file: &Path) -> anyhow::Result<(Recording, Vec<String>)> {
        let opened = Opened::new(file)?;
        let notes = opened.notes.clone();
        let recording = opened.recording().context(RECORDING)?;
        if let Some((_, metadata)) = recording.file() {
            self.opened().push((FileIdentity::of(metadata), opened));
        }
        Ok((recording, notes))
    }

    /// Whether a recording is of one of them.
    pub fn has(&self, recording: &Recording) -> bool {
        self.of(recording).is_some()
    }

    /// Where the files of a recording are found.
    pub fn search_for(&self, recording: &Recording, search: BinarySearch) -> BinarySearch {
        match self.of(recording) {
            Some(files) => search.of_packed(files),
            None => search.of_recording(recording),
        }
    }

    /// The same for code of any of them, and of others.
    pub fn search(&self, search: BinarySearch) -> BinarySearch {
        let packed = self.opened().iter().map(|(_, opened)| Arc::clone(&opened.files)).collect();
        BinarySearch { packed, ..search }
    }

    fn opened(&self) -> MutexGuard<'_, Vec<(FileIdentity, Opened)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, recording: &Recording) -> Option<Arc<PackedFiles>> {
        let (_, metadata) = recording.file()?;
        let identity = FileIdentity::of(metadata);
        self.opened().iter().find(|(known, _)| *known == identity).map(|(_, opened)| Arc::clone(&opened.files))
    }
}
