//! Features: what a recording says about the machine, the command and itself.

use std::collections::BTreeMap;
use std::fmt;

/// Number of a feature section (`HEADER_*` in `tools/perf/util/header.h`): 0 to 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeatureBit(pub u32);

macro_rules! feature_bits {
    ($($name:ident = $number:literal),+ $(,)?) => {
        #[allow(missing_docs)] // the names are perf's own
        impl FeatureBit {
            $(pub const $name: Self = Self($number);)+

            /// Its name, where this version knows it.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some(stringify!($name)),)+
                    _ => None,
                }
            }
        }
    };
}

feature_bits! {
    TRACING_DATA = 1, BUILD_ID = 2, HOSTNAME = 3, OSRELEASE = 4, VERSION = 5, ARCH = 6, NRCPUS = 7, CPUDESC = 8,
    CPUID = 9, TOTAL_MEM = 10, CMDLINE = 11, EVENT_DESC = 12, CPU_TOPOLOGY = 13, NUMA_TOPOLOGY = 14,
    BRANCH_STACK = 15, PMU_MAPPINGS = 16, GROUP_DESC = 17, AUXTRACE = 18, STAT = 19, CACHE = 20, SAMPLE_TIME = 21,
    MEM_TOPOLOGY = 22, CLOCKID = 23, DIR_FORMAT = 24, BPF_PROG_INFO = 25, BPF_BTF = 26, COMPRESSED = 27,
    CPU_PMU_CAPS = 28, CLOCK_DATA = 29, HYBRID_TOPOLOGY = 30, PMU_CAPS = 31, E_MACHINE = 32,
}

impl fmt::Display for FeatureBit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

/// A file (or the kernel) and its build id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuildIdEntry {
    /// `misc` bits but the one that says the id's size is recorded; the low three say whether it is the kernel's or user
    /// space's ([`crate::CpuMode`]).
    pub misc: u16,
    /// Process id of the guest, -1 for the host.
    pub pid: i32,
    /// The id, usually 20 bytes (with zeros at its end where an old recording does not say its size).
    pub build_id: Vec<u8>,
    /// The path, or a name such as `[kernel.kallsyms]`.
    pub path: Vec<u8>,
}

/// What the feature sections of a recording say. A field is empty or `None` when its section is absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Features {
    /// Name of the machine.
    pub hostname: Option<String>,
    /// Release of the kernel, as `uname -r` prints it.
    pub os_release: Option<String>,
    /// Version of the tool that recorded.
    pub version: Option<String>,
    /// Machine architecture, as `uname -m` prints it.
    pub arch: Option<String>,
    /// Model name of the CPU.
    pub cpu_desc: Option<String>,
    /// Vendor, family, model and stepping of the CPU.
    pub cpuid: Option<String>,
    /// CPUs the machine has, and CPUs online.
    pub nr_cpus: Option<(u32, u32)>,
    /// Memory of the machine (`MemTotal` of `/proc/meminfo`), KiB.
    pub total_mem: Option<u64>,
    /// The command that recorded, word by word.
    pub cmdline: Vec<String>,
    /// Build ids of the files in which samples fell, or of all mapped.
    pub build_ids: Vec<BuildIdEntry>,
    /// Names of the events in order; merged into [`crate::Recording::events`].
    pub event_names: Vec<String>,
    /// PMU types and names.
    pub pmu_mappings: Vec<(u32, String)>,
    /// Groups of two events or more.
    pub groups: Vec<EventGroup>,
    /// Caches of the machine: perf lists those of all CPUs.
    pub caches: Vec<Cache>,
    /// Times of the first and the last sample.
    pub sample_time: Option<(u64, u64)>,
    /// Samples carry branch records.
    pub branch_stack: bool,
    /// The recording has AUX data.
    pub auxtrace: bool,
    /// Resolution of the clock that was asked for, ns (what the kernel writes, usually 1).
    pub clockid: Option<u64>,
    /// The clock, and two readings of it and of the wall clock at one moment.
    pub clock_data: Option<ClockData>,
    /// How records were compressed.
    pub compressed: Option<Compression>,
    /// What the CPU's PMU can do: `branches=32`, `max_precise=3`, ...
    pub cpu_pmu_caps: Vec<(String, String)>,
    /// The same per PMU (since perf 6.0): PMU name and its list.
    pub pmu_caps: Vec<(String, Vec<(String, String)>)>,
    /// PMUs of a hybrid machine and their CPUs.
    pub hybrid_topology: Vec<(String, String)>,
    /// The sections that have no field here, as they lie in the recording: those that this version does not take apart, those of
    /// newer kernels, and those of tools that keep a section of their own. perf counts its features up from 1, so that a tool does
    /// best with a high number; readers that do not know it skip the section.
    pub other: BTreeMap<FeatureBit, Vec<u8>>,
}

/// A group of events that were counted together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventGroup {
    /// Its name, often empty.
    pub name: String,
    /// Index of its leader.
    pub leader: u32,
    /// How many events it has, the leader among them.
    pub members: u32,
}

/// A cache, of one CPU or of several (`struct cpu_cache_level` in `tools/perf/util/env.h`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Cache {
    /// 1 for the one next to the core.
    pub level: u32,
    /// Bytes in a line.
    pub line_size: u32,
    /// How many sets it has,
    pub sets: u32,
    /// of so many lines.
    pub ways: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// Its size in words of the kernel: `48K`.
    pub size: String,
    /// The CPUs that share it, as a list: `0-1`.
    pub cpus: String,
}

impl Cache {
    /// Size of the first of these caches that is of a level and holds data, bytes; `None` if it is not known.
    pub fn data_bytes(caches: &[Self], level: u32) -> Option<u64> {
        let holds_data = |cache: &&Self| cache.level == level && cache.kind != "Instruction";
        caches.iter().find(holds_data).map(Self::bytes).filter(|bytes| *bytes > 0)
    }

    /// Its size, bytes; 0 if it is not known. Some virtual machines have it in words only.
    pub fn bytes(&self) -> u64 {
        let lines = u64::from(self.sets).saturating_mul(self.ways.into());
        match lines.saturating_mul(self.line_size.into()) {
            0 => {
                let kib = self.size.strip_suffix('K').and_then(|kib| kib.parse().ok());
                kib.unwrap_or(0_u64).saturating_mul(1024)
            }
            bytes => bytes,
        }
    }
}

/// Readings of two clocks at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockData {
    /// Which clock the time stamps are of (`CLOCK_*`).
    pub clockid: u32,
    /// Time of day, ns since 1970.
    pub wall_clock_ns: u64,
    /// What the clock of the time stamps read at that moment, ns.
    pub clockid_time_ns: u64,
}

/// How records were compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compression {
    /// Version of the section.
    pub version: u32,
    /// Algorithm (`PERF_COMP_*`): 0 none, 1 zstd.
    pub kind: u32,
    /// Level that the algorithm was asked for: 1 to 22 of zstd.
    pub level: u32,
    /// Times smaller it got.
    pub ratio: u32,
    /// Most bytes that one compressed record decompresses to.
    pub mmap_len: u32,
}
