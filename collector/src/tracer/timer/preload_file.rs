//! The file of the shared object that programs load.

use std::env;
use std::ffi::OsString;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use agent::Preload;
use tempfile::TempDir;

use crate::sys::can_be_executed;
use crate::sys::process::{Mapping, all_processes, each_mapping, environment};

/// The variable by which dynamic loaders are told of it.
const VARIABLE: &str = "LD_PRELOAD";

/// A file that programs of this user can map.
#[derive(Debug)]
pub(crate) struct PreloadFile {
    path: PathBuf,
    file: File,
    inode: u64,
    device: (u32, u32),
    folder: TempDir,
}

impl PreloadFile {
    /// Writes it into a folder of its own: in the one for temporary files, or, where no code may be mapped from there, in the next that
    /// allows it.
    ///
    /// # Errors
    /// None does.
    pub(crate) fn write(preload: &Preload) -> io::Result<Self> {
        let of_session = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute());
        let folders = [Some(env::temp_dir()), of_session, Some("/var/tmp".into()), env::current_dir().ok()];
        let mut failed = io::Error::from(io::ErrorKind::NotFound);
        for folder in folders.into_iter().flatten() {
            match Self::in_folder(&folder, preload) {
                Ok(file) => return Ok(file),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    fn in_folder(place: &Path, preload: &Preload) -> io::Result<Self> {
        let folder =
            tempfile::Builder::new().prefix("hbbp-").permissions(Permissions::from_mode(0o700)).tempdir_in(place)?;
        let path = folder.path().join("agent.so");
        // The loader takes these for the end of a path.
        if path.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b':' | b' ')) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(&preload.bytes)?;
        if !can_be_executed(&file) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let metadata = file.metadata()?;
        let device = (rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
        Ok(Self { path, file, inode: metadata.ino(), device, folder })
    }

    /// What a command needs in its environment, beside what this process has: the file comes after those that are there already.
    pub(crate) fn environment(&self) -> (&'static str, OsString) {
        let before = env::var_os(VARIABLE).filter(|paths| !paths.is_empty());
        let value = match before {
            Some(paths) => [paths.as_bytes(), b":", self.path.as_os_str().as_bytes()].concat(),
            None => self.path.as_os_str().as_bytes().to_vec(),
        };
        (VARIABLE, OsString::from_vec(value))
    }

    /// Processes that begin from now on have their first signal within so much CPU time, ns.
    pub(crate) fn set_period(&self, period: u64) {
        let _ = self.file.write_all_at(&period.to_ne_bytes(), Preload::PERIOD);
    }

    /// Whether a mapping is one of it.
    pub(crate) fn is_of(&self, map: &Mapping) -> bool {
        // File systems in layers state another device than the file has.
        map.inode == self.inode && (map.device == self.device || map.path == self.path.as_os_str().as_bytes())
    }

    /// Whether a process was started with it in its environment.
    pub(crate) fn is_in_environment_of(&self, process: u32) -> bool {
        let path = self.path.as_os_str().as_bytes();
        let names_it = |variable: &[u8]| {
            let value = variable.strip_prefix(VARIABLE.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
            value.is_some_and(|paths| paths.split(|byte| matches!(byte, b':' | b' ')).any(|one| one == path))
        };
        environment(process).split(|&byte| byte == 0).any(names_it)
    }

    /// The recording is over: the file does nothing any more. It stays if processes go on that have it, or were started with it, for what
    /// they start would look for it. Returns how many, and where it is.
    pub(crate) fn leave(self) -> Option<(u64, PathBuf)> {
        let _ = self.file.write_all_at(&[0; 16], Preload::SIGNAL_AND_TOKEN);
        let own = std::process::id();
        // What daemons write over their arguments may be their environment.
        let has_it = |process| self.is_in_environment_of(process) || each_mapping(process).any(|map| self.is_of(&map));
        let users = all_processes().into_iter().filter(|&process| process != own && has_it(process));
        let count = users.count() as u64;
        if count == 0 {
            return None;
        }
        let _ = self.folder.keep();
        Some((count, self.path))
    }
}
