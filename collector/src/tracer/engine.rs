//! The tracer's thread: waits for traced threads to stop, and does what is to be done.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use lookahead::Overlay;
use perfdata::EventAttr;
use rustix::process::{Pid, getpriority_process, setpriority_process};

use crate::session::command::CommandStatus;
use crate::sys::process::{is_computing, signals_blocked};
use crate::sys::{
    RegisterArea, Report, SignalInfo, WaitSet, interrupt, listen, next_report, own_thread, resume, signal_info,
    signal_mask,
};
use crate::tracer::address_space::AddressSpace;
use crate::tracer::burst::BurstEvent;
use crate::tracer::cpu_time::CpuTime;
use crate::tracer::cut_short::call_again;
use crate::tracer::following::Missing;
use crate::tracer::governor::Governor;
use crate::tracer::memory::PageReader;
use crate::tracer::own_time::{Parts, own_time};
use crate::tracer::path::warm_up;
use crate::tracer::placement::Placement;
use crate::tracer::shared::Shared;
use crate::tracer::statistics::TracerStatistics;
use crate::tracer::thread::{Event, Notice, Phase, SIGNALS, Thread, best_notice, blocks_all};
use crate::tracer::{Clock, Settings};

/// Pages of a thread that a burst may touch.
const PAGES: usize = 2048;
/// How long a breakpoint is waited for. A thread that blocks in a system call, or leaves a signal handler by `longjmp`, is sampled anew
/// after that.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long signals are waited for that are on their way when tracing ends: a thread that job control has stopped takes none.
const LAST_SIGNALS: Duration = Duration::from_millis(200);
/// `nice` of the tracer.
const NICE: i32 = -15;
/// Threads that are looked at each time.
const LOOKS: usize = 32;
/// How often to look for breakpoints that are not reached, and for threads that do not stop.
const HOUSEKEEPING: Duration = Duration::from_millis(250);
/// How often to look how much CPU time passed: at a stop, or where there is none.
const AT_A_STOP: Duration = Duration::from_millis(100);
const WITHOUT_STOP: Duration = Duration::from_millis(500);

/// A process and how many of its threads are traced.
pub(crate) struct Process {
    pub(crate) space: AddressSpace,
    pub(crate) threads: usize,
    /// Signals it has handlers for, bit n - 1 for signal n.
    pub(crate) caught: u64,
    pub(crate) bursts: u32,
}

pub(crate) struct Engine {
    pub(crate) settings: Settings,
    pub(crate) event: BurstEvent,
    pub(crate) clock: EventAttr,
    pub(crate) shared: Arc<Shared>,
    pub(crate) signals: WaitSet,
    pub(crate) own_tid: i32,
    pub(crate) threads: HashMap<i32, Thread>,
    pub(crate) processes: HashMap<i32, Process>,
    pub(crate) governor: Governor,
    pub(crate) statistics: TracerStatistics,
    // Reused from burst to burst.
    pub(crate) area: RegisterArea,
    pub(crate) overlay: Overlay,
    pub(crate) reader: PageReader,
    pub(crate) next_look: Instant,
    /// Counts of the clock per ns, where it is no clock.
    pub(crate) rate: f64,
    /// Threads are sampled. Those of a command are from its exec, which may come before the order to begin.
    pub(crate) running: bool,
    pub(crate) missing: Missing,
    looks: u32,
    /// The part of the tracer's own CPU time that was charged.
    charged: Duration,
    pub(crate) parts: Parts,
    pub(crate) cpu_time: CpuTime,
    placement: Placement,
}

impl Engine {
    pub(crate) fn new(settings: Settings, event: BurstEvent, shared: Arc<Shared>, signals: WaitSet) -> Self {
        let now = Instant::now();
        let own_tid = own_thread();
        // Threads stand still while the tracer waits for a CPU. Without the privilege it has to wait.
        let own = Pid::from_raw(own_tid);
        let was_lower = getpriority_process(own).is_ok_and(|nice| nice > NICE);
        let privileged = setpriority_process(own, NICE).is_ok() && was_lower;
        let seed = u64::from(std::process::id()) << 32 ^ event.id ^ 0x9e37_79b9_7f4a_7c15;
        let running = settings.command.is_some();
        let cpu_time = CpuTime::new(settings.inherit);
        let mut overlay = Overlay::new(PAGES);
        warm_up(&mut overlay);
        Self {
            clock: settings.clock.attr(),
            statistics: TracerStatistics::new(settings.kind, settings.size, settings.overhead),
            governor: Governor::new(settings.overhead / 100.0 * settings.burst_share, seed),
            settings,
            event,
            shared,
            signals,
            own_tid,
            threads: HashMap::new(),
            processes: HashMap::new(),
            area: RegisterArea::new(),
            overlay,
            reader: PageReader::new(),
            next_look: now,
            rate: 1.0,
            running,
            missing: Missing::default(),
            looks: 0,
            charged: Duration::ZERO,
            parts: Parts::default(),
            cpu_time,
            placement: Placement::new(privileged),
        }
    }

    /// What was done, which is nothing.
    pub(crate) fn nothing(self) -> TracerStatistics {
        self.statistics
    }

    /// Starts sampling the threads there are. Those of a command begin with its exec.
    pub(crate) fn start(&mut self) {
        self.running = true;
        let ids: Vec<i32> = self.threads.keys().copied().collect();
        for tid in ids {
            self.with_thread(tid, |engine, thread| engine.arm(thread));
        }
    }

    /// Traces until it is told to stop.
    pub(crate) fn run(mut self) -> TracerStatistics {
        // Attaching is no reason to begin with rare bursts.
        self.charged = own_time();
        self.statistics.time.other += self.charged;
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
                self.look_at_time(WITHOUT_STOP);
                self.look_after();
                self.find_missing();
                self.charge_the_rest();
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
    pub(crate) fn finish(mut self) -> TracerStatistics {
        self.running = false;
        let ids: Vec<i32> = self.threads.keys().copied().collect();
        for tid in ids {
            self.with_thread(tid, |engine, thread| {
                let _ = thread.clock.disable();
                thread.unbreak();
                if thread.is_in_burst() {
                    engine.write(thread, "end of the recording");
                }
                thread.phase = Phase::Sampling;
            });
        }
        let passed = self.cpu_time.passed_until_now();
        self.time_passed(passed);
        self.take_in_signals();
        self.statistics.time.other += own_time().saturating_sub(self.charged);
        self.statistics
    }

    /// Waits for the signals of clocks that have just overflowed: a thread that is let go with one on its way would get it.
    fn take_in_signals(&mut self) {
        let end = Instant::now() + LAST_SIGNALS;
        loop {
            // Whether a signal waits and whether its thread stops for it change together, under the kernel's `siglock`.
            let on_the_way = self.threads.values().any(|thread| self.has_handler(thread) && thread.gets_its_signal());
            while let Some((tid, report)) = next_report() {
                self.handle(tid, report);
            }
            if !on_the_way || Instant::now() > end {
                return;
            }
            let _ = self.signals.wait(Duration::from_millis(1));
        }
    }

    /// Whether the program has a handler for the signal of the thread's clock.
    fn has_handler(&self, thread: &Thread) -> bool {
        let caught = caught(&self.processes, thread);
        thread.signal().is_some_and(|signal| caught & 1 << (signal - 1) != 0)
    }

    /// Takes a thread out of the table while something is done with it.
    pub(crate) fn with_thread<R>(&mut self, tid: i32, act: impl FnOnce(&mut Self, &mut Thread) -> R) -> Option<R> {
        let mut thread = self.threads.remove(&tid)?;
        let result = act(self, &mut thread);
        self.threads.insert(tid, thread);
        Some(result)
    }

    pub(crate) fn handle(&mut self, tid: i32, report: Report) {
        let began = own_time();
        self.look_at_time(AT_A_STOP);
        if !matches!(report, Report::Ended(_)) {
            call_again(tid);
            self.follow_again(tid);
        }
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
                    None if self.let_go(tid, signal) => {}
                    None => {
                        self.interrupt_again(tid);
                        go_on(tid, signal);
                    }
                }
            }
            Report::Event(libc::PTRACE_EVENT_STOP, libc::SIGTRAP) => {
                if !self.threads.contains_key(&tid) {
                    if self.add(tid) && self.running {
                        self.with_thread(tid, |engine, thread| engine.arm_stopped(thread));
                    }
                } else if self.is_interrupted(tid) {
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
                self.interrupt_again(tid);
                go_on(tid, 0);
            }
            // The new thread or process reports itself.
            Report::Event(..) => {
                self.started_another(tid);
                self.interrupt_again(tid);
                go_on(tid, 0);
            }
        }
        let stop = self.placement.stop(tid);
        self.placement.stopped_otherwise();
        self.statistics.other_stops += 1;
        let took = own_time().saturating_sub(began);
        self.statistics.time.stops += stop;
        self.statistics.time.other += took;
        self.charged += took;
        self.governor.spent(stop + took);
    }

    /// A stop for another reason takes the place of the one that was asked for (`ptrace_stop`, kernel/signal.c).
    fn interrupt_again(&self, tid: i32) {
        if self.is_interrupted(tid) {
            let _ = interrupt(tid);
        }
    }

    fn is_interrupted(&self, tid: i32) -> bool {
        self.threads.get(&tid).is_some_and(|thread| matches!(thread.phase, Phase::Interrupted))
    }

    pub(crate) fn event_of(&self, tid: i32, info: SignalInfo) -> Option<Event> {
        self.threads.get(&tid)?.owner_of(info)
    }

    /// A clock of a thread that blocked the signals has overflowed.
    pub(crate) fn interrupt_owner(&mut self, info: SignalInfo) {
        let owner = self.threads.values_mut().find(|thread| thread.owner_of(info) == Some(Event::Clock));
        let Some(thread) = owner.filter(|thread| matches!(thread.phase, Phase::Sampling)) else { return };
        let tid = thread.id.tid;
        let caught = caught(&self.processes, thread);
        let blocked = signals_blocked(tid as u32);
        let notice = best_notice(blocked, caught);
        if notice == Notice::Interrupt && !blocks_all(blocked) && is_computing(tid as u32) {
            if interrupt(tid).is_ok() {
                thread.phase = Phase::Interrupted;
            }
        } else {
            // Many system calls fail with EINTR if a thread that waits in one is interrupted.
            let _ = thread.notify_by(notice, self.own_tid).and_then(|()| thread.arm_again());
        }
    }

    /// Gives up breakpoints that are not reached, and finds threads whose signal does not come through because they block it.
    pub(crate) fn look_after(&mut self) {
        let now = Instant::now();
        let given_up = |thread: &&Thread| thread.underway_since().is_some_and(|since| now - since > PATIENCE);
        let late: Vec<i32> = self.threads.values().filter(given_up).map(|thread| thread.id.tid).collect();
        for tid in late {
            self.with_thread(tid, |engine, thread| {
                thread.unbreak();
                engine.statistics.breakpoints_missed += 1;
                engine.write(thread, "breakpoint not reached");
                engine.governor.burst(std::mem::take(&mut thread.cost));
                engine.arm(thread);
            });
        }
        // Not all at once: there may be many.
        let turn = self.looks as usize % self.threads.len().div_ceil(LOOKS).max(1);
        self.looks = self.looks.wrapping_add(1);
        for thread in self.threads.values_mut().skip(turn * LOOKS).take(LOOKS) {
            if thread.blocks_its_signal() {
                let _ = thread.notify_by(Notice::Interrupt, self.own_tid).and_then(|()| thread.arm_again());
            }
        }
    }

    /// One of the thread's own events has stopped it.
    pub(crate) fn with_own_event(&mut self, tid: i32, event: Event, began: Duration) {
        let stop = self.placement.stop(tid);
        // A thread that the tracer has to interrupt waits for the tracer to run.
        match self.threads.get(&tid).and_then(Thread::signal) {
            Some(_) if self.running => self.placement.stopped(tid),
            _ => self.placement.stopped_otherwise(),
        }
        let time = &mut self.statistics.time;
        *(if event == Event::Breakpoint { &mut time.breakpoints } else { &mut time.stops }) += stop;
        let before = self.measured();
        let took = self.with_thread(tid, |engine, thread| {
            match (event, &thread.phase) {
                (Event::Clock, Phase::Sampling | Phase::Interrupted) if engine.running && !thread.is_left_over() => {
                    engine.progress(thread);
                    thread.cost = Duration::ZERO;
                    engine.begin(thread);
                }
                (Event::Breakpoint, Phase::Underway(_)) => engine.reached(thread),
                // Left over from before something else ended its purpose.
                _ => {}
            }
            let took = own_time().saturating_sub(began);
            thread.cost += stop + took;
            engine.governor.spent(stop + took);
            if matches!(thread.phase, Phase::Sampling) {
                engine.governor.burst(std::mem::take(&mut thread.cost));
            }
            took
        });
        // What is not in one of the measured parts. Letting the thread go is part of a stop.
        let parts = self.measured() - before;
        let took = took.unwrap_or_default();
        self.statistics.time.other += took.saturating_sub(parts);
        self.charged += took;
        self.placement.in_place(|| go_on(tid, 0));
    }

    pub(crate) fn measured(&self) -> Duration {
        let time = &self.statistics.time;
        time.state + time.lookahead + time.decoding + time.breakpoints
    }

    /// Starts the clock of a thread that is stopped now: its signal mask can be looked at.
    pub(crate) fn arm_stopped(&mut self, thread: &mut Thread) {
        self.choose_notice(thread);
        self.arm(thread);
    }

    /// Decides how the clock of a thread that is stopped now is to stop it.
    pub(crate) fn choose_notice(&mut self, thread: &mut Thread) {
        let caught = caught(&self.processes, thread);
        let notice = best_notice(signal_mask(thread.id.tid).unwrap_or(0), caught);
        let _ = thread.notify_by(notice, self.own_tid);
    }

    pub(crate) fn arm(&mut self, thread: &mut Thread) {
        if !self.running {
            thread.phase = Phase::Sampling;
            return;
        }
        if thread.has_no_notice() {
            let caught = caught(&self.processes, thread);
            let _ = thread.notify_by(best_notice(signals_blocked(thread.id.tid as u32), caught), self.own_tid);
        }
        let period = self.governor.period() * self.rate;
        // A thread's first burst may come at any time: threads that live shorter than a period get their share.
        let factor = if thread.is_new() { self.governor.jitter() - 0.5 } else { self.governor.jitter() };
        let count = (period * factor).max(1.0);
        // A thread that has just ended cannot be armed; its end will be reported.
        let _ = thread.arm(period as u64, count as u64, Duration::from_nanos((count / self.rate) as u64));
    }

    /// Charges what the tracer did while no thread was stopped for it: looking after threads, finding them, waiting.
    fn charge_the_rest(&mut self) {
        let rest = own_time().saturating_sub(self.charged);
        self.charged += rest;
        self.statistics.time.other += rest;
        self.governor.spent(rest);
    }

    /// Looks how much CPU time passed, if that was not done for so long.
    fn look_at_time(&mut self, since: Duration) {
        if let Some(passed) = self.cpu_time.passed(since) {
            self.time_passed(passed);
        }
    }

    fn time_passed(&mut self, passed: Duration) {
        self.governor.passed(passed);
        self.statistics.time.application += passed;
    }

    /// Learns how fast the clock of a stopped thread is.
    pub(crate) fn progress(&mut self, thread: &mut Thread) {
        if self.settings.clock == Clock::Time {
            return;
        }
        let progress = thread.progress();
        if progress.ran > 0 {
            let rate = progress.counts as f64 / progress.ran as f64;
            self.rate = if self.rate == 1.0 { rate } else { self.rate + (rate - self.rate) / 16.0 };
        }
    }
}

/// Signals that the thread's process has handlers for.
fn caught(processes: &HashMap<i32, Process>, thread: &Thread) -> u64 {
    processes.get(&thread.id.pid).map_or(0, |process| process.caught)
}

/// Lets a stopped thread run; one that was killed meanwhile is not there to be let run.
fn go_on(thread: i32, signal: i32) {
    let _ = resume(thread, signal);
}

pub(crate) fn command_status(status: i32) -> CommandStatus {
    if libc::WIFEXITED(status) {
        CommandStatus::Exited(libc::WEXITSTATUS(status))
    } else {
        CommandStatus::Killed(libc::WTERMSIG(status))
    }
}
