//! What the machine offers, what would be recorded on it, and what would give more.

use serde::Serialize;

use crate::machine::{Cpu, EventOpener, Kernel, Machine, Privileges, Probe, Probes};
use crate::plan::choice::{Choice, CountsFrom, choose};
use crate::plan::event_spec::{Role, Unit};
use crate::plan::microarchitecture::Microarchitecture;
use crate::plan::{BranchRecords, Options, branch_records};
use crate::session::timing::is_possible;
use crate::session::tracing::by_default;
use crate::tracer::{BurstEnd, TracerKind};

/// What the machine offers, as a document of the schema `hbbp-doctor/1`.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The name of the schema, `hbbp-doctor/1`.
    pub schema: &'static str,
    /// What its processor is.
    pub cpu: Cpu,
    /// The PMUs of the cores; empty: none.
    pub pmu: Vec<PmuReport>,
    /// How the hardware records branches.
    pub branch_records: BranchReport,
    /// Whether branches can be traced in software.
    pub software_tracing: TracingReport,
    /// What `hbbp record` would do.
    pub would_use: WouldUse,
    /// What would give more, in sentences, the most useful first.
    pub advice: Vec<String>,
    /// The kernel and its settings.
    pub kernel: Kernel,
    /// What this process may do.
    pub privileges: Privileges,
    /// What opened when it was tried.
    pub probes: Probes,
    /// The kind of container this process is in.
    pub container: Option<String>,
}

/// A PMU of cores: hybrid machines have several.
#[derive(Clone, Debug, Serialize)]
pub struct PmuReport {
    /// The name that the kernel gives it.
    pub name: String,
    /// The number that stands for it in `perf_event_attr.type`.
    #[serde(rename = "type")]
    pub kind: u32,
    /// Whose event list applies.
    pub microarchitecture: String,
    /// Its CPUs, if not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    /// The highest `precise_ip`; `None`: the kernel does not say.
    pub max_precise: Option<u32>,
    /// Branch counters (Intel, since Linux 6.8).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch_counters: Option<u32>,
}

/// What branch records the hardware makes.
#[derive(Clone, Debug, Serialize)]
pub struct BranchReport {
    /// Whether there are any.
    pub available: bool,
    /// How the hardware makes them: `lbr` (Intel), `lbr-v2` or `brs` (AMD).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// Entries of a stack, where the kernel says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
}

/// Branches traced in software.
#[derive(Clone, Debug, Serialize)]
pub struct TracingReport {
    /// Whether a command's branches can be traced in any way.
    pub available: bool,
    /// Whether a child of this process could be traced when it was tried.
    pub ptrace: Probe,
    /// Whether processes that run already can be, those of the same user at least.
    pub running_processes: bool,
    /// Whether agents inside a command's processes can take the bursts, which costs less.
    pub agents: bool,
    /// Whether timers of CPU time can start the bursts of a command's processes, which needs neither perf events nor ptrace.
    pub timers: bool,
    /// Whether a path that is traced from outside can go on after system calls, which takes a breakpoint.
    pub behind_system_calls: bool,
}

/// What `hbbp record` would do without options.
#[derive(Clone, Debug, Serialize)]
pub struct WouldUse {
    /// What the counts would come from; `None`: it would fail.
    pub source: Option<CountsFrom>,
    /// The events that would be opened.
    pub events: Vec<WouldOpen>,
    /// How it would trace branches in software, if it would.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracer: Option<WouldTrace>,
    /// What is less than it could be.
    pub degradations: Vec<String>,
    /// Why it would fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How branches would be traced in software.
#[derive(Clone, Debug, Serialize)]
pub struct WouldTrace {
    /// How paths would be found.
    pub kind: TracerKind,
    /// Where a burst would end.
    #[serde(flatten)]
    pub end: BurstEnd,
    /// Percent of the program's CPU time that recording may take.
    pub overhead: f64,
}

/// An event that would be opened.
#[derive(Clone, Debug, Serialize)]
pub struct WouldOpen {
    /// The name of the event.
    pub name: String,
    /// The source that it would serve as.
    pub role: Role,
    /// When it would sample, in words.
    pub period: String,
    /// What the period counts.
    pub unit: Unit,
    /// Whether its samples hold branches.
    pub branches: bool,
}

/// Examines `machine`, trying events on `opener`.
pub fn examine(machine: &Machine, opener: &mut dyn EventOpener) -> Report {
    let tracing = tracing_report(machine, opener);
    let would_use = would_use(machine, &tracing, opener);
    Report {
        schema: "hbbp-doctor/1",
        cpu: machine.cpu.clone(),
        pmu: pmu_reports(machine),
        branch_records: branch_report(machine),
        advice: advice(machine, &tracing),
        software_tracing: tracing,
        would_use,
        kernel: machine.kernel.clone(),
        privileges: machine.privileges.clone(),
        probes: machine.probes,
        container: machine.container.clone(),
    }
}

fn pmu_reports(machine: &Machine) -> Vec<PmuReport> {
    let report = |pmu: &crate::machine::pmu::Pmu| PmuReport {
        name: pmu.name.clone(),
        kind: pmu.kind,
        microarchitecture: format!("{:?}", Microarchitecture::of(&machine.cpu, pmu)),
        cpus: pmu.cpus.as_ref().map(ToString::to_string),
        max_precise: pmu.cap("max_precise"),
        branch_counters: pmu.cap("branch_counter_nr"),
    };
    machine.core_pmus().map(report).collect()
}

fn branch_report(machine: &Machine) -> BranchReport {
    let found = machine.core_pmus().find_map(|pmu| Some((branch_records(machine, pmu)?, pmu.cap("branches"))));
    let kind = found.map(|(records, _)| match records {
        BranchRecords::WithTakenBranches => "brs",
        BranchRecords::WithAnyEvent if machine.cpu.lbr_v2 => "lbr-v2",
        BranchRecords::WithAnyEvent => "lbr",
    });
    BranchReport { available: found.is_some(), kind, depth: found.and_then(|(_, depth)| depth) }
}

fn tracing_report(machine: &Machine, opener: &mut dyn EventOpener) -> TracingReport {
    let ptrace = Probe::from(opener.try_trace());
    let probes = &machine.probes;
    let clock = probes.task_clock.works() || machine.counts_instructions();
    let unrestricted = machine.kernel.ptrace_scope.unwrap_or(0) == 0 || machine.privileges.sys_ptrace;
    let timers = is_possible(opener);
    TracingReport {
        available: ptrace.works() && clock || timers,
        ptrace,
        running_processes: ptrace.works() && clock && unrestricted,
        agents: ptrace.works() && probes.task_clock.works() && agent::Image::possible().is_ok(),
        timers,
        behind_system_calls: probes.breakpoint.works(),
    }
}

fn would_use(machine: &Machine, tracing: &TracingReport, opener: &mut dyn EventOpener) -> WouldUse {
    match choose(machine, &Options::default(), opener) {
        Err(error) => WouldUse {
            source: None,
            events: Vec::new(),
            tracer: None,
            degradations: Vec::new(),
            error: Some(error.to_string()),
        },
        Ok(mut choice) => WouldUse {
            source: Some(choice.source),
            tracer: if tracing.ptrace.works() { would_trace(machine, &mut choice) } else { None },
            events: choice
                .events
                .iter()
                .map(|event| WouldOpen {
                    name: event.name(),
                    role: event.role,
                    period: event.period.to_string(),
                    unit: event.unit,
                    branches: event.branches.is_some(),
                })
                .collect(),
            degradations: choice.degradations,
            error: None,
        },
    }
}

fn would_trace(machine: &Machine, choice: &mut Choice) -> Option<WouldTrace> {
    let (kind, options) = by_default(machine, choice)?;
    Some(WouldTrace { kind, end: options.size.end(kind), overhead: options.overhead })
}

fn advice(machine: &Machine, tracing: &TracingReport) -> Vec<String> {
    let mut advice = Vec::new();
    let mut say = |wanted: bool, sentence: &str| {
        if wanted {
            advice.push(sentence.to_owned());
        }
    };
    let Machine { cpu, kernel, privileges, probes, .. } = machine;
    let hardware = machine.counts_instructions();
    let privileged = privileges.perfmon || privileges.sys_admin;
    let usable = probes.dummy.works();
    let forbidden = matches!(probes.dummy, Probe::Fails(errno) if errno.is_permission());
    say(
        forbidden && machine.container.is_some(),
        "Run the container with a seccomp profile that allows perf_event_open, and with --cap-add PERFMON.",
    );
    say(
        forbidden && machine.container.is_none(),
        "Set kernel.perf_event_paranoid to 2 or lower, or give this user CAP_PERFMON.",
    );
    say(!usable && !forbidden, "Use a kernel with CONFIG_PERF_EVENTS.");
    say(
        usable && !hardware && cpu.hypervisor,
        "Ask for a virtual PMU (KVM: -cpu host,pmu=on; VMware: virtualized CPU performance counters), or run on bare metal: \
         counters then count instructions, where the clock only shows time.",
    );
    say(
        usable && !hardware && !cpu.hypervisor,
        "No hardware event opens on bare metal: see whether another profiler or the firmware holds the PMU.",
    );
    let without_records = hardware && !branch_report(machine).available;
    say(
        without_records && cpu.hypervisor,
        "Run on bare metal, or under a hypervisor that passes branch records on (KVM on Intel since Linux 5.12): they give exact paths.",
    );
    let zen3 = cpu.vendor == "AuthenticAMD" && cpu.family == 25;
    say(
        without_records && !cpu.hypervisor && zen3,
        "Use Linux 5.19 or later for BRS (CONFIG_PERF_EVENTS_AMD_BRS), 6.1 or later for LBRv2: they give exact paths.",
    );
    let records = branch_report(machine).available;
    let untraced = usable && !records && !tracing.ptrace.works();
    let scope = kernel.ptrace_scope.unwrap_or(0);
    say(
        untraced && scope < 2 && machine.container.is_some(),
        "Run the container with a seccomp profile that allows ptrace (Docker: --cap-add SYS_PTRACE): branches can then be \
         traced in software.",
    );
    say(
        untraced && scope < 2 && machine.container.is_none(),
        "See what forbids ptrace here (a security module, or a sandbox): with it, branches can be traced in software.",
    );
    say(
        untraced && scope >= 2,
        "Set kernel.yama.ptrace_scope to 1 or lower (3 holds until the next boot): branches can then be traced in software.",
    );
    say(
        usable && !records && tracing.ptrace.works() && !tracing.behind_system_calls,
        "Let hardware breakpoints open: branches traced in software, from outside, end at system calls without them.",
    );
    say(
        !machine.may_sample_kernel() && usable,
        "For kernel code, set kernel.perf_event_paranoid to 1 or lower, or give hbbp CAP_PERFMON.",
    );
    say(
        machine.may_sample_kernel() && !kernel.kernel_symbols,
        "Set kernel.kptr_restrict to 0 (or 1 with CAP_SYSLOG), so that kernel samples can be resolved.",
    );
    let reads_kernel = privileges.sys_admin || privileges.bpf && privileges.perfmon;
    let without_code = machine.may_sample_kernel() && kernel.kernel_symbols && !kernel.kernel_text && usable;
    say(
        without_code && !reads_kernel,
        "Give hbbp CAP_SYS_ADMIN, or CAP_BPF and CAP_PERFMON, so that recordings keep the kernel code that ran; without, reports need the \
         kernel's vmlinux (--binary).",
    );
    say(
        without_code && reads_kernel,
        "This kernel shows its code neither in /proc/kcore nor to BPF (from Linux 5.11 on, where lockdown allows it): reports need its vmlinux \
         (--binary).",
    );
    say(
        machine.may_sample_kernel() && !machine.may_sample_system() && usable,
        "To record what the kernel changes of its code meanwhile (patches, BPF programs), set kernel.perf_event_paranoid to 0 or lower, or \
         give hbbp CAP_PERFMON.",
    );
    say(
        machine.may_sample_kernel() && usable && !privileges.sys_admin,
        "To record the code of BPF programs, give hbbp CAP_SYS_ADMIN.",
    );
    say(
        !machine.may_sample_system() && usable,
        "To record all processes (-a), or a control group (--cgroup), set kernel.perf_event_paranoid to 0 or lower, or give hbbp CAP_PERFMON.",
    );
    say(
        probes.system_wide.works() && !probes.control_group.works(),
        "To record a control group (--cgroup), use a kernel with CONFIG_CGROUP_PERF, and mount its groups (cgroup2 at /sys/fs/cgroup).",
    );
    say(
        (scope == 1 || scope > 1 && !untraced) && !privileges.sys_ptrace,
        "To trace processes that are not hbbp's children, set kernel.yama.ptrace_scope to 0 or give hbbp CAP_SYS_PTRACE.",
    );
    say(
        hardware && kernel.nmi_watchdog == Some(true),
        "Turn the NMI watchdog off (kernel.nmi_watchdog=0): it keeps one counter for itself.",
    );
    say(
        !privileged && !privileges.ipc_lock && kernel.mlock_kb.is_some_and(|kb| kb < 516),
        "Raise kernel.perf_event_mlock_kb to 516 or more: smaller rings lose samples.",
    );
    advice
}
