//! Archives: a recording and the files of its programs in one file, which every analysis reads as a recording.
//!
//! ```text
//! tar, compressed by zstd
//!   hbbp-archive.json      what is in it (`formats::archive`)
//!   recording.data         the recording, as it was
//!   root/usr/bin/server    programs and libraries, by their recorded paths
//!   root/usr/lib/debug/.build-id/ab/cdef.debug
//! ```
//!
//! Whoever unpacks one by hand has a folder for `--symfs`. See docs/formats/archive.md.

#![forbid(unsafe_code)]

mod opened;
mod pack;
mod plan;
mod unpack;

pub use opened::{Archives, Opened};
pub use pack::write;
pub use plan::{Plan, PlannedFile, plan};
pub use unpack::{is_archive, unpack};
