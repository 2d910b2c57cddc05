//! Files that processes have mapped, opened so that nobody can make the recorder wait.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Stat, Statx, StatxFlags, fstat, fstatfs, major, minor, open, statx,
};

/// File systems whose files are on another device for `stat` than for records of mappings: overlayfs, btrfs, bcachefs, aufs.
const WITH_OTHER_DEVICES: [i64; 4] = [0x794c_7630, 0x9123_683e, 0xca45_1a4e, 0x6175_6673];

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

/// The number of the mount through which a file was opened, which no other mount gets while the machine runs; `None` before Linux 6.8.
pub(crate) fn mount_of(file: impl AsFd) -> Option<u64> {
    mount(statx(file, "", AtFlags::EMPTY_PATH, UNIQUE))
}

/// The same of what is at a path.
pub(crate) fn mount_at(path: &Path) -> Option<u64> {
    mount(statx(CWD, path, AtFlags::empty(), UNIQUE))
}

/// STATX_MNT_ID_UNIQUE of linux/stat.h.
const UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);

fn mount(said: rustix::io::Result<Statx>) -> Option<u64> {
    said.ok().filter(|said| said.stx_mask & UNIQUE.bits() != 0).map(|said| said.stx_mnt_id)
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
}
