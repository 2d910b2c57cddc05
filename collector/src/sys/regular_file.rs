//! Files that processes have mapped, opened so that nobody can make the recorder wait.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use formats::file_identity::FileIdentity;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Stat, Statx, StatxFlags, StatxTimestamp, fstat, fstatfs, major, makedev,
    minor, open, statx,
};

/// File systems whose files are on another device for `stat` than for records of mappings: overlayfs, btrfs, bcachefs, aufs.
const WITH_OTHER_DEVICES: [i64; 4] = [OVERLAY, 0x9123_683e, 0xca45_1a4e, 0x6175_6673];
/// OVERLAYFS_SUPER_MAGIC of linux/magic.h.
const OVERLAY: i64 = 0x794c_7630;

/// Whether a file is of layers that lie over each other (overlayfs).
pub(crate) fn is_of_overlay(file: &File) -> bool {
    fstatfs(file).is_ok_and(|fs| fs.f_type == OVERLAY)
}

/// Whether a file is the one that is mapped, as its device and inode are told of the mapping.
pub(crate) fn is_file_of(file: &OwnedFd, stat: &Stat, device: (u32, u32), inode: u64) -> bool {
    let has_other_device = || fstatfs(file).is_ok_and(|fs| WITH_OTHER_DEVICES.contains(&fs.f_type));
    stat.st_ino == inode && ((major(stat.st_dev), minor(stat.st_dev)) == device || has_other_device())
}

/// The file at a path. What else may be there is not opened: that would wait, or do something. Nor is a file on which a process has a lease
/// that this would break, for the kernel gives it 45 seconds to let go.
pub(crate) fn open_regular(path: &Path, is_it: impl Fn(&OwnedFd, &Stat) -> bool) -> io::Result<File> {
    let there = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let stat = fstat(&there)?;
    let is_regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if !is_regular || !is_it(&there, &stat) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(open(format!("/proc/self/fd/{}", there.as_raw_fd()), flags, Mode::empty())?.into())
}

/// A file in its state, and the number of the mount through which it was opened, which no other mount gets while the machine runs; `None` before
/// Linux 6.8.
pub(crate) type Seen = (FileIdentity, Option<u64>);

pub(crate) fn seen(file: &File) -> Option<Seen> {
    let told = statx(file, "", AtFlags::EMPTY_PATH, TOLD).map(told);
    // Where a sandbox does not know statx(2), the standard library does without.
    told.ok().or_else(|| Some((FileIdentity::of(&file.metadata().ok()?), None)))
}

/// The same of what is at a path. It is not opened.
pub(crate) fn seen_at(path: &Path) -> Option<Seen> {
    let told = statx(CWD, path, AtFlags::empty(), TOLD).map(told);
    told.ok().or_else(|| Some((FileIdentity::at(path)?, None)))
}

/// STATX_MNT_ID_UNIQUE of linux/stat.h.
const UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);
const TOLD: StatxFlags = StatxFlags::BASIC_STATS.union(UNIQUE);

fn told(said: Statx) -> Seen {
    let time = |at: &StatxTimestamp| (at.tv_sec, i64::from(at.tv_nsec));
    let device = makedev(said.stx_dev_major, said.stx_dev_minor);
    let (modified, changed) = (time(&said.stx_mtime), time(&said.stx_ctime));
    let file = FileIdentity::new(device, said.stx_ino, said.stx_size, modified, changed);
    (file, (said.stx_mask & UNIQUE.bits() != 0).then_some(said.stx_mnt_id))
}

#[cfg(test)]
mod tests {
    use rustix::fs::mknodat;

    use super::*;

    #[test]
    fn what_would_wait_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let [pipe, file] = ["pipe", "file"].map(|name| folder.path().join(name));
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
        std::fs::write(&file, "it").unwrap();
        let opens = |path: &Path| open_regular(path, |_, _| true).is_ok();
        assert!(opens(&file) && !opens(&pipe) && !opens(folder.path()) && !opens(&folder.path().join("none")));
        assert!(open_regular(&file, |_, stat| stat.st_size == 3).is_err());
    }

    #[test]
    fn a_file_is_seen_as_the_standard_library_sees_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "it").unwrap();
        let (file, mount) = seen_at(&path).unwrap();
        assert_eq!(Some(file), FileIdentity::at(&path));
        assert_eq!(seen(&File::open(&path).unwrap()), Some((file, mount)));
        assert_eq!(seen_at(&folder.path().join("none")), None);
    }
}
