//! The bytes of the running kernel: from `/proc/kcore`, or where there is none by a program of BPF.

use std::io;
use std::ops::Range;
use std::path::Path;

use super::kcore::Kcore;
use crate::errno::Errno;
use crate::sys::{KernelMemory, PIECE};

/// What lets a program of BPF read them.
pub(crate) type ByBpf = fn() -> Result<KernelMemory, Errno>;

pub(super) enum Memory {
    Kcore(Kcore),
    Bpf(KernelMemory),
}

impl Memory {
    /// `proc/kcore` below `root`, or else what `by_bpf` gives.
    ///
    /// # Errors
    /// Why neither can be read.
    pub fn open(root: &Path, by_bpf: ByBpf) -> Result<Self, (io::Error, Errno)> {
        match Kcore::open(&root.join("proc/kcore")) {
            Ok(kcore) => Ok(Memory::Kcore(kcore)),
            Err(error) => by_bpf().map(Memory::Bpf).map_err(|errno| (error, errno)),
        }
    }

    /// Whether something may be at the address.
    pub fn may_have(&self, at: u64) -> bool {
        match self {
            Memory::Kcore(kcore) => kcore.has(at),
            Memory::Bpf(_) => true,
        }
    }

    /// The bytes at these addresses, as far as they are there from the first on; `None` if they cannot be read.
    pub fn read(&self, range: &Range<u64>) -> Option<Vec<u8>> {
        match self {
            Memory::Kcore(kcore) => kcore.read(range),
            Memory::Bpf(memory) => {
                let mut bytes = vec![0; usize::try_from(range.end.checked_sub(range.start)?).ok()?];
                let mut read = 0;
                // Up to the end of each page: the next one may be none.
                while let Some(rest) = bytes.get_mut(read..).filter(|rest| !rest.is_empty()) {
                    let at = range.start + read as u64;
                    let size = rest.len().min(PIECE - at as usize % PIECE);
                    let Some(piece) = rest.get_mut(..size) else { break };
                    if memory.read(at, piece).is_err() {
                        break;
                    }
                    read += size;
                }
                bytes.truncate(read);
                (read > 0).then_some(bytes)
            }
        }
    }
}
