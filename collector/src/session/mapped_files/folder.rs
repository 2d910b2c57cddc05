//! The folder in which copies of files are kept by build id: `~/.debug`, as `perf record` and `perf buildid-cache` fill it.
//!
//! ```text
//! ~/.debug/usr/bin/server/0123abcd../elf                            the copy
//! ~/.debug/.build-id/01/23abcd.. -> ../../usr/bin/server/0123abcd..
//! ```

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

/// Who may read a copy: everybody where everybody may read the file, or the owner alone.
const FOR_ALL: u32 = 0o644;
const FOR_OWNER: u32 = 0o600;
const OTHERS_READ: u32 = 0o004;

#[derive(Clone, Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// That of the user, if there is a home.
    pub(super) fn of_user() -> Option<Self> {
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())?;
        Some(Self::at(home.join(".debug")))
    }

    pub(super) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    fn link(&self, id: &[u8]) -> PathBuf {
        let (first, rest) = id.split_at(id.len().min(1));
        self.0.join(".build-id").join(hex(first)).join(hex(rest))
    }

    /// Whether there is a copy of the file with this id.
    fn has(&self, id: &[u8]) -> bool {
        self.link(id).join("elf").is_file()
    }

    /// Copies a file, which was called so, if there is no copy of it yet and it has no more than `room` bytes. Returns how many were copied.
    pub(super) fn put(&self, name: &[u8], id: &[u8], file: &mut File, room: u64) -> io::Result<u64> {
        if self.has(id) {
            return Ok(0);
        }
        let below = below(name);
        let folder = self.0.join(&below).join(hex(id));
        fs::create_dir_all(&folder)?;
        let metadata = file.metadata()?;
        file.seek(SeekFrom::Start(0))?;
        let mut copy = tempfile::Builder::new().prefix(".elf-").tempfile_in(&folder)?;
        let bytes = io::copy(&mut file.take(room.saturating_add(1)), copy.as_file_mut())?;
        if bytes > room {
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, "a recording keeps no more than 1 GiB of files"));
        }
        let mode = if metadata.mode() & OTHERS_READ == 0 { FOR_OWNER } else { FOR_ALL };
        copy.as_file().set_permissions(Permissions::from_mode(mode))?;
        copy.persist(folder.join("elf")).map_err(|error| error.error)?;
        let link = self.link(id);
        fs::create_dir_all(link.parent().unwrap_or(&self.0))?;
        match symlink(Path::new("../..").join(&below).join(hex(id)), &link) {
            // It leads to nothing, or another recorder was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !self.has(id) => {
                fs::remove_file(&link)?;
                symlink(Path::new("../..").join(&below).join(hex(id)), &link)?;
            }
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        Ok(bytes)
    }
}

/// Where below the folder the copies of a file are.
fn below(name: &[u8]) -> PathBuf {
    let parts = Path::new(OsStr::from_bytes(name)).components().filter_map(|part| match part {
        Component::Normal(part) => Some(part),
        _ => None,
    });
    parts.collect()
}

fn hex(bytes: &[u8]) -> OsString {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_copy_is_where_perf_has_it_and_made_once() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::at(home.path().join(".debug"));
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"program").unwrap();
        let id = [0xab, 0x01, 0x02];
        assert!(folder.put(b"/usr/../bin/x", &id, &mut file, 6).is_err(), "no room");
        assert!(!folder.has(&id));
        assert_eq!(folder.put(b"/usr/../bin/x", &id, &mut file, 7).unwrap(), 7);
        assert_eq!(folder.put(b"/other", &id, &mut file, 7).unwrap(), 0);
        let read = |path: &str| fs::read(folder.path().join(path)).unwrap();
        assert_eq!(read("usr/bin/x/ab0102/elf"), b"program");
        assert_eq!(read(".build-id/ab/0102/elf"), b"program");
        let files = fs::read_dir(folder.path().join("usr/bin/x/ab0102")).unwrap().count();
        assert_eq!(files, 1, "what had no room is gone");
    }

    #[test]
    fn a_link_that_leads_to_nothing_is_replaced() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::at(home.path().to_owned());
        fs::create_dir_all(home.path().join(".build-id/ab")).unwrap();
        symlink("nowhere", home.path().join(".build-id/ab/01")).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"x").unwrap();
        folder.put(b"/x", &[0xab, 1], &mut file, 10).unwrap();
        assert!(folder.has(&[0xab, 1]));
    }
}
