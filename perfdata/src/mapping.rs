//! What was mapped where: the payload of MMAP and MMAP2 records.

use std::fmt;

use crate::{Avma, CpuMode, SampleId};

/// A mapping of a file, or of memory, into a process or the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mmap<'a> {
    /// Where it counts: [`CpuMode::Kernel`] for kernel and modules, [`CpuMode::User`] for processes.
    pub cpu_mode: CpuMode,
    /// Process id; `u32::MAX` for the kernel.
    pub pid: u32,
    /// Id of the thread that mapped it; `u32::MAX` or 0 for the kernel.
    pub tid: u32,
    /// First address, a multiple of the page size unless the kernel's.
    pub start: Avma,
    /// Length of the mapping, bytes, which may be more than the file has.
    pub len: u64,
    /// Offset in the file, bytes. For the kernel's own mapping the address of its reference symbol.
    pub pgoff: u64,
    /// What tells the file from others of the same path.
    pub file: MappedFile,
    /// `PROT_*` bits. Of an MMAP record, which has none: read and execute unless `data`, then read.
    pub prot: u32,
    /// `MAP_*` bits; 0 of an MMAP record.
    pub flags: u32,
    /// Not an executable mapping (`PERF_RECORD_MISC_MMAP_DATA`).
    pub data: bool,
    /// The file's path, or a name such as `[vdso]`, `//anon`, `[kernel.kallsyms]_text`.
    pub path: &'a [u8],
    /// Which event, when, where.
    pub sample_id: SampleId,
}

impl Mmap<'_> {
    /// Whether code can run in it.
    pub fn is_executable(&self) -> bool {
        const PROT_EXEC: u32 = 4;
        self.prot & PROT_EXEC != 0
    }

    /// The address after the last one; saturates.
    pub fn end(&self) -> Avma {
        Avma(self.start.0.saturating_add(self.len))
    }
}

/// Whether a mapping of this name is of memory that no file has, though it looks like a path: what the kernel calls anonymous and shared
/// memory in its records and in `/proc/PID/maps` (`kernel/events/core.c`, `mm/shmem.c`, `ipc/shm.c`, `mm/hugetlb.c`, `fs/aio.c`).
pub fn is_memory_without_file(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 8] =
        [b"//", b"/memfd:", b"/SYSV", b"/anon_hugepage", b"/dev/zero", b"anon_inode:", b"/i915", b"/[aio]"];
    NAMES.iter().any(|start| name.starts_with(start))
}

/// The identity of a mapped file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MappedFile {
    /// Not recorded: an MMAP record has its path only.
    #[default]
    Unknown,
    /// By inode. All zero: an anonymous mapping, or not recorded.
    Inode {
        /// Major number of the device that the file is on.
        maj: u32,
        /// Minor number of that device.
        min: u32,
        /// Number of the inode on that device.
        ino: u64,
        /// Generation of the inode: another one where the number was used again.
        generation: u64,
    },
    /// By the build id in the file.
    BuildId(BuildId),
}

/// A build id of at most [`BuildId::MOST`] bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildId {
    bytes: [u8; Self::MOST],
    len: u8,
}

impl BuildId {
    /// Bytes of a build id that a recording has room for (`BUILD_ID_SIZE_MAX`, linux/buildid.h). Linkers can make longer ones.
    pub const MOST: usize = 20;

    /// From its bytes; `None` when there are more than [`MOST`](Self::MOST).
    pub fn new(id: &[u8]) -> Option<Self> {
        let mut bytes = [0; Self::MOST];
        bytes.get_mut(..id.len())?.copy_from_slice(id);
        Some(Self { bytes, len: id.len() as u8 })
    }

    /// The bytes that are recorded, 0 to [`MOST`](Self::MOST).
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&self.bytes)
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}
