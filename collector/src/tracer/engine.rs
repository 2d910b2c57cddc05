//! The tracer's thread: waits for traced threads to stop, and does what is to be done.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use lookahead::{Branch, Fuel, Overlay, Registers, StopReason, run};
use perfdata::{Avma, EventAttr};

use rustix::time::{ClockId, clock_gettime};

use crate::command::CommandStatus;
use crate::kernel::{
    RegisterArea, Report, SignalInfo, WaitSet, event_message, interrupt, listen, next_report, own_thread, resume,
    seize, signal_info,
};
use crate::process::{group_and_parent, signals_caught, threads};
use crate::tracer::address_space::AddressSpace;
use crate::tracer::burst::{Burst, BurstEvent, SAMPLE_BRANCHES, ThreadId};
use crate::tracer::cpu::CpuFollower;
use crate::tracer::governor::{BREAKPOINT, Governor, STOP};
use crate::tracer::memory::PageReader;
use crate::tracer::shared::Shared;
use crate::tracer::static_path::{NoBranch, next_unresolved};
use crate::tracer::statistics::TracerFacts;
use crate::tracer::thread::{Event, Goal, Notice, Phase, SIGNALS, Thread, Underway, best_notice};
use crate::tracer::wish::{BurstSize, TracerKind};
use crate::tracer::{AttachError, Clock, Settings};

/// Pages of a thread that a burst may touch.
const PAGES: usize = 2048;
/// Times a burst goes on behind what could not be followed.
const CONTINUATIONS: u32 = 16;
/// How long a breakpoint is waited for. A thread that blocks in a system call, or leaves a signal handler by `longjmp`, is sampled anew
/// after that.
const PATIENCE: Duration = Duration::from_millis(500);
/// `nice` of the tracer.
const NICE: i32 = -15;
/// How often to look for breakpoints that are not reached, and for threads that do not stop.
const HOUSEKEEPING: Duration = Duration::from_millis(100);

/// A process and how many of its threads are traced.
struct Process {
    space: AddressSpace,
    threads: usize,
    /// Signals it has handlers for, bit n - 1 for signal n.
    caught: u64,
    bursts: u32,
}

pub(super) struct Engine {
    settings: Settings,
    event: BurstEvent,
    clock: EventAttr,
    shared: Arc<Shared>,
    signals: WaitSet,
    own_tid: i32,
    threads: HashMap<i32, Thread>,
    processes: HashMap<i32, Process>,
    governor: Governor,
    cpu: CpuFollower,
    facts: TracerFacts,
    // Reused from burst to burst.
    area: RegisterArea,
    overlay: Overlay,
    reader: PageReader,
    records: Vec<u8>,
    next_look: Instant,
    /// Counts of the clock per ns, where it is no clock.
    rate: f64,
    running: bool,
}

impl Engine {
    pub(super) fn new(settings: Settings, event: BurstEvent, shared: Arc<Shared>, signals: WaitSet) -> Self {
        let now = Instant::now();
        let own_tid = own_thread();
        // Threads stand still while the tracer waits for a CPU. Without the privilege it has to wait.
        let _ = rustix::process::setpriority_process(rustix::process::Pid::from_raw(own_tid), NICE);
        let seed = u64::from(std::process::id()) << 32 ^ event.id ^ 0x9e37_79b9_7f4a_7c15;
        Self {
            clock: settings.clock.attr(),
            facts: TracerFacts::new(settings.kind, settings.size, settings.overhead),
            governor: Governor::new(settings.overhead / 100.0 * settings.burst_share, seed),
            settings,
            event,
            shared,
            signals,
            own_tid,
            threads: HashMap::new(),
            processes: HashMap::new(),
            cpu: CpuFollower::new(),
            area: RegisterArea::new(),
            overlay: Overlay::new(PAGES),
            reader: PageReader::new(),
            records: Vec::new(),
            next_look: now,
            rate: 1.0,
            running: false,
        }
    }

    /// Becomes the tracer of all threads of these processes, or of these threads.
    pub(super) fn attach(&mut self, ids: &[u32], whole_processes: bool) -> Result<(), AttachError> {
        let options = if self.settings.inherit {
            libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK
        } else {
            0
        };
        for &id in ids {
            // Threads that start meanwhile are found in a further round, or by their clone.
            loop {
                let all = if whole_processes { threads(id) } else { vec![id] };
                let mut new = 0;
                for tid in all
                    .into_iter()
                    .map(|tid| tid as i32)
                    .filter(|tid| !self.threads.contains_key(tid))
                    .collect::<Vec<_>>()
                {
                    match seize(tid, options | libc::PTRACE_O_TRACEEXEC) {
                        Ok(()) => {
                            new += 1;
                            self.add(tid);
                        }
                        Err(errno) if errno == crate::errno::Errno::ESRCH => {}
                        // A thread that a traced one has started is traced already.
                        Err(errno) if self.threads.is_empty() => return Err(AttachError { thread: tid, errno }),
                        Err(_) => {}
                    }
                }
                if new == 0 || !whole_processes {
                    break;
                }
            }
        }
        Ok(())
    }

    /// What was done, which is nothing.
    pub(super) fn nothing(self) -> TracerFacts {
        self.facts
    }

    /// Starts sampling the threads there are. Those of a command begin with its exec.
    pub(super) fn start(&mut self) {
        self.running = true;
        if self.settings.command.is_none() {
            let ids: Vec<i32> = self.threads.keys().copied().collect();
            for tid in ids {
                self.with_thread(tid, |engine, thread| engine.arm(thread));
            }
        }
    }

    /// Traces until it is told to stop.
    pub(super) fn run(mut self) -> TracerFacts {
        loop {
            while let Some((tid, report)) = next_report() {
                self.handle(tid, report);
            }
            if self.shared.stopping.load(Ordering::Acquire) {
                break;
            }
            if !self.running && self.shared.started.load(Ordering::Acquire) {
                self.start();
            }
            let now = Instant::now();
            if now >= self.next_look {
                self.look_after();
                self.next_look = now + HOUSEKEEPING;
            }
            if let Some((signal, info)) = self.signals.wait(HOUSEKEEPING)
                && signal != libc::SIGCHLD
            {
                self.interrupt_owner(info);
            }
        }
        self.finish()
    }

    /// Takes all events away, lets go what is stopped, and ends. The kernel detaches threads when their tracer's thread ends.
    fn finish(mut self) -> TracerFacts {
        let ids: Vec<i32> = self.threads.keys().copied().collect();
        for tid in ids {
            self.with_thread(tid, |engine, thread| {
                engine.progress(thread);
                let _ = thread.clock.disable();
                thread.unbreak();
                if matches!(thread.phase, Phase::Underway(_)) {
                    engine.write(thread, "end of the recording");
                }
                thread.phase = Phase::Sampling;
            });
        }
        self.running = false;
        while let Some((tid, report)) = next_report() {
            self.handle(tid, report);
        }
        self.facts
    }

    /// Takes a thread out of the table while something is done with it.
    fn with_thread<R>(&mut self, tid: i32, act: impl FnOnce(&mut Self, &mut Thread) -> R) -> Option<R> {
        let mut thread = self.threads.remove(&tid)?;
        let result = act(self, &mut thread);
        self.threads.insert(tid, thread);
        Some(result)
    }

    /// Enters a thread that is traced now. Returns whether it could be.
    fn add(&mut self, tid: i32) -> bool {
        if self.threads.contains_key(&tid) {
            return true;
        }
        let Some((pid, _)) = group_and_parent(tid as u32) else { return false };
        let Ok(thread) = Thread::new(ThreadId { pid: pid as i32, tid }, &self.clock) else {
            TracerFacts::count(&mut self.facts.ends, "no event could be opened on a thread");
            return false;
        };
        let process = self.processes.entry(pid as i32).or_insert_with(|| {
            self.facts.processes += 1;
            Process { space: AddressSpace::new(pid as i32), threads: 0, caught: signals_caught(pid), bursts: 0 }
        });
        process.threads += 1;
        self.facts.threads += 1;
        self.threads.insert(tid, thread);
        true
    }

    fn remove(&mut self, tid: i32) {
        let Some(mut thread) = self.threads.remove(&tid) else { return };
        self.progress(&mut thread);
        if matches!(thread.phase, Phase::Underway(_)) {
            self.write(&mut thread, "end of the thread");
        }
        if let Some(process) = self.processes.get_mut(&thread.id.pid) {
            process.threads -= 1;
            if process.threads == 0 {
                self.processes.remove(&thread.id.pid);
            }
        }
    }

    fn handle(&mut self, tid: i32, report: Report) {
        let began = own_time();
        match report {
            Report::Ended(status) => {
                self.remove(tid);
                if self.settings.command == Some(tid) {
                    let _ = self.shared.status.set(command_status(status));
                }
                return;
            }
            Report::Signal(signal) => {
                let info = if SIGNALS.contains(&signal) { signal_info(tid).ok() } else { None };
                let event = info.and_then(|info| self.event_of(tid, info));
                match event {
                    Some(event) => return self.with_own_event(tid, event, began),
                    // The program's own.
                    None => go_on(tid, signal),
                }
            }
            Report::Event(libc::PTRACE_EVENT_STOP, libc::SIGTRAP) => {
                if !self.threads.contains_key(&tid) {
                    if self.add(tid) && self.running {
                        self.with_thread(tid, |engine, thread| engine.arm_stopped(thread));
                    }
                } else if self.threads.get(&tid).is_some_and(|thread| matches!(thread.phase, Phase::Interrupted)) {
                    return self.with_own_event(tid, Event::Clock, began);
                }
                go_on(tid, 0);
            }
            // Stopped by SIGSTOP and the like, and to stay so.
            Report::Event(libc::PTRACE_EVENT_STOP, _) => {
                let _ = listen(tid);
            }
            Report::Event(libc::PTRACE_EVENT_EXEC, _) => {
                self.exec(tid);
                go_on(tid, 0);
            }
            // The new thread or process reports itself.
            Report::Event(..) => go_on(tid, 0),
        }
        self.facts.other_stops += 1;
        let took = own_time().saturating_sub(began);
        self.facts.time.stops += STOP;
        self.facts.time.other += took;
        self.governor.spent(STOP + took);
    }

    fn event_of(&self, tid: i32, info: SignalInfo) -> Option<Event> {
        self.threads.get(&tid)?.owner_of(info)
    }

    /// All other threads of the process are gone, and the one that called exec has the process's id now.
    fn exec(&mut self, pid: i32) {
        let former = event_message(pid).map_or(pid, |id| id as i32);
        let gone: Vec<i32> = self
            .threads
            .values()
            .filter(|thread| thread.id.pid == pid && thread.id.tid != former)
            .map(|thread| thread.id.tid)
            .collect();
        gone.into_iter().for_each(|tid| self.remove(tid));
        if let Some(mut thread) = self.threads.remove(&former) {
            if matches!(thread.phase, Phase::Underway(_)) {
                thread.unbreak();
                self.write(&mut thread, "exec");
            }
            thread.id.tid = pid;
            thread.working_set.clear();
            self.threads.insert(pid, thread);
        } else {
            self.add(pid);
        }
        if let Some(process) = self.processes.get_mut(&pid) {
            process.space.forget();
            process.caught = signals_caught(pid as u32);
        }
        // A command's exec may come before its start is known here.
        if self.running || self.settings.command == Some(pid) {
            self.with_thread(pid, |engine, thread| engine.arm_stopped(thread));
        }
    }

    /// A clock of a thread that blocks the signals has overflowed.
    fn interrupt_owner(&mut self, info: SignalInfo) {
        let owner = self.threads.values_mut().find(|thread| thread.owner_of(info) == Some(Event::Clock));
        if let Some(thread) = owner
            && matches!(thread.phase, Phase::Sampling)
            && interrupt(thread.id.tid).is_ok()
        {
            thread.phase = Phase::Interrupted;
        }
    }

    /// Gives up breakpoints that are not reached, and finds threads whose signal does not come through because they block it.
    fn look_after(&mut self) {
        let now = Instant::now();
        let ids: Vec<i32> = self.threads.keys().copied().collect();
        for tid in ids {
            self.with_thread(tid, |engine, thread| match &thread.phase {
                Phase::Underway(underway) if now - underway.since > PATIENCE => {
                    thread.unbreak();
                    engine.facts.breakpoints_missed += 1;
                    engine.write(thread, "breakpoint not reached");
                    engine.arm(thread);
                }
                _ => engine.progress(thread),
            });
        }
    }

    /// One of the thread's own events has stopped it.
    fn with_own_event(&mut self, tid: i32, event: Event, began: Duration) {
        self.facts.time.stops += STOP;
        let before = self.measured();
        let resumed = self.with_thread(tid, |engine, thread| {
            let mut cost = STOP;
            match (event, &thread.phase) {
                (Event::Clock, Phase::Sampling | Phase::Interrupted) => {
                    engine.progress(thread);
                    thread.cost = Duration::ZERO;
                    engine.begin(thread);
                }
                (Event::Breakpoint, Phase::Underway(_)) => {
                    engine.facts.time.breakpoints += BREAKPOINT;
                    cost += BREAKPOINT;
                    engine.reached(thread);
                }
                // Left over from before something else ended its purpose.
                _ => {}
            }
            let done = own_time().saturating_sub(began);
            thread.cost += cost + done;
            engine.governor.spent(cost + done);
            if matches!(thread.phase, Phase::Sampling) {
                engine.governor.burst(thread.cost);
            }
        });
        // What is not in one of the measured parts. Letting the thread go is part of a stop.
        let parts = self.measured() - before;
        self.facts.time.other += own_time().saturating_sub(began + parts);
        go_on(tid, 0);
        if resumed.is_some() {
            self.cpu.follow(tid);
        }
    }

    fn measured(&self) -> Duration {
        let time = &self.facts.time;
        time.state + time.lookahead + time.decoding + time.breakpoints
    }

    /// A sampling stop: the beginning of a burst.
    fn begin(&mut self, thread: &mut Thread) {
        self.facts.sampling_stops += 1;
        let Some(registers) = self.registers(thread) else {
            return self.arm_stopped(thread);
        };
        thread.burst.begin(Avma(registers.rip), thread.period);
        self.refresh(thread);
        match self.settings.kind {
            TracerKind::Lookahead => self.look_ahead(thread, registers),
            TracerKind::Breakpoint => self.to_next_branch(thread, &registers),
            TracerKind::Check => {
                self.predict(thread, registers.clone());
                self.to_next_branch(thread, &registers);
            }
        }
    }

    fn refresh(&mut self, thread: &Thread) {
        let began = own_time();
        if let Some(process) = self.processes.get_mut(&thread.id.pid) {
            process.space.refresh();
            process.bursts += 1;
            if process.bursts.is_multiple_of(64) {
                process.caught = signals_caught(thread.id.pid as u32);
            }
        }
        self.facts.time.state += own_time().saturating_sub(began);
    }

    /// The registers, if the thread is in its own 64-bit code, and not about to be sent back into an interrupted system call.
    fn registers(&mut self, thread: &Thread) -> Option<Registers> {
        let began = own_time();
        let read = self.area.read(thread.id.tid);
        self.facts.time.state += own_time().saturating_sub(began);
        let why = match read {
            // ERESTARTSYS to ERESTART_RESTARTBLOCK (linux/errno.h).
            Ok(read) if read.system_call >= 0 && (-516..=-512).contains(&(read.registers.general[0] as i64)) => {
                "interrupted system call"
            }
            Ok(read) => return Some(read.registers),
            Err(crate::errno::Errno::ENOSYS) => "32-bit code",
            Err(_) => "no registers",
        };
        TracerFacts::count(&mut self.facts.ends, why);
        None
    }

    /// Follows the thread's future from `registers` until the burst is complete, or only the thread itself can go on.
    fn look_ahead(&mut self, thread: &mut Thread, mut registers: Registers) {
        let stop = self.interpret(thread, &mut registers);
        let behind = match stop {
            StopReason::SystemCall => self.behind_system_call(&registers),
            StopReason::Unsupported(instruction) => {
                TracerFacts::count(&mut self.facts.unsupported, &format!("{:?}", instruction.mnemonic).to_lowercase());
                behind_instruction(thread.id.pid, registers.rip).map(|address| (address, Goal::BehindInstruction))
            }
            StopReason::Fault { .. } => {
                behind_instruction(thread.id.pid, registers.rip).map(|address| (address, Goal::BehindInstruction))
            }
            _ => None,
        };
        let name = reason(stop);
        if let Some((address, goal)) = behind.filter(|_| thread.burst.continuations < CONTINUATIONS)
            && self.go_to(thread, address, goal)
        {
            thread.burst.continuations += 1;
            return TracerFacts::count(&mut self.facts.continued, name);
        }
        self.complete(thread, name);
    }

    /// Runs ahead from `registers` as far as the burst may still go.
    fn interpret(&mut self, thread: &mut Thread, registers: &mut Registers) -> StopReason {
        let Some(process) = self.processes.get_mut(&thread.id.pid) else { return StopReason::UnreadableCode };
        let began = own_time();
        self.overlay.clear();
        self.reader.fetch(thread.id.pid, thread.working_set.expected());
        let fetched = own_time();
        let AddressSpace { code, layout, .. } = &mut process.space;
        let decoding = code.decoding();
        let mut memory = self.reader.memory(thread.id.pid, layout);
        let burst = &mut thread.burst;
        let size = self.settings.size;
        let stop = loop {
            let left = size.most_instructions().saturating_sub(burst.instructions);
            let branches = size.most_branches().saturating_sub(burst.branches.len() as u64);
            let fuel = Fuel { instructions: left, branches: branches.min(burst.room()) };
            if left == 0 || branches == 0 {
                break if left == 0 { StopReason::Fuel } else { StopReason::Branches };
            }
            let outcome = run(registers, &mut self.overlay, &mut memory, code, fuel, &[], &mut burst.branches);
            burst.add(&outcome);
            self.facts.not_taken += outcome.not_taken;
            if outcome.stop != StopReason::Branches {
                break outcome.stop;
            }
        };
        let decoded = code.decoding() - decoding;
        thread.working_set.touched(self.overlay.touched());
        self.facts.pages += self.overlay.pages() as u64;
        self.facts.pages_missed += self.reader.missed;
        self.facts.time.state += fetched.saturating_sub(began);
        self.facts.time.decoding += decoded;
        self.facts.time.lookahead += own_time().saturating_sub(fetched + decoded);
        stop
    }

    /// Where a system call returns to, if it returns.
    fn behind_system_call(&self, registers: &Registers) -> Option<(Avma, Goal)> {
        let number = registers.general[0] as i64;
        let never =
            [libc::SYS_rt_sigreturn, libc::SYS_execve, libc::SYS_execveat, libc::SYS_exit, libc::SYS_exit_group];
        // `syscall`, `sysenter` and `int 0x80` are two bytes long.
        let behind = Avma(registers.rip.wrapping_add(2));
        (!never.contains(&number)).then(|| (behind, Goal::BehindSystemCall(registers.clone())))
    }

    /// Lets the thread itself go to `address`. Returns false if no breakpoint may or can be there.
    fn go_to(&mut self, thread: &mut Thread, address: Avma, goal: Goal) -> bool {
        let critical =
            self.processes.get(&thread.id.pid).is_some_and(|process| process.space.layout.is_critical(address));
        if critical {
            TracerFacts::count(&mut self.facts.continued, "not in a restartable sequence");
            return false;
        }
        let began = own_time();
        let set = thread.break_at(address);
        self.facts.time.breakpoints += own_time().saturating_sub(began);
        match set {
            Ok(()) => {
                thread.phase = Phase::Underway(Box::new(Underway { address, since: Instant::now(), goal }));
                true
            }
            Err(errno) => {
                TracerFacts::count(&mut self.facts.continued, &format!("no breakpoint: {errno}"));
                false
            }
        }
    }

    /// A breakpoint was reached.
    fn reached(&mut self, thread: &mut Thread) {
        let Phase::Underway(underway) = std::mem::replace(&mut thread.phase, Phase::Sampling) else { return };
        self.facts.breakpoints += 1;
        let Some(registers) = self.registers(thread) else {
            return self.complete(thread, "breakpoint without registers");
        };
        if Avma(registers.rip) != underway.address {
            self.facts.breakpoints_missed += 1;
            return self.complete(thread, "breakpoint reached elsewhere");
        }
        match underway.goal {
            Goal::BehindSystemCall(expected) => {
                self.facts.predictions.checked += 1;
                if !survived(&expected, &registers) {
                    self.facts.predictions.diverged += 1;
                    return self.complete(thread, "not as predicted");
                }
                // The system call itself.
                thread.burst.executed(1);
                self.look_ahead(thread, registers);
            }
            Goal::BehindInstruction => {
                thread.burst.executed(1);
                self.look_ahead(thread, registers);
            }
            Goal::Branch { stack: Some(stack), .. } if stack != registers.general[4] => {
                self.facts.breakpoints_missed += 1;
                self.complete(thread, "breakpoint reached on another stack");
            }
            Goal::Branch { instructions, .. } => self.evaluate(thread, registers, instructions),
        }
    }

    /// Evaluates the branch in front of which the thread has stopped, and goes on to the next.
    fn evaluate(&mut self, thread: &mut Thread, mut registers: Registers, instructions: u64) {
        thread.burst.executed(instructions);
        let stop = self.step(thread, &mut registers);
        match stop {
            StopReason::Fuel | StopReason::Branches => {}
            other => return self.complete(thread, reason(other)),
        }
        if self.depth_left(thread) == 0 {
            self.compare_registers(thread, &registers);
            return self.complete(thread, reason(StopReason::Branches));
        }
        if thread.burst.instructions >= self.settings.size.most_instructions() {
            return self.complete(thread, reason(StopReason::Fuel));
        }
        self.to_next_branch(thread, &registers);
    }

    /// Interprets one instruction.
    fn step(&mut self, thread: &mut Thread, registers: &mut Registers) -> StopReason {
        let Some(process) = self.processes.get_mut(&thread.id.pid) else { return StopReason::UnreadableCode };
        let began = own_time();
        self.overlay.clear();
        self.reader.fetch(thread.id.pid, &[]);
        let AddressSpace { code, layout, .. } = &mut process.space;
        let mut memory = self.reader.memory(thread.id.pid, layout);
        let _ = thread.burst.room();
        let fuel = Fuel { instructions: 1, branches: 1 };
        let outcome = run(registers, &mut self.overlay, &mut memory, code, fuel, &[], &mut thread.burst.branches);
        thread.burst.add(&outcome);
        self.facts.not_taken += outcome.not_taken;
        self.facts.time.lookahead += own_time().saturating_sub(began);
        outcome.stop
    }

    fn depth_left(&self, thread: &Thread) -> u64 {
        self.breakpoint_depth().saturating_sub(thread.burst.branches.len() as u64)
    }

    /// Taken branches of a burst by breakpoints alone.
    fn breakpoint_depth(&self) -> u64 {
        self.settings.size.depth.unwrap_or(16).max(1)
    }

    /// Lets the thread run to the next branch that its bytes do not decide.
    fn to_next_branch(&mut self, thread: &mut Thread, registers: &Registers) {
        let began = own_time();
        let depth = self.depth_left(thread).min(SAMPLE_BRANCHES as u64);
        let _ = thread.burst.room();
        let (start, stack) = (Avma(registers.rip), registers.general[4]);
        let found = next_unresolved(thread.id.pid, start, stack, depth, &mut thread.burst.branches);
        self.facts.time.decoding += own_time().saturating_sub(began);
        match found {
            Ok(branch) => {
                let goal = Goal::Branch { instructions: branch.instructions, stack: branch.stack };
                if !self.go_to(thread, branch.address, goal) {
                    self.complete(thread, "no breakpoint");
                }
            }
            Err(NoBranch::Depth(instructions)) => {
                thread.burst.executed(instructions);
                self.complete(thread, reason(StopReason::Branches));
            }
            Err(NoBranch::Unreadable) => self.complete(thread, reason(StopReason::UnreadableCode)),
            Err(NoBranch::Unsupported) => self.complete(thread, "unsupported branch"),
            Err(NoBranch::Endless) => self.complete(thread, reason(StopReason::Spinning)),
        }
    }

    /// Looks ahead without writing anything down, to be compared with what the breakpoints find.
    fn predict(&mut self, thread: &mut Thread, mut registers: Registers) {
        let depth = self.breakpoint_depth();
        let size = BurstSize { depth: Some(depth), ..self.settings.size };
        let settings = self.settings.clone();
        self.settings.size = size;
        let (not_taken, start) = (self.facts.not_taken, Avma(registers.rip));
        let stop = self.interpret(thread, &mut registers);
        self.facts.not_taken = not_taken;
        self.settings = settings;
        let branches = std::mem::take(&mut thread.burst.branches);
        thread.burst.begin(start, thread.period);
        thread.prediction = Some(Box::new(Prediction { branches, registers, complete: stop == StopReason::Branches }));
    }

    /// Both tracers have come to the same branch: the registers must be the same.
    fn compare_registers(&mut self, thread: &Thread, registers: &Registers) {
        if let Some(prediction) = thread.prediction.as_ref().filter(|prediction| prediction.complete) {
            self.facts.predictions.checked += 1;
            self.facts.predictions.diverged += u64::from(!same_state(&prediction.registers, registers));
        }
    }

    /// Both tracers have come to an end: as far as both went, the branches must be the same.
    fn compare_branches(&mut self, thread: &mut Thread) {
        let Some(prediction) = thread.prediction.take() else { return };
        let found = &thread.burst.branches;
        let common = found.len().min(prediction.branches.len());
        if common > 0 {
            self.facts.predictions.checked += 1;
            self.facts.predictions.diverged += u64::from(found[..common] != prediction.branches[..common]);
        }
    }

    /// The burst is complete: it is written, and the clock started for the next.
    fn complete(&mut self, thread: &mut Thread, why: &str) {
        self.write(thread, why);
        self.arm_stopped(thread);
    }

    fn write(&mut self, thread: &mut Thread, why: &str) {
        if thread.burst.continuations > 0 || self.settings.kind != TracerKind::Lookahead {
            thread.unbreak();
        }
        thread.phase = Phase::Sampling;
        self.compare_branches(thread);
        TracerFacts::count(&mut self.facts.ends, why);
        let burst: &Burst = &thread.burst;
        if burst.instructions == 0 {
            return;
        }
        let facts = &mut self.facts;
        facts.instructions += burst.instructions;
        facts.taken_branches += burst.branches.len() as u64;
        facts.static_branches += burst.static_branches();
        self.records.clear();
        let written = self.shared.push(&mut self.records, |time, records| {
            burst.write(&self.event, thread.id, time, records);
        });
        *(if written { &mut facts.bursts } else { &mut facts.lost_bursts }) += 1;
    }

    /// Starts the clock of a thread that is stopped now: its signal mask can be looked at.
    fn arm_stopped(&mut self, thread: &mut Thread) {
        let caught = self.processes.get(&thread.id.pid).map_or(0, |process| process.caught);
        let notice = best_notice(thread.id.tid, caught);
        let _ = thread.notify_by(notice, self.own_tid);
        self.arm(thread);
    }

    fn arm(&mut self, thread: &mut Thread) {
        if !self.running && self.settings.command.is_none() {
            thread.phase = Phase::Sampling;
            return;
        }
        if thread.has_no_notice() {
            let _ = thread.notify_by(Notice::Signal(SIGNALS[0]), self.own_tid);
        }
        let period = self.governor.period() * self.rate;
        // A thread's first burst may come at any time: threads that live shorter than a period get their share.
        let factor = if thread.is_new() { self.governor.jitter() - 0.5 } else { self.governor.jitter() };
        let count = (period * factor).max(1.0);
        // A thread that has just ended cannot be armed; its end will be reported.
        let _ = thread.arm(period as u64, count as u64);
    }

    fn progress(&mut self, thread: &mut Thread) {
        let progress = thread.progress();
        self.governor.passed(progress.ran);
        self.facts.time.application += Duration::from_nanos(progress.ran);
        if self.settings.clock == Clock::Instructions && progress.ran > 0 {
            let rate = progress.counts as f64 / progress.ran as f64;
            self.rate = if self.rate == 1.0 { rate } else { self.rate + (rate - self.rate) / 16.0 };
        }
    }
}

/// What the interpreter found, to be compared with what the breakpoints find.
pub(super) struct Prediction {
    branches: Vec<Branch>,
    registers: Registers,
    /// It went as far as the breakpoints were to go.
    complete: bool,
}

/// Whether a system call left everything as it was that it leaves.
fn survived(before: &Registers, after: &Registers) -> bool {
    // rax, rcx, r11.
    let changed = [0, 1, 11];
    (0..16).all(|register| changed.contains(&register) || before.general[register] == after.general[register])
}

/// Whether two states are the same but for flags that are the kernel's.
fn same_state(predicted: &Registers, real: &Registers) -> bool {
    // RF, which a breakpoint leaves behind, and TF.
    const KERNEL_FLAGS: u64 = 1 << 16 | 1 << 8;
    predicted.general == real.general
        && predicted.rip == real.rip
        && (predicted.rflags ^ real.rflags) & !KERNEL_FLAGS == 0
        && predicted.vector.zmm == real.vector.zmm
}

/// CPU time of the tracer. Threads may stand still for longer where others want the CPU, but not at the cost of theirs.
fn own_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// Lets a stopped thread run; one that was killed meanwhile is not there to be let run.
fn go_on(thread: i32, signal: i32) {
    let _ = resume(thread, signal);
}

/// The address behind the instruction at `address`.
fn behind_instruction(pid: i32, address: u64) -> Option<Avma> {
    let mut bytes = [0; 15];
    let whole = (1..=15).rev().find(|&length| crate::kernel::read_memory(pid, Avma(address), &mut bytes[..length]))?;
    let mut decoder = iced_x86::Decoder::with_ip(64, &bytes[..whole], address, iced_x86::DecoderOptions::NONE);
    let instruction = decoder.decode();
    let falls_through = instruction.flow_control() == iced_x86::FlowControl::Next;
    (!instruction.is_invalid() && falls_through).then(|| Avma(instruction.next_ip()))
}

/// The name of a reason in the statistics.
fn reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::Fuel => "instruction budget",
        StopReason::Branches => "branch depth",
        StopReason::SystemCall => "system call",
        StopReason::Fault { .. } => "unreadable memory",
        StopReason::Exception => "exception",
        StopReason::Interrupt => "software interrupt",
        StopReason::Unsupported(_) => "unsupported instruction",
        StopReason::UnreadableCode => "unreadable code",
        StopReason::SelfModifying => "self-modifying code",
        StopReason::Spinning => "spinning",
        StopReason::Forbidden => "forbidden range",
        StopReason::OverlayFull => "too many pages",
    }
}

fn command_status(status: i32) -> CommandStatus {
    if libc::WIFEXITED(status) {
        CommandStatus::Exited(libc::WEXITSTATUS(status))
    } else {
        CommandStatus::Killed(libc::WTERMSIG(status))
    }
}
