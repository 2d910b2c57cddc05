//! Has done what the states of threads ask for: turns actions into requests to the kernel, and answers into events.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use addresses::Avma;
use lookahead::Registers;

use crate::tracer::budget::Budget;
use crate::tracer::budget::stop_cost::StopCost;
use crate::tracer::burst::BurstEvent;
use crate::tracer::burst::path::Goal;
use crate::tracer::burst::taker::{BurstTaker, Standing};
use crate::tracer::kernel::Kernel;
use crate::tracer::notice::best_notice;
use crate::tracer::settings::Settings;
use crate::tracer::shared::{Shared, monotonic_time};
use crate::tracer::statistics::TracerStatistics;
use crate::tracer::thread::Thread;
use crate::tracer::thread::action::{Action, Release};
use crate::tracer::thread::event::{Answer, Event, Stop};
use crate::tracer::thread::state::Surroundings;
use crate::tracer::thread::system_call_restart::restart_system_call;
use crate::tracer::thread::table::ThreadTable;

/// The traced threads, and what their actions are done with.
pub(crate) struct Executor<K: Kernel> {
    pub(crate) kernel: K,
    event: BurstEvent,
    pub(crate) shared: Arc<Shared>,
    own_thread: i32,
    pub(crate) threads: ThreadTable<K::Event>,
    pub(crate) budget: Budget<K::Event>,
    taker: BurstTaker,
    pub(crate) statistics: TracerStatistics,
    /// Threads are sampled. Those of a command are from its exec, which may come before the order to begin.
    pub(crate) recording: bool,
    /// Threads that were asked to stop in the end, for signals that they may have to take, and did not yet.
    pub(crate) asked_at_last: HashSet<i32>,
}

impl<K: Kernel> Executor<K> {
    pub(crate) fn new(
        settings: &Settings,
        event: BurstEvent,
        shared: Arc<Shared>,
        kernel: K,
        stop_cost: StopCost,
    ) -> Self {
        // Its threads stand still for every burst.
        lookahead::warm_up();
        Self {
            own_thread: kernel.own_thread(),
            threads: ThreadTable::new(settings.clock.attr(), settings.inherit),
            budget: Budget::new(settings, kernel.seed() ^ event.id, kernel.now()),
            taker: BurstTaker::new(settings.kind, settings.end),
            statistics: TracerStatistics::new(settings, stop_cost),
            recording: settings.command.is_some(),
            asked_at_last: HashSet::new(),
            kernel,
            event,
            shared,
        }
    }

    /// Something happened to a thread that does not stand still.
    pub(crate) fn happens(&mut self, tid: i32, event: Event) {
        if let Some(mut thread) = self.threads.take(tid) {
            self.drive(&mut thread, event);
            self.threads.put(thread);
        }
    }

    /// Asks the thread's state what `event` leads to, and has it done. Returns how the thread is to go on, if it stands still.
    pub(crate) fn drive(&mut self, thread: &mut Thread<K::Event>, event: Event) -> Option<Release> {
        let mut next = Some(event);
        let mut registers = None;
        let mut goes_on = None;
        while let Some(event) = next.take() {
            let around = self.surroundings(thread, &event);
            let transition = thread.state.on(event, &around);
            thread.state = transition.state;
            goes_on = transition.release.or(goes_on);
            for action in transition.actions {
                next = self.execute(thread, action, &mut registers).map(Event::Answer);
            }
        }
        goes_on
    }

    fn surroundings(&self, thread: &Thread<K::Event>, event: &Event) -> Surroundings {
        let over_budget = self.budget.governor.exceeded();
        let stops_for_signal = matches!(event, Event::Stopped(Stop::Signal(_)));
        Surroundings {
            now: self.kernel.now(),
            recording: self.recording,
            needs_interrupt: thread.needs_interrupt(),
            over_budget,
            has_room: self.budget.governor.has_room(),
            may_be_let_go: over_budget
                && stops_for_signal
                && self.threads.follows
                && self.threads.waiting_signals(thread, &self.kernel).0 == 0,
        }
    }

    /// Does what is to be done. `registers`: those of a thread that stands at its breakpoint.
    fn execute(
        &mut self,
        thread: &mut Thread<K::Event>,
        action: Action,
        registers: &mut Option<Registers>,
    ) -> Option<Answer> {
        let tid = thread.id.tid;
        match action {
            Action::RestartSystemCall => restart_system_call(tid, &mut self.kernel),
            Action::TellOfNewThreads(tells) => {
                if !tells {
                    self.threads.misses_threads_of(thread.id.pid);
                }
                let _ = self.kernel.set_options(tid, self.threads.options(tells));
            }
            Action::BeginBurst => return Some(self.begin_burst(thread)),
            Action::LookWhereItStands => {
                self.statistics.breakpoints += 1;
                self.taker.part(&self.kernel);
                *registers = BurstTaker::registers(&mut self.kernel, &mut self.statistics, tid);
                return Some(Answer::StandsAt(registers.as_ref().map(|registers| Avma(registers.rip))));
            }
            Action::GoOnWithBurst => {
                let answer = match (registers.take(), thread.path.goal.take()) {
                    (Some(registers), Some(goal)) => {
                        self.on_standing(thread, |taker, standing| taker.go_on(standing, registers, goal))
                    }
                    _ => None,
                };
                return Some(answer.unwrap_or(Answer::Complete("breakpoint without registers")));
            }
            Action::SetBreakpoint(address) => return Some(self.set_breakpoint(thread, address)),
            Action::RemoveBreakpoint => thread.unbreak(),
            Action::CountMissedBreakpoint => self.statistics.breakpoints_missed += 1,
            Action::WriteBurst(why) => self.write_burst(thread, why),
            Action::ChargeBurst => self.budget.burst_is_over = true,
            Action::ChooseNotice => {
                let blocked = self.kernel.signal_mask(tid).unwrap_or(0);
                let _ = thread.notify_by(best_notice(blocked, self.threads.caught(thread)), self.own_thread);
            }
            Action::NotifyBy(notice) => drop(thread.notify_by(notice, self.own_thread)),
            Action::StartClock => self.start_clock(thread),
            Action::StartClockAgain => drop(thread.arm_again()),
            Action::Silence => thread.silence(),
            Action::ForgetProgram => self.forget_program(thread),
            Action::LetSignalsThrough => {
                self.asked_at_last.remove(&tid);
                self.kernel.let_through(tid, &|info| thread.owner_of(info).is_some());
            }
            Action::AskToStop => {
                if self.kernel.interrupt(tid).is_err() {
                    return Some(Answer::NotInterrupted);
                }
            }
        }
        None
    }

    /// A sampling stop: the beginning of a burst.
    fn begin_burst(&mut self, thread: &mut Thread<K::Event>) -> Answer {
        self.budget.progress(thread);
        thread.cost = Duration::ZERO;
        if self.shared.switch.is_off(thread.id.pid, monotonic_time()) {
            return Answer::NoBurst;
        }
        self.taker.part(&self.kernel);
        self.statistics.sampling_stops += 1;
        let registers = BurstTaker::registers(&mut self.kernel, &mut self.statistics, thread.id.tid);
        let Some(registers) = registers else { return Answer::NoBurst };
        if let Some(process) = self.threads.process(thread.id.pid) {
            process.count_burst(thread.id.pid, &self.kernel);
        }
        let answer = self.on_standing(thread, |taker, standing| taker.begin(standing, registers));
        answer.unwrap_or(Answer::NoBurst)
    }

    /// What the taker does with a thread that stands still; `None` if its process is not there.
    fn on_standing(
        &mut self,
        thread: &mut Thread<K::Event>,
        act: impl FnOnce(&mut BurstTaker, &mut Standing<'_, K>) -> Answer,
    ) -> Option<Answer> {
        let space = &mut self.threads.process(thread.id.pid)?.space;
        let mut standing = Standing {
            kernel: &mut self.kernel,
            statistics: &mut self.statistics,
            id: thread.id,
            period: thread.period,
            path: &mut thread.path,
            space,
        };
        Some(act(&mut self.taker, &mut standing))
    }

    fn set_breakpoint(&mut self, thread: &mut Thread<K::Event>, address: Avma) -> Answer {
        let why = thread.state.departs_because();
        let began = self.kernel.own_time();
        let kernel = &self.kernel;
        let is_critical =
            self.threads.process(thread.id.pid).is_some_and(|process| process.space.is_critical(kernel, address));
        let continued = &mut self.statistics.continued;
        if is_critical {
            TracerStatistics::count(continued, "not in a restartable sequence");
            return Answer::NoBreakpoint;
        }
        let set = thread.break_at(address, &mut self.kernel);
        self.statistics.time.breakpoints += self.kernel.own_time().saturating_sub(began);
        match (set, &thread.path.goal) {
            (Ok(()), Some(Goal::AfterSystemCall(_) | Goal::AfterInstruction { .. })) => {
                thread.path.burst.continuations += 1;
                TracerStatistics::count(continued, why.unwrap_or_default());
            }
            (Ok(()), _) => {}
            (Err(errno), _) => {
                TracerStatistics::count(continued, &format!("no breakpoint: {errno}"));
                return Answer::NoBreakpoint;
            }
        }
        Answer::BreakpointSet
    }

    fn write_burst(&mut self, thread: &mut Thread<K::Event>, why: &str) {
        thread.unbreak();
        thread.path.write(why, thread.id, &self.event, &self.shared, &mut self.statistics);
    }

    fn start_clock(&mut self, thread: &mut Thread<K::Event>) {
        if thread.has_no_notice() {
            let blocked = self.kernel.signals_blocked(thread.id.tid);
            let _ = thread.notify_by(best_notice(blocked, self.threads.caught(thread)), self.own_thread);
        }
        // A thread that has just ended cannot be armed; its end will be reported.
        let _ = self.budget.arm(thread, self.kernel.now());
    }

    /// Its process has another program, and the thread the id of the process.
    fn forget_program(&mut self, thread: &mut Thread<K::Event>) {
        let pid = thread.id.pid;
        if thread.id.tid != pid {
            thread.forget_owner();
        }
        thread.id.tid = pid;
        thread.path.working_set.clear();
        if let Some(process) = self.threads.process(pid) {
            process.exec(pid, &self.kernel);
        }
    }

    /// The thread is not traced any more.
    pub(crate) fn remove(&mut self, tid: i32) {
        self.kernel.forget_let_through(tid);
        let Some(mut thread) = self.threads.take(tid) else { return };
        self.budget.progress(&mut thread);
        self.drive(&mut thread, Event::Ended);
        self.threads.gone(thread.id.pid);
    }

    /// A thread that nobody knew reports itself.
    pub(crate) fn welcome(&mut self, tid: i32) {
        if !self.threads.add(tid, None, &mut self.kernel, &mut self.statistics) {
            return;
        }
        if self.threads.get(tid).is_some_and(|thread| thread.id.pid == tid) {
            self.budget.process_begins(tid);
        }
        if self.recording {
            self.happens(tid, Event::Begin { standing: true });
        }
    }

    /// Starts the clocks of threads whose clocks were never started.
    pub(crate) fn begin_idle_threads(&mut self) {
        for tid in self.threads.ids(Thread::is_new) {
            self.happens(tid, Event::Begin { standing: false });
        }
    }

    /// Looks how much CPU time passed, if that was not done for so long.
    pub(crate) fn look_at_time(&mut self, since: Duration) {
        self.budget.look_at_time(since, &self.kernel, &mut self.statistics);
    }

    /// Charges what was done while no thread was stopped for it. Returns how long it took.
    pub(crate) fn charge_the_rest(&mut self) -> Duration {
        self.budget.charge_the_rest(&self.kernel, &mut self.statistics.time.other)
    }
}
