//! The way to a recorder.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::message::Message;
use crate::place::{MESSAGES, Recordings, STATE, is_locked, named_folder};
use crate::state::State;

/// An open way to the recorder of one recording.
#[derive(Debug)]
pub struct Connection {
    folder: PathBuf,
    messages: Guarded,
    state: Guarded,
}

impl Connection {
    /// To the recorder whose recording this process is part of. `known`: the folder that it was in before: whose parents have ended finds
    /// it no more.
    pub(crate) fn to_recorder(known: Option<&Path>) -> Option<Self> {
        if let Some(folder) = named_folder() {
            return Self::open(&folder).ok();
        }
        let known = known.and_then(|folder| Self::open(folder).ok());
        known.or_else(|| Self::open(&Recordings::of_user().of_this_process()?).ok())
    }

    /// The folder of its recording.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What is the same of all ways to one recorder.
    pub(crate) fn identity(&self) -> (u64, u64) {
        (self.state.device, self.state.inode)
    }

    /// To the recorder of the recording in that folder.
    ///
    /// # Errors
    /// There is none, it is not at work any more, or this user may not speak to it.
    pub fn open(folder: &Path) -> io::Result<Self> {
        // It may lie in a folder that others chose.
        let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits() as i32;
        let state = OpenOptions::new().read(true).custom_flags(flags).open(folder.join(STATE))?;
        if !is_locked(&state) {
            return Err(io::Error::new(io::ErrorKind::NotFound, "its recorder is not at work any more"));
        }
        // Open for reading, too: a write to a pipe that nobody reads any more would end the program (SIGPIPE).
        let mut options = OpenOptions::new();
        let messages = options.read(true).write(true).custom_flags(flags).open(folder.join(MESSAGES))?;
        if !messages.metadata()?.file_type().is_fifo() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "what should be a pipe is none"));
        }
        Ok(Self { folder: folder.to_owned(), messages: Guarded::new(messages)?, state: Guarded::new(state)? })
    }

    /// Says something. False: the recorder has not read what was said before, and there is no room.
    pub fn send(&self, message: &Message) -> bool {
        let Some(mut messages) = self.messages.get() else { return false };
        let bytes = message.to_bytes();
        loop {
            match messages.write(&bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                written => return matches!(written, Ok(Message::SIZE)),
            }
        }
    }

    /// What the recorder says.
    pub fn state(&self) -> Option<State> {
        let mut line = [0; State::SIZE];
        self.state.get()?.read_exact_at(&mut line, 0).ok()?;
        State::of_line(&line)
    }

    /// Whether the recorder is still at work: it removes the files at its end, and its lock goes with it.
    pub fn is_alive(&self) -> bool {
        let is_there = |state: &File| state.metadata().is_ok_and(|state| state.nlink() > 0) && is_locked(state);
        self.messages.get().is_some() && self.state.get().is_some_and(is_there)
    }
}

/// A file whose descriptor the program may have closed and used for something else: a daemon closes all.
#[derive(Debug)]
struct Guarded {
    file: Option<File>,
    device: u64,
    inode: u64,
}

impl Guarded {
    fn new(file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self { file: Some(file), device: metadata.dev(), inode: metadata.ino() })
    }

    /// The file, if the descriptor is still one of it.
    fn get(&self) -> Option<&File> {
        let is_same =
            |file: &&File| file.metadata().is_ok_and(|found| (found.dev(), found.ino()) == (self.device, self.inode));
        self.file.as_ref().filter(is_same)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if self.get().is_none() {
            // It is the program's now.
            std::mem::forget(self.file.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use rustix::fs::{FlockOperation, flock};

    use super::*;

    /// A recording's folder, with its pipe and its locked state.
    fn recording() -> (tempfile::TempDir, File, File) {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join(MESSAGES);
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        let mut state = File::create(folder.path().join(STATE)).unwrap();
        state.write_all(State { on: true, turns: 2, read: 4 }.to_line().as_bytes()).unwrap();
        flock(&state, FlockOperation::LockExclusive).unwrap();
        let messages = OpenOptions::new().read(true).write(true).open(pipe).unwrap();
        (folder, messages, state)
    }

    #[test]
    fn a_recorder_that_has_gone_is_noticed() {
        let (folder, messages, state) = recording();
        let connection = Connection::open(folder.path()).unwrap();
        assert_eq!(connection.state(), Some(State { on: true, turns: 2, read: 4 }));
        assert!(connection.is_alive());
        drop((state, messages));
        assert!(!connection.is_alive());
        // Nobody reads, and nothing ends this process.
        assert!(connection.send(&Message::of_process(crate::Order::Mark, "x")));
        assert!(Connection::open(folder.path()).is_err());
    }

    #[test]
    fn what_does_not_fit_is_not_waited_for() {
        let (folder, _messages, _state) = recording();
        let connection = Connection::open(folder.path()).unwrap();
        let mark = Message::of_process(crate::Order::Mark, "x");
        let sent = (0..10_000).take_while(|_| connection.send(&mark)).count();
        assert_eq!(sent, 65_536 / Message::SIZE);
    }

    /// Daemons close all descriptors, and what they open after that gets the same numbers.
    #[test]
    fn descriptors_that_the_program_has_taken_are_left_alone() {
        let (folder, _messages, _state) = recording();
        let log = File::create(folder.path().join("log")).unwrap();
        let number = log.as_raw_fd();
        let pipe = Guarded::new(File::open(folder.path().join(STATE)).unwrap()).unwrap();
        let taken = Guarded { file: Some(log), device: pipe.device, inode: pipe.inode };
        assert!(taken.get().is_none());
        drop(taken);
        assert!(std::fs::read_link(format!("/proc/self/fd/{number}")).unwrap().ends_with("log"), "it is still open");
    }
}
