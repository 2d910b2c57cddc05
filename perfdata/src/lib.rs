//! Reads and writes `perf.data` recordings.
//!
//! The reader takes what `perf record` of Linux 2.6.34 to 6.12 (and `hbbp record`) writes, in file and pipe mode, compressed or
//! not; the writer makes files that `perf`, `llvm-profgen`, `perf2bolt` and `create_llvm_prof` open. The crate knows
//! the container and the records, and neither ELF nor the kernel's system calls.
//!
//! Names follow `include/uapi/linux/perf_event.h` and `tools/perf/Documentation/perf.data-file-format.txt`.
#![forbid(unsafe_code)]

mod address;

pub use address::Avma;
