//! Whether the limits of this process leave room for a recording, before anything of it begins.

use std::fs;

use rustix::process::{Resource, getrlimit};

use crate::sys::allocate_from_one_arena;

/// A limit that is too low.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// Too few files may be open.
    #[error(
        "recording this needs {needed} open files, one for each event, CPU and thread and some more, and no more than {limit} are \
         allowed: raise the limit (ulimit -n {needed}), or record fewer threads (-t) or CPUs (-C)"
    )]
    Files {
        /// Files that this process may have open.
        limit: u64,
        /// Files it would have open.
        needed: u64,
    },
    /// There is too little address space for the rings.
    #[error(
        "recording needs {needed} MiB of address space, {rings} of them for its rings, and {left} are left: raise the limit \
         (ulimit -v), set it for the command only (hbbp record -- sh -c 'ulimit -v {limit}; exec ...'), or ask for smaller rings (-m)"
    )]
    AddressSpace {
        /// The limit, in KiB as shells have it.
        limit: u64,
        /// What is left of it, MiB.
        left: u64,
        /// What is needed, MiB.
        needed: u64,
        /// What of that is for the rings, MiB.
        rings: u64,
    },
}

/// Files open at most beside the events: the recording, the signals, the command's pipes and its descriptor; for the tracer a clock and
/// a breakpoint of the first thread, its queue, a pipe, the image of the agent, files of `/proc` of three threads.
const OTHER_FILES: u64 = 16;

/// Address space beside the rings: the tracer's thread, its copies of pages and decoded code, records that wait for their place in time.
const OTHER_MEMORY: u64 = 32 << 20;

/// Files that this process has open.
pub(crate) fn open_files() -> u64 {
    // The reading of the directory has one open itself. Where there is no `/proc`: the three standard ones.
    fs::read_dir("/proc/self/fd").map_or(3, |files| (files.count() as u64).saturating_sub(1))
}

/// Checks that a recording that began with `open` files may open those of `events`, of all CPUs and threads.
///
/// # Errors
/// [`LimitError::Files`].
pub(crate) fn check_files(open: u64, events: usize) -> Result<(), LimitError> {
    let Some(limit) = getrlimit(Resource::Nofile).current else { return Ok(()) };
    let needed = open + OTHER_FILES + events as u64;
    if needed > limit { Err(LimitError::Files { limit, needed }) } else { Ok(()) }
}

/// Checks that there is address space for `rings` bytes of rings and what a recording needs besides.
///
/// # Errors
/// [`LimitError::AddressSpace`].
pub(crate) fn check_address_space(rings: u64) -> Result<(), LimitError> {
    let Some(limit) = getrlimit(Resource::As).current else { return Ok(()) };
    allocate_from_one_arena();
    let left = limit.saturating_sub(address_space_used());
    let needed = OTHER_MEMORY.saturating_add(rings);
    if needed <= left {
        return Ok(());
    }
    let [left, needed, rings] = [left, needed, rings].map(|bytes| bytes.div_ceil(1 << 20));
    Err(LimitError::AddressSpace { limit: limit >> 10, left, needed, rings })
}

/// Bytes of this process's mappings.
fn address_space_used() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").ok();
    let pages: Option<u64> = pages.and_then(|text| text.split(' ').next()?.parse().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}
