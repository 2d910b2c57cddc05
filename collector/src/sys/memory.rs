//! Memory of another process, pages of this one that may not be there, and whether code can be mapped from a file.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::ptr;

use addresses::Avma;
use lookahead::{PAGE, Page};

use crate::errno::Errno;
use crate::sys::process::{Mapping, proc_path};

/// `process_vm_readv`: reads the pages at `addresses` into `pages`, in order, up to the first that cannot be read. Returns how many
/// were read.
pub(crate) fn read_pages(process: i32, addresses: &[Avma], pages: &mut [Page]) -> usize {
    const MOST: usize = 512;
    let mut done = 0;
    for (addresses, pages) in addresses.chunks(MOST).zip(pages.chunks_mut(MOST)) {
        let length = pages.len().min(addresses.len());
        let local = libc::iovec { iov_base: pages.as_mut_ptr().cast(), iov_len: length * PAGE };
        // The kernel takes neighbours together.
        let runs = addresses[..length].chunk_by(|one, next| one.0.wrapping_add(PAGE as u64) == next.0);
        let remote = runs.map(|run| libc::iovec { iov_base: run[0].0 as *mut _, iov_len: run.len() * PAGE });
        let remote: Vec<libc::iovec> = remote.collect();
        let count = remote.len() as libc::c_ulong;
        // SAFETY: the kernel writes at most `iov_len` bytes to `pages`; the remote addresses are the other process's affair.
        let read = unsafe { libc::process_vm_readv(process, &local, 1, remote.as_ptr(), count, 0) };
        let whole = usize::try_from(read).unwrap_or(0) / PAGE;
        done += whole;
        if whole < length {
            break;
        }
    }
    done
}

/// Reads `bytes.len()` bytes of a process's memory; whether all could be read.
pub(crate) fn read_memory(process: i32, address: Avma, bytes: &mut [u8]) -> bool {
    copy_memory(process, address, bytes) == Ok(bytes.len())
}

/// Reads up to `bytes.len()` bytes of a process's memory (`process_vm_readv`(2)). Returns how many there were.
///
/// # Errors
/// `ESRCH`: it has ended. `EPERM`: it may not be traced by this process (ptrace(2), access mode `PTRACE_MODE_ATTACH_REALCREDS`). `EFAULT`: the first
/// byte cannot be read.
pub(crate) fn copy_memory(process: i32, address: Avma, bytes: &mut [u8]) -> Result<usize, Errno> {
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let remote = libc::iovec { iov_base: address.0 as *mut _, iov_len: bytes.len() };
    // SAFETY: the kernel writes at most `iov_len` bytes to `bytes`; the remote address is the other process's affair.
    let read = unsafe { libc::process_vm_readv(process, &local, 1, &remote, 1, 0) };
    usize::try_from(read).map_err(|_| Errno::last())
}

/// `process_vm_writev`: writes the pieces to a process's memory, each at its address. Returns the first address that could not be written.
pub(crate) fn write_memory(process: i32, pieces: &[(Avma, &[u8])]) -> Result<(), Avma> {
    // IOV_MAX.
    for pieces in pieces.chunks(1024) {
        let local =
            pieces.iter().map(|(_, bytes)| libc::iovec { iov_base: bytes.as_ptr() as *mut _, iov_len: bytes.len() });
        let remote = pieces.iter().map(|(to, bytes)| libc::iovec { iov_base: to.0 as *mut _, iov_len: bytes.len() });
        let (local, remote): (Vec<libc::iovec>, Vec<libc::iovec>) = (local.collect(), remote.collect());
        let count = pieces.len() as libc::c_ulong;
        // SAFETY: the kernel reads the pieces, which are there; what it writes to is the other process's memory.
        let written = unsafe { libc::process_vm_writev(process, local.as_ptr(), count, remote.as_ptr(), count, 0) };
        let mut left = usize::try_from(written).unwrap_or(0);
        for (to, bytes) in pieces {
            if left < bytes.len() {
                return Err(Avma(to.0 + left as u64));
            }
            left -= bytes.len();
        }
    }
    Ok(())
}

/// Writes to memory of a thread's process that it may not write to itself; whether all could be written. The kernel makes a copy of the
/// page for it. Some allow that only to who traces the thread (`proc_mem.force_override`, Linux 6.12).
pub(crate) fn write_code(thread: i32, address: Avma, code: &[u8]) -> bool {
    let memory = File::options().write(true).open(proc_path(thread as u32).join("mem"));
    memory.is_ok_and(|memory| memory.write_all_at(code, address.0).is_ok())
}

/// Copies a page of this process that the kernel changes at any time (`[vvar]`), or that may not be there.
pub(crate) fn copy_own_page(pipe: &(OwnedFd, OwnedFd), address: Avma, page: &mut Page) -> bool {
    // SAFETY: `write` only hands an address to the kernel, which answers EFAULT if there is no page.
    let written = unsafe { libc::write(pipe.1.as_raw_fd(), address.0 as *const libc::c_void, PAGE) };
    written > 0 && rustix::io::read(&pipe.0, &mut page[..]) == Ok(PAGE)
}

/// Whether code can be mapped from a file: not from a file system that is mounted with `noexec`.
pub(crate) fn can_be_executed(file: &File) -> bool {
    // SAFETY: a new mapping of one page at a place that the kernel chooses; nothing refers to it when it is unmapped.
    unsafe {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE);
        let page = libc::mmap(ptr::null_mut(), PAGE, protection, flags, file.as_raw_fd(), 0);
        page != libc::MAP_FAILED && libc::munmap(page, PAGE) == 0
    }
}

/// Whether a mapping is of this file.
pub(crate) fn is_same_file(file: &impl AsFd, map: &Mapping) -> bool {
    rustix::fs::fstat(file).is_ok_and(|file| file.st_ino == map.inode)
}
