//! The types of records and the mode bits of their headers.

use std::fmt;

/// The type of a record: the kernel's below 64, those `perf` itself adds from 64 on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct RecordType(pub u32);

macro_rules! record_types {
    ($($(#[$doc:meta])* $name:ident = $number:literal),+ $(,)?) => {
        impl RecordType {
            $($(#[$doc])* pub const $name: Self = Self($number);)+

            /// The name without its `PERF_RECORD_` prefix, where this version knows it.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some(stringify!($name)),)+
                    _ => None,
                }
            }
        }
    };
}

record_types! {
    /// A mapping with its address, file offset and path alone.
    MMAP = 1,
    /// Records the kernel had no room for.
    LOST = 2,
    /// The name of a thread.
    COMM = 3,
    /// A thread or a process ends.
    EXIT = 4,
    /// The kernel throttled an event.
    THROTTLE = 5,
    /// The kernel let an event go on.
    UNTHROTTLE = 6,
    /// A thread or a process begins.
    FORK = 7,
    /// Counter values of a thread that ended.
    READ = 8,
    /// A sample: what the kernel noted when an event overflowed.
    SAMPLE = 9,
    /// A mapping with its file's identity and protection.
    MMAP2 = 10,
    /// There are new data in the AUX area.
    AUX = 11,
    /// An instruction trace started.
    ITRACE_START = 12,
    /// Samples the hardware lost.
    LOST_SAMPLES = 13,
    /// A context switch of the thread.
    SWITCH = 14,
    /// A context switch of the CPU.
    SWITCH_CPU_WIDE = 15,
    /// The namespaces that a thread is in.
    NAMESPACES = 16,
    /// A kernel symbol came or went.
    KSYMBOL = 17,
    /// A BPF program came or went.
    BPF_EVENT = 18,
    /// A control group and its path.
    CGROUP = 19,
    /// The kernel changed its own code.
    TEXT_POKE = 20,
    /// The hardware's id of an event whose data is in the AUX area.
    AUX_OUTPUT_HW_ID = 21,
    /// The user part of a call chain, delivered late.
    CALLCHAIN_DEFERRED = 22,
    /// Pipe mode: an event.
    HEADER_ATTR = 64,
    /// Pipe mode: an event's name (not written since 3.10).
    HEADER_EVENT_TYPE = 65,
    /// Pipe mode: tracepoint formats; the data follows the record.
    HEADER_TRACING_DATA = 66,
    /// Pipe mode: the build id of a file.
    HEADER_BUILD_ID = 67,
    /// `perf` emptied all rings once.
    FINISHED_ROUND = 68,
    /// Which event ids belong to which CPU and thread.
    ID_INDEX = 69,
    /// What the AUX data is.
    AUXTRACE_INFO = 70,
    /// AUX data; it follows the record.
    AUXTRACE = 71,
    /// AUX data could not be decoded.
    AUXTRACE_ERROR = 72,
    /// Ids and names of the threads that are recorded.
    THREAD_MAP = 73,
    /// Numbers of the CPUs that are recorded on.
    CPU_MAP = 74,
    /// `perf stat record`: configuration.
    STAT_CONFIG = 75,
    /// `perf stat record`: a value.
    STAT = 76,
    /// `perf stat record`: an interval.
    STAT_ROUND = 77,
    /// Pipe mode: an event's name, unit, scale or CPUs.
    EVENT_UPDATE = 78,
    /// How to convert time-stamp-counter values.
    TIME_CONV = 79,
    /// Pipe mode: a feature section.
    HEADER_FEATURE = 80,
    /// zstd-compressed records (since perf 5.2).
    COMPRESSED = 81,
    /// `perf` has synthesized all it had to.
    FINISHED_INIT = 82,
    /// zstd-compressed records, padded to 8 bytes.
    COMPRESSED2 = 83,
    /// Metadata of a BPF program.
    BPF_METADATA = 84,
    /// Scheduler statistics of a CPU.
    SCHEDSTAT_CPU = 85,
    /// Scheduler statistics of a domain.
    SCHEDSTAT_DOMAIN = 86,
}

impl RecordType {
    /// Whether `perf` (not the kernel) makes records of this type; they carry no [`crate::SampleId`].
    pub fn is_user(self) -> bool {
        self.0 >= 64
    }
}

impl fmt::Display for RecordType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "PERF_RECORD_{name}"),
            None => write!(f, "{}", self.0),
        }
    }
}

impl fmt::Debug for RecordType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Where the CPU was: the low three bits of a record's `misc` (`PERF_RECORD_MISC_CPUMODE_MASK`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CpuMode {
    /// Not said, or a number this version does not know.
    #[default]
    Unknown,
    /// The kernel.
    Kernel,
    /// User space.
    User,
    /// A hypervisor.
    Hypervisor,
    /// A guest's kernel.
    GuestKernel,
    /// A guest's user space.
    GuestUser,
}

impl CpuMode {
    /// The mode in a record's `misc`.
    #[inline]
    pub const fn from_misc(misc: u16) -> Self {
        match misc & 7 {
            1 => Self::Kernel,
            2 => Self::User,
            3 => Self::Hypervisor,
            4 => Self::GuestKernel,
            5 => Self::GuestUser,
            _ => Self::Unknown,
        }
    }

    /// The bits for a record's `misc`.
    pub const fn to_misc(self) -> u16 {
        self as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_print_by_name_or_number() {
        assert_eq!(RecordType::MMAP2.to_string(), "PERF_RECORD_MMAP2");
        assert_eq!(RecordType(4711).to_string(), "4711");
    }

    #[test]
    fn cpu_modes_survive_misc() {
        for misc in 0..=5 {
            assert_eq!(CpuMode::from_misc(misc).to_misc(), misc);
        }
        assert_eq!(CpuMode::from_misc(6), CpuMode::Unknown);
        assert_eq!(CpuMode::from_misc(1 << 13 | 2), CpuMode::User);
    }
}
