//! Which of the files is meant that had the same inode number, one after the other.

use std::os::fd::{AsRawFd, BorrowedFd};

/// `FS_IOC_GETVERSION` of linux/fs.h. It says `long`; file systems write an int.
const FS_IOC_GETVERSION: libc::c_ulong = 0x8008_7601;

/// The generation of a file's inode, as records of mappings have it, where the file system says it.
pub(crate) fn inode_generation(file: BorrowedFd<'_>) -> Option<u64> {
    let mut generation: u64 = 0;
    // SAFETY: the kernel writes four bytes, eight at most, to a place of eight.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_GETVERSION, &raw mut generation) };
    (result == 0).then_some(generation & u64::from(u32::MAX))
}
