//! Memory of a context: bumped off its heap, and kept by size when it is freed. One thread at a time has a context, so nothing is locked.

use crate::inside::context;
use crate::layout::{HEAP, HEAP_BYTES};

/// Bytes before what is handed out: its class, and how far before it the memory begins, in four bytes each.
const HEADER: usize = 8;
/// What is handed out begins at a multiple of this. All sizes are multiples of it, so all pieces begin a header before one.
const ALIGN: usize = 16;
/// Four sizes per power of two. Up to 128 bytes there is each multiple of 16: most of what decoding needs are thousands of small pieces.
const CLASSES: usize = 96;
/// Classes of sizes up to [`FINE`]: the multiples of 16 from 32 on.
const FINE_CLASSES: usize = 12;
const FINE: usize = 128;

/// What is left of the heap, and what was freed.
#[repr(C)]
pub(crate) struct Heap {
    next: u64,
    end: u64,
    /// The first free piece of each class, which holds the address of the next.
    free: [u64; CLASSES],
}

impl Heap {
    /// An empty one of the context whose control block is at `tcb`.
    pub(crate) const fn of(tcb: u64) -> Self {
        let next = tcb + HEAP + (ALIGN - HEADER) as u64;
        Self { next, end: tcb + HEAP + HEAP_BYTES, free: [0; CLASSES] }
    }

    /// The address of so many bytes; 0 if there is no room.
    fn take(&mut self, class: usize) -> u64 {
        match self.free[class] {
            0 => {
                let (start, bytes) = (self.next, size_of_class(class) as u64);
                if bytes > self.end.saturating_sub(start) {
                    return 0;
                }
                self.next += bytes;
                start
            }
            piece => {
                // SAFETY: a free piece is memory of this heap, of at least 32 bytes, that holds the next one's address.
                self.free[class] = unsafe { (piece as *const u64).read() };
                piece
            }
        }
    }
}

/// The smallest class of so many bytes; `None` if there is none so large.
fn class_of(bytes: usize) -> Option<usize> {
    if bytes <= FINE {
        return Some(bytes.max(32).div_ceil(ALIGN) - 2);
    }
    let log = (usize::BITS - 1 - (bytes - 1).leading_zeros()) as usize; // the largest power of two below
    let quarter = (bytes - 1) >> (log - 2) & 3;
    let class = (log - 4) * 4 + quarter;
    (class < CLASSES).then_some(class)
}

const fn size_of_class(class: usize) -> usize {
    if class < FINE_CLASSES {
        return (class + 2) * ALIGN;
    }
    let (log, quarter) = (class / 4 + 4, class % 4);
    (5 + quarter) << (log - 2)
}

/// Memory of the context at hand; null if there is none left.
pub(crate) fn allocate(bytes: usize, align: usize) -> *mut u8 {
    let extra = if align > ALIGN { align } else { 0 };
    let Some(class) = bytes.checked_add(HEADER + extra).and_then(class_of) else { return std::ptr::null_mut() };
    let tcb = context::current().as_ptr();
    // SAFETY: the heap of the context at hand is this thread's alone. The piece is as long as its class says; the header lies in front
    // of what is handed out, which begins at most `extra` bytes later.
    unsafe {
        let start = (*tcb).heap.take(class);
        if start == 0 {
            return std::ptr::null_mut();
        }
        let at = (start + HEADER as u64).next_multiple_of(align.max(ALIGN) as u64);
        ((at - HEADER as u64) as *mut [u32; 2]).write([class as u32, (at - start) as u32]);
        at as *mut u8
    }
}

/// Bytes that fit where `memory` is.
///
/// # Safety
/// It comes from [`allocate`].
pub(crate) unsafe fn size(memory: *mut u8) -> usize {
    // SAFETY: the header that `allocate` has written.
    unsafe {
        let [class, offset] = memory.sub(HEADER).cast::<[u32; 2]>().read();
        size_of_class(class as usize) - offset as usize
    }
}

/// Gives memory back.
///
/// # Safety
/// It comes from [`allocate`] of this context, and nothing refers to it.
pub(crate) unsafe fn free(memory: *mut u8) {
    let tcb = context::current().as_ptr();
    // SAFETY: the header that `allocate` has written; the piece is this heap's.
    unsafe {
        let [class, offset] = memory.sub(HEADER).cast::<[u32; 2]>().read();
        let start = memory as u64 - u64::from(offset);
        let first = &mut (*tcb).heap.free[class as usize % CLASSES];
        (start as *mut u64).write(*first);
        *first = start;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_large_enough_and_not_much_larger() {
        let mut last = 0;
        for bytes in (1..5000).chain([1 << 16, (1 << 20) + 1, 3 << 20, (8 << 20) - 1]) {
            let class = class_of(bytes).unwrap();
            let size = size_of_class(class);
            assert!(
                size >= bytes && (size * 4 <= bytes * 5 + 4 || size < bytes + ALIGN || size == 32),
                "{bytes}: {size}"
            );
            assert_eq!(size % ALIGN, 0);
            assert!(class >= last);
            last = class;
        }
        assert_eq!(class_of(1 << 40), None);
    }
}
