//! The tracer: hears what threads report, asks their states what is to be done, and has it done.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use addresses::Avma;
use lookahead::Registers;

use crate::sys::SignalInfo;
use crate::tracer::AttachError;
use crate::tracer::action::{Action, Release};
use crate::tracer::budget::Budget;
use crate::tracer::burst::BurstEvent;
use crate::tracer::burst_taker::{BurstTaker, Standing};
use crate::tracer::event::{Answer, Event, Stop};
use crate::tracer::kernel::{Kernel, ThreadEvent};
use crate::tracer::notice::{SIGNALS, best_notice, blocks_all};
use crate::tracer::placement::Placement;
use crate::tracer::report_loop::{Producer, follow, follow_until, release};
use crate::tracer::settings::Settings;
use crate::tracer::shared::Shared;
use crate::tracer::statistics::TracerStatistics;
use crate::tracer::stop_cost::{NEW_THREAD, StopCost};
use crate::tracer::system_call_restart::restart_system_call;
use crate::tracer::thread::{Goal, Thread};
use crate::tracer::thread_state::Surroundings;
use crate::tracer::thread_table::ThreadTable;

/// How long signals are waited for that are on their way when tracing ends: a thread that job control has stopped takes none.
const LAST_SIGNALS: Duration = Duration::from_millis(200);
/// Threads that are looked at each time.
const LOOKS: usize = 32;
/// How often to look at least whether there is room for one more of the threads that were there before.
const ATTACHING: Duration = Duration::from_millis(20);
/// How often at most the threads of processes are listed to find some that are not traced.
const MOST_LISTS: u32 = 4;
/// So many of them at once at most, and if there are as many, no fewer: each time costs something by itself.
const AT_ONCE: usize = 16;
/// How often to look for breakpoints that are not reached, and for threads that do not stop.
const HOUSEKEEPING: Duration = Duration::from_millis(250);
/// How often to look how much CPU time passed: at a stop, or where there is none.
const AT_A_STOP: Duration = Duration::from_millis(100);
const WITHOUT_STOP: Duration = Duration::from_millis(500);

/// The tracer at work.
pub(crate) struct Engine<K: Kernel> {
    kernel: K,
    settings: Settings,
    event: BurstEvent,
    shared: Arc<Shared>,
    own_thread: i32,
    threads: ThreadTable<K::Event>,
    /// Threads that were there before, and are still to be traced, with their process if that is known.
    waiting: VecDeque<(i32, Option<i32>)>,
    /// The processes whose threads are all to be traced, until none is found that is not.
    whole: Vec<i32>,
    lists: u32,
    began: Instant,
    /// How long to wait until there may be room for one more of them.
    attaching: Duration,
    next_attaching: Instant,
    budget: Budget<K::Event>,
    placement: Placement,
    taker: BurstTaker,
    statistics: TracerStatistics,
    /// Threads are sampled. Those of a command are from its exec, which may come before the order to begin.
    recording: bool,
    next_look: Instant,
    looks: u32,
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
        let seed = u64::from(std::process::id()) << 32 ^ event.id ^ 0x9e37_79b9_7f4a_7c15;
        Self {
            own_thread: kernel.own_thread(),
            threads: ThreadTable::new(settings.clock.attr(), settings.inherit),
            waiting: VecDeque::new(),
            whole: Vec::new(),
            lists: 0,
            began: kernel.now(),
            attaching: ATTACHING,
            next_attaching: kernel.now(),
            budget: Budget::new(&settings, seed, kernel.now()),
            placement,
            taker: BurstTaker::new(settings.kind, settings.size),
            statistics: TracerStatistics::new(settings.kind, settings.size, settings.overhead, stop_cost),
            recording: settings.command.is_some(),
            next_look: kernel.now(),
            looks: 0,
            kernel,
            settings,
            event,
            shared,
        }
    }

    /// What was done, which is nothing.
    pub(crate) fn nothing(self) -> TracerStatistics {
        self.statistics
    }

    /// Becomes the tracer of one of the threads of these processes, or of these threads. The others follow when recording has begun, as
    /// the budget allows.
    ///
    /// # Errors
    /// None can be traced, and why.
    pub(crate) fn attach(&mut self, ids: &[u32], whole_processes: bool) -> Result<(), AttachError> {
        let mut refused = None;
        for id in ids.iter().map(|&id| id as i32) {
            let listed = if whole_processes { self.kernel.threads(id) } else { vec![id] };
            if whole_processes {
                self.whole.push(id);
            }
            for thread in listed {
                self.budget.count(thread, &mut self.kernel);
                self.waiting.push_back((thread, whole_processes.then_some(id)));
            }
        }
        while self.threads.is_empty()
            && let Some((thread, process)) = self.waiting.pop_front()
        {
            match self.threads.seize(thread, process, &mut self.kernel, &mut self.statistics) {
                Ok(is_traced) => self.statistics.starting.threads += u64::from(is_traced),
                Err(errno) => refused = refused.or(Some(AttachError { thread, errno })),
            }
        }
        match refused {
            Some(error) if self.threads.is_empty() => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether threads that were there before are still to be traced.
    fn is_attaching(&self) -> bool {
        !self.waiting.is_empty() || !self.whole.is_empty()
    }

    /// Becomes the tracer of more of the threads that were there before, as the budget allows.
    fn attach_more(&mut self) {
        let next = self.waiting.len().min(AT_ONCE);
        if !self.budget.governor.affords(NEW_THREAD * next as u32) {
            // Where no CPU time passes that could pay for it, looking often would cost more than what is waited for.
            self.attaching = (2 * self.attaching).min(HOUSEKEEPING);
            return;
        }
        for (thread, process) in self.waiting.drain(..next).collect::<Vec<_>>() {
            // It may have ended, or have been started by a traced one just now.
            if !self.threads.contains(thread)
                && self.threads.seize(thread, process, &mut self.kernel, &mut self.statistics) == Ok(true)
            {
                self.happens(thread, Event::Begin { standing: false });
                self.statistics.starting.threads += 1;
            }
        }
        if self.waiting.is_empty() {
            self.list_again();
        }
        self.statistics.starting.took += self.budget.charge_the_rest(&self.kernel, &mut self.statistics.time.other);
        self.statistics.starting.lasted = self.kernel.now() - self.began;
        self.attaching = ATTACHING;
    }

    /// Looks for threads that were started, before they were traced, by those that were waiting.
    fn list_again(&mut self) {
        self.lists += 1;
        for &process in &self.whole {
            let new = self.kernel.threads(process).into_iter().filter(|&thread| !self.threads.contains(thread));
            self.waiting.extend(new.map(|thread| (thread, Some(process))));
        }
        // What is there still cannot be traced.
        if self.waiting.is_empty() || self.lists == MOST_LISTS {
            self.whole.clear();
        }
    }

    /// Traces until it is told to stop.
    pub(crate) fn run(mut self) -> TracerStatistics {
        let is_program_running = self.settings.command.is_none();
        self.statistics.starting.took = self.budget.begin(is_program_running, &self.kernel, &mut self.statistics);
        follow(&mut self);
        self.finish()
    }

    /// Takes all events away, lets go what is stopped, and ends. The kernel detaches threads when their tracer's thread ends.
    fn finish(mut self) -> TracerStatistics {
        self.recording = false;
        for tid in self.threads.ids(|_| true) {
            self.happens(tid, Event::RecordingEnds);
        }
        self.budget.look_at_all_time(&mut self.statistics);
        // A thread that is let go with the signal of its clock on its way would get it. Whether a signal waits and whether its thread
        // stops for it change together, under the kernel's `siglock`.
        follow_until(&mut self, LAST_SIGNALS, |engine| {
            let gets_signal = |thread: &Thread<K::Event>| {
                engine.threads.has_handler(thread) && thread.gets_its_signal(&engine.kernel)
            };
            !engine.threads.iter().any(gets_signal)
        });
        self.budget.end(&self.kernel, &mut self.statistics);
        self.statistics
    }

    /// Something happened to a thread that does not stand still.
    fn happens(&mut self, tid: i32, event: Event) {
        if let Some(mut thread) = self.threads.take(tid) {
            self.drive(&mut thread, event);
            self.threads.put(thread);
        }
    }

    /// Asks the thread's state what `event` leads to, and has it done. Returns how the thread is to go on, if it stands still.
    fn drive(&mut self, thread: &mut Thread<K::Event>, event: Event) -> Option<Release> {
        let mut next = Some(event);
        let mut registers = None;
        let mut goes_on = None;
        while let Some(event) = next.take() {
            let transition = thread.state.on(event, &self.surroundings(thread));
            thread.state = transition.state;
            goes_on = transition.release.or(goes_on);
            for action in transition.actions {
                next = self.execute(thread, action, &mut registers).map(Event::Answer);
            }
        }
        goes_on
    }

    fn surroundings(&self, thread: &Thread<K::Event>) -> Surroundings {
        Surroundings {
            now: self.kernel.now(),
            recording: self.recording,
            needs_interrupt: thread.needs_interrupt(),
            over_budget: self.budget.governor.exceeded(),
            has_room: self.budget.governor.has_room(),
            follows: self.threads.follows,
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
                let answer = match (registers.take(), thread.goal.take()) {
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
            Action::StopClock => drop(thread.clock.disable()),
            Action::ForgetProgram => self.forget_program(thread),
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
        let mut standing = Standing { kernel: &mut self.kernel, statistics: &mut self.statistics, thread, space };
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
        match (set, &thread.goal) {
            (Ok(()), Some(Goal::AfterSystemCall(_) | Goal::AfterInstruction { .. })) => {
                thread.burst.continuations += 1;
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
        thread.goal = None;
        let statistics = &mut self.statistics;
        if let Some(prediction) = thread.prediction.take() {
            prediction.compare_branches(&thread.burst.branches, &mut statistics.predictions);
        }
        TracerStatistics::count(&mut statistics.ends, why);
        let burst = &thread.burst;
        if burst.instructions == 0 {
            return;
        }
        statistics.instructions += burst.instructions;
        statistics.taken_branches += burst.branches.len() as u64;
        statistics.static_branches += burst.static_branches();
        let mut unwritable = 0;
        let written = self.shared.push(|time, records| {
            unwritable = burst.write(&self.event, thread.id, time, records);
        });
        statistics.unwritable_samples += unwritable;
        *(if written { &mut statistics.bursts } else { &mut statistics.lost_bursts }) += 1;
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
        thread.working_set.clear();
        if let Some(process) = self.threads.process(pid) {
            process.exec(pid, &self.kernel);
        }
    }

    /// The thread is not traced any more.
    fn remove(&mut self, tid: i32) {
        let Some(mut thread) = self.threads.take(tid) else { return };
        self.budget.progress(&mut thread);
        self.drive(&mut thread, Event::Ended);
        self.threads.gone(thread.id.pid);
    }

    /// All other threads of the process are gone, and the one that called exec has the process's id now: it is found under its own
    /// still, or not at all. Returns the id it is in the table with.
    fn only_thread(&mut self, pid: i32) -> i32 {
        let former = self.kernel.event_message(pid).map_or(pid, |id| id as i32);
        for tid in self.threads.ids(|thread| thread.id.pid == pid && thread.id.tid != former) {
            self.remove(tid);
        }
        if self.threads.contains(former) {
            return former;
        }
        self.threads.add(pid, Some(pid), &mut self.kernel, &mut self.statistics);
        pid
    }

    /// A thread that nobody knew reports itself.
    fn welcome(&mut self, tid: i32) {
        if self.threads.add(tid, None, &mut self.kernel, &mut self.statistics) && self.recording {
            self.happens(tid, Event::Begin { standing: true });
        }
    }

    /// Which of its own events has stopped a thread, if one has.
    fn own_stop(&self, tid: i32, signal: i32) -> Option<Stop> {
        let thread = self.threads.get(tid).filter(|_| SIGNALS.contains(&signal))?;
        thread.owner_of(self.kernel.signal_info(tid).ok()?)
    }

    /// One of the thread's own events has stopped it, or the tracer by its order.
    fn stopped_for_burst(&mut self, tid: i32, stop: Stop, began: Duration) {
        let cost = self.placement.stop(tid, self.statistics.stop_cost.charged);
        // A thread that the tracer has to interrupt waits for the tracer to run.
        match self.threads.get(tid).and_then(Thread::signal) {
            Some(_) if self.recording => self.placement.stopped(tid),
            _ => self.placement.stopped_otherwise(),
        }
        let time = &mut self.statistics.time;
        *(if stop == Stop::Breakpoint { &mut time.breakpoints } else { &mut time.stops }) += cost;
        let measured = self.statistics.time.measured();
        let mut goes_on = Some(Release::Run(0));
        let mut took = Duration::ZERO;
        if let Some(mut thread) = self.threads.take(tid) {
            goes_on = self.drive(&mut thread, Event::Stopped(stop));
            took = self.kernel.own_time().saturating_sub(began);
            self.budget.charge_stop_of_burst(&mut thread, cost + took);
            self.threads.put(thread);
        }
        // What is not in one of the measured parts. Letting the thread go is part of a stop.
        self.statistics.time.other += took.saturating_sub(self.statistics.time.measured() - measured);
        self.budget.charged(took);
        if let Some(goes_on) = goes_on {
            self.placement.in_place(|| {
                release(&mut self.kernel, tid, goes_on);
            });
        }
    }

    /// It has stopped for something else.
    fn stopped_otherwise(&mut self, tid: i32, stop: Stop, began: Duration) {
        let in_table = match stop {
            Stop::Exec => self.only_thread(tid),
            _ => tid,
        };
        let goes_on = match self.threads.take(in_table) {
            Some(mut thread) => {
                let goes_on = self.drive(&mut thread, Event::Stopped(stop));
                self.threads.put(thread);
                goes_on
            }
            None => {
                restart_system_call(tid, &mut self.kernel);
                if stop == Stop::Interrupt {
                    self.welcome(tid);
                }
                Some(passed_on(stop))
            }
        };
        if goes_on.is_some_and(|goes_on| release(&mut self.kernel, tid, goes_on)) {
            self.statistics.backed_off += 1;
            if let Some(thread) = self.threads.get(tid) {
                self.threads.misses_threads_of(thread.id.pid);
            }
            self.remove(tid);
        }
        let cost = self.placement.stop(tid, self.statistics.stop_cost.charged);
        self.placement.stopped_otherwise();
        self.statistics.other_stops += 1;
        let took = self.kernel.own_time().saturating_sub(began);
        self.statistics.time.stops += cost;
        self.statistics.time.other += took;
        self.budget.charge_other_stop(cost, took);
    }

    /// Gives up breakpoints that are not reached, and finds threads whose signal does not come through because they block it.
    fn look_after_threads(&mut self) {
        for tid in self.threads.ids(|thread| thread.state.is_in_burst()) {
            if let Some(mut thread) = self.threads.take(tid) {
                self.drive(&mut thread, Event::Look);
                self.budget.charge_stop_of_burst(&mut thread, Duration::ZERO);
                self.threads.put(thread);
            }
        }
        if !self.budget.governor.has_room() {
            // Their clocks were started when bursts were thought to cost less. Started anew, they cost nothing until that is made up for.
            let slowest = self.budget.period() / 2.0;
            let early = |thread: &Thread<K::Event>| !thread.is_new() && (thread.period as f64) < slowest;
            for tid in self.threads.ids(early).into_iter().take(LOOKS) {
                self.happens(tid, Event::PeriodHasGrown);
            }
        }
        // Not all at once: there may be many.
        let turn = self.looks as usize % self.threads.len().div_ceil(LOOKS).max(1);
        self.looks = self.looks.wrapping_add(1);
        let (kernel, threads) = (&self.kernel, self.threads.iter_mut().skip(turn * LOOKS).take(LOOKS));
        let blocking: Vec<i32> =
            threads.filter_map(|thread| thread.blocks_its_signal(kernel).then_some(thread.id.tid)).collect();
        for tid in blocking {
            self.happens(tid, Event::SignalIsBlocked);
        }
    }

    /// Looks for threads and processes that were left out, if there is room for them.
    fn find_missing(&mut self) {
        let found = !self.is_attaching()
            && self.budget.governor.has_room()
            && self.threads.find_missing(&mut self.kernel, &mut self.statistics);
        if found && self.recording {
            self.begin_idle_threads();
        }
    }

    fn begin_idle_threads(&mut self) {
        for tid in self.threads.ids(Thread::is_new) {
            self.happens(tid, Event::Begin { standing: false });
        }
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

impl<K: Kernel> Producer for Engine<K> {
    type Kernel = K;

    fn kernel(&mut self) -> &mut K {
        &mut self.kernel
    }

    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn command(&self) -> Option<i32> {
        self.settings.command
    }

    fn ended(&mut self, thread: i32) {
        self.budget.look_at_time(AT_A_STOP, &self.kernel, &mut self.statistics);
        self.remove(thread);
    }

    fn stopped(&mut self, tid: i32, stop: Stop) {
        let began = self.kernel.own_time();
        self.budget.look_at_time(AT_A_STOP, &self.kernel, &mut self.statistics);
        let stop = match stop {
            Stop::Signal(signal) => self.own_stop(tid, signal).unwrap_or(stop),
            _ => stop,
        };
        if self.threads.get(tid).is_some_and(|thread| thread.state.is_own(stop)) {
            self.stopped_for_burst(tid, stop, began);
        } else {
            self.stopped_otherwise(tid, stop, began);
        }
    }

    /// A clock of a thread that blocked the signals has overflowed.
    fn told(&mut self, info: SignalInfo) {
        let Some(tid) = self.threads.clock_owner(info) else { return };
        let Some(thread) = self.threads.get(tid) else { return };
        let blocked = self.kernel.signals_blocked(tid);
        let notice = best_notice(blocked, self.threads.caught(thread));
        let can_be_interrupted = !blocks_all(blocked) && self.kernel.is_computing(tid);
        self.happens(tid, Event::OverflowTold { notice, can_be_interrupted });
    }

    fn idle(&mut self) -> Duration {
        if !self.recording && self.shared.started.load(Ordering::Acquire) {
            self.recording = true;
            self.began = self.kernel.now();
            self.begin_idle_threads();
        }
        let now = self.kernel.now();
        if self.recording && self.is_attaching() && now >= self.next_attaching {
            self.budget.look_at_time(HOUSEKEEPING, &self.kernel, &mut self.statistics);
            self.attach_more();
            self.next_attaching = now + self.attaching;
        }
        if now >= self.next_look {
            self.budget.look_at_time(WITHOUT_STOP, &self.kernel, &mut self.statistics);
            self.look_after_threads();
            self.find_missing();
            self.budget.charge_the_rest(&self.kernel, &mut self.statistics.time.other);
            self.next_look = now + HOUSEKEEPING;
        }
        if self.is_attaching() { self.attaching } else { HOUSEKEEPING }
    }
}
