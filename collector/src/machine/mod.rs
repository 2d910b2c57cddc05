//! What the machine offers, as plain data: read once, printed by `hbbp doctor`, and replaced by recorded machines in tests.

pub mod cpu_list;
pub mod pmu;
mod probe;
mod read;

use std::fmt;

use perfdata::Cache;
use serde::{Deserialize, Serialize};

use crate::errno::Errno;
use crate::machine::cpu_list::CpuList;
use crate::machine::pmu::Pmu;
pub use probe::EventOpener;

/// A machine, as the process that asks sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// What its processor is.
    pub cpu: Cpu,
    /// CPUs that run now (`/sys/devices/system/cpu/online`).
    pub online: CpuList,
    /// CPUs there are, running or not.
    pub present: u32,
    /// How much memory it has, in KiB.
    pub memory_kb: u64,
    /// The caches of its first CPU, from `/sys/devices/system/cpu/cpu*/cache`.
    pub caches: Vec<Cache>,
    /// Its PMUs, by name.
    pub pmus: Vec<Pmu>,
    /// The kernel and its settings.
    pub kernel: Kernel,
    /// What this process may do.
    pub privileges: Privileges,
    /// The kind of container this process is in, if there are signs of one.
    pub container: Option<String>,
    /// What opened when it was tried.
    pub probes: Probes,
}

/// The processor, from `/proc/cpuinfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cpu {
    /// Who made it: `GenuineIntel`, `AuthenticAMD`, `HygonGenuine`.
    pub vendor: String,
    /// The display family that CPUID tells.
    pub family: u32,
    /// The display model that CPUID tells.
    pub model: u32,
    /// The stepping that CPUID tells.
    pub stepping: u32,
    /// The name that its maker sells it by.
    pub name: String,
    /// Whether a hypervisor shows itself.
    pub hypervisor: bool,
    /// AMD's branch sampling (Zen 3).
    pub brs: bool,
    /// AMD's last branch records, version 2 (Zen 4 on).
    pub lbr_v2: bool,
}

/// The kernel's release and the settings that bear on profiling; `None` where the file is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kernel {
    /// The release, as `uname -r` prints it.
    pub release: String,
    /// The machine architecture, as `uname -m` prints it.
    pub arch: String,
    /// The name of the host, as `uname -n` prints it.
    pub hostname: String,
    /// `kernel.perf_event_paranoid`: -1 all allowed, 0 no raw tracepoints, 1 no system-wide events, 2 no kernel, 3 nothing (some distributions).
    pub perf_event_paranoid: Option<i32>,
    /// The setting `kernel.kptr_restrict`; `None` if it cannot be read.
    pub kptr_restrict: Option<i32>,
    /// `kernel.perf_event_max_sample_rate`, samples per second and CPU.
    pub max_sample_rate: Option<u64>,
    /// `kernel.perf_event_mlock_kb`: ring memory an unprivileged user has per CPU.
    pub mlock_kb: Option<u64>,
    /// `kernel.nmi_watchdog`: when on, it keeps one counter.
    pub nmi_watchdog: Option<bool>,
    /// `kernel.yama.ptrace_scope`; without Yama there is none.
    pub ptrace_scope: Option<i32>,
    /// Whether `/proc/kallsyms` shows this process addresses.
    pub kernel_symbols: bool,
    /// Whether this process can read the kernel's code: `/proc/kcore` opens, or (if it was [tried](Machine::try_kernel_memory)) a program of BPF may
    /// read the kernel's memory.
    pub kernel_text: bool,
}

/// What this process may do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Privileges {
    /// Effective user id, 0 for root.
    pub uid: u32,
    /// Whether it has `CAP_PERFMON`.
    pub perfmon: bool,
    /// Whether it has `CAP_SYS_ADMIN`.
    pub sys_admin: bool,
    /// Whether it has `CAP_SYS_PTRACE`.
    pub sys_ptrace: bool,
    /// `CAP_IPC_LOCK`: ring memory is not limited.
    pub ipc_lock: bool,
    /// Whether it has `CAP_BPF`.
    pub bpf: bool,
}

/// What happened when an event was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Probe {
    /// The event could be opened.
    Works,
    /// The kernel refused it, with this number.
    Fails(Errno),
}

/// Events that were tried on this process, without the kernel's code unless said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Probes {
    /// The event that counts nothing: whether `perf_event_open` is there and allowed at all.
    pub dummy: Probe,
    /// CPU cycles, counted by the hardware.
    pub cycles: Probe,
    /// Retired instructions, counted by the hardware.
    pub instructions: Probe,
    /// Retired branches, counted by the hardware.
    pub branches: Probe,
    /// Cycles with branch records.
    pub branch_stack: Probe,
    /// Clock of a task.
    pub task_clock: Probe,
    /// Clock of a CPU.
    pub cpu_clock: Probe,
    /// A breakpoint by the CPU's debug registers.
    pub breakpoint: Probe,
    /// An event that counts the kernel too.
    pub kernel_code: Probe,
    /// An event of all tasks on one CPU.
    pub system_wide: Probe,
    /// An event of a control group on one CPU.
    pub control_group: Probe,
    /// Lost samples in what an event's read returns (since Linux 6.0).
    pub lost_counts: Probe,
}

impl Default for Probe {
    fn default() -> Self {
        Self::Fails(Errno::ENOENT)
    }
}

impl Default for Probes {
    fn default() -> Self {
        let none = Probe::default();
        Self {
            dummy: none,
            cycles: none,
            instructions: none,
            branches: none,
            branch_stack: none,
            task_clock: none,
            cpu_clock: none,
            breakpoint: none,
            kernel_code: none,
            system_wide: none,
            control_group: none,
            lost_counts: none,
        }
    }
}

impl Probe {
    /// Whether the event could be opened.
    pub fn works(self) -> bool {
        self == Self::Works
    }
}

impl From<Result<(), Errno>> for Probe {
    fn from(result: Result<(), Errno>) -> Self {
        result.map_or_else(Self::Fails, |()| Self::Works)
    }
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Works => f.write_str("yes"),
            // Of an event, "no such file" says nothing more.
            Self::Fails(Errno::ENOENT | Errno::ENODEV) => f.write_str("no"),
            Self::Fails(errno) => write!(f, "no ({errno})"),
        }
    }
}

/// The PMUs that count what a core executes: `cpu`, or one per kind of core of a hybrid machine.
const CORE_PMUS: [&str; 4] = ["cpu", "cpu_core", "cpu_atom", "cpu_lowpower"];

impl Machine {
    /// The PMU called `name`.
    pub fn pmu(&self, name: &str) -> Option<&Pmu> {
        self.pmus.iter().find(|pmu| pmu.name == name)
    }

    /// The PMUs of its cores, in the order `cpu`, or `cpu_core`, `cpu_atom`, ..
    pub fn core_pmus(&self) -> impl Iterator<Item = &Pmu> {
        CORE_PMUS.iter().filter_map(|name| self.pmu(name))
    }

    /// Whether hardware events can be counted, by what was tried.
    pub fn counts_instructions(&self) -> bool {
        self.probes.instructions.works()
    }

    /// Whether the kernel's own code may be sampled.
    pub fn may_sample_kernel(&self) -> bool {
        self.may_exceed_paranoid() || self.kernel.perf_event_paranoid.is_none_or(|level| level <= 1)
    }

    /// Whether all tasks of a CPU may be sampled.
    pub fn may_sample_system(&self) -> bool {
        self.may_exceed_paranoid() || self.kernel.perf_event_paranoid.is_none_or(|level| level <= 0)
    }

    fn may_exceed_paranoid(&self) -> bool {
        self.privileges.perfmon || self.privileges.sys_admin
    }

    /// The identification string perf writes for this processor: `GenuineIntel,6,143,8`.
    pub fn cpuid(&self) -> String {
        let Cpu { vendor, family, model, stepping, .. } = &self.cpu;
        format!("{vendor},{family},{model},{stepping}")
    }
}
