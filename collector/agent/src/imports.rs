//! What code inside a program has in place of the C library: functions that enter no other code and share nothing with the program.
//!
//! When the image is made, each function of a library that the executable refers to is replaced by the one of that name here, or by
//! [`refused`]. Memory comes from the heap of the context ([`crate::inside::heap`]).

use std::ffi::{c_int, c_void};

use crate::inside::heap;
use crate::inside::system;

/// Addresses of the functions by the names they replace.
pub(crate) fn replacements() -> Vec<(&'static str, u64)> {
    let functions: [(&str, *const ()); 16] = [
        ("memcpy", copy as *const ()),
        ("memmove", copy_overlapping as *const ()),
        ("memset", fill as *const ()),
        ("memcmp", compare as *const ()),
        ("bcmp", compare as *const ()),
        ("strlen", length as *const ()),
        ("malloc", allocate as *const ()),
        ("calloc", allocate_zeroed as *const ()),
        ("realloc", reallocate as *const ()),
        ("posix_memalign", allocate_aligned as *const ()),
        ("aligned_alloc", aligned as *const ()),
        ("free", free as *const ()),
        ("clock_gettime", clock as *const ()),
        ("getauxval", auxiliary_value as *const ()),
        ("memfd_create", no_file as *const ()),
        ("__errno_location", errno_location as *const ()),
    ];
    functions.into_iter().map(|(name, function)| (name, function as u64)).collect()
}

/// In place of every other function: the burst is given up.
pub(crate) fn refused() -> u64 {
    crate::inside::entry::refused as *const () as u64
}

// Loops over bytes are string instructions: the compiler would make calls of `memcpy` out of others, and these are what is called.

unsafe extern "C" fn copy(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    // SAFETY: the caller of `memcpy` says that both ranges are there and do not overlap.
    unsafe {
        match count {
            0..16 => copy_short(to, from, count),
            // The instruction for long copies takes long to begin.
            16..=128 => {
                let last = from.add(count - 16).cast::<[u64; 2]>().read_unaligned();
                for at in (0..count - 16).step_by(16) {
                    to.add(at).cast::<[u64; 2]>().write_unaligned(from.add(at).cast::<[u64; 2]>().read_unaligned());
                }
                to.add(count - 16).cast::<[u64; 2]>().write_unaligned(last);
            }
            _ => forward(to, from, count),
        }
    }
    to
}

#[inline(always)]
unsafe fn copy_short(to: *mut u8, from: *const u8, count: usize) {
    // SAFETY: fewer than 16 bytes, all within the ranges of the caller; each case reads before it writes.
    unsafe {
        if count >= 8 {
            let first = from.cast::<u64>().read_unaligned();
            let last = from.add(count - 8).cast::<u64>().read_unaligned();
            to.cast::<u64>().write_unaligned(first);
            to.add(count - 8).cast::<u64>().write_unaligned(last);
        } else if count >= 4 {
            let first = from.cast::<u32>().read_unaligned();
            let last = from.add(count - 4).cast::<u32>().read_unaligned();
            to.cast::<u32>().write_unaligned(first);
            to.add(count - 4).cast::<u32>().write_unaligned(last);
        } else if count > 0 {
            let (first, middle, last) = (from.read(), from.add(count / 2).read(), from.add(count - 1).read());
            to.write(first);
            to.add(count / 2).write(middle);
            to.add(count - 1).write(last);
        }
    }
}

#[inline(always)]
unsafe fn forward(to: *mut u8, from: *const u8, count: usize) {
    // SAFETY: the ranges are those of the caller; the direction flag is clear in all Rust code.
    unsafe {
        std::arch::asm!("rep movsb", inout("rcx") count => _, inout("rdi") to => _, inout("rsi") from => _, options(nostack, preserves_flags));
    }
}

unsafe extern "C" fn copy_overlapping(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    // SAFETY: the caller of `memmove` says that both ranges are there. Backwards, the first bytes to be written are the last; the flag
    // is cleared again at once.
    unsafe {
        if (to as usize).wrapping_sub(from as usize) >= count {
            return copy(to, from, count);
        }
        std::arch::asm!(
            "std", "rep movsb", "cld",
            inout("rcx") count => _,
            inout("rdi") to.wrapping_add(count).wrapping_sub(1) => _,
            inout("rsi") from.wrapping_add(count).wrapping_sub(1) => _,
            options(nostack)
        );
    }
    to
}

unsafe extern "C" fn fill(to: *mut u8, byte: c_int, count: usize) -> *mut u8 {
    // SAFETY: the caller of `memset` says that the range is there.
    unsafe {
        std::arch::asm!("rep stosb", inout("rcx") count => _, inout("rdi") to => _, in("al") byte as u8, options(nostack, preserves_flags));
    }
    to
}

unsafe extern "C" fn compare(one: *const u8, other: *const u8, count: usize) -> c_int {
    let mut at = 0;
    // SAFETY: the caller of `memcmp` says that both ranges are there; `at` and what is read from it on stay within.
    unsafe {
        while at + 8 <= count {
            let (a, b) = (one.add(at).cast::<u64>().read_unaligned(), other.add(at).cast::<u64>().read_unaligned());
            if a != b {
                return if a.swap_bytes() < b.swap_bytes() { -1 } else { 1 };
            }
            at += 8;
        }
        while at < count {
            let (a, b) = (one.add(at).read(), other.add(at).read());
            if a != b {
                return c_int::from(a) - c_int::from(b);
            }
            at += 1;
        }
    }
    0
}

unsafe extern "C" fn length(text: *const u8) -> usize {
    let mut count = 0;
    // SAFETY: the caller of `strlen` says that there is a zero. Volatile, as the loop would become a call of `strlen`.
    while unsafe { text.add(count).read_volatile() } != 0 {
        count += 1;
    }
    count
}

unsafe extern "C" fn allocate(bytes: usize) -> *mut c_void {
    heap::allocate(bytes, 16).cast()
}

unsafe extern "C" fn allocate_zeroed(count: usize, bytes: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(bytes) else { return std::ptr::null_mut() };
    let memory = heap::allocate(bytes, 16);
    if !memory.is_null() {
        // SAFETY: so many bytes were just allocated.
        unsafe { fill(memory, 0, bytes) };
    }
    memory.cast()
}

unsafe extern "C" fn reallocate(memory: *mut c_void, bytes: usize) -> *mut c_void {
    let new = heap::allocate(bytes, 16);
    if !memory.is_null() && !new.is_null() {
        // SAFETY: `memory` comes from `allocate`, which knows its size; the smaller of both is copied.
        unsafe {
            let before = heap::size(memory.cast());
            copy(new, memory.cast(), before.min(bytes));
            heap::free(memory.cast());
        }
    }
    new.cast()
}

unsafe extern "C" fn allocate_aligned(to: *mut *mut c_void, align: usize, bytes: usize) -> c_int {
    let memory = heap::allocate(bytes, align);
    if memory.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller of `posix_memalign` says where the address goes.
    unsafe { to.write(memory.cast()) };
    0
}

unsafe extern "C" fn aligned(align: usize, bytes: usize) -> *mut c_void {
    heap::allocate(bytes, align).cast()
}

unsafe extern "C" fn free(memory: *mut c_void) {
    if !memory.is_null() {
        // SAFETY: what is freed comes from `allocate`.
        unsafe { heap::free(memory.cast()) };
    }
}

unsafe extern "C" fn clock(clock: c_int, time: *mut libc::timespec) -> c_int {
    system::clock_gettime(clock, time)
}

/// Only AT_HWCAP2 is asked for, and of that only HWCAP2_FSGSBASE, without which there is no agent.
unsafe extern "C" fn auxiliary_value(_: libc::c_ulong) -> libc::c_ulong {
    2
}

unsafe extern "C" fn no_file(_: *const libc::c_char, _: libc::c_uint) -> c_int {
    -1
}

unsafe extern "C" fn errno_location() -> *mut c_int {
    crate::inside::context::errno()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_copied_filled_and_compared_as_by_the_c_library() {
        let source: Vec<u8> = (0..400_u32).map(|n| (n * 7 + 3) as u8).collect();
        for count in (0..140).chain([255, 256]) {
            for offset in [0, 1, 7, 32] {
                let mut to = vec![0xee; 400];
                // SAFETY: both vectors are longer than `offset + count`.
                unsafe { copy(to.as_mut_ptr().add(offset), source.as_ptr(), count) };
                assert_eq!((&to[offset..offset + count], to[offset + count]), (&source[..count], 0xee));
                for (from, into) in [(10, 10 + offset), (10 + offset, 10)] {
                    let (mut moved, mut expected) = (source.clone(), source.clone());
                    // SAFETY: as above.
                    unsafe { copy_overlapping(moved.as_mut_ptr().add(into), moved.as_ptr().add(from), count) };
                    expected.copy_within(from..from + count, into);
                    assert_eq!(moved, expected, "{count} {from} {into}");
                }
                let mut other = source.clone();
                // SAFETY: as above.
                unsafe {
                    assert_eq!(compare(source.as_ptr(), other.as_ptr(), count), 0);
                    if count > 0 {
                        other[count - 1] ^= 0x80;
                        let expected = source[..count].cmp(&other[..count]) as i32;
                        assert_eq!(compare(source.as_ptr(), other.as_ptr(), count).signum(), expected);
                    }
                    fill(to.as_mut_ptr(), 0x155, count);
                }
                assert!(to[..count].iter().all(|&byte| byte == 0x55));
            }
        }
    }
}
