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

use rustix::process::geteuid;

use crate::session::mapped_files::recorded_id;

/// Who may read a copy: everybody where everybody may read the file, or the owner alone.
const FOR_ALL: u32 = 0o644;
const FOR_OWNER: u32 = 0o600;
const OTHERS_READ: u32 = 0o004;

/// The folder of links.
const LINKS: &str = ".build-id";
/// Bytes of a build id that names a folder and a link in it.
const LEAST_ID: usize = 2;

#[derive(Clone, Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// That of the user. `None` if there is no home, or it is another user's, as under `sudo`: who owns it could lead what is written elsewhere.
    pub(super) fn of_user() -> Option<Self> {
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())?;
        is_ours(&home).then(|| Self::at(home.join(".debug")))
    }

    pub(super) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    fn link(&self, id: &[u8]) -> PathBuf {
        let (first, rest) = id.split_at(id.len().min(1));
        self.0.join(LINKS).join(hex(first)).join(hex(rest))
    }

    /// Whether there is a copy of the file with this id, and it is that.
    fn has(&self, id: &[u8]) -> bool {
        let copy = self.link(id).join("elf");
        copy.is_file() && File::open(copy).is_ok_and(|copy| recorded_id(&copy).as_deref() == Some(id))
    }

    /// Copies a file, which was called so, if there is no copy of it yet and it has no more than `room` bytes. Returns how many were copied.
    /// `room` gets less by what was written, also where that failed.
    pub(super) fn put(&self, name: &[u8], id: &[u8], file: &mut File, room: &mut u64) -> io::Result<u64> {
        let metadata = file.metadata()?;
        if id.len() < LEAST_ID {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "its build id is too short to name a copy"));
        }
        if self.has(id) {
            return Ok(0);
        }
        if metadata.len() > *room {
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, "a recording keeps no more than 1 GiB of files"));
        }
        let below = below(name);
        let folder = self.0.join(&below).join(hex(id));
        fs::create_dir_all(&folder)?;
        file.seek(SeekFrom::Start(0))?;
        let mut copy = tempfile::Builder::new().prefix(".elf-").tempfile_in(&folder)?;
        let copied = io::copy(&mut file.take(metadata.len()), copy.as_file_mut());
        *room = room.saturating_sub(*copied.as_ref().unwrap_or(&metadata.len()));
        let bytes = copied?;
        if recorded_id(copy.as_file()).as_deref() != Some(id) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it was written to after it was mapped"));
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

/// Where below the folder the copies of a file are: never among the links, whatever a process calls its files.
fn below(name: &[u8]) -> PathBuf {
    let parts = Path::new(OsStr::from_bytes(name)).components().filter_map(|part| match part {
        Component::Normal(part) if part.as_bytes().starts_with(LINKS.as_bytes()) => {
            Some(OsStr::from_bytes(&part.as_bytes()[1..]))
        }
        Component::Normal(part) => Some(part),
        _ => None,
    });
    parts.collect()
}

/// Whether a folder, or what it would be made in, is the user's, and nobody else can write there.
fn is_ours(folder: &Path) -> bool {
    let there = folder.ancestors().find_map(|folder| fs::metadata(folder).ok());
    there.is_some_and(|there| there.uid() == geteuid().as_raw() && there.mode() & 0o022 == 0)
}

fn hex(bytes: &[u8]) -> OsString {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str) -> (File, Vec<u8>, u64) {
        let file = File::open(name).unwrap();
        let (id, length) = (recorded_id(&file).unwrap(), file.metadata().unwrap().len());
        (file, id, length)
    }

    fn hex_of(id: &[u8]) -> String {
        hex(id).into_string().unwrap()
    }

    #[test]
    fn a_copy_is_where_perf_has_it_and_made_once() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::at(home.path().join(".debug"));
        let (mut file, id, length) = program("/bin/true");
        assert!(folder.put(b"/usr/../bin/x", &id, &mut file, &mut (length - 1)).is_err(), "no room");
        assert!(!folder.has(&id) && !folder.path().exists());
        let mut room = length + 1;
        assert_eq!(folder.put(b"/usr/../bin/x", &id, &mut file, &mut room).unwrap(), length);
        assert_eq!(folder.put(b"/other", &id, &mut file, &mut room).unwrap(), 0);
        assert_eq!(room, 1);
        let read = |path: String| fs::read(folder.path().join(path)).unwrap();
        let (whole, bytes) = (hex_of(&id), fs::read("/bin/true").unwrap());
        assert_eq!(read(format!("usr/bin/x/{whole}/elf")), bytes);
        assert_eq!(read(format!(".build-id/{}/{}/elf", &whole[..2], &whole[2..])), bytes);
    }

    #[test]
    fn what_has_another_id_is_no_copy() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::at(home.path().to_owned());
        let (mut file, id, _) = program("/bin/true");
        let (mut other, _, length) = program("/bin/sleep");
        let mut room = 2 * length;
        assert!(folder.put(b"/x", &id, &mut other, &mut room).is_err());
        assert_eq!((room, folder.has(&id)), (length, false), "what was written counts");
        assert!(folder.put(b"/x", &id[..1], &mut file, &mut room).is_err());
        // Another file stands where its copy would.
        let link = folder.link(&id);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        fs::create_dir(home.path().join("wrong")).unwrap();
        fs::copy("/bin/sleep", home.path().join("wrong/elf")).unwrap();
        symlink("../../wrong", &link).unwrap();
        assert!(!folder.has(&id));
        folder.put(b"/x", &id, &mut file, &mut (1 << 30)).unwrap();
        assert!(folder.has(&id));
    }

    #[test]
    fn no_name_is_among_the_links() {
        assert_eq!(below(b"/.build-id/ab/../x"), Path::new("build-id/ab/x"));
        assert_eq!(below(b"/usr/.build-id-2/x"), Path::new("usr/build-id-2/x"));
    }

    #[test]
    fn the_home_of_another_user_is_not_written_to() {
        let home = tempfile::tempdir().unwrap();
        assert!(is_ours(home.path()) && is_ours(&home.path().join("new")));
        fs::set_permissions(home.path(), Permissions::from_mode(0o777)).unwrap();
        assert!(!is_ours(home.path()) && !is_ours(&home.path().join("new")));
    }

    #[test]
    fn a_link_that_leads_to_nothing_is_replaced() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::at(home.path().to_owned());
        let (mut file, id, mut length) = program("/bin/true");
        let link = folder.link(&id);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink("nowhere", link).unwrap();
        folder.put(b"/x", &id, &mut file, &mut length).unwrap();
        assert!(folder.has(&id));
    }
}
