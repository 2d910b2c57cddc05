//! The ring that the kernel hands over records through.

use std::ptr::{self, NonNull, addr_of_mut};
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings as sys;

use crate::errno::Errno;
use crate::sys::event::EventFd;

/// The memory through which the kernel hands over records.
#[derive(Debug)]
pub(crate) struct Ring {
    page: NonNull<sys::perf_event_mmap_page>,
    length: usize,
    data: NonNull<u8>,
    /// A power of two.
    data_size: usize,
    tail: u64,
}

impl Ring {
    /// Maps the ring of `event`, `pages` (a power of two) pages large; further events may share it.
    pub(crate) fn map(event: &EventFd, pages: usize) -> Result<Self, Errno> {
        let page_size = rustix::param::page_size();
        let data_size = pages.checked_mul(page_size).ok_or(Errno::EINVAL)?;
        let length = data_size.checked_add(page_size).ok_or(Errno::EINVAL)?;
        // SAFETY: a new mapping at an address of the kernel's choice changes no memory that is in use.
        let start = unsafe {
            libc::mmap(ptr::null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, event.number(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        // SAFETY: the mapping is `page_size + data_size` bytes long, so its second page is inside it.
        let data = unsafe { start.cast::<u8>().add(page_size) };
        match (NonNull::new(start.cast()), NonNull::new(data)) {
            (Some(page), Some(data)) => Ok(Self { page, length, data, data_size, tail: 0 }),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Appends all records the ring holds to `records`, and gives their room back. Returns how many bytes.
    pub(crate) fn drain(&mut self, records: &mut Vec<u8>) -> usize {
        let page = self.page.as_ptr();
        // SAFETY: the page stays mapped as long as `self` lives; the kernel accesses the field as a whole u64 as well.
        let head = unsafe { AtomicU64::from_ptr(addr_of_mut!((*page).data_head)) }.load(Ordering::Acquire);
        let length = (head.wrapping_sub(self.tail) as usize).min(self.data_size);
        let start = self.tail as usize & (self.data_size - 1);
        let first = length.min(self.data_size - start);
        records.reserve(length);
        let end = records.len();
        // SAFETY: `start + first` and `length - first` are at most `data_size`, so both sources are inside the mapping; the kernel
        // does not write between tail and head; `length` bytes are reserved, and set when the length is.
        unsafe {
            let target = records.as_mut_ptr().add(end);
            ptr::copy_nonoverlapping(self.data.as_ptr().add(start), target, first);
            ptr::copy_nonoverlapping(self.data.as_ptr(), target.add(first), length - first);
            records.set_len(end + length);
        }
        self.tail = head;
        // SAFETY: as for `data_head`.
        unsafe { AtomicU64::from_ptr(addr_of_mut!((*page).data_tail)) }.store(head, Ordering::Release);
        length
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: this is the whole mapping made in `map`, and nothing refers to it any more.
        unsafe { libc::munmap(self.page.as_ptr().cast(), self.length) };
    }
}
