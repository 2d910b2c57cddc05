//! Waits for simulated threads to stand still, and lets them go on.

use std::collections::{HashMap, VecDeque};
use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use addresses::Avma;
use lookahead::{Executed, Overlay};

use crate::simulation::SimulationSettings;
use crate::simulation::pmu::{CodeTable, Core, PmuSample, ThreadPmu};
use crate::simulation::slice::Next;
use crate::simulation::statistics::SimulationStatistics;
use crate::sys::process::group_and_parent;
use crate::sys::{
    RegisterArea, Report, WaitSet, detach, interrupt, listen, next_report, register, resume, seize, signal_info,
    single_step,
};
use crate::tracer::address_space::AddressSpace;
use crate::tracer::burst::ThreadId;
use crate::tracer::engine::command_status;
use crate::tracer::memory::PageReader;
use crate::tracer::path::warm_up;
use crate::tracer::working_set::WorkingSet;
use crate::tracer::{AttachError, Shared};

/// Pages of a thread that a stretch may touch: 64 MiB.
const PAGES: usize = 1 << 14;
/// How long at most nobody looks whether the end has come.
const TICK: Duration = Duration::from_millis(100);
/// How long threads are waited for that are to be let go.
const LAST_STOPS: Duration = Duration::from_secs(2);

/// A thread.
pub(super) struct Thread {
    pub(super) id: ThreadId,
    pub(super) pmu: ThreadPmu,
    pub(super) working_set: WorkingSet,
    /// The instruction it was let execute itself.
    pub(super) stepping: Option<Avma>,
    /// What that may change of the address space.
    pub(super) maps: bool,
    /// It may have sent itself a signal, or unblocked one.
    pub(super) signals: bool,
}

/// A process.
pub(super) struct Process {
    pub(super) space: AddressSpace,
    pub(super) code: CodeTable,
    threads: usize,
}

pub(super) struct Simulator {
    pub(super) settings: SimulationSettings,
    pub(super) shared: Arc<Shared>,
    signals: WaitSet,
    pub(super) threads: HashMap<i32, Thread>,
    pub(super) processes: HashMap<i32, Process>,
    /// Threads that stand still, and can go on.
    pub(super) ready: VecDeque<i32>,
    /// The command's exec was seen.
    running: bool,
    pub(super) core: Core,
    pub(super) statistics: SimulationStatistics,
    // Reused from stretch to stretch.
    pub(super) area: RegisterArea,
    pub(super) overlay: Overlay,
    pub(super) reader: PageReader,
    pub(super) trace: Vec<Executed>,
    pub(super) samples: Vec<PmuSample>,
}

impl Simulator {
    pub(super) fn new(settings: SimulationSettings, shared: Arc<Shared>, signals: WaitSet) -> Self {
        let mut overlay = Overlay::with_originals(PAGES);
        warm_up(&mut overlay);
        Self {
            statistics: SimulationStatistics::new(settings.pmu),
            settings,
            shared,
            signals,
            threads: HashMap::new(),
            processes: HashMap::new(),
            ready: VecDeque::new(),
            running: false,
            core: Core::default(),
            area: RegisterArea::new(),
            overlay,
            reader: PageReader::new(),
            trace: Vec::new(),
            samples: Vec::new(),
        }
    }

    /// What was done, which is nothing.
    pub(super) fn nothing(self) -> SimulationStatistics {
        self.statistics
    }

    /// Becomes the tracer of the command. It dies with the simulator: half of a stretch may have been written back.
    pub(super) fn attach(&mut self) -> Result<(), AttachError> {
        let thread = self.settings.command;
        let new = libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK;
        let options = new | libc::PTRACE_O_TRACEEXEC | libc::PTRACE_O_EXITKILL;
        seize(thread, options).map_err(|errno| AttachError { thread, errno })?;
        self.add(ThreadId { pid: thread, tid: thread });
        Ok(())
    }

    fn add(&mut self, id: ThreadId) {
        let process = self.processes.entry(id.pid).or_insert_with(|| {
            self.statistics.processes += 1;
            Process { space: AddressSpace::new(id.pid), code: CodeTable::default(), threads: 0 }
        });
        process.threads += 1;
        self.statistics.threads += 1;
        let pmu = ThreadPmu::new(self.settings.pmu, self.settings.sampled);
        let thread = Thread { id, pmu, working_set: WorkingSet::default(), stepping: None, maps: true, signals: false };
        self.threads.insert(id.tid, thread);
    }

    /// The thread has ended, or is let go.
    fn remove(&mut self, tid: i32) {
        let Some(thread) = self.threads.remove(&tid) else { return };
        self.count(&thread.pmu);
        if let Some(process) = self.processes.get_mut(&thread.id.pid) {
            process.threads -= 1;
            if process.threads == 0 {
                self.statistics.truth.add(&process.space.layout, process.code.take());
                self.processes.remove(&thread.id.pid);
            }
        }
    }

    fn count(&mut self, pmu: &ThreadPmu) {
        let (instructions, taken_branches) = pmu.counted();
        self.statistics.instructions += instructions;
        self.statistics.taken_branches += taken_branches;
        self.statistics.merged += pmu.merged();
    }

    /// Simulates until it is told to stop.
    pub(super) fn run(mut self) -> SimulationStatistics {
        while !self.shared.stopping.load(Ordering::Acquire) {
            while let Some((tid, report)) = next_report() {
                self.handle(tid, report);
            }
            match self.ready.pop_front() {
                Some(tid) => self.go_on(tid),
                None => drop(self.signals.wait(TICK)),
            }
        }
        self.finish()
    }

    /// The next stretch of a thread that stands still.
    fn go_on(&mut self, tid: i32) {
        let Some(mut thread) = self.threads.remove(&tid) else { return };
        let next = self.stretch(&mut thread);
        self.threads.insert(tid, thread);
        match next {
            Next::Step => drop(single_step(tid, 0)),
            Next::LetGo => {
                let _ = detach(tid, 0);
                self.remove(tid);
            }
            Next::Gone => {}
        }
    }

    fn handle(&mut self, tid: i32, report: Report) {
        match report {
            Report::Ended(status) => {
                self.remove(tid);
                if self.settings.command == tid {
                    let _ = self.shared.status.set(command_status(status));
                }
            }
            Report::Signal(signal) if signal == libc::SIGTRAP && self.running && is_own_step(tid) => {
                self.ready.push_back(tid);
            }
            Report::Signal(signal) => {
                self.statistics.signals += u64::from(self.running);
                self.settle(tid);
                self.let_go(tid, signal);
            }
            Report::Event(libc::PTRACE_EVENT_STOP, libc::SIGTRAP) => {
                if self.threads.contains_key(&tid) {
                    self.let_go(tid, 0);
                } else if let Some((pid, _)) = group_and_parent(tid as u32) {
                    self.add(ThreadId { pid: pid as i32, tid });
                    self.ready.push_back(tid);
                }
            }
            // Stopped by SIGSTOP and the like, and to stay so.
            Report::Event(libc::PTRACE_EVENT_STOP, _) => drop(listen(tid)),
            Report::Event(libc::PTRACE_EVENT_EXEC, _) => {
                self.exec(tid);
                self.let_go(tid, 0);
            }
            Report::Event(..) => self.let_go(tid, 0),
        }
    }

    fn let_go(&self, tid: i32, signal: i32) {
        let _ = if self.running { single_step(tid, signal) } else { resume(tid, signal) };
    }

    /// A thread that was let execute an instruction is stopped by something else, before or behind it.
    fn settle(&mut self, tid: i32) {
        let next = Avma(register(tid, offset_of!(libc::user_regs_struct, rip)));
        let Some(mut thread) = self.threads.remove(&tid) else { return };
        self.stepped(&mut thread, next);
        self.threads.insert(tid, thread);
    }

    /// The process has another program now, and this thread alone.
    fn exec(&mut self, tid: i32) {
        self.running = true;
        self.settle(tid);
        let Some(pid) = self.threads.get(&tid).map(|thread| thread.id.pid) else { return };
        let others: Vec<i32> = self
            .threads
            .values()
            .filter(|thread| thread.id.pid == pid && thread.id.tid != tid)
            .map(|thread| thread.id.tid)
            .collect();
        others.into_iter().for_each(|other| self.remove(other));
        if let Some(process) = self.processes.get_mut(&pid) {
            self.statistics.truth.add(&process.space.layout, process.code.take());
            process.space.forget();
        }
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.pmu.exec();
            thread.working_set.clear();
            thread.maps = true;
        }
    }

    /// Lets everything go. Threads that are underway have to be stopped for that, or the trap of their step would kill them.
    fn finish(mut self) -> SimulationStatistics {
        let standing: Vec<i32> = self.ready.drain(..).collect();
        let mut underway: Vec<i32> = self.threads.keys().copied().filter(|tid| !standing.contains(tid)).collect();
        standing.into_iter().for_each(|tid| self.part(tid, 0));
        underway.retain(|&tid| interrupt(tid).is_ok());
        let end = Instant::now() + LAST_STOPS;
        while !underway.is_empty() && Instant::now() < end {
            while let Some((tid, report)) = next_report() {
                underway.retain(|&other| other != tid);
                match report {
                    Report::Ended(_) => self.handle(tid, report),
                    Report::Signal(signal) if signal != libc::SIGTRAP || !is_own_step(tid) => self.part(tid, signal),
                    _ => self.part(tid, 0),
                }
            }
            if !underway.is_empty() {
                let _ = self.signals.wait(Duration::from_millis(1));
            }
        }
        if !underway.is_empty() {
            self.statistics
                .failures
                .push(format!("simulated PMU: {} threads could not be let go and were killed", underway.len()));
        }
        let left: Vec<i32> = self.threads.keys().copied().collect();
        left.into_iter().for_each(|tid| self.remove(tid));
        self.statistics
    }

    /// Lets a stopped thread go on by itself.
    fn part(&mut self, tid: i32, signal: i32) {
        self.settle(tid);
        *self.statistics.not_followed.entry("the recording ended before").or_default() += 1;
        let _ = detach(tid, signal);
        self.remove(tid);
    }
}

/// Whether a SIGTRAP is that of a step: of an instruction, of a system call, or into a signal handler.
fn is_own_step(tid: i32) -> bool {
    const TRAP_BRKPT: i32 = 1;
    const TRAP_TRACE: i32 = 2;
    signal_info(tid).is_ok_and(|info| matches!(info.code, TRAP_BRKPT | TRAP_TRACE | libc::SIGTRAP))
}
