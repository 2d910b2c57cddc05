//! Opening events to see whether they open.

use perf_event_open_sys::bindings as sys;
use perfdata::{AttrFlags, BranchSampleType, EventAttr, ReadFormat, SampleFormat};

use super::{Probe, Probes};
use crate::errno::Errno;

/// Something that opens perf events, traces children and has timers: the kernel, or a simulated one.
pub trait EventOpener {
    /// Opens `attr` for a moment: for this process on any CPU, for this process on `cpu`, or (`all_tasks`) for everything on `cpu`.
    ///
    /// # Errors
    /// What `perf_event_open` answered.
    fn try_open(&mut self, attr: &EventAttr, cpu: Option<u32>, all_tasks: bool) -> Result<(), Errno>;

    /// Opens `attr` for a moment, for the control group at the top of those that can be seen here, on `cpu`.
    ///
    /// # Errors
    /// What `perf_event_open` answered; ENOENT where no groups are mounted that perf events know.
    fn try_control_group(&mut self, attr: &EventAttr, cpu: u32) -> Result<(), Errno>;

    /// Becomes the tracer of a child of this process for a moment.
    ///
    /// # Errors
    /// What `ptrace` answered.
    fn try_trace(&mut self) -> Result<(), Errno>;

    /// Has a timer of this process's CPU time for a moment.
    ///
    /// # Errors
    /// What `timer_create` answered.
    fn try_timer(&mut self) -> Result<(), Errno>;

    /// Has a program of BPF that reads the kernel's memory for a moment.
    ///
    /// # Errors
    /// What `bpf` answered.
    fn try_kernel_memory(&mut self) -> Result<(), Errno>;
}

/// Tries each event of [`Probes`].
pub(super) fn probe(opener: &mut dyn EventOpener, cpu: u32) -> Probes {
    let user = AttrFlags::DISABLED | AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV;
    let event = |kind: u32, config: u64| EventAttr { kind, config, flags: user, ..EventAttr::default() };
    let hardware =
        |config: u32| EventAttr { sample_period_or_freq: 1_000_003, ..event(sys::PERF_TYPE_HARDWARE, config.into()) };
    let software = |config: u32| event(sys::PERF_TYPE_SOFTWARE, config.into());
    let dummy = software(sys::PERF_COUNT_SW_DUMMY);
    let mut own = |attr: &EventAttr| Probe::from(opener.try_open(attr, None, false));
    let mut probes = Probes {
        dummy: own(&dummy),
        cycles: own(&hardware(sys::PERF_COUNT_HW_CPU_CYCLES)),
        instructions: own(&hardware(sys::PERF_COUNT_HW_INSTRUCTIONS)),
        branches: own(&hardware(sys::PERF_COUNT_HW_BRANCH_INSTRUCTIONS)),
        branch_stack: own(&EventAttr {
            sample_format: SampleFormat::IP | SampleFormat::BRANCH_STACK,
            branch_sample_type: BranchSampleType::USER | BranchSampleType::ANY,
            ..hardware(sys::PERF_COUNT_HW_CPU_CYCLES)
        }),
        task_clock: own(&EventAttr { sample_period_or_freq: 10_000_019, ..software(sys::PERF_COUNT_SW_TASK_CLOCK) }),
        cpu_clock: own(&EventAttr { sample_period_or_freq: 10_000_019, ..software(sys::PERF_COUNT_SW_CPU_CLOCK) }),
        breakpoint: own(&EventAttr {
            bp_type: sys::HW_BREAKPOINT_X,
            // Any user address does: the event is never enabled. The length of an execute breakpoint is that of a pointer.
            config1: 0x1000,
            config2: 8,
            ..event(sys::PERF_TYPE_BREAKPOINT, 0)
        }),
        kernel_code: own(&EventAttr { flags: AttrFlags::DISABLED, ..dummy.clone() }),
        lost_counts: own(&EventAttr { read_format: ReadFormat::LOST, ..dummy.clone() }),
        ..Probes::default()
    };
    probes.system_wide = Probe::from(opener.try_open(&dummy, Some(cpu), true));
    probes.control_group = Probe::from(opener.try_control_group(&dummy, cpu));
    probes
}
