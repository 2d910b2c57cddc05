//! Waits for simulated threads to stand still, and lets them go on.

use std::collections::{HashMap, HashSet, VecDeque};
use std::mem::offset_of;
use std::sync::Arc;
use std::time::Duration;

use addresses::Avma;

use crate::simulation::SimulationSettings;
use crate::simulation::pmu::{CodeTable, ThreadPmu};
use crate::simulation::slice::{Next, Slicer};
use crate::simulation::statistics::SimulationStatistics;
use crate::simulation::thread::{Process, Thread};
use crate::sys::SignalInfo;
use crate::tracer::burst::ThreadId;
use crate::tracer::burst::address_space::AddressSpace;
use crate::tracer::burst::working_set::WorkingSet;
use crate::tracer::kernel::Kernel;
use crate::tracer::report_loop::{ReportHandler, follow, follow_until, release};
use crate::tracer::thread::action::Release;
use crate::tracer::thread::event::Stop;
use crate::tracer::{AttachError, Shared};

/// How long at most nobody looks whether the end has come.
const TICK: Duration = Duration::from_millis(100);
/// How long threads are waited for that are to be let go.
const LAST_STOPS: Duration = Duration::from_secs(2);

pub(super) struct Simulator<K> {
    kernel: K,
    shared: Arc<Shared>,
    command: i32,
    slicer: Slicer,
    threads: HashMap<i32, Thread>,
    processes: HashMap<i32, Process>,
    /// Threads that stand still, and can go on.
    ready: VecDeque<i32>,
    /// The command's exec was seen.
    running: bool,
    /// The simulation ends: threads that are waited for, to be let go.
    leaving: Option<HashSet<i32>>,
}

impl<K: Kernel> Simulator<K> {
    pub(super) fn new(settings: SimulationSettings, shared: Arc<Shared>, kernel: K) -> Self {
        Self {
            kernel,
            command: settings.command,
            slicer: Slicer::new(settings, shared.clone()),
            shared,
            threads: HashMap::new(),
            processes: HashMap::new(),
            ready: VecDeque::new(),
            running: false,
            leaving: None,
        }
    }

    /// What was done, which is nothing.
    pub(super) fn nothing(self) -> SimulationStatistics {
        self.slicer.statistics
    }

    /// Becomes the tracer of the command. It dies with the simulator: half of a slice may have been written back.
    ///
    /// # Errors
    /// It cannot be traced, and why.
    pub(super) fn attach(&mut self) -> Result<(), AttachError> {
        let thread = self.command;
        let new = libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK;
        let options = new | libc::PTRACE_O_TRACEEXEC | libc::PTRACE_O_EXITKILL;
        self.kernel.seize(thread, options).map_err(|errno| AttachError { thread, errno })?;
        self.add(ThreadId { pid: thread, tid: thread });
        Ok(())
    }

    fn add(&mut self, id: ThreadId) {
        let process = self.processes.entry(id.pid).or_insert_with(|| {
            self.slicer.statistics.processes += 1;
            Process { space: AddressSpace::new(id.pid), code: CodeTable::default(), threads: 0 }
        });
        process.threads += 1;
        self.slicer.statistics.threads += 1;
        let pmu = self.slicer.pmu();
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
                self.slicer.statistics.truth.add(&process.space.layout, process.code.take());
                self.processes.remove(&thread.id.pid);
            }
        }
    }

    fn count(&mut self, pmu: &ThreadPmu) {
        let (instructions, taken_branches) = pmu.counted();
        let statistics = &mut self.slicer.statistics;
        statistics.instructions += instructions;
        statistics.taken_branches += taken_branches;
        statistics.merged += pmu.merged();
    }

    /// Simulates until it is told to stop.
    pub(super) fn run(mut self) -> SimulationStatistics {
        follow(&mut self);
        self.finish()
    }

    /// The next slice of a thread that stands still.
    fn go_on(&mut self, tid: i32) {
        let alone = self.ready.is_empty();
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let Some(process) = self.processes.get_mut(&thread.id.pid) else { return };
        match self.slicer.slice(&mut self.kernel, thread, process, alone) {
            Next::Step => drop(release(&mut self.kernel, tid, Release::Step(0))),
            Next::LetGo => {
                release(&mut self.kernel, tid, Release::LetGo(0));
                self.remove(tid);
            }
            Next::Gone => {}
        }
    }

    fn let_go_on(&mut self, tid: i32, signal: i32) {
        let how = if self.running { Release::Step(signal) } else { Release::Run(signal) };
        release(&mut self.kernel, tid, how);
    }

    /// A thread that was let execute an instruction is stopped by something else, before or after it.
    fn settle(&mut self, tid: i32) {
        let next = Avma(self.kernel.register(tid, offset_of!(libc::user_regs_struct, rip)));
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let Some(process) = self.processes.get_mut(&thread.id.pid) else { return };
        self.slicer.stepped(&self.kernel, thread, process, next);
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
            self.slicer.statistics.truth.add(&process.space.layout, process.code.take());
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
        let mut underway: HashSet<i32> = self.threads.keys().copied().filter(|tid| !standing.contains(tid)).collect();
        standing.into_iter().for_each(|tid| self.part(tid, 0));
        underway.retain(|&tid| self.kernel.interrupt(tid).is_ok());
        self.leaving = Some(underway);
        follow_until(&mut self, LAST_STOPS, |simulator| simulator.leaving.as_ref().is_none_or(HashSet::is_empty));
        let left = self.leaving.take().map_or(0, |underway| underway.len());
        if left > 0 {
            let sentence = format!("simulated PMU: {left} threads could not be let go and were killed");
            self.slicer.statistics.failures.push(sentence);
        }
        let left: Vec<i32> = self.threads.keys().copied().collect();
        left.into_iter().for_each(|tid| self.remove(tid));
        self.slicer.statistics
    }

    /// Lets a stopped thread go on by itself.
    fn part(&mut self, tid: i32, signal: i32) {
        self.settle(tid);
        *self.slicer.statistics.not_followed.entry("the recording ended before").or_default() += 1;
        release(&mut self.kernel, tid, Release::LetGo(signal));
        self.remove(tid);
    }

    /// Whether a SIGTRAP is that of a step: of an instruction, of a system call, or into a signal handler.
    fn is_own_step(&self, tid: i32, signal: i32) -> bool {
        const TRAP_BRKPT: i32 = 1;
        const TRAP_TRACE: i32 = 2;
        let of_step = |code: i32| matches!(code, TRAP_BRKPT | TRAP_TRACE | libc::SIGTRAP);
        signal == libc::SIGTRAP && self.kernel.signal_info(tid).is_ok_and(|info| of_step(info.code))
    }
}

impl<K: Kernel> ReportHandler for Simulator<K> {
    type Kernel = K;

    fn kernel(&mut self) -> &mut K {
        &mut self.kernel
    }

    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn command(&self) -> Option<i32> {
        Some(self.command)
    }

    fn ended(&mut self, thread: i32) {
        if let Some(leaving) = &mut self.leaving {
            leaving.remove(&thread);
        }
        self.remove(thread);
    }

    fn stopped(&mut self, tid: i32, stop: Stop) {
        if let Some(leaving) = &mut self.leaving {
            // The stop that was asked for can come before the trap of the step, which waits for the thread.
            let (pending, _) = self.kernel.signals_pending_and_blocked(tid);
            if !matches!(stop, Stop::Signal(_)) && pending & 1 << (libc::SIGTRAP - 1) != 0 {
                release(&mut self.kernel, tid, Release::Run(0));
                return;
            }
            leaving.remove(&tid);
            return match stop {
                Stop::Signal(signal) if !self.is_own_step(tid, signal) => self.part(tid, signal),
                _ => self.part(tid, 0),
            };
        }
        match stop {
            Stop::Signal(signal) if self.running && self.is_own_step(tid, signal) => self.ready.push_back(tid),
            Stop::Signal(signal) => {
                self.slicer.statistics.signals += u64::from(self.running);
                self.settle(tid);
                self.let_go_on(tid, signal);
            }
            Stop::Interrupt if !self.threads.contains_key(&tid) => {
                if let Some(pid) = self.kernel.process_of(tid) {
                    self.add(ThreadId { pid, tid });
                    self.ready.push_back(tid);
                }
            }
            Stop::JobControl => drop(release(&mut self.kernel, tid, Release::StayStopped)),
            Stop::Exec => {
                self.exec(tid);
                self.let_go_on(tid, 0);
            }
            Stop::Interrupt | Stop::StartedAnother | Stop::Clock | Stop::Breakpoint => self.let_go_on(tid, 0),
        }
    }

    /// The simulator has no events.
    fn told(&mut self, _: SignalInfo) {}

    fn idle(&mut self) -> Duration {
        let Some(tid) = self.ready.pop_front() else { return TICK };
        self.go_on(tid);
        Duration::ZERO
    }
}
