//! One slice of a thread: interpreted, and written back.

use std::sync::Arc;

use lookahead::{Executed, Fuel, Overlay, Registers, StopReason, run_traced};
use perfdata::{Avma, CpuMode, SampleFields};
use rustix::process::{Pid, Signal, kill_process};

use crate::errno::Errno;
use crate::simulation::SimulationSettings;
use crate::simulation::pmu::{CodeBytes, Core, PmuSample, SampledBy, ThreadPmu, stepped};
use crate::simulation::statistics::SimulationStatistics;
use crate::simulation::thread::{Process, Thread};
use crate::tracer::Shared;
use crate::tracer::burst::ThreadId;
use crate::tracer::burst::address_space::AddressSpace;
use crate::tracer::burst::memory::PageReader;

use crate::tracer::kernel::{Kernel, ThreadMemory};

/// Pages of a thread that a slice may touch: 64 MiB.
const PAGES: usize = 1 << 14;
/// Instructions between two looks of the PMU at the trace, which then still is in the cache.
const PIECE: u64 = 1 << 13;
/// Instructions of a slice, where other threads wait for their turn and where none does: signals come through at its end.
const TURN: u64 = 30_000;
const ALONE: u64 = 1_000_000;

/// What is to become of a thread after a slice.
pub(super) enum Next {
    /// It executes one instruction itself.
    Step,
    /// It cannot be simulated.
    LetGo,
    /// There is no such thread any more.
    Gone,
}

/// Code in a process.
struct ProcessCode<'a, K>(&'a K, i32);

impl<K: ThreadMemory> CodeBytes for ProcessCode<'_, K> {
    fn read(&mut self, ip: Avma, bytes: &mut [u8; 15]) -> usize {
        let Self(kernel, process) = *self;
        if kernel.read_memory(process, ip, bytes) {
            return bytes.len();
        }
        // It may end with the page.
        let in_page = (4096 - (ip.0 & 0xfff) as usize).min(bytes.len());
        if kernel.read_memory(process, ip, &mut bytes[..in_page]) { in_page } else { 0 }
    }
}

/// Interprets threads, slice by slice, and lets the PMU see it.
pub(super) struct Slicer {
    settings: SimulationSettings,
    shared: Arc<Shared>,
    core: Core,
    pub(super) statistics: SimulationStatistics,
    // Reused from slice to slice.
    overlay: Overlay,
    reader: PageReader,
    trace: Vec<Executed>,
    samples: Vec<PmuSample>,
}

impl Slicer {
    pub(super) fn new(settings: SimulationSettings, shared: Arc<Shared>) -> Self {
        let overlay = Overlay::with_originals(PAGES);
        lookahead::warm_up();
        Self {
            statistics: SimulationStatistics::new(settings.pmu),
            settings,
            shared,
            core: Core::default(),
            overlay,
            reader: PageReader::new(),
            trace: Vec::new(),
            samples: Vec::new(),
        }
    }

    /// The PMU of a new thread.
    pub(super) fn pmu(&self) -> ThreadPmu {
        ThreadPmu::new(self.settings.pmu, self.settings.sampled)
    }

    /// The thread stands still: interprets its code as far as it goes, and makes it so. `alone`: no other thread waits for its turn.
    pub(super) fn slice(
        &mut self,
        kernel: &mut impl Kernel,
        thread: &mut Thread,
        process: &mut Process,
        alone: bool,
    ) -> Next {
        let ThreadId { pid, tid } = thread.id;
        let read = match kernel.registers(tid) {
            Ok(read) => read,
            Err(Errno::ENOSYS) => {
                *self.statistics.not_followed.entry("32-bit code").or_default() += 1;
                return Next::LetGo;
            }
            Err(_) => return Next::Gone,
        };
        let mut registers = read.registers;
        self.stepped(kernel, thread, process, Avma(registers.rip));
        self.look_around(kernel, thread, process);
        // ERESTARTSYS to ERESTART_RESTARTBLOCK (linux/errno.h): the kernel is about to make the call again, or a handler run.
        if read.system_call >= 0 && (-516..=-512).contains(&(registers.general[0] as i64)) {
            return self.step(thread, "interrupted system call");
        }
        if std::mem::take(&mut thread.signals) && kernel.has_signal_to_take(tid) {
            thread.stepping = Some(Avma(registers.rip));
            return self.step(thread, "signal");
        }
        if self.settings.only_steps {
            thread.stepping = Some(Avma(registers.rip));
            thread.maps = changes_mappings(&registers);
            return self.step(thread, "only steps");
        }
        let before = registers.vector.clone();
        self.overlay.clear();
        self.reader.fetch(kernel, tid, thread.working_set.expected());
        let stop = self.interpret(kernel, thread, process, &mut registers, alone);
        thread.working_set.touched(self.overlay.touched());
        if let Err(address) = self.write_back(kernel, thread.id, &registers, before != registers.vector) {
            // Meanwhile its process may have been killed, or another of its threads have called exec.
            if kernel.registers(tid).is_ok() {
                self.statistics.failures.push(format!(
                    "simulated PMU: memory of process {pid} at {:#x} cannot be written back: it was killed",
                    address.0
                ));
                let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, Signal::KILL));
            }
            return Next::Gone;
        }
        thread.stepping = Some(Avma(registers.rip));
        thread.signals = stop == StopReason::SystemCall && may_bring_signals(&registers);
        thread.maps = match stop {
            StopReason::SystemCall => changes_mappings(&registers),
            StopReason::Fault { .. } | StopReason::UnreadableCode | StopReason::SelfModifying => true,
            _ => false,
        };
        self.step(thread, stop.name())
    }

    fn step(&mut self, thread: &Thread, why: &'static str) -> Next {
        *self.statistics.steps.entry(why).or_default() += 1;
        self.statistics.stepped += u64::from(thread.stepping.is_some());
        Next::Step
    }

    /// Interprets, and lets the PMU see it, until something has to be done in another way.
    fn interpret(
        &mut self,
        kernel: &impl Kernel,
        thread: &mut Thread,
        process: &mut Process,
        registers: &mut Registers,
        alone: bool,
    ) -> StopReason {
        let tid = thread.id.tid;
        let mut left = if alone { ALONE } else { TURN };
        while left > 0 {
            let Process { space: AddressSpace { code, layout, .. }, code: table, .. } = &mut *process;
            let mut memory = self.reader.memory(kernel, tid, layout);
            let fuel = Fuel { instructions: PIECE.min(left), branches: u64::MAX };
            self.trace.clear();
            let outcome = run_traced(registers, &mut self.overlay, &mut memory, code, fuel, &mut self.trace);
            let mut bytes = ProcessCode(kernel, tid);
            self.core.retire(&mut thread.pmu, table, &mut bytes, &self.trace, &mut self.samples);
            if !self.samples.is_empty() {
                self.write_samples(thread.id);
            }
            if outcome.stop != StopReason::Fuel {
                return outcome.stop;
            }
            left = left.saturating_sub(outcome.instructions.max(1));
        }
        StopReason::Fuel
    }

    /// Makes memory and registers of the stopped thread what they were interpreted to be.
    ///
    /// # Errors
    /// An address that could not be written to.
    fn write_back(
        &mut self,
        kernel: &mut impl Kernel,
        id: ThreadId,
        registers: &Registers,
        vector: bool,
    ) -> Result<(), Avma> {
        self.statistics.slices += 1;
        let changes: Vec<(Avma, &[u8])> = self.overlay.changes().collect();
        kernel.write_memory(id.tid, &changes)?;
        kernel.set_registers(id.tid, registers, vector).map_err(|_| Avma(registers.rip))
    }

    /// A thread that was let execute an instruction itself stands before `next`.
    pub(super) fn stepped(
        &mut self,
        kernel: &impl ThreadMemory,
        thread: &mut Thread,
        process: &mut Process,
        next: Avma,
    ) {
        let Some(ip) = thread.stepping.take().filter(|&ip| ip != next) else { return };
        let mut bytes = ProcessCode(kernel, thread.id.tid);
        let executed = stepped(&mut process.code, &mut bytes, ip, next);
        self.core.retire(&mut thread.pmu, &mut process.code, &mut bytes, &[executed], &mut self.samples);
        self.write_samples(thread.id);
    }

    /// Looks again what is mapped, if that may have changed.
    fn look_around(&mut self, kernel: &impl Kernel, thread: &mut Thread, process: &mut Process) {
        process.space.forget_volatile();
        if std::mem::take(&mut thread.maps) {
            let (truth, table) = (&mut self.statistics.truth, &mut process.code);
            process.space.reread(kernel, thread.id.tid, |layout| truth.add(layout, table.take()));
        }
    }

    fn write_samples(&mut self, id: ThreadId) {
        for sample in self.samples.drain(..) {
            let (event, period) = match sample.event {
                SampledBy::Instructions => (&self.settings.events[0], self.settings.sampled.instructions.period),
                SampledBy::TakenBranches => (&self.settings.events[1], self.settings.sampled.taken_branches.period),
            };
            let mut failed = false;
            let written = self.shared.push(|time, records| {
                let fields = SampleFields {
                    cpu_mode: CpuMode::User,
                    id: event.id,
                    ip: sample.ip,
                    pid: id.pid as u32,
                    tid: id.tid as u32,
                    time,
                    period,
                    branches: &sample.branches,
                    ..SampleFields::default()
                };
                failed = fields.append_record(&event.attr, records).is_err();
            });
            self.statistics.lost += u64::from(!written);
            self.statistics.unwritable += u64::from(failed);
        }
    }
}

/// Whether after the system call a handler may have to run before anything else: it sends signals, or unblocks them.
fn may_bring_signals(registers: &Registers) -> bool {
    [
        libc::SYS_kill,
        libc::SYS_tkill,
        libc::SYS_tgkill,
        libc::SYS_rt_sigqueueinfo,
        libc::SYS_rt_tgsigqueueinfo,
        libc::SYS_pidfd_send_signal,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_rt_sigsuspend,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_sendto,
        libc::SYS_sendmsg,
    ]
    .contains(&(registers.general[0] as i64))
}

/// Whether the system call may give an address another meaning. New memory of no file, where the kernel chooses the place, does not.
fn changes_mappings(registers: &Registers) -> bool {
    let [number, protection, flags] = [0, 2, 10].map(|number| registers.general[number]);
    match number as i64 {
        libc::SYS_mmap => {
            let fixed = (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) as u64;
            let is_plain = protection == (libc::PROT_READ | libc::PROT_WRITE) as u64;
            !is_plain || flags & libc::MAP_ANONYMOUS as u64 == 0 || flags & fixed != 0
        }
        libc::SYS_munmap
        | libc::SYS_mprotect
        | libc::SYS_pkey_mprotect
        | libc::SYS_mremap
        | libc::SYS_remap_file_pages
        | libc::SYS_shmat
        | libc::SYS_shmdt => true,
        _ => false,
    }
}
