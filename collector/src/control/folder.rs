//! The files by which programs and `hbbp control` speak to this recorder.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, FileTypeExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process;

use control::{MESSAGES, Message, Recordings, STATE, State, is_recorded};
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, mkfifoat};
use rustix::pipe::fcntl_setpipe_size;

use crate::sys::process::is_running;

/// Room for messages, bytes: what a user may have without privileges (`/proc/sys/fs/pipe-max-size`).
const ROOM: usize = 1 << 20;

/// A recording's folder, as long as the recorder is at work.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    messages: File,
    state: File,
    links: Vec<PathBuf>,
    /// Some program has the link to another recorder.
    is_second: bool,
    /// What was read of a message that is not whole yet.
    rest: Vec<u8>,
    /// Bytes that were no messages.
    skipped: u64,
}

impl Folder {
    /// Makes the folder. `named`: where the user wants it, else it is one that the programs of `roots` look in; a root is a process that
    /// is recorded with what it starts, `None` is everything.
    ///
    /// # Errors
    /// It cannot be made, or another recorder uses it.
    pub(super) fn make(named: Option<&Path>, roots: &[Option<u32>], state: State) -> io::Result<Self> {
        let recordings = Recordings::of_user();
        let path = match named {
            Some(named) => named.to_owned(),
            None => {
                recordings.make()?;
                sweep(recordings.folder());
                recordings.of_recorder(process::id())
            }
        };
        let place = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let mut folder = Self::make_at(path.clone(), state).map_err(place)?;
        if named.is_none() {
            let links = roots.iter().map(|root| recordings.link(*root));
            let (made, taken): (Vec<PathBuf>, Vec<PathBuf>) = links.partition(|link| make_link(link, &folder.path));
            (folder.links, folder.is_second) = (made, !taken.is_empty());
        }
        Ok(folder)
    }

    fn make_at(path: PathBuf, state: State) -> io::Result<Self> {
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(OFlags::NOFOLLOW.bits() as i32);
        let mut state_file = options.clone().create(true).mode(0o600).open(path.join(STATE))?;
        let mut before = Vec::new();
        (&mut state_file).take(State::SIZE as u64).read_to_end(&mut before)?;
        if !before.is_empty() && State::of_line(&before).is_none() {
            return Err(io::Error::other(format!("the file `{STATE}` in it is not a recorder's")));
        }
        flock(&state_file, FlockOperation::NonBlockingLockExclusive).map_err(|errno| match errno {
            rustix::io::Errno::WOULDBLOCK => io::Error::new(io::ErrorKind::ResourceBusy, "another recorder uses it"),
            errno => errno.into(),
        })?;
        let pipe = path.join(MESSAGES);
        // What is left of a recorder that was killed: programs see that it has gone, and look again.
        match fs::symlink_metadata(&pipe) {
            Ok(there) if there.file_type().is_fifo() => fs::remove_file(&pipe)?,
            Ok(_) => return Err(io::Error::other(format!("the file `{MESSAGES}` in it is not a recorder's"))),
            Err(_) => {}
        }
        mkfifoat(CWD, &pipe, Mode::from_raw_mode(0o600))?;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let messages = options.custom_flags(flags.bits() as i32).open(&pipe)?;
        // Smaller where the user has used up what pipes may have.
        let _ = fcntl_setpipe_size(&messages, ROOM);
        let mut folder = Self {
            path,
            messages,
            state: state_file,
            links: Vec::new(),
            is_second: false,
            rest: Vec::new(),
            skipped: 0,
        };
        folder.say(state)?;
        Ok(folder)
    }

    /// What was said since it was asked last.
    pub(super) fn messages(&mut self) -> Vec<Message> {
        let mut bytes = std::mem::take(&mut self.rest);
        // An error is that there is no more. Those who write all the time are not waited for.
        let _ = (&self.messages).take(2 * ROOM as u64).read_to_end(&mut bytes);
        let mut unread = bytes.as_slice();
        let messages = std::iter::from_fn(|| Message::read(&mut unread, &mut self.skipped)).collect();
        self.rest = unread.to_vec();
        messages
    }

    /// Readable when something was said.
    pub(super) fn polled(&self) -> Option<OwnedFd> {
        self.messages.try_clone().ok().map(OwnedFd::from)
    }

    /// Tells programs how things are.
    pub(super) fn say(&mut self, state: State) -> io::Result<()> {
        self.state.write_all_at(state.to_line().as_bytes(), 0)
    }

    /// Whether a program hears another recorder.
    pub(super) fn is_second(&self) -> bool {
        self.is_second
    }

    /// Bytes that were no messages.
    pub(super) fn skipped(&self) -> u64 {
        self.skipped
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let files = [self.path.join(MESSAGES), self.path.join(STATE)];
        for file in self.links.iter().chain(&files) {
            let _ = fs::remove_file(file);
        }
        // One that has something else in it stays.
        let _ = fs::remove_dir(&self.path);
    }
}

/// Links to a recording's folder, unless that is the place of a recorder that is at work.
fn make_link(link: &Path, folder: &Path) -> bool {
    if is_recorded(link) {
        return false;
    }
    let _ = fs::remove_file(link);
    folder.file_name().is_some_and(|name| symlink(name, link).is_ok())
}

/// Removes what recorders left that were killed.
fn sweep(recordings: &Path) {
    for entry in fs::read_dir(recordings).into_iter().flatten().flatten() {
        let path = entry.path();
        let to = fs::read_link(&path).unwrap_or_else(|_| entry.file_name().into());
        let pid = to.to_str().and_then(|name| name.parse().ok());
        let Some(pid) = pid.filter(|&pid: &u32| !is_running(pid)) else { continue };
        let folder = recordings.join(pid.to_string());
        // Of another PID namespace, perhaps.
        if is_recorded(&folder) {
            continue;
        }
        for file in [&path, &folder.join(MESSAGES), &folder.join(STATE)] {
            let _ = fs::remove_file(file);
        }
        let _ = fs::remove_dir(folder);
    }
}

#[cfg(test)]
mod tests {
    use control::{Connection, Order};

    use super::*;

    const STATE_NOW: State = State { on: true, turns: 0, read: 0 };

    #[test]
    fn what_is_said_is_heard_and_nothing_is_left() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("control");
        let mut folder = Folder::make(Some(&path), &[Some(1)], STATE_NOW).unwrap();
        let connection = Connection::open(&path).unwrap();
        assert_eq!(connection.state(), Some(STATE_NOW));
        let marks: Vec<Message> = (0..3).map(|i| Message::of_all(Order::Mark, &format!("phase {i}"))).collect();
        assert!(marks.iter().all(|mark| connection.send(mark)));
        assert_eq!(folder.messages(), marks);
        assert_eq!(folder.messages(), []);
        folder.say(State { on: false, turns: 1, read: 3 }).unwrap();
        assert_eq!(connection.state(), Some(State { on: false, turns: 1, read: 3 }));
        drop(folder);
        assert!(!connection.is_alive() && !path.exists());
    }

    #[test]
    fn a_folder_has_one_recorder_and_survives_one_that_was_killed() {
        let place = tempfile::tempdir().unwrap();
        let first = Folder::make(Some(place.path()), &[], STATE_NOW).unwrap();
        let error = Folder::make(Some(place.path()), &[], STATE_NOW).unwrap_err();
        assert!(error.to_string().contains("another recorder"), "{error}");
        let old = Connection::open(place.path()).unwrap();
        // The kernel closes what a killed process had open, and nothing else.
        flock(&first.state, FlockOperation::Unlock).unwrap();
        std::mem::forget(first);
        let mut second = Folder::make(Some(place.path()), &[], STATE_NOW).unwrap();
        old.send(&Message::of_all(Order::Stop, ""));
        assert_eq!(second.messages(), []);
        let new = Connection::open(place.path()).unwrap();
        new.send(&Message::of_all(Order::Stop, ""));
        assert_eq!(second.messages().len(), 1);
    }

    #[test]
    fn files_of_others_are_left_as_they_are() {
        for (name, content) in [(MESSAGES, "kernel: all is well\n"), (STATE, "CA\n")] {
            let place = tempfile::tempdir().unwrap();
            fs::write(place.path().join(name), content).unwrap();
            let error = Folder::make(Some(place.path()), &[], STATE_NOW).unwrap_err().to_string();
            assert!(error.contains("is not a recorder's") && error.contains(name), "{error}");
            assert_eq!(fs::read_to_string(place.path().join(name)).unwrap(), content);
        }
    }

    #[test]
    fn noise_is_counted() {
        let place = tempfile::tempdir().unwrap();
        let mut folder = Folder::make(Some(place.path()), &[], STATE_NOW).unwrap();
        fs::write(place.path().join(MESSAGES), [b'x'; 1000]).unwrap();
        assert_eq!(folder.messages(), []);
        assert!(folder.skipped() > 900);
    }
}
