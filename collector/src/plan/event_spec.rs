//! One event to record with: what it counts, how often it samples, what its samples hold.

pub use formats::metadata::{Levels, Period, Provenance, Role, Unit};
use perfdata::{AttrFlags, BranchSampleType, EventAttr, ReadFormat, SampleFormat};

use crate::machine::cpu_list::CpuList;
use crate::machine::pmu::EventCode;

/// An event, on one PMU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSpec {
    /// What its samples are for.
    pub role: Role,
    /// What its period counts.
    pub unit: Unit,
    /// Its name without modifiers: `inst_retired.prec_dist`, `cpu_atom/inst_retired.any_p/`.
    pub base_name: String,
    /// The code that the kernel knows it by.
    pub code: EventCode,
    /// The CPUs whose PMU has it; `None`: all.
    pub cpus: Option<CpuList>,
    /// How many units there are between two samples, or how many samples in a second.
    pub period: Period,
    /// `precise_ip`, 0 to 3.
    pub precise: u8,
    /// Privilege levels at which it samples.
    pub levels: Levels,
    /// Whether the PMU takes `exclude_hv` and `exclude_guest`.
    pub excludes_guests: bool,
    /// Which branches its samples hold; `None`: no branch stack.
    pub branches: Option<BranchSampleType>,
}

/// What does not depend on the event, but on the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionAttrs {
    /// Samples name the CPU.
    pub with_cpu: bool,
    /// Threads and processes started later are recorded too.
    pub inherit: bool,
    /// The program's `exec` starts the event.
    pub enable_on_exec: bool,
    /// The kernel reports lost samples per event.
    pub lost_counts: bool,
    /// The idle task is left out (clocks of a CPU).
    pub exclude_idle: bool,
    /// Bytes in a ring that wake the reader; 0 leaves it to the kernel.
    pub watermark: u32,
}

impl EventSpec {
    /// The name with perf's modifiers: `inst_retired.prec_dist:upp`.
    pub fn name(&self) -> String {
        let level = match self.levels {
            Levels::All => "",
            Levels::User => "u",
            Levels::Kernel => "k",
        };
        let modifiers = format!("{level}{}", "p".repeat(self.precise.into()));
        let separator = if self.base_name.ends_with('/') || modifiers.is_empty() { "" } else { ":" };
        format!("{}{separator}{modifiers}", self.base_name)
    }

    /// The attr to open it with. `tracking`: it also records mappings, names, forks and exits.
    pub fn attr(&self, session: &SessionAttrs, tracking: bool) -> EventAttr {
        let mut sample_format =
            SampleFormat::IDENTIFIER | SampleFormat::IP | SampleFormat::TID | SampleFormat::TIME | SampleFormat::PERIOD;
        // Times are those of `CLOCK_MONOTONIC`, which others than the kernel can read, too: bursts and marks of phases have them.
        let mut flags = AttrFlags::DISABLED
            | AttrFlags::SAMPLE_ID_ALL
            | AttrFlags::USE_CLOCKID
            | AttrFlags(u64::from(self.precise & 3) << 15);
        let mut set = |wanted: bool, flag: AttrFlags| {
            if wanted {
                flags |= flag;
            }
        };
        set(session.inherit, AttrFlags::INHERIT);
        set(session.enable_on_exec, AttrFlags::ENABLE_ON_EXEC);
        set(session.exclude_idle, AttrFlags::EXCLUDE_IDLE);
        set(session.watermark > 0, AttrFlags::WATERMARK);
        set(self.levels == Levels::User, AttrFlags::EXCLUDE_KERNEL);
        set(self.levels == Levels::Kernel, AttrFlags::EXCLUDE_USER);
        set(self.levels != Levels::All && self.excludes_guests, AttrFlags::EXCLUDE_HV);
        set(self.excludes_guests, AttrFlags::EXCLUDE_GUEST);
        set(matches!(self.period, Period::Frequency(_)), AttrFlags::FREQ);
        set(tracking, AttrFlags::MMAP | AttrFlags::MMAP2 | AttrFlags::COMM | AttrFlags::COMM_EXEC | AttrFlags::TASK);
        if session.with_cpu {
            sample_format |= SampleFormat::CPU;
        }
        if self.branches.is_some() {
            sample_format |= SampleFormat::BRANCH_STACK;
        }
        let mut read_format = ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING | ReadFormat::ID;
        if session.lost_counts {
            read_format |= ReadFormat::LOST;
        }
        let [config, config1, config2, config3] = self.code.config;
        let (Period::Every(sample_period_or_freq) | Period::Frequency(sample_period_or_freq)) = self.period;
        let attr = EventAttr {
            kind: self.code.kind,
            config,
            config1,
            config2,
            config3,
            sample_period_or_freq,
            sample_format,
            read_format,
            flags,
            wakeup_events_or_watermark: session.watermark,
            clockid: libc::CLOCK_MONOTONIC,
            branch_sample_type: self.branches.unwrap_or_default(),
            ..EventAttr::default()
        };
        // `config3` came with PERF_ATTR_SIZE_VER8; older kernels refuse the longer structure.
        if config3 == 0 { attr } else { EventAttr { size: 136, ..attr } }
    }
}
