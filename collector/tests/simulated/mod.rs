//! Machines put together from what Linux documents of them, and a kernel that opens what theirs would.
#![allow(dead_code)] // each test uses a part

use collector::errno::Errno;
use collector::machine::cpu_list::CpuList;
use collector::machine::pmu::Pmu;
use collector::machine::{Cpu, EventOpener, Kernel, Machine, Privileges, Probe, Probes};
use perfdata::{AttrFlags, BranchSampleType, EventAttr, SampleFormat};

/// A machine to build on: root on bare metal, four CPUs, Linux 6.8.
pub fn machine(vendor: &str, family: u32, model: u32, pmus: Vec<Pmu>) -> Machine {
    let hardware = !pmus.is_empty();
    let open = |works: bool| if works { Probe::Works } else { Probe::Fails(Errno::ENOENT) };
    let software = Probe::Works;
    Machine {
        cpu: Cpu { vendor: vendor.into(), family, model, ..Cpu::default() },
        online: CpuList::first(8),
        present: 8,
        pmus,
        kernel: Kernel {
            release: "6.8.0".into(),
            perf_event_paranoid: Some(2),
            kptr_restrict: Some(0),
            max_sample_rate: Some(100_000),
            ..Kernel::default()
        },
        privileges: Privileges { perfmon: true, sys_admin: true, ..Privileges::default() },
        probes: Probes {
            dummy: software,
            cycles: open(hardware),
            instructions: open(hardware),
            branches: open(hardware),
            task_clock: software,
            cpu_clock: software,
            breakpoint: software,
            kernel_code: software,
            system_wide: software,
            control_group: software,
            lost_counts: software,
            ..Probes::default()
        },
        ..Machine::default()
    }
}

/// A core PMU.
pub fn pmu(name: &str, kind: u32, caps: &[(&str, &str)]) -> Pmu {
    let format = [("event", "config:0-7"), ("umask", "config:8-15"), ("inv", "config:23"), ("cmask", "config:24-31")];
    let map = |pairs: &[(&str, &str)]| pairs.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
    Pmu {
        name: name.into(),
        kind,
        format: map(&format),
        events: map(&[("branch-instructions", "event=0xc4"), ("cpu-cycles", "event=0x3c")]),
        caps: map(caps),
        cpus: None,
    }
}

/// What an Intel PMU says of itself.
pub fn intel(name: &str, branches: &str, max_precise: &str) -> Vec<Pmu> {
    vec![pmu("cpu", 4, &[("branches", branches), ("max_precise", max_precise), ("pmu_name", name)])]
}

/// A hybrid machine's two PMUs.
pub fn hybrid() -> Vec<Pmu> {
    let caps = [("branches", "32"), ("max_precise", "3"), ("pmu_name", "alderlake_hybrid")];
    let core = Pmu { cpus: "0-3".parse().ok(), ..pmu("cpu_core", 4, &caps) };
    let atom = Pmu { cpus: "4-7".parse().ok(), ..pmu("cpu_atom", 10, &caps) };
    vec![atom, core]
}

/// AMD's IBS, with or without the software filter of Linux 6.14.
pub fn ibs(swfilt: bool) -> Pmu {
    let mut ibs = Pmu { name: "ibs_op".into(), kind: 11, ..Pmu::default() };
    ibs.format.insert("cnt_ctl".into(), "config:19".into());
    if swfilt {
        ibs.format.insert("swfilt".into(), "config2:0".into());
    }
    ibs
}

/// A kernel on `machine`: opens what Linux 6.8 on it would, by `arch/x86/events`.
pub struct SimulatedKernel<'a> {
    pub machine: &'a Machine,
    /// Codes it does not know.
    pub refuses: &'a [u64],
    /// What was tried and what came of it.
    pub log: Vec<String>,
}

impl EventOpener for SimulatedKernel<'_> {
    fn try_open(&mut self, attr: &EventAttr, cpu: Option<u32>, all_tasks: bool) -> Result<(), Errno> {
        let answer = self.answer(attr, cpu, all_tasks);
        self.log.push(format!("{:#x} p{} {:?}", attr.config, attr.precise_ip(), answer));
        answer
    }

    fn try_control_group(&mut self, attr: &EventAttr, cpu: u32) -> Result<(), Errno> {
        self.answer(attr, Some(cpu), true)
    }

    /// By `yama_ptrace_access_check`, and by the seccomp profiles that forbid `perf_event_open` too.
    fn try_trace(&mut self) -> Result<(), Errno> {
        let Machine { kernel, privileges, probes, .. } = self.machine;
        let scope = kernel.ptrace_scope.unwrap_or(0);
        let forbidden =
            scope == 3 || scope == 2 && !privileges.sys_ptrace || probes.dummy == Probe::Fails(Errno::EPERM);
        if forbidden { Err(Errno::EPERM) } else { Ok(()) }
    }

    fn try_timer(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    fn try_kernel_memory(&mut self) -> Result<(), Errno> {
        Err(Errno::EPERM)
    }
}

impl SimulatedKernel<'_> {
    fn answer(&self, attr: &EventAttr, cpu: Option<u32>, all_tasks: bool) -> Result<(), Errno> {
        let machine = self.machine;
        if !attr.exclude_kernel() && !machine.may_sample_kernel() {
            return Err(Errno::EACCES);
        }
        if all_tasks && (cpu.is_none() || !machine.may_sample_system()) {
            return Err(if cpu.is_none() { Errno::EINVAL } else { Errno::EACCES });
        }
        let stack = attr.sample_format.contains(SampleFormat::BRANCH_STACK);
        if stack && attr.branch_sample_type.contains(BranchSampleType::KERNEL) && !machine.may_sample_kernel() {
            return Err(Errno::EACCES);
        }
        if attr.kind == 1 {
            return if stack { Err(Errno::EOPNOTSUPP) } else { Ok(()) };
        }
        if let Some(ibs) = machine.pmu("ibs_op").filter(|ibs| ibs.kind == attr.kind) {
            let excludes = AttrFlags::EXCLUDE_HV | AttrFlags::EXCLUDE_GUEST | AttrFlags::EXCLUDE_IDLE;
            let filtered = attr.flags.intersects(AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_USER);
            if attr.flags.intersects(excludes)
                || filtered && (!ibs.format.contains_key("swfilt") || attr.config2 & 1 == 0)
            {
                return Err(Errno::EINVAL);
            }
            return if attr.sample_period_or_freq.is_multiple_of(16) { Ok(()) } else { Err(Errno::EINVAL) };
        }
        let kind = if attr.kind == 0 && attr.config >> 32 != 0 { (attr.config >> 32) as u32 } else { attr.kind };
        let pmu = machine.core_pmus().find(|pmu| pmu.kind == kind || kind == 0).ok_or(Errno::ENOENT)?;
        if pmu.cpus.as_ref().is_some_and(|cpus| !cpu.is_some_and(|cpu| cpus.contains(cpu))) {
            return Err(Errno::EINVAL);
        }
        if self.refuses.contains(&attr.config) {
            return Err(Errno::EINVAL);
        }
        if u32::from(attr.precise_ip()) > pmu.cap("max_precise").unwrap_or(0) {
            return Err(Errno::EOPNOTSUPP);
        }
        if stack { self.branch_stack(attr, pmu) } else { Ok(()) }
    }

    fn branch_stack(&self, attr: &EventAttr, pmu: &Pmu) -> Result<(), Errno> {
        let filter = attr.branch_sample_type;
        let transactions = BranchSampleType::IN_TX | BranchSampleType::NO_TX | BranchSampleType::ABORT_TX;
        if self.machine.cpu.brs {
            let levels = BranchSampleType::USER | BranchSampleType::KERNEL | BranchSampleType::HV;
            let fits = attr.config == 0xc4
                && attr.sample_period().is_some_and(|period| period > 16)
                && filter.difference(levels) == BranchSampleType::ANY;
            return if fits { Ok(()) } else { Err(Errno::EINVAL) };
        }
        if self.machine.cpu.lbr_v2
            && filter.intersects(transactions | BranchSampleType::CALL_STACK | BranchSampleType::NO_FLAGS)
        {
            return Err(Errno::EOPNOTSUPP);
        }
        let records = pmu.cap("branches").map_or(self.machine.probes.branch_stack.works(), |depth| depth > 0);
        if records { Ok(()) } else { Err(Errno::EOPNOTSUPP) }
    }
}
