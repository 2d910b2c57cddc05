//! The folder of what was got, as elfutils' client has it: `<build id>/debuginfo` and `<build id>/executable`; an empty file says that no
//! server has it.

use std::fs::{self, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use reports::folders::absolute;
use tempfile::NamedTempFile;

use super::settings::A_DAY;

/// The folder. Files in it say how long things are kept.
pub struct Folder(PathBuf);

/// What the folder has.
#[derive(Debug, PartialEq, Eq)]
pub enum Kept {
    /// The file.
    File(PathBuf),
    /// No server had it a moment ago.
    Absent,
    /// Nothing is known.
    Unknown,
}

/// Files that say how long, each with what holds without it, in seconds.
const ABSENT_FOR: (&str, u64) = ("cache_miss_s", 600);
const CLEANED_EVERY: (&str, u64) = ("cache_clean_interval_s", 86_400);
const UNUSED_FOR: (&str, u64) = ("max_unused_age_s", 604_800);

/// What is kept of a build.
pub const NAMES: [&str; 2] = ["debuginfo", "executable"];

impl Folder {
    /// `DEBUGINFOD_CACHE_PATH`, from the working directory; or else the old place, if there is something; or else below
    /// `XDG_CACHE_HOME`, by default `~/.cache`.
    pub fn of_user() -> Option<Self> {
        let old = || absolute("HOME").map(|home| home.join(".debuginfod_client_cache")).filter(|old| old.is_dir());
        let cache = || absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
        let named = std::env::var_os("DEBUGINFOD_CACHE_PATH").and_then(|named| std::path::absolute(named).ok());
        let named = named.or_else(old);
        Some(Folder(named.or_else(|| Some(cache()?.join("debuginfod_client")))?))
    }

    /// What is kept of a build, under one of [`NAMES`].
    pub fn find(&self, build_id: &str, name: &str) -> Kept {
        let file = self.0.join(build_id).join(name);
        let Ok(metadata) = fs::metadata(&file) else { return Kept::Unknown };
        if metadata.len() > 0 {
            return if metadata.is_file() { Kept::File(file) } else { Kept::Unknown };
        }
        if age(metadata.modified()) <= self.seconds(ABSENT_FOR) {
            return Kept::Absent;
        }
        let _ = fs::remove_file(file);
        Kept::Unknown
    }

    /// A file to write to, which is kept only if it is given to [`Self::keep`].
    pub fn begin(&self, build_id: &str, name: &str) -> io::Result<NamedTempFile> {
        let folder = self.0.join(build_id);
        fs::create_dir_all(&folder)?;
        let prefix = format!("{name}.");
        // Who was killed while writing left a file. Nobody waits longer than a day for more bytes of one.
        let is_left = |path: &Path, metadata: &Metadata| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&prefix) && metadata.is_file() && age(metadata.modified()) > A_DAY
        };
        for (left, _) in entries(&folder).filter(|(path, metadata)| is_left(path, metadata)) {
            let _ = fs::remove_file(left);
        }
        tempfile::Builder::new().prefix(&prefix).tempfile_in(folder)
    }

    /// Keeps a file that was written.
    pub fn keep(&self, file: NamedTempFile, build_id: &str, name: &str) -> io::Result<PathBuf> {
        file.as_file().set_permissions(Permissions::from_mode(0o400))?;
        let place = self.0.join(build_id).join(name);
        file.persist(&place)?;
        Ok(place)
    }

    /// Keeps that no server has it.
    pub fn keep_absent(&self, build_id: &str, name: &str) {
        let folder = self.0.join(build_id);
        let _ = fs::create_dir_all(&folder);
        let _ = OpenOptions::new().write(true).create_new(true).open(folder.join(name));
    }

    /// Removes what was not used for a week, once a day.
    pub fn clean(&self) {
        let (name, default) = CLEANED_EVERY;
        let last = self.0.join(name);
        match fs::metadata(&last) {
            Err(_) => {
                let _ = fs::create_dir_all(&self.0);
                let _ = fs::write(&last, format!("{default}\n"));
                return;
            }
            Ok(metadata) if age(metadata.modified()) < self.seconds(CLEANED_EVERY) => return,
            Ok(_) => {}
        }
        let now = OpenOptions::new().write(true).open(&last).and_then(|file| file.set_modified(SystemTime::now()));
        if now.is_err() {
            return;
        }
        let longest = self.seconds(UNUSED_FOR);
        let is_build_id = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
        };
        for (folder, _) in entries(&self.0).filter(|(path, metadata)| metadata.is_dir() && is_build_id(path)) {
            let is_old = |metadata: &Metadata| metadata.is_file() && age(metadata.accessed()) > longest;
            for (file, _) in entries(&folder).filter(|(_, metadata)| is_old(metadata)) {
                let _ = fs::remove_file(file);
            }
            // It stays where something is in it.
            let _ = fs::remove_dir(folder);
        }
    }

    fn seconds(&self, (name, default): (&str, u64)) -> Duration {
        let stated = fs::read_to_string(self.0.join(name)).ok().and_then(|text| text.trim().parse().ok());
        Duration::from_secs(stated.unwrap_or(default))
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = (PathBuf, Metadata)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)))
}

fn age(time: io::Result<SystemTime>) -> Duration {
    time.ok().and_then(|time| time.elapsed().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs::{File, FileTimes};

    use super::*;

    fn made_old(path: &Path, seconds: u64) {
        let then = SystemTime::now() - Duration::from_secs(seconds);
        let file = File::open(path).unwrap();
        file.set_times(FileTimes::new().set_accessed(then).set_modified(then)).unwrap();
    }

    #[test]
    fn what_is_kept_is_found_and_absence_for_a_while() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder(place.path().join("made"));
        assert_eq!(folder.find("ab", "debuginfo"), Kept::Unknown);
        folder.keep_absent("ab", "debuginfo");
        assert_eq!(folder.find("ab", "debuginfo"), Kept::Absent);
        let empty = folder.0.join("ab/debuginfo");
        made_old(&empty, 601);
        assert_eq!(folder.find("ab", "debuginfo"), Kept::Unknown);
        assert!(!empty.exists());
        folder.keep_absent("ab", "debuginfo");
        fs::write(folder.0.join("cache_miss_s"), "0\n").unwrap();
        made_old(&empty, 5);
        assert_eq!(folder.find("ab", "debuginfo"), Kept::Unknown);
        let file = folder.begin("ab", "executable").unwrap();
        fs::write(file.path(), "program").unwrap();
        let kept = folder.keep(file, "ab", "executable").unwrap();
        assert_eq!(folder.find("ab", "executable"), Kept::File(kept));
        // What is not kept leaves nothing.
        drop(folder.begin("ab", "debuginfo").unwrap());
        assert_eq!(entries(&folder.0.join("ab")).count(), 1);
    }

    #[test]
    fn what_a_killed_download_left_is_removed_after_a_day() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder(place.path().to_owned());
        let [young, old] = [(), ()].map(|()| folder.begin("ab", "debuginfo").unwrap().keep().unwrap().1);
        made_old(&young, 86_000);
        made_old(&old, 86_500);
        drop(folder.begin("ab", "debuginfo").unwrap());
        assert_eq!((young.exists(), old.exists()), (true, false));
    }

    #[test]
    fn what_is_long_unused_is_removed_once_a_day() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder(place.path().to_owned());
        folder.clean();
        for (id, age) in [("0a", 604_900), ("0b", 1000)] {
            fs::create_dir(folder.0.join(id)).unwrap();
            fs::write(folder.0.join(id).join("debuginfo"), id).unwrap();
            made_old(&folder.0.join(id).join("debuginfo"), age);
        }
        fs::create_dir(folder.0.join("mine")).unwrap();
        fs::write(folder.0.join("mine/debuginfo"), "").unwrap();
        made_old(&folder.0.join("mine/debuginfo"), 604_900);
        let left = || ["0a", "0b", "mine"].map(|id| folder.0.join(id).join("debuginfo").exists());
        folder.clean();
        assert_eq!(left(), [true, true, true], "cleaned a moment ago");
        made_old(&folder.0.join("cache_clean_interval_s"), 90_000);
        folder.clean();
        assert_eq!(left(), [false, true, true]);
        assert!(!folder.0.join("0a").exists());
    }
}
