//! The tracer: hears what threads report, asks their states what is to be done, and has it done.

pub(crate) mod attaching;
pub(crate) mod executor;
#[cfg(test)]
pub(crate) mod sequences;
pub(crate) mod upkeep;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::sys::SignalInfo;
use crate::tracer::AttachError;
use crate::tracer::budget::stop_cost::StopCost;
use crate::tracer::burst::BurstEvent;
use crate::tracer::engine::attaching::Attaching;
use crate::tracer::engine::executor::Executor;
use crate::tracer::engine::upkeep::{HOUSEKEEPING, Upkeep};
use crate::tracer::kernel::Kernel;
use crate::tracer::notice::{SIGNALS, best_notice, blocks_all};
use crate::tracer::placement::Placement;
use crate::tracer::report_loop::{ReportHandler, follow, follow_until, release};
use crate::tracer::settings::Settings;
use crate::tracer::shared::Shared;
use crate::tracer::statistics::TracerStatistics;
use crate::tracer::thread::Thread;
use crate::tracer::thread::action::Release;
use crate::tracer::thread::event::{Event, Stop};
use crate::tracer::thread::system_call_restart::restart_system_call;

/// How long signals are waited for that are on their way when tracing ends: a thread that job control has stopped takes none,
const LAST_SIGNALS: Duration = Duration::from_millis(200);
/// and how long those of threads that would take them, and have no CPU.
const LAST_CPU: Duration = Duration::from_secs(5);
/// After so many looks whether they wait still, a thread is asked again to stop for them.
const ASK_AGAIN: u32 = 20;
/// How long it is waited for a thread that is to block again what was let through to it.
const BLOCKED_AGAIN: Duration = Duration::from_secs(5);
/// How often to look at a stop how much CPU time passed.
const AT_A_STOP: Duration = Duration::from_millis(100);

/// The tracer at work.
pub(crate) struct Engine<K: Kernel> {
    settings: Settings,
    executor: Executor<K>,
    attaching: Attaching,
    upkeep: Upkeep,
    placement: Placement,
}

impl<K: Kernel> Engine<K> {
    pub(crate) fn new(
        settings: Settings,
        event: BurstEvent,
        shared: Arc<Shared>,
        kernel: K,
        placement: Placement,
        stop_cost: StopCost,
    ) -> Self {
        let now = kernel.now();
        let executor = Executor::new(&settings, event, shared, kernel, stop_cost);
        let upkeep = Upkeep::new(now, settings.command.is_none());
        Self { settings, executor, attaching: Attaching::new(now), upkeep, placement }
    }

    /// What was done, which is nothing.
    pub(crate) fn nothing(self) -> TracerStatistics {
        self.executor.statistics
    }

    /// Becomes the tracer of one of the threads of these processes, or of these threads. The others follow when recording has begun, as
    /// the budget allows.
    ///
    /// # Errors
    /// None can be traced, and why.
    pub(crate) fn attach(&mut self, ids: &[u32], whole_processes: bool) -> Result<(), AttachError> {
        self.attaching.first(&mut self.executor, ids, whole_processes)
    }

    /// Traces until it is told to stop.
    pub(crate) fn run(mut self) -> TracerStatistics {
        let is_program_running = self.settings.command.is_none();
        let Executor { kernel, budget, statistics, .. } = &mut self.executor;
        statistics.starting.took = budget.begin(is_program_running, kernel, statistics);
        follow(&mut self);
        self.finish()
    }

    /// Takes all events away, lets go what is stopped, and ends. The kernel detaches threads when their tracer's thread ends.
    fn finish(mut self) -> TracerStatistics {
        self.executor.recording = false;
        for tid in self.executor.threads.ids(|_| true) {
            self.executor.happens(tid, Event::RecordingEnds);
        }
        let Executor { kernel, budget, statistics, .. } = &mut self.executor;
        budget.look_at_all_time(kernel, statistics);
        self.take_last_signals();
        let Executor { kernel, budget, statistics, .. } = &mut self.executor;
        budget.end(kernel, statistics);
        self.executor.statistics
    }

    /// A thread that is let go with the signal of its clock on its way would get it. Whether a signal waits and whether its thread stops for
    /// it change together, under the kernel's `siglock`. One that blocks it is asked to stop, and takes it then.
    fn take_last_signals(&mut self) {
        let Executor { kernel, threads, .. } = &mut self.executor;
        threads.look_at_handlers(kernel);
        let mut looks = 0_u32;
        let patient_until = kernel.now() + LAST_SIGNALS;
        follow_until(self, LAST_CPU, |engine| {
            let Executor { kernel, threads, asked_at_last, .. } = &mut engine.executor;
            let is_patient = kernel.now() < patient_until;
            let (mut is_over, asks) = (true, is_patient && looks.is_multiple_of(ASK_AGAIN));
            looks += 1;
            for thread in threads.iter() {
                let ((waiting, blocked), id) = (threads.waiting_signals(thread, kernel), thread.id);
                if waiting == 0 {
                    continue;
                }
                // What it blocks may be the program's own: it is known when it has stopped.
                let comes = waiting & !blocked != 0 || asked_at_last.contains(&id.tid);
                is_over &= !(is_patient || comes && kernel.is_computing(id.tid));
                if asks
                    && waiting & blocked != 0
                    && kernel.may_be_interrupted(id.pid, id.tid)
                    && kernel.interrupt(id.tid).is_ok()
                {
                    asked_at_last.insert(id.tid);
                }
            }
            is_over
        });
        // Only those that have no CPU, or have nothing to take any more.
        follow_until(self, BLOCKED_AGAIN, |engine| {
            let kernel = &mut engine.executor.kernel;
            let left = kernel.threads_let_through();
            if looks.is_multiple_of(ASK_AGAIN) {
                for &thread in &left {
                    let _ = kernel.interrupt(thread);
                }
            }
            looks += 1;
            left.is_empty()
        });
    }

    /// All other threads of the process are gone, and the one that called exec has the process's id now: it is found under its own
    /// still, or not at all. Returns the id it is in the table with.
    fn only_thread(&mut self, pid: i32) -> i32 {
        let former = self.executor.kernel.event_message(pid).map_or(pid, |id| id as i32);
        for tid in self.executor.threads.ids(|thread| thread.id.pid == pid && thread.id.tid != former) {
            self.executor.remove(tid);
        }
        if self.executor.threads.contains(former) {
            return former;
        }
        self.executor.threads.add(pid, Some(pid), &mut self.executor.kernel, &mut self.executor.statistics);
        pid
    }

    /// Which of its own events has stopped a thread, if one has.
    fn own_stop(&self, tid: i32, signal: i32) -> Option<Stop> {
        let thread = self.executor.threads.get(tid).filter(|_| SIGNALS.contains(&signal))?;
        thread.owner_of(self.executor.kernel.signal_info(tid).ok()?)
    }

    /// One of the thread's own events has stopped it, or the tracer by its order.
    fn stopped_for_burst(&mut self, tid: i32, stop: Stop, began: Duration) {
        let cost = self.placement.stop(tid, self.executor.statistics.stop_cost.charged);
        // A thread that the tracer has to interrupt waits for the tracer to run.
        match self.executor.threads.get(tid).and_then(Thread::signal) {
            Some(_) if self.executor.recording => self.placement.stopped(tid),
            _ => self.placement.stopped_otherwise(),
        }
        let time = &mut self.executor.statistics.time;
        *(if stop == Stop::Breakpoint { &mut time.breakpoints } else { &mut time.stops }) += cost;
        let measured = self.executor.statistics.time.measured();
        let mut goes_on = Some(Release::Run(0));
        let mut took = Duration::ZERO;
        if let Some(mut thread) = self.executor.threads.take(tid) {
            goes_on = self.executor.drive(&mut thread, Event::Stopped(stop));
            took = self.executor.kernel.own_time().saturating_sub(began);
            self.executor.budget.charge_stop_of_burst(&mut thread, cost + took);
            self.executor.threads.put(thread);
        }
        // What is not in one of the measured parts. Letting the thread go is part of a stop.
        self.executor.statistics.time.other += took.saturating_sub(self.executor.statistics.time.measured() - measured);
        self.executor.budget.charged(took);
        if let Some(goes_on) = goes_on {
            self.placement.in_place(|| {
                release(&mut self.executor.kernel, tid, goes_on);
            });
        }
    }

    /// It has stopped for something else.
    fn stopped_otherwise(&mut self, tid: i32, stop: Stop, began: Duration) {
        let in_table = match stop {
            Stop::Exec => self.only_thread(tid),
            _ => tid,
        };
        let goes_on = match self.executor.threads.take(in_table) {
            Some(mut thread) => {
                let goes_on = self.executor.drive(&mut thread, Event::Stopped(stop));
                self.executor.threads.put(thread);
                goes_on
            }
            None => {
                restart_system_call(tid, &mut self.executor.kernel);
                if stop == Stop::Interrupt {
                    self.executor.welcome(tid);
                }
                Some(passed_on(stop))
            }
        };
        if goes_on.is_some_and(|goes_on| release(&mut self.executor.kernel, tid, goes_on)) {
            self.executor.statistics.backed_off += 1;
            if let Some(thread) = self.executor.threads.get(tid) {
                self.executor.threads.misses_threads_of(thread.id.pid);
            }
            self.executor.remove(tid);
        }
        let cost = self.placement.stop(tid, self.executor.statistics.stop_cost.charged);
        self.placement.stopped_otherwise();
        self.executor.statistics.other_stops += 1;
        let took = self.executor.kernel.own_time().saturating_sub(began);
        self.executor.statistics.time.stops += cost;
        self.executor.statistics.time.other += took;
        self.executor.budget.charge_other_stop(cost, took);
    }
}

/// How a thread goes on that is not in the table: it was not let in.
fn passed_on(stop: Stop) -> Release {
    match stop {
        Stop::Signal(signal) => Release::Run(signal),
        Stop::JobControl => Release::StayStopped,
        _ => Release::Run(0),
    }
}

impl<K: Kernel> ReportHandler for Engine<K> {
    type Kernel = K;

    fn kernel(&mut self) -> &mut K {
        &mut self.executor.kernel
    }

    fn shared(&self) -> &Shared {
        &self.executor.shared
    }

    fn command(&self) -> Option<i32> {
        self.settings.command
    }

    fn ended(&mut self, thread: i32) {
        self.executor.budget.thread_ends(thread, &self.executor.kernel);
        self.executor.look_at_time(AT_A_STOP);
        self.executor.remove(thread);
    }

    fn stopped(&mut self, tid: i32, stop: Stop) {
        let began = self.executor.kernel.own_time();
        self.executor.look_at_time(AT_A_STOP);
        let stop = match stop {
            Stop::Signal(signal) => self.own_stop(tid, signal).unwrap_or(stop),
            _ => stop,
        };
        if self.executor.threads.get(tid).is_some_and(|thread| thread.state.is_own(stop)) {
            self.stopped_for_burst(tid, stop, began);
        } else {
            self.stopped_otherwise(tid, stop, began);
        }
    }

    /// A clock of a thread that blocked the signals has overflowed.
    fn told(&mut self, info: SignalInfo) {
        let Some(tid) = self.executor.threads.clock_owner(info) else { return };
        let Some(thread) = self.executor.threads.get(tid) else { return };
        let blocked = self.executor.kernel.signals_blocked(tid);
        let notice = best_notice(blocked, self.executor.threads.caught(thread));
        let can_be_interrupted = !blocks_all(blocked) && self.executor.kernel.is_computing(tid);
        self.executor.happens(tid, Event::OverflowTold { notice, can_be_interrupted });
    }

    fn idle(&mut self) -> Duration {
        if !self.executor.recording && self.executor.shared.started.load(Ordering::Acquire) {
            self.executor.recording = true;
            self.attaching.recording_begins(self.executor.kernel.now());
            self.executor.begin_idle_threads();
        }
        let now = self.executor.kernel.now();
        if self.executor.recording {
            self.attaching.go_on(&mut self.executor, now);
        }
        self.upkeep.go_on(&mut self.executor, now, self.attaching.interval().is_none());
        self.attaching.interval().unwrap_or(HOUSEKEEPING)
    }
}
