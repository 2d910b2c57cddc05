//! The files of a series on the disk: the one that is being written, the finished ones, and which of them are kept.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{FlockOperation, flock, statvfs};
use rustix::io::Errno as SystemErrno;

use crate::errno::plain;
use crate::plan::rotation::Keep;
use crate::session::output::OutputError;
use crate::session::rotation::name::{Began, Pattern, State};

/// The files of a series.
#[derive(Debug)]
pub(crate) struct Series {
    folder: PathBuf,
    pattern: Pattern,
    keep: Keep,
    /// The oldest first.
    finished: VecDeque<Finished>,
}

/// A file that is not written any more.
#[derive(Debug)]
struct Finished {
    path: PathBuf,
    bytes: u64,
    /// How old it was when it was seen first. From then on that is a matter of the time that passes: a clock that is set makes no file older.
    age: Duration,
    seen: Instant,
}

/// The file that is being written, under a name that says so. It is locked until this is dropped.
#[derive(Debug)]
pub(crate) struct Part {
    began: Began,
    path: PathBuf,
    file: File,
}

impl Series {
    /// The series that `path` is the pattern of. Files that a recorder has left behind which was killed get names of files that end early.
    /// Returns a sentence for each of them, too.
    ///
    /// # Errors
    /// The folder cannot be read, or another recorder writes to the series.
    pub(crate) fn open(path: &Path, keep: Keep) -> Result<(Self, Vec<String>), OutputError> {
        let error = |source: io::Error| OutputError::Create { path: path.to_owned(), source };
        if path.is_dir() || path.as_os_str().as_bytes().ends_with(b"/") {
            return Err(error(ErrorKind::IsADirectory.into()));
        }
        if path.exists() && !path.is_file() {
            return Err(error(io::Error::other("files that follow each other cannot be made of a device or a pipe")));
        }
        let pattern = Pattern::of(path).ok_or_else(|| error(ErrorKind::InvalidInput.into()))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut found = Vec::new();
        for entry in fs::read_dir(or_here(folder)).map_err(error)? {
            let name = entry.map_err(error)?.file_name();
            found.extend(pattern.read(&name).map(|(began, state)| (began, state, name)));
        }
        found.sort_by_key(|(began, ..)| *began);
        let mut series = Self { folder: folder.to_owned(), pattern, keep, finished: VecDeque::new() };
        let (now, mut sentences) = (SystemTime::now(), Vec::new());
        for (began, state, name) in found {
            let path = series.folder.join(&name);
            let (began, path) = match state {
                State::Partial => match series.take_over(began, &path)? {
                    Some((began, named)) => {
                        sentences.push(format!(
                            "an earlier recording was killed: what it had written is {}",
                            named.display()
                        ));
                        (began, named)
                    }
                    None => continue,
                },
                State::Whole | State::Cut => (began, path),
            };
            series.finished(path, began.age(now));
        }
        Ok((series, sentences))
    }

    /// Gives a file that somebody was writing another name, or takes it away if there is nothing in it.
    fn take_over(&self, began: Began, path: &Path) -> Result<Option<(Began, PathBuf)>, OutputError> {
        let error = |source| OutputError::Create { path: path.to_owned(), source };
        // What is no file, or another user's, is none of a recorder's: a pipe would be waited for.
        let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
        let Ok(file) = OpenOptions::new().read(true).custom_flags(flags).open(path) else { return Ok(None) };
        if !file.metadata().is_ok_and(|file| file.is_file()) {
            return Ok(None);
        }
        if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(SystemErrno::WOULDBLOCK) {
            return Err(OutputError::InUse(path.to_owned()));
        }
        if file.metadata().is_ok_and(|file| file.len() == 0) {
            fs::remove_file(path).map_err(error)?;
            return Ok(None);
        }
        let (began, named) = self.free(began, State::Cut);
        fs::rename(path, &named).map_err(error)?;
        Ok(Some((began, named)))
    }

    /// A name that no file has, in any state.
    fn free(&self, mut began: Began, state: State) -> (Began, PathBuf) {
        let is_taken = |began: Began, other: State| {
            fs::symlink_metadata(self.folder.join(self.pattern.name(began, other))).is_ok()
        };
        let states = [State::Whole, State::Cut, State::Partial];
        // What is given another name has one already.
        while states.iter().any(|&other| (state == State::Partial || other != State::Partial) && is_taken(began, other))
        {
            began.number += 1;
        }
        (began, self.folder.join(self.pattern.name(began, state)))
    }

    fn finished(&mut self, path: PathBuf, age: Duration) {
        let bytes = fs::symlink_metadata(&path).map_or(0, |file| file.len());
        self.finished.push_back(Finished { path, bytes, age, seen: Instant::now() });
    }

    /// Makes the next file, empty, readable by its owner only.
    pub(crate) fn begin(&self) -> io::Result<Part> {
        let (began, path) = self.free(Began::at(SystemTime::now()), State::Partial);
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        // Some file systems have no locks: nobody will know then that it is in use.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        Ok(Part { began, path, file })
    }

    /// The file is written: it gets the name of a whole one, or of one that ends early. Returns its path.
    pub(crate) fn finish(&mut self, part: &Part, is_whole: bool) -> io::Result<PathBuf> {
        let (_, path) = self.free(part.began, if is_whole { State::Whole } else { State::Cut });
        fs::rename(&part.path, &path)?;
        self.finished(path.clone(), Duration::ZERO);
        Ok(path)
    }

    /// Removes the finished files that are not to be kept, but for the newest one. Returns what could not be removed, in sentences.
    pub(crate) fn remove_old(&mut self) -> Vec<String> {
        let mut bytes: u64 = self.finished.iter().map(|file| file.bytes).sum();
        let mut sentences = Vec::new();
        while let Some(oldest) = self.finished.front().filter(|_| self.finished.len() > 1) {
            let too_many = self.keep.files.is_some_and(|most| self.finished.len() > most);
            let too_large = self.keep.bytes.is_some_and(|most| bytes > most);
            let too_old = self.keep.age.is_some_and(|most| oldest.age + oldest.seen.elapsed() > most);
            if !(too_many || too_large || too_old) {
                break;
            }
            let Some(Finished { path, bytes: its, .. }) = self.finished.pop_front() else { break };
            bytes -= its;
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    sentences.push(format!(
                        "cannot remove {}, which is not to be kept: {}",
                        path.display(),
                        plain(&error)
                    ));
                }
                _ => {}
            }
        }
        sentences
    }

    /// Bytes that may be written to the disk, as far as it says.
    pub(crate) fn room(&self) -> u64 {
        statvfs(or_here(&self.folder)).map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    /// The names of its files, with the word TIME.
    pub(crate) fn names(&self) -> String {
        let name: OsString = self.pattern.name(Began { second: 0, number: 1 }, State::Whole);
        let time = Began { second: 0, number: 1 }.to_string();
        self.folder.join(name).display().to_string().replace(&time, "TIME")
    }
}

/// A folder that can be looked into: that of a name without folders is this one.
fn or_here(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}

impl Part {
    /// The name that it has for now.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// To write to.
    pub(crate) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Takes away what comes after the first so many bytes.
    pub(crate) fn cut(&self, bytes: u64) -> io::Result<()> {
        if self.file.metadata()?.len() > bytes { self.file.set_len(bytes) } else { Ok(()) }
    }

    /// Takes it away.
    pub(crate) fn abandon(self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn put(folder: &Path, name: &str, bytes: usize) {
        fs::write(folder.join(name), vec![0; bytes]).unwrap();
    }

    #[test]
    fn old_files_of_the_series_go_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        for day in ["01", "02", "03", "04"] {
            put(at, &format!("web.2020-01-{day}T00-00-00Z.data"), 100);
        }
        let others = ["web.data", "web.data.old", "other.2020-01-01T00-00-00Z.data", "web.2020-01-01T00-00-00Z.txt"];
        others.iter().for_each(|name| put(at, name, 100));
        let open = |keep| Series::open(&at.join("web.data"), keep).unwrap().0;
        open(Keep { bytes: Some(350), ..Keep::default() }).remove_old();
        assert_eq!(names(at).len(), others.len() + 3);
        open(Keep { files: Some(2), ..Keep::default() }).remove_old();
        assert!(others.iter().all(|name| at.join(name).exists()));
        assert!(
            at.join("web.2020-01-03T00-00-00Z.data").exists() && !at.join("web.2020-01-02T00-00-00Z.data").exists()
        );
        let year = Duration::from_secs(365 * 86_400);
        open(Keep { age: Some(1000 * year), ..Keep::default() }).remove_old();
        assert_eq!(names(at).len(), others.len() + 2);
        open(Keep { age: Some(year), ..Keep::default() }).remove_old();
        open(Keep { bytes: Some(1), ..Keep::default() }).remove_old();
        assert_eq!(names(at).len(), others.len() + 1, "the newest stays");
    }

    #[test]
    fn what_is_no_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let pipe = at.join(".web.2020-01-01T00-00-00Z.data.partial");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", at.join(".web.2020-01-02T00-00-00Z.data.partial")).unwrap();
        let (_, said) = Series::open(&at.join("web.data"), Keep::default()).unwrap();
        assert!(said.is_empty() && pipe.exists() && names(at).len() == 2);
        for path in [at, &at.join("sub/"), Path::new("/dev/null")] {
            assert!(Series::open(path, Keep::default()).is_err(), "{path:?}");
        }
    }

    #[test]
    fn files_have_their_names_when_they_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let (mut series, said) = Series::open(&folder.path().join("web.data"), Keep::default()).unwrap();
        assert_eq!(said, Vec::<String>::new());
        let parts: Vec<Part> = (0..3).map(|_| series.begin().unwrap()).collect();
        assert!(names(folder.path()).iter().all(|name| name.starts_with(".web.") && name.ends_with(".data.partial")));
        assert!(matches!(
            Series::open(&folder.path().join("web.data"), Keep::default()),
            Err(OutputError::InUse(path)) if parts.iter().any(|part| part.path == path)
        ));
        for (part, is_whole) in parts.iter().zip([true, true, false]) {
            part.file().unwrap().write_all(b"recorded").unwrap();
            let path = series.finish(part, is_whole).unwrap();
            assert_eq!(fs::read(path).unwrap(), b"recorded");
        }
        assert_eq!(
            names(folder.path())
                .iter()
                .filter(|name| name.ends_with("Z.cut.data")
                    || name.ends_with("-3.cut.data")
                    || name.ends_with("-2.cut.data"))
                .count(),
            1
        );
        // The clock of the machine is not asked what is older.
        series.keep.files = Some(1);
        assert_eq!(series.remove_old(), Vec::<String>::new());
        let left = names(folder.path());
        assert!(left.len() == 1 && left[0].ends_with(".cut.data"), "{left:?}");
        assert!(series.names().ends_with("/web.TIME.data") && series.room() > 0);
    }

    #[test]
    fn what_a_killed_recorder_left_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        put(folder.path(), ".web.2020-01-01T00-00-00Z.data.partial", 10);
        put(folder.path(), "web.2020-01-01T00-00-00Z.data", 20);
        put(folder.path(), ".web.2020-01-02T00-00-00Z.data.partial", 0);
        let (_, said) = Series::open(&folder.path().join("web.data"), Keep::default()).unwrap();
        assert_eq!(names(folder.path()), ["web.2020-01-01T00-00-00Z-2.cut.data", "web.2020-01-01T00-00-00Z.data"]);
        assert!(said.len() == 1 && said[0].ends_with("web.2020-01-01T00-00-00Z-2.cut.data"), "{said:?}");
    }
}
