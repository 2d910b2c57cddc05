//! Threads that are stopped, one of a process at a time: for the agent, or for a burst.

use std::time::Duration;

use crate::errno::Errno;
use crate::sys::process::{guards, is_alive, scheduled, waited_in};
use crate::sys::{POLL_HUP, Report, is_32_bit_process};
use crate::tracer::agent::engine::serving::SERVED;
use crate::tracer::agent::engine::{AgentEngine, LOADING};
use crate::tracer::agent::injection::{Candidate, Refusal, blocks, may_filter_system_calls, own_filters};
use crate::tracer::agent::residents::inherited_signal;
use crate::tracer::agent::stops::{AT_ONCE, Asking, Purpose};
use crate::tracer::agent::tree::{State, Watched};
use crate::tracer::agent::visits::leave_system_call;
use crate::tracer::kernel::{Kernel, Processes};
use crate::tracer::notice::{Notice, SIGNALS, best_notice};
use crate::tracer::waits::{is_made_again, may_be_interrupted, may_time_out};

/// A process gets the agent when it has computed for so long.
const SETTLED: Duration = Duration::from_millis(20);
/// Where a thread was in a system call when it was to get the agent: so many times it is tried again soon, after so many ns of its CPU time on
/// average.
const TRIES: u32 = 4;
/// The same of all its threads together, of which any will do for the agent.
const TRIES_OF_PROCESS: u32 = 8;
const SOON: f64 = 100_000.0;
/// From the overflow of a clock to the look whether its thread still computes it takes about so long, ns: 50 to 80 us in a virtual machine. Where it
/// takes another time, code in the first moments after a wait has more or fewer bursts, and what follows has fewer or more.
const LAG: f64 = 60_000.0;
/// Where threads compute for so many ns at a time on average, the lag makes no difference.
const LONG: f64 = 5.0 * LAG;
/// A period that has become so many times longer since a clock was started is reason to let the clock go on.
const GROWN: f64 = 1.25;
/// How often to look at a stop how much CPU time passed.
const AT_A_STOP: Duration = Duration::from_millis(100);
/// How long a thread that was asked to stop may be in a system call, before it is interrupted.
const LONGEST_STOP: Duration = Duration::from_secs(1);
/// The same where others of its process wait for their turn. It may have computed its last before it waits for them to end.
const TURN: Duration = Duration::from_millis(5);

impl AgentEngine {
    /// The clock of a thread has overflowed whose process has no agent.
    pub(super) fn overflowed(&mut self, thread: i32) {
        self.is_due(thread, true);
    }

    /// A thread is to have its burst or the agent. `just_overflowed`: its clock has overflowed just now, and not long ago.
    fn is_due(&mut self, thread: i32, just_overflowed: bool) {
        let Some(&Watched { process, tells_agent: false, tries, .. }) = self.tree.get(thread) else { return };
        if self.stops.is_under_way(process) {
            self.next_tick = self.next_tick.min(self.kernel.now() + TURN);
            return self.stops.wait(process, thread);
        }
        if self.tree.computes(process) && is_32_bit_process(process as u32) {
            return self.refused(process, thread, Refusal::Bits32);
        }
        let mut purpose = match self.tree.state(process) {
            // A program that has just begun says soon what its signals are for, and many end before the agent is worth its price.
            Some(State::Without) if !self.settings.kind.has_agents() => Purpose::Visit,
            Some(State::Without) => match self.collecting.image(self.limits) {
                Some(Ok(_)) if self.is_settled(process) && tries < 2 * TRIES => Purpose::Agent,
                Some(Ok(_)) | None => Purpose::Visit,
                Some(Err(error)) => {
                    self.agents.failed.get_or_insert_with(|| error.to_string());
                    return self.refused(process, thread, Refusal::Never("no agent could be made"));
                }
            },
            Some(State::With { signal }) if !blocks(thread, signal) => {
                return self.let_agent_know_at_once(thread, signal);
            }
            Some(State::With { .. } | State::Visited) => Purpose::Visit,
            _ => return,
        };
        if purpose == Purpose::Visit && self.comes_too_soon(thread) {
            return;
        }
        if purpose == Purpose::Agent {
            let own = self.kernel.own_time();
            let allowed = self.allows_agent(process, thread);
            self.charge_once(own);
            match allowed {
                Ok(Some(signal)) => return self.has_agent(process, signal),
                Ok(None) => {}
                Err(Refusal::NotNow) => purpose = Purpose::Visit,
                Err(refusal) => return self.refused(process, thread, refusal),
            }
        }
        let guards = guards(thread as u32);
        let notice = best_notice(guards.blocked, guards.caught);
        // What waits is asked only where that does not show: it is traced until it has computed again, and others of its process wait for that. So
        // what computes for long at a time is tried again first, and so is what was due long ago, and the agent.
        let is_often = tries >= TRIES || purpose == Purpose::Agent && self.tree.tries(process) >= TRIES_OF_PROCESS;
        let is_early = |call| {
            just_overflowed && purpose == Purpose::Visit && !may_time_out(call) && computes_briefly(process, thread)
        };
        let may_wait = || {
            matches!(notice, Notice::Signal(_))
                && guards.filters <= own_filters()
                && waited_in(thread as u32).is_some_and(|call| is_made_again(call) && (is_often || is_early(call)))
        };
        if !guards.computes && !may_wait() {
            return self.try_again(thread);
        }
        let rest = if guards.computes || purpose == Purpose::Agent { 0 } else { self.rest_of_lag() };
        let Some(watched) = self.tree.get_mut(thread) else { return };
        match self.stops.ask(thread, watched, purpose, (notice, AT_ONCE + rest), &mut self.kernel) {
            Ok(()) => {
                self.placement.stopped(thread);
                if purpose == Purpose::Visit && guards.computes && may_wait() {
                    // It waits since. Had it stopped, it would wait in no call.
                    let rest = self.rest_of_lag();
                    if let Some(watched) = self.tree.get(thread) {
                        let _ = watched.clock.set_period(AT_ONCE + rest);
                    }
                }
            }
            // The kernel says so of one that ends, too.
            Err(errno) if errno.is_permission() && self.kernel.is_computing(thread) => {
                self.refused(process, thread, Refusal::Barred);
            }
            Err(_) => self.try_again(thread),
        }
    }

    /// After how much more CPU time, ns, a thread has its burst that waits when it is looked at. It has computed for a part of the lag only since its
    /// clock overflowed. What computes still has done so for all of it, so code right after a wait would have too few bursts without these.
    fn rest_of_lag(&mut self) -> u64 {
        (LAG * self.seed.f64()) as u64
    }

    /// Whether the clock of a thread was started when bursts were to come sooner than they may now. Then it goes on, so that it overflows as if
    /// it had been started with what is known now.
    fn comes_too_soon(&mut self, thread: i32) -> bool {
        let mean = self.budget.period();
        let Some(watched) = self.tree.get(thread) else { return false };
        let (number, first) = (watched.clock.number(), watched.period);
        let before = match self.collecting.held().clocks.get_mut(&number) {
            Some((_, period)) if mean >= GROWN * *period as f64 => std::mem::replace(period, mean as u64) as f64,
            _ => return false,
        };
        if self.seed.f64() < before / mean {
            return false;
        }
        if self.is_by_cpu() {
            self.stop_watching(thread);
            return true;
        }
        let rest = (before - first as f64).max(0.0) as u64 + self.by_chance(mean - before);
        if let Some(watched) = self.tree.get_mut(thread) {
            watched.arm(rest);
        }
        true
    }

    /// Whether a process has computed for a while since its program began.
    fn is_settled(&self, process: i32) -> bool {
        self.tree.used_by(process, self.kernel.cpu_time(process).unwrap_or_default()) >= SETTLED
    }

    /// It is put off. A thread that makes many system calls is in one when it is looked at: soon it may not be.
    pub(super) fn try_again(&mut self, thread: i32) {
        self.agents.put_off += 1;
        let mean = self.budget.period();
        let Some(watched) = self.tree.get_mut(thread) else { return };
        watched.tries += 1;
        let (process, tries) = (watched.process, watched.tries);
        if self.is_by_cpu() && tries > TRIES {
            // Its clock would cost more than its burst is worth. The next one stands for this, too.
            return self.gives_up_turn(thread);
        }
        let next = match tries.checked_sub(TRIES) {
            Some(0) if self.is_by_cpu() => SOON,
            None => mean.min(SOON),
            // Each try costs something: they become rare.
            Some(more) => mean * f64::from(more + 1),
        };
        self.tree.put_off(process);
        let next = self.by_chance(2.0 * next);
        if let Some(watched) = self.tree.get_mut(thread) {
            watched.arm(next);
        }
    }

    /// Looks whether a process may get the agent. Returns its signal if the process has it already, inherited from its parent.
    fn allows_agent(&mut self, process: i32, thread: i32) -> Result<Option<i32>, Refusal> {
        let inherited = self.collecting.made_image().and_then(|image| inherited_signal(process, image));
        let (maps, mut harmless) = (self.kernel.mappings(process), Vec::new());
        // Who serves a file may not answer: none of its code is read.
        if self.is_served(process, &maps) {
            return Err(Refusal::Never(SERVED));
        }
        let searched = &self.settings.searched;
        let allowed = match inherited {
            Some(_) if !may_filter_system_calls(process, &maps, &mut harmless, searched) => inherited,
            _ => {
                Candidate::of(process, thread, maps, &mut harmless, searched)?;
                None
            }
        };
        self.tree.set_harmless(process, harmless, self.kernel.now());
        Ok(allowed)
    }

    /// Charges what was done since that time of the tracer to put the agent into a process.
    fn charge_once(&mut self, began: Duration) {
        let statistics = &mut self.collecting.held().statistics;
        self.budget.charge_once(began, &self.kernel, &mut statistics.time.other);
    }

    pub(super) fn take_reports(&mut self) {
        while let Some((thread, report)) = self.kernel.next_report() {
            match report {
                Report::Ended(status) => self.report_end(thread, status),
                Report::Event(..) if self.followed.contains_key(&thread) => self.stopped_on_the_way(thread),
                Report::Event(..) if self.takes_signal_next(thread) => {
                    let _ = self.kernel.resume(thread, 0);
                }
                Report::Event(libc::PTRACE_EVENT_STOP, libc::SIGTRAP) => self.stopped(thread),
                Report::Signal(signal) if SIGNALS.contains(&signal) && self.is_its_breakpoint(thread) => {
                    self.reached(thread)
                }
                Report::Signal(signal) if SIGNALS.contains(&signal) && self.is_its_clock(thread) => {
                    self.stopped(thread)
                }
                // A signal of its own, which it gets.
                Report::Signal(signal) => {
                    leave_system_call(thread, &mut self.kernel);
                    let _ = self.kernel.resume(thread, signal);
                }
                // Job control.
                Report::Event(..) => self.let_go(thread),
            }
        }
    }

    /// Whether a thread that stands still has not taken the signal of its clock or breakpoint yet. It stops for that next, even if it has
    /// blocked it since.
    pub(super) fn takes_signal_next(&mut self, thread: i32) -> bool {
        let event = self.event_of(thread);
        self.kernel.let_through(thread, &|info| info.is_of(event))
    }

    /// The descriptor of the event that is to stop a thread; -1 if it has none.
    pub(super) fn event_of(&self, thread: i32) -> i32 {
        let clock = || self.tree.get(thread).map_or(-1, |watched| watched.clock.number());
        self.breakpoint_of(thread).unwrap_or_else(clock)
    }

    /// None of the events of a thread sends a signal from now on.
    pub(super) fn silence_events(&self, thread: i32) {
        if let Some(watched) = self.tree.get(thread) {
            watched.clock.silence();
        }
        self.silence_breakpoint(thread);
    }

    fn report_end(&mut self, thread: i32, status: i32) {
        if self.settings.waited_for == Some(thread) {
            let _ = self.shared.status.set(status);
        }
        let process = self.process_of(thread);
        self.ended_on_the_way(thread, "end of the thread");
        self.stops.ended(process, thread);
        self.ended(process, thread);
        self.next_turn(process);
    }

    /// Whether a thread has stopped for the signal of its clock.
    fn is_its_clock(&mut self, thread: i32) -> bool {
        let Ok(info) = self.kernel.signal_info(thread) else { return false };
        let Some(watched) = self.tree.get_mut(thread) else { return false };
        watched.will_overflow &= info.code != POLL_HUP;
        info.is_of(watched.clock.number())
    }

    /// The process of a thread that reports itself.
    fn process_of(&self, thread: i32) -> i32 {
        let watched = self.tree.get(thread).map(|watched| watched.process);
        watched.or_else(|| self.stops.process_of(thread)).unwrap_or(thread)
    }

    /// A thread stands still that was asked to.
    fn stopped(&mut self, thread: i32) {
        let process = self.process_of(thread);
        if let Some(watched) = self.tree.get_mut(thread) {
            watched.tell_tracer();
        }
        let is_after_call = leave_system_call(thread, &mut self.kernel);
        match self.stops.answered(process, thread) {
            Some(Purpose::Agent) => self.put_in(process, thread),
            Some(Purpose::Visit) => self.visit(thread, is_after_call),
            None => self.put_off(thread),
        }
        self.next_turn(process);
    }

    /// Puts the agent into the process of a thread that stands still.
    fn put_in(&mut self, process: i32, thread: i32) {
        let own = self.kernel.own_time();
        // It may have another program now, or filter its system calls.
        let now = self.kernel.now();
        let (maps, mut harmless) = (self.kernel.mappings(process), self.tree.take_harmless(process, now));
        let image = self.collecting.made_image().ok_or(Refusal::NotNow);
        let done = image.and_then(|image| {
            let candidate = Candidate::of(process, thread, maps, &mut harmless, &self.settings.searched)?;
            Ok((candidate.inject(process, thread, image)?, candidate.signal))
        });
        let done = done.map(|(way, signal)| {
            self.tree.set_harmless(process, harmless, now);
            self.on_the_way.insert(process, way);
            self.agents.injected += 1;
            self.next_look = LOADING;
            self.next_tick = self.next_tick.min(self.kernel.now() + LOADING);
            self.tree.set_state(process, State::Loading { signal });
            self.let_agent_know_at_once(thread, signal);
        });
        self.release(thread);
        self.collecting.held().statistics.other_stops += 1;
        self.charge_once(own);
        if let Err(refusal) = done {
            self.refused(process, thread, refusal);
        }
    }

    /// It stands still. Where chance found it in a system call, it is let go without a burst: those of code after system calls would be
    /// too many. One that is there again and again has its burst all the same.
    fn visit(&mut self, thread: i32, is_after_call: bool) {
        // It may have another program now.
        if self.attention.looks_always() {
            self.see_happenings();
        } else {
            self.visits.forget_process(self.process_of(thread));
        }
        let own = self.kernel.own_time();
        let clock =
            self.tree.get(thread).filter(|watched| !watched.tells_agent && (!is_after_call || watched.tries >= TRIES));
        let number = clock.map(|watched| watched.clock.number());
        let due = number.and_then(|number| self.collecting.held().clocks.get(&number).copied());
        let Some(due) = due.filter(|(id, _)| !self.is_off(id.pid)) else {
            self.release(thread);
            self.collecting.held().statistics.other_stops += 1;
            self.charge_stop(thread, own, Duration::ZERO);
            return self.try_again(thread);
        };
        self.take_part(due, Duration::ZERO, own, |engine, statistics| {
            engine.visits.begin(due, &mut engine.kernel, statistics)
        });
    }

    /// Charges a stop that began at this time of the tracer, and is over. Of it, so much is in the statistics. Returns its cost.
    pub(super) fn charge_stop(&mut self, thread: i32, began: Duration, measured: Duration) -> Duration {
        let took = self.kernel.own_time().saturating_sub(began);
        let statistics = &mut self.collecting.held().statistics;
        let stop = self.placement.stop(thread, statistics.stop_cost.charged);
        statistics.time.stops += stop;
        statistics.time.other += took.saturating_sub(measured);
        self.budget.charge_other_stop(stop, took);
        self.budget.look_at_time(AT_A_STOP, &self.kernel, statistics);
        stop + took
    }

    /// It has stopped for something of its own.
    fn let_go(&mut self, thread: i32) {
        if let Some(watched) = self.tree.get_mut(thread) {
            watched.tell_tracer();
        }
        let process = self.process_of(thread);
        self.stops.answered(process, thread);
        self.put_off(thread);
        self.next_turn(process);
    }

    /// Lets a thread go that stands still and has nothing to do there.
    fn put_off(&mut self, thread: i32) {
        self.release(thread);
        self.try_again(thread);
    }

    /// Lets a thread go after its burst.
    pub(super) fn release_in_place(&mut self, thread: i32) {
        let Self { kernel, placement, .. } = self;
        let detached = placement.in_place(|| kernel.detach(thread, 0));
        self.released(thread, detached);
    }

    /// Lets a thread go that stands still.
    fn release(&mut self, thread: i32) {
        let detached = self.kernel.detach(thread, 0);
        self.released(thread, detached);
    }

    /// A thread was to be let go. One that cannot be is about to end, and is traced until that has been reported.
    fn released(&mut self, thread: i32, detached: Result<(), Errno>) {
        if detached.is_err() {
            self.stops.stays(self.process_of(thread), thread, self.kernel.now());
        }
    }

    /// The thread of a process that was traced is not any more.
    pub(super) fn next_turn(&mut self, process: i32) {
        while let Some(thread) = self.stops.next_waiting(process) {
            self.is_due(thread, false);
        }
    }

    /// A thread that is asked to stop, and waits in a system call instead, keeps others from their turn. Where system calls are filtered,
    /// making one again could kill.
    pub(super) fn interrupt_late(&mut self) {
        let now = self.kernel.now();
        for Asking { process, thread, since, keeps_others } in self.stops.asked() {
            let is_kept = keeps_others && !self.followed.contains_key(&thread);
            if is_kept {
                // Twice as late each time: it may wait where it must not be interrupted.
                self.next_tick = self.next_tick.min(now + TURN.max(now - since));
            }
            // One that computes stops soon.
            let is_late =
                now >= since + LONGEST_STOP || is_kept && now >= since + TURN && !self.kernel.is_computing(thread);
            if !is_late {
                continue;
            }
            if !is_alive(thread as u32) {
                // A first thread that ends alone is not reported before the last one has ended. Any other is, soon: until then a thread in
                // execve(2) waits for it, and would keep the next one from being seized.
                if thread == process {
                    self.stops.ended(process, thread);
                    self.next_turn(process);
                }
            } else if may_be_interrupted(process, thread) {
                let _ = self.kernel.interrupt(thread);
            }
        }
    }
}

/// Whether a thread has computed for less than [`LONG`] at a time since it began, on average.
fn computes_briefly(process: i32, thread: i32) -> bool {
    let scheduled = scheduled(process as u32, thread as u32);
    scheduled.is_some_and(|all| (all.ran.as_nanos() as f64) < LONG * all.times as f64)
}
