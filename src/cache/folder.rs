//! The folder of entries, and how much is in it.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;
use rustix::process::geteuid;

use reports::folders::absolute;

/// Where entries are: files of the user's that nobody else can read or write.
pub struct Folder {
    path: PathBuf,
    /// Bytes of all entries together; those that were not used for longest go first.
    most: u64,
}

/// 1 GiB: some hundred analyses.
const MOST_OF_ANALYSES: u64 = 1 << 30;

/// 256 KiB: some thousand recordings.
const MOST_OF_CONTENTS: u64 = 1 << 18;

/// 2 MiB: what is known since some starts of the machine, to some builds.
const MOST_OF_SEARCHES: u64 = 1 << 21;

/// Of files that are being written. A writer that was killed leaves one.
const UNFINISHED: &str = ".unfinished-";

const LONG_AGO: Duration = Duration::from_secs(3600);

impl Folder {
    /// Of analyses. `None` if the user has no folder for what is kept.
    pub fn of_analyses() -> Option<Self> {
        Self::of_user("hbbp/analyses", MOST_OF_ANALYSES)
    }

    /// Of what files are known by. `None` as for analyses.
    pub fn of_contents() -> Option<Self> {
        Self::of_user("hbbp/contents", MOST_OF_CONTENTS)
    }

    /// Of what is known of the code of files. `None` as for analyses.
    pub fn of_searches() -> Option<Self> {
        Self::of_user("hbbp/searches", MOST_OF_SEARCHES)
    }

    /// Below `XDG_CACHE_HOME`, by default `~/.cache`. `None` if neither is known, or what is there is another user's, as under `sudo`.
    fn of_user(name: &str, most: u64) -> Option<Self> {
        let home = || {
            let home = absolute("HOME")?;
            is_ours(&fs::metadata(&home).ok()?).then(|| home.join(".cache"))
        };
        let named = absolute("XDG_CACHE_HOME");
        let path = named.clone().or_else(home)?.join(name);
        let is_no_others = named.is_none_or(|cache| is_no_others(&cache, &path));
        is_no_others.then_some(Folder { path, most })
    }

    /// An entry was of use: others go before it.
    pub fn was_used(&self, name: &str) {
        if let Some(file) = self.open(name) {
            let _ = file.set_modified(SystemTime::now());
        }
    }

    /// Writes an entry, or writes it anew; whoever reads it meanwhile reads the one or the other. `None` if that is not possible.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Option<()> {
        if bytes.len() as u64 > self.largest() {
            return None;
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.path).ok()?;
        if !self.is_ours() {
            return None;
        }
        let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(&self.path).ok()?;
        file.write_all(bytes).ok()?;
        file.persist(self.path.join(name)).ok()?;
        self.make_room();
        Some(())
    }

    /// Whether nobody else can put an entry here.
    fn is_ours(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok_and(|folder| folder.is_dir() && is_ours(&folder))
    }

    /// The largest entry, in bytes.
    pub fn largest(&self) -> u64 {
        self.most / 4
    }

    /// An entry: a file of the user's, no link, pipe or device, and no longer than one can be.
    pub fn open(&self, name: &str) -> Option<File> {
        if !self.is_ours() {
            return None;
        }
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        let file = OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(self.path.join(name)).ok()?;
        let metadata = file.metadata().ok()?;
        (metadata.is_file() && is_ours(&metadata) && metadata.len() <= self.largest()).then_some(file)
    }

    /// Removes what was used longest ago, and what writers left that were killed.
    fn make_room(&self) {
        let now = SystemTime::now();
        let mut entries: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for (path, metadata) in files(&self.path) {
            let used = metadata.modified().unwrap_or(now);
            let is_unfinished = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(UNFINISHED));
            let is_old = || now.duration_since(used).is_ok_and(|age| age > LONG_AGO);
            match is_unfinished {
                true if is_old() => drop(fs::remove_file(path)),
                true => {}
                false => entries.push((used, metadata.len(), path)),
            }
        }
        entries.sort();
        let mut all: u64 = entries.iter().map(|(_, length, _)| length).sum();
        for (_, length, path) in entries {
            if all <= self.most {
                return;
            }
            let _ = fs::remove_file(path);
            all -= length;
        }
    }
}

fn files(folder: &Path) -> impl Iterator<Item = (PathBuf, Metadata)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.path(), entry.metadata().ok().filter(Metadata::is_file)?)))
}

/// Whether nothing of somebody else's is on the way from a cache to a folder in it: what root makes in the cache of a user, as under `sudo -E`,
/// the user cannot use. A cache that is not there yet is its parent's owner's, or the user's who may make it there.
fn is_no_others(cache: &Path, folder: &Path) -> bool {
    let user = geteuid();
    let is_own = |place: &Path| fs::metadata(place).map_or(true, |there| there.uid() == user.as_raw());
    if cache.exists() {
        return folder.ancestors().take_while(|place| place.starts_with(cache)).all(is_own);
    }
    let parent = cache.ancestors().find_map(|place| fs::metadata(place).ok());
    !user.is_root() || parent.is_some_and(|there| there.uid() == 0 && there.mode() & 0o022 == 0)
}

/// Whether a file is the user's, and nobody else can write it.
fn is_ours(metadata: &Metadata) -> bool {
    metadata.uid() == geteuid().as_raw() && metadata.mode() & 0o022 == 0
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Read;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    /// A folder below one that is removed in the end.
    pub fn folder(most: u64) -> (tempfile::TempDir, Folder) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("hbbp/analyses");
        (place, Folder { path, most })
    }

    impl Folder {
        /// The same folder, for somebody else.
        pub fn again(&self) -> Self {
            Folder { path: self.path.clone(), most: self.most }
        }

        /// The bytes of an entry.
        pub fn read(&self, name: &str) -> Option<Vec<u8>> {
            let mut bytes = Vec::new();
            self.open(name)?.read_to_end(&mut bytes).ok()?;
            Some(bytes)
        }
    }

    fn age(folder: &Folder, name: &str, seconds: u64) {
        let file = File::options().write(true).open(folder.path.join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
    }

    #[test]
    fn entries_are_the_users_alone() {
        let (_place, folder) = folder(1000);
        folder.write("a", b"first").unwrap();
        folder.write("a", b"second").unwrap();
        assert_eq!(folder.read("a").unwrap(), b"second");
        assert_eq!(folder.read("b"), None);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder.path), mode(&folder.path.join("a"))), (0o700, 0o600));
        assert_eq!(files(&folder.path).count(), 1);
    }

    #[test]
    fn in_the_folder_of_another_user_nothing_is_made() {
        let place = tempfile::tempdir().unwrap();
        let [cache, below] = ["cache", "cache/hbbp/searches"].map(|name| place.path().join(name));
        assert!(is_no_others(&cache, &below), "it would be made in a folder of the user's");
        fs::create_dir_all(below.parent().unwrap()).unwrap();
        assert!(is_no_others(&cache, &below));
        // Only root can give it to somebody.
        if chown(below.parent().unwrap(), Some(12345), None).is_ok() {
            assert!(!is_no_others(&cache, &below));
            fs::remove_dir_all(&cache).unwrap();
            fs::set_permissions(place.path(), fs::Permissions::from_mode(0o1777)).unwrap();
            assert!(!is_no_others(&cache, &below), "it may be meant for anybody");
        }
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let (_place, folder) = folder(100);
        for (name, seconds) in [("a", 30), ("b", 20), ("c", 10)] {
            folder.write(name, &[0; 25]).unwrap();
            age(&folder, name, seconds);
        }
        folder.was_used("a");
        folder.write("d", &[0; 25]).unwrap();
        folder.write("e", &[0; 25]).unwrap();
        assert_eq!(["a", "b", "c", "d", "e"].map(|name| folder.read(name).is_some()), [true, false, true, true, true]);
        assert_eq!(folder.write("f", &[0; 26]), None, "more than a quarter");
        fs::write(folder.path.join("a"), [0; 26]).unwrap();
        assert_eq!(folder.read("a"), None);
    }

    #[test]
    fn what_a_killed_writer_left_goes_and_what_is_being_written_stays() {
        let (_place, folder) = folder(100);
        folder.write("a", b"a").unwrap();
        for (name, seconds) in [(".unfinished-1", 7200), (".unfinished-2", 60)] {
            fs::write(folder.path.join(name), b"x").unwrap();
            age(&folder, name, seconds);
        }
        folder.write("b", b"b").unwrap();
        let left = [".unfinished-1", ".unfinished-2"].map(|name| folder.path.join(name).exists());
        assert_eq!(left, [false, true]);
    }

    #[test]
    fn links_pipes_and_what_others_can_write_are_no_entries() {
        let (_place, folder) = folder(1000);
        folder.write("a", b"a").unwrap();
        symlink(folder.path.join("a"), folder.path.join("link")).unwrap();
        let pipe = folder.path.join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        fs::create_dir(folder.path.join("folder")).unwrap();
        assert_eq!(
            ["a", "link", "pipe", "folder"].map(|name| folder.read(name).is_some()),
            [true, false, false, false]
        );
        fs::set_permissions(folder.path.join("a"), fs::Permissions::from_mode(0o606)).unwrap();
        assert_eq!(folder.read("a"), None);
    }

    #[test]
    fn nothing_is_taken_from_a_folder_that_others_can_write_to() {
        let (place, folder) = folder(1000);
        folder.write("a", b"a").unwrap();
        let allow = |mode| fs::set_permissions(&folder.path, fs::Permissions::from_mode(mode)).unwrap();
        for (mode, is_used) in [(0o770, false), (0o707, false), (0o755, true)] {
            allow(mode);
            assert_eq!((folder.read("a").is_some(), folder.write("a", b"a").is_some()), (is_used, is_used), "{mode:o}");
        }
        if chown(folder.path.join("a"), Some(1), None).is_ok() {
            assert_eq!(folder.read("a"), None, "another user's entry");
            chown(&folder.path, Some(1), None).unwrap();
            assert_eq!(folder.write("b", b"b"), None, "another user's folder");
            chown(&folder.path, Some(0), None).unwrap();
            folder.write("a", b"a").unwrap();
        } else {
            testing::skip!(Privileges, "only root can give files to others");
        }
        let elsewhere = place.path().join("elsewhere");
        fs::rename(&folder.path, &elsewhere).unwrap();
        symlink(&elsewhere, &folder.path).unwrap();
        assert_eq!((folder.read("a"), folder.write("a", b"a")), (None, None), "a link");
    }

    #[test]
    fn a_folder_that_cannot_be_is_no_trouble() {
        let (place, folder) = folder(1000);
        fs::write(place.path().join("hbbp"), b"a file").unwrap();
        assert_eq!((folder.write("a", b"a"), folder.read("a")), (None, None));
        folder.was_used("a");
    }
}
