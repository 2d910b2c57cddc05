//! Where recordings are found: each has a folder.
//!
//! ```text
//! /run/user/1000/hbbp/          or /tmp/hbbp-1000/; of the user's own, mode 0700
//!   4711/                       a recording: the pid of its recorder
//!     messages                  a pipe, to the recorder
//!     state                     from the recorder; locked (flock(2)) as long as it is there
//!   of-4712 -> 4711             the recording of process 4712, and of the processes that it starts
//!   of-all -> 4711              the recording of everything (`hbbp record -a`)
//! ```

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::{env, process};

use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;

/// The pipe in a recording's folder.
pub const MESSAGES: &str = "messages";
/// What the recorder says, in a recording's folder: a [`State`](crate::State).
pub const STATE: &str = "state";
/// The environment variable that names a recording's folder, for programs that are to look nowhere else.
pub const ENVIRONMENT: &str = "HBBP_CONTROL";

/// No process has more ancestors that are looked at.
const MOST_ANCESTORS: usize = 64;

/// The folder that the recordings of this user have their folders in.
#[derive(Clone, Debug)]
pub struct Recordings {
    folder: PathBuf,
}

impl Recordings {
    /// Those of the user that this process runs as.
    pub fn of_user() -> Self {
        let user = geteuid().as_raw();
        let run = PathBuf::from(format!("/run/user/{user}"));
        let is_own = fs::metadata(&run).is_ok_and(|folder| folder.is_dir() && folder.uid() == user);
        Self { folder: if is_own { run.join("hbbp") } else { PathBuf::from(format!("/tmp/hbbp-{user}")) } }
    }

    /// Makes the folder if it is not there.
    ///
    /// # Errors
    /// It cannot be made, or it is not a folder of this user's that nobody else may write to.
    pub fn make(&self) -> io::Result<()> {
        match DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        if !self.is_safe() {
            return Err(io::Error::other("it is not a folder of this user's that nobody else may write to"));
        }
        Ok(())
    }

    /// Whether the folder is this user's alone: in `/tmp`, others could have made it.
    fn is_safe(&self) -> bool {
        fs::symlink_metadata(&self.folder)
            .is_ok_and(|folder| folder.is_dir() && folder.uid() == geteuid().as_raw() && folder.mode() & 0o022 == 0)
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder of the recording that a recorder makes.
    pub fn of_recorder(&self, recorder: u32) -> PathBuf {
        self.folder.join(recorder.to_string())
    }

    /// The link to the recording of a process, or of everything.
    pub fn link(&self, pid: Option<u32>) -> PathBuf {
        self.folder.join(pid.map_or("of-all".to_owned(), |pid| format!("of-{pid}")))
    }

    /// The recorders that are at work, by their pids, in order.
    pub fn recorders(&self) -> Vec<u32> {
        if !self.is_safe() {
            return Vec::new();
        }
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut alive: Vec<u32> = pids.filter(|&pid| is_recorded(&self.of_recorder(pid))).collect();
        alive.sort_unstable();
        alive
    }

    /// The folder of the recording that this process is part of.
    pub(crate) fn of_this_process(&self) -> Option<PathBuf> {
        if !self.is_safe() {
            return None;
        }
        let mut pid = Some(process::id());
        for _ in 0..MOST_ANCESTORS {
            let Some(ancestor) = pid.filter(|&pid| pid > 0) else { break };
            let link = self.link(Some(ancestor));
            if is_recorded(&link) {
                return Some(link);
            }
            pid = parent(ancestor);
        }
        Some(self.link(None)).filter(|link| is_recorded(link))
    }
}

/// The folder that the environment names ([`ENVIRONMENT`]).
pub fn named_folder() -> Option<PathBuf> {
    env::var_os(ENVIRONMENT).filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

/// Whether the recorder of the recording in that folder is at work.
pub fn is_recorded(folder: &Path) -> bool {
    File::open(folder.join(STATE)).is_ok_and(|state| is_locked(&state))
}

/// Whether somebody else holds the lock of a file. It is shared by those who ask, and let go when the file is closed.
pub(crate) fn is_locked(file: &File) -> bool {
    let taken = flock(file, FlockOperation::NonBlockingLockShared);
    if taken.is_ok() {
        let _ = flock(file, FlockOperation::Unlock);
    }
    taken == Err(rustix::io::Errno::WOULDBLOCK)
}

/// The parent of a process: the fourth field of `/proc/PID/stat`, whose second may hold anything in brackets (proc_pid_stat(5)).
fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let after_name = stat.iter().rposition(|&byte| byte == b')')? + 1;
    str::from_utf8(&stat[after_name..]).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::process::getppid;

    use super::*;

    #[test]
    fn the_recording_of_an_ancestor_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let recordings = Recordings { folder: folder.path().join("hbbp") };
        recordings.make().unwrap();
        recordings.make().unwrap();
        assert_eq!((recordings.of_this_process(), recordings.recorders()), (None, vec![]));
        fs::create_dir(recordings.of_recorder(7)).unwrap();
        let state = File::create(recordings.of_recorder(7).join(STATE)).unwrap();
        let link = recordings.link(getppid().map(|parent| parent.as_raw_nonzero().get() as u32));
        symlink("7", &link).unwrap();
        assert_eq!(
            (recordings.of_this_process(), recordings.recorders()),
            (None, vec![]),
            "a recorder that was killed"
        );
        flock(&state, FlockOperation::LockExclusive).unwrap();
        assert_eq!((recordings.of_this_process(), recordings.recorders()), (Some(link.clone()), vec![7]));
        fs::rename(link, recordings.link(None)).unwrap();
        assert_eq!(recordings.of_this_process(), Some(recordings.link(None)));
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let recordings = Recordings { folder: folder.path().join("hbbp") };
        DirBuilder::new().mode(0o700).create(recordings.folder()).unwrap();
        rustix::fs::chmod(recordings.folder(), rustix::fs::Mode::from_raw_mode(0o777)).unwrap();
        assert!(recordings.make().is_err());
        let linked = Recordings { folder: folder.path().join("link") };
        symlink("hbbp", linked.folder()).unwrap();
        assert!(linked.make().is_err());
    }
}
