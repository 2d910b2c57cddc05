//! The tracer whose bursts are taken by agents: knows the processes, puts agents in, keeps the budget.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use agent::{Image, Limits, LoadStatus};
use perfdata::{AttrFlags, EventAttr};

use crate::errno::Errno;
use crate::machine::cpu_list::CpuList;
use crate::sys::process::{is_alive, user_time};
use crate::sys::{EventFd, Report, own_thread, realtime_signal, share_memory};
use crate::tracer::agent::attention::Attention;
use crate::tracer::agent::collecting::{Collecting, Held, NewBurst};
use crate::tracer::agent::injection::{
    Candidate, Refusal, blocks, filters_system_calls, inherited_signal, lets_through, load_status,
};
use crate::tracer::agent::sideband::{Happening, Sideband};
use crate::tracer::agent::stops::{Purpose, Stops};
use crate::tracer::agent::tree::{State, Tree, Watched};
use crate::tracer::agent::visits::{Visits, leave_system_call};
use crate::tracer::budget::Budget;
use crate::tracer::budget::stop_cost::StopCost;
use crate::tracer::burst::{BurstEvent, ThreadId};
use crate::tracer::kernel::linux::LinuxKernel;
use crate::tracer::kernel::{Kernel, Processes};
use crate::tracer::settings::Settings;
use crate::tracer::shared::{BeforeDrain, Shared};
use crate::tracer::statistics::{Agents, Predictions, TracerStatistics};

/// How often bursts are taken out, while there are some; and where there are none.
const OFTEN: Duration = Duration::from_millis(200);
/// The first time; then twice as long, and so on.
const FIRST_TICK: Duration = Duration::from_millis(5);
const SELDOM: Duration = Duration::from_millis(400);
/// So many bursts at a time are no reason to come sooner.
const FEW: usize = 64;
/// How long a process with an agent may compute without a burst: this, and so many periods. A program's own handler would get the signals.
const LONGEST_QUIET: Duration = Duration::from_millis(200);
const QUIET_PERIODS: u32 = 20;
/// Processes that are looked at each time.
const LOOKS: usize = 8;
/// How long a child of fork is left alone: most become another program at once.
const YOUNG: Duration = Duration::from_millis(3);
/// A process gets the agent when it has computed for so long.
const SETTLED: Duration = Duration::from_millis(20);
/// How soon it is looked for an agent that is being mapped.
const LOADING: Duration = Duration::from_millis(1);
/// The first burst of a process comes as soon after the agent as this, ns of CPU time: at the moment that chance has chosen.
const FIRST_PERIOD: u64 = 50_000;
/// The kernel's own least period is not much shorter, ns.
const SHORTEST: u64 = 20_000;
/// Where a thread was in a system call when it was to get the agent: so many times it is tried again soon, after so many ns of its CPU time on
/// average.
const TRIES: u32 = 4;
const SOON: f64 = 100_000.0;
/// How soon first bursts are looked for while threads have begun lately, and how long a clock waits for one.
const SOON_SEEN: Duration = Duration::from_millis(10);
const LONGEST_STAND: Duration = Duration::from_secs(1);
/// How long it is waited for before it is looked whether the thread blocks the signal.
const BLOCKED: Duration = Duration::from_millis(20);
/// `si_code` of an event that has overflowed, and of one that has used up its limit of overflows.
const POLL_IN: i32 = 1;
const POLL_HUP: i32 = 6;
/// How long a thread that was asked to stop may be in a system call, before it is interrupted.
const LONGEST_STOP: Duration = Duration::from_secs(1);

/// Why there are no agents at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentError {
    #[error(transparent)]
    Image(#[from] agent::ImageError),
    #[error("the records of forks and execs: {0}")]
    Sideband(Errno),
}

pub(crate) struct AgentEngine {
    settings: Settings,
    shared: Arc<Shared>,
    limits: Limits,
    collecting: Arc<Collecting>,
    kernel: LinuxKernel,
    sideband: Sideband,
    attention: Attention,
    /// What looking at processes cost in this window.
    looking: Duration,
    tree: Tree,
    visits: Visits,
    /// Bursts that were taken in visits.
    visited: u64,
    /// Children of fork that have not become another program yet.
    young: VecDeque<(Instant, i32, i32)>,
    stops: Stops,
    budget: Budget<EventFd>,
    /// What bursts cost lately, ns.
    burst_took: f64,
    seed: fastrand::Rng,
    /// Processes that did not get the agent, by reason; agents that were put in, and times it was put off.
    refused: BTreeMap<&'static str, u64>,
    barred: u64,
    injected: u64,
    put_off: u64,
    /// Processes of which it is not known yet whether the agent could be mapped.
    loading: Vec<i32>,
    /// How soon they are looked for again.
    next_look: Duration,
    looks: usize,
    /// Threads whose clocks overflow once and stand then, and since when.
    standing: Vec<(i32, Instant)>,
    /// When the last of them was added.
    last_stand: Option<Instant>,
    /// Times that bursts were taken out, of the first few.
    ticks: u32,
    /// Why there is no image.
    failed: Option<String>,
    next_tick: Instant,
}

impl AgentEngine {
    /// For a command that is about to begin.
    ///
    /// # Errors
    /// No agent can be made here, or nothing tells of processes.
    pub(crate) fn new(
        settings: Settings,
        event: BurstEvent,
        shared: Arc<Shared>,
        mut kernel: LinuxKernel,
        cpus: &CpuList,
    ) -> Result<Self, AgentError> {
        Image::possible()?;
        let end = settings.end;
        let limits = Limits { instructions: end.most_instructions(), branches: end.most_branches() };
        let command = settings.command.unwrap_or(0);
        let sideband = Sideband::open(command, cpus).map_err(AgentError::Sideband)?;
        let attention = Attention::new(&sideband, kernel.seed()).map_err(AgentError::Sideband)?;
        let cost = StopCost::built_in("agents take few stops");
        let statistics = TracerStatistics::new(&settings, cost);
        let collecting = Arc::new(Collecting::new(event, statistics));
        let (now, seed) = (kernel.now(), kernel.seed());
        let mut budget = Budget::new(&settings, seed, now);
        budget.count_thread(command, &mut kernel);
        let for_writer = collecting.clone();
        let _ = shared.before_drain.set(BeforeDrain(Box::new(move |shared| for_writer.collect(shared))));
        Ok(Self {
            settings,
            shared,
            limits,
            collecting,
            kernel,
            sideband,
            attention,
            looking: Duration::ZERO,
            tree: Tree::default(),
            visits: Visits::new(end),
            visited: 0,
            young: VecDeque::new(),
            stops: Stops::default(),
            budget,
            burst_took: 0.0,
            seed: fastrand::Rng::with_seed(seed),
            refused: BTreeMap::new(),
            barred: 0,
            injected: 0,
            put_off: 0,
            loading: Vec::new(),
            next_look: LOADING,
            looks: 0,
            standing: Vec::new(),
            last_stand: None,
            ticks: 0,
            failed: None,
            next_tick: now,
        })
    }

    /// Works until it is told to stop.
    pub(crate) fn run(mut self) -> TracerStatistics {
        {
            let statistics = &mut self.collecting.held().statistics;
            statistics.starting.took = self.budget.begin(false, &self.kernel, statistics);
        }
        while !self.shared.stopping.load(Ordering::Acquire) {
            let now = self.kernel.now();
            if self.attention.wait(self.next_tick.saturating_duration_since(now)) {
                self.see_happenings();
            }
            while let Some((signal, info)) = self.attention.next_signal() {
                match signal {
                    libc::SIGCHLD => self.take_reports(),
                    _ => self.told(info.fd),
                }
            }
            if self.kernel.now() >= self.next_tick {
                self.tick();
            }
        }
        self.finish()
    }

    fn told(&mut self, number: i32) {
        let Some(thread) = self.collecting.thread_of_clock(number) else { return };
        // One may be told of that was dealt with.
        if self.tree.get_mut(thread).is_some_and(|watched| std::mem::take(&mut watched.will_overflow)) {
            self.overflowed(thread);
        }
    }

    fn see_happenings(&mut self) {
        let began = self.kernel.own_time();
        let happened = self.sideband.happened();
        // What is over already needs no clock.
        let ended: HashSet<i32> = happened.iter().filter_map(|(_, happening)| happening.ended_thread()).collect();
        for (time, happening) in happened {
            match happening {
                Happening::Exec { process: thread } | Happening::Begin { thread, .. } if ended.contains(&thread) => {}
                // Nothing but the command's own thread is followed.
                Happening::Exec { process } | Happening::Begin { process, .. }
                    if !self.settings.inherit
                        && (matches!(happening, Happening::Begin { .. }) || self.settings.command != Some(process)) => {
                }
                Happening::Exec { process } => self.became_another_program(process, time),
                Happening::Begin { process, thread, parent } if process == parent => {
                    self.watch(process, thread, 1.0, time);
                }
                Happening::Begin { process, parent, .. } => self.forked(process, parent),
                Happening::End { process, thread } => self.ended(process, thread),
            }
        }
        self.looking += self.kernel.own_time().saturating_sub(began);
    }

    /// What the process was before is gone with its threads. Those that the new program has begun may be known already.
    fn became_another_program(&mut self, process: i32, time: u64) {
        let threads = self.tree.threads_of(process).into_iter();
        let begun = threads.filter_map(|thread| Some((thread, self.tree.get(thread)?.begun)));
        let (before, after): (Vec<_>, Vec<_>) = begun.partition(|(_, begun)| *begun < time);
        for (thread, _) in before {
            self.stop_watching(thread);
        }
        self.tree.set_state(process, State::Without);
        self.visits.forget_process(process);
        self.tree.begins_anew(process, self.kernel.cpu_time(process).unwrap_or_default());
        self.stops.forget_waiting(process);
        // The clock that was to stop it is no more.
        if self.stops.is_under_way(process) && self.kernel.interrupt(process).is_err() {
            // It was another thread, which is gone.
            self.stops.forget(process);
        }
        // Their clocks told an agent that is no more.
        for (thread, begun) in after {
            self.watch(process, thread, 1.0, begun);
        }
        self.watch(process, process, self.attention.part(), time);
    }

    /// A child of fork has its parent's agent, one of vfork its parent's memory.
    fn forked(&mut self, process: i32, parent: i32) {
        self.tree.set_state(process, State::Young);
        let begun = self.kernel.now();
        self.young.push_back((begun, process, parent));
        self.next_tick = self.next_tick.min(begun + 2 * YOUNG);
    }

    fn watch_grown_up(&mut self) {
        let now = self.kernel.now();
        while self.young.front().is_some_and(|(begun, ..)| now >= *begun + YOUNG)
            && let Some((_, process, parent)) = self.young.pop_front()
        {
            if self.tree.state(process) != Some(State::Young) {
                continue;
            }
            // Where the kernel does not say, nothing is risked.
            if share_memory(process, parent) != Some(false) {
                continue;
            }
            self.tree.set_state(process, State::Without);
            for thread in self.kernel.threads(process) {
                self.watch(process, thread, 1.0, 0);
            }
        }
    }

    fn ended(&mut self, process: i32, thread: i32) {
        self.stop_watching(thread);
        if self.tree.forget(process) {
            self.visits.forget_process(process);
        }
    }

    /// Opens the clock of a thread, which tells the tracer, or the agent if the process has it. The first burst comes within this part
    /// of a period.
    fn watch(&mut self, process: i32, thread: i32, part: f64, begun: u64) {
        let state = self.tree.state(process).unwrap_or(State::Without);
        if matches!(state, State::Barred | State::Young) {
            return;
        }
        let attr = self.settings.clock.attr();
        // Since Linux 5.13.
        let on_exec = EventAttr { flags: attr.flags | AttrFlags::REMOVE_ON_EXEC, ..attr.clone() };
        let opened = self.kernel.open(&on_exec, thread).or_else(|_| self.kernel.open(&attr, thread));
        let clock = match opened {
            Ok(clock) => clock,
            Err(errno) if errno.is_permission() => return self.bar(process),
            Err(_) => return,
        };
        let mean = self.budget.period();
        // A first overflow may come at any time: threads that live shorter than a period get their share.
        let first = self.by_chance(mean * part);
        // A short period that went on would leave the thread no time of its own.
        let (whom, signal, tells_agent) = match state {
            State::With { signal } if lets_through(thread, signal) => (thread, signal, true),
            _ => (own_thread(), realtime_signal(), false),
        };
        let started = clock.signal_to(whom, signal).and_then(|()| clock.set_period(first));
        if started.and_then(|()| clock.once()).is_err() {
            return;
        }
        if self.tree.get(thread).is_some() {
            self.stop_watching(thread);
        }
        let number = clock.number();
        let (new_thread, new_process) = self.tree.add(
            thread,
            Watched {
                process,
                begun,
                clock,
                period: first,
                stands: tells_agent,
                will_overflow: true,
                tells_agent,
                tries: 0,
            },
        );
        let mut held = self.collecting.held();
        held.clocks.insert(number, (ThreadId { pid: process, tid: thread }, mean as u64));
        held.statistics.threads += u64::from(new_thread);
        held.statistics.processes += u64::from(new_process);
        drop(held);
        if tells_agent {
            self.stands(thread);
        }
    }

    /// A moment within so many ns.
    fn by_chance(&mut self, longest: f64) -> u64 {
        ((longest * self.seed.f64()) as u64).max(SHORTEST)
    }

    fn stop_watching(&mut self, thread: i32) {
        // What it has left in the slots is still its own.
        if let (Some(image), Some(watched)) = (self.collecting.made_image(), self.tree.get(thread)) {
            let number = watched.clock.number();
            image.slots.release(|event| event == number);
        }
        self.collecting.collect(&self.shared);
        self.visits.forget_thread(thread);
        if let Some(number) = self.tree.remove(thread) {
            self.collecting.held().clocks.remove(&number);
            if let Some(image) = self.collecting.made_image() {
                image.slots.reclaim(|event| event == number);
            }
        }
    }

    /// The clock of a thread has overflowed whose process has no agent.
    fn overflowed(&mut self, thread: i32) {
        let Some(&Watched { process, tells_agent: false, tries, .. }) = self.tree.get(thread) else { return };
        if self.stops.is_under_way(process) {
            return self.stops.wait(process, thread);
        }
        let mut purpose = match self.tree.state(process) {
            // A program that has just begun says soon what its signals are for, and many end before the agent is worth its price.
            Some(State::Without) => match self.collecting.image(self.limits) {
                Some(Ok(_)) if self.is_settled(process) && tries < TRIES => Purpose::Agent,
                Some(Ok(_)) | None => Purpose::Visit,
                Some(Err(error)) => {
                    self.failed.get_or_insert_with(|| error.to_string());
                    return self.refused(process, thread, Refusal::Never("no agent could be made"));
                }
            },
            Some(State::With { signal }) if !blocks(thread, signal) => return self.let_agent_know(thread, signal),
            Some(State::With { .. } | State::Visited) => Purpose::Visit,
            _ => return,
        };
        if purpose == Purpose::Agent {
            if let Some(signal) = inherited_signal(process).filter(|_| !filters_system_calls(process)) {
                return self.has_agent(process, signal);
            }
            match Candidate::of(process, thread) {
                Ok(_) => {}
                Err(Refusal::NotNow) => purpose = Purpose::Visit,
                Err(refusal) => return self.refused(process, thread, refusal),
            }
        }
        // Only what runs is stopped: a system call that it waits in would be interrupted.
        if !self.kernel.is_computing(thread) {
            self.put_off += 1;
            return self.try_again(thread);
        }
        let Some(watched) = self.tree.get_mut(thread) else { return };
        match self.stops.ask(thread, watched, purpose, &mut self.kernel) {
            Ok(()) => {}
            // The kernel says so of one that ends, too.
            Err(errno) if errno.is_permission() && self.kernel.is_computing(thread) => {
                self.refused(process, thread, Refusal::Barred);
            }
            Err(_) => self.put_off += 1,
        }
    }

    /// It stands still. Where chance found it in a system call, it is let go without a burst: those of code behind system calls would be
    /// too many. One that is there again and again has its burst all the same.
    fn visit(&mut self, thread: i32, is_behind_call: bool) {
        // It may have another program now.
        if self.attention.looks_always() {
            self.see_happenings();
        } else {
            self.visits.forget_process(self.process_of(thread));
        }
        let own = self.kernel.own_time();
        let collecting = self.collecting.clone();
        let mut held = collecting.held();
        let Held { clocks, statistics, .. } = &mut *held;
        let measured = statistics.time.measured();
        let due =
            self.tree.get(thread).filter(|watched| !watched.tells_agent && (!is_behind_call || watched.tries >= TRIES));
        let due = due.and_then(|watched| clocks.get(&watched.clock.number())).copied();
        let is_taken = due.is_some_and(|burst| {
            self.visits.take(burst, &mut self.kernel, &collecting.event, &self.shared, statistics)
        });
        self.release(thread, 0);
        let (stop, took) = (statistics.stop_cost.charged.other, self.kernel.own_time().saturating_sub(own));
        statistics.time.stops += stop;
        statistics.time.other += took.saturating_sub(statistics.time.measured() - measured);
        statistics.other_stops += u64::from(due.is_none());
        self.budget.charge_other_stop(stop, took);
        let (true, Some((_, period))) = (is_taken, due) else {
            drop(held);
            self.put_off += 1;
            return self.try_again(thread);
        };
        self.visited += 1;
        self.budget.governor.burst(stop + took, period as f64);
        let mean = self.budget.period();
        let next = (mean * self.budget.governor.jitter()) as u64;
        if let Some(watched) = self.tree.get_mut(thread) {
            watched.tries = 0;
            watched.arm(next);
            clocks.entry(watched.clock.number()).and_modify(|(_, period)| *period = mean as u64);
        }
    }

    /// From now on a thread is stopped for its bursts.
    fn begin_visits(&mut self, thread: i32) {
        let next = self.by_chance(self.budget.period());
        let Some(watched) = self.tree.get_mut(thread) else { return };
        watched.tell_tracer();
        watched.tries = 0;
        watched.arm(next);
    }

    /// A thread that makes many system calls is in one when it is looked at: soon it may not be.
    fn try_again(&mut self, thread: i32) {
        let mean = self.budget.period();
        let Some(watched) = self.tree.get_mut(thread) else { return };
        watched.tries += 1;
        let next = match watched.tries.checked_sub(TRIES) {
            None => mean.min(SOON),
            // Each try costs something: they become rare.
            Some(more) => mean * f64::from(more + 1),
        };
        let next = self.by_chance(2.0 * next);
        if let Some(watched) = self.tree.get_mut(thread) {
            watched.arm(next);
        }
    }

    /// From now on its clocks tell the agent.
    fn has_agent(&mut self, process: i32, signal: i32) {
        self.tree.set_state(process, State::With { signal });
        self.stops.forget_waiting(process);
        for thread in self.tree.threads_of(process) {
            if self.tree.get(thread).is_some_and(|watched| watched.tells_agent) {
                continue;
            }
            if !lets_through(thread, signal) {
                self.begin_visits(thread);
            } else {
                self.let_agent_know(thread, signal);
            }
        }
    }

    /// The clock of a thread tells the agent from now on, first at a moment that chance chooses.
    fn let_agent_know(&mut self, thread: i32, signal: i32) {
        let first = self.by_chance(self.budget.period());
        let Some(watched) = self.tree.get_mut(thread) else { return };
        let _ = watched.clock.disable();
        let _ = watched.clock.signal_to(thread, signal);
        (watched.tells_agent, watched.stands) = (true, true);
        watched.arm(first);
        let _ = watched.start_once();
        self.stands(thread);
    }

    fn refused(&mut self, process: i32, thread: i32, refusal: Refusal) {
        match refusal {
            Refusal::NotNow | Refusal::Signal(_) => {
                self.put_off += 1;
                self.try_again(thread);
            }
            Refusal::Ended(_) => self.ended(process, thread),
            Refusal::Never(why) => {
                *self.refused.entry(why).or_default() += 1;
                self.tree.set_state(process, State::Visited);
                self.stops.forget_waiting(process);
                for thread in self.tree.threads_of(process) {
                    self.begin_visits(thread);
                }
            }
            Refusal::Barred => {
                self.bar(process);
                for thread in self.tree.threads_of(process) {
                    self.stop_watching(thread);
                }
            }
        }
    }

    /// A process that may not be traced.
    fn bar(&mut self, process: i32) {
        self.barred += u64::from(self.tree.state(process) != Some(State::Barred));
        self.tree.set_state(process, State::Barred);
    }

    /// Whether a process has computed for a while since its program began.
    fn is_settled(&self, process: i32) -> bool {
        self.tree.used_by(process, self.kernel.cpu_time(process).unwrap_or_default()) >= SETTLED
    }

    fn take_reports(&mut self) {
        while let Some((thread, report)) = self.kernel.next_report() {
            match report {
                Report::Ended(status) => self.report_end(thread, status),
                Report::Event(libc::PTRACE_EVENT_STOP, libc::SIGTRAP) => self.stopped(thread),
                Report::Signal(_) if self.is_its_clock(thread) => self.stopped(thread),
                // A signal of its own, which it gets.
                Report::Signal(signal) => drop(self.kernel.resume(thread, signal)),
                // Job control.
                Report::Event(..) => self.let_go(thread),
            }
        }
    }

    fn report_end(&mut self, thread: i32, status: i32) {
        if self.settings.command == Some(thread) {
            let _ = self.shared.status.set(status);
        }
        let process = self.process_of(thread);
        self.stops.ended(process, thread);
        self.ended(process, thread);
        self.next_turn(process);
    }

    /// Whether a thread has stopped for the signal of its clock.
    fn is_its_clock(&mut self, thread: i32) -> bool {
        let Ok(info) = self.kernel.signal_info(thread) else { return false };
        let Some(watched) = self.tree.get_mut(thread) else { return false };
        watched.will_overflow &= info.code != POLL_HUP;
        (POLL_IN..=POLL_HUP).contains(&info.code) && info.fd == watched.clock.number()
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
        let is_behind_call = leave_system_call(thread, &mut self.kernel);
        match self.stops.answered(process, thread) {
            Some(Purpose::Agent) => self.put_in(process, thread),
            Some(Purpose::Visit) => self.visit(thread, is_behind_call),
            None => {
                self.release(thread, 0);
                self.try_again(thread);
            }
        }
        self.next_turn(process);
    }

    /// The thread of a process that was traced is not any more.
    fn next_turn(&mut self, process: i32) {
        while let Some(thread) = self.stops.next_waiting(process) {
            self.overflowed(thread);
        }
    }

    /// Puts the agent into the process of a thread that stands still.
    fn put_in(&mut self, process: i32, thread: i32) {
        let (began, own) = (self.kernel.now(), self.kernel.own_time());
        // It may have another program now, or filter its system calls.
        let image = self.collecting.made_image().ok_or(Refusal::NotNow);
        let done = image.and_then(|image| {
            let candidate = Candidate::of(process, thread)?;
            candidate.inject(process, thread, image).map(|()| candidate.signal)
        });
        if let Err(Refusal::Ended(status)) = done {
            return self.report_end(thread, status);
        }
        if let Ok(signal) = done {
            self.injected += 1;
            self.loading.push(process);
            self.next_look = LOADING;
            self.next_tick = self.next_tick.min(self.kernel.now() + LOADING);
            self.tree.set_state(process, State::Loading { signal });
            self.let_agent_know(thread, signal);
            // Its moment was chosen before.
            if let Some(watched) = self.tree.get_mut(thread) {
                watched.arm(FIRST_PERIOD);
            }
        }
        let signal = if let Err(Refusal::Signal(signal)) = done { signal } else { 0 };
        self.release(thread, signal);
        // What the program's side of it took; the tracer's own is known.
        let waited = (self.kernel.now() - began).saturating_sub(self.kernel.own_time() - own);
        {
            let statistics = &mut self.collecting.held().statistics;
            statistics.time.stops += waited;
            statistics.other_stops += 1;
        }
        self.budget.governor.spent(waited);
        if let Err(refusal) = done {
            self.refused(process, thread, refusal);
        }
    }

    /// Looks whether processes with an agent have begun to filter their system calls: the agent's might not be let through.
    fn look_after(&mut self) {
        let processes = self.tree.with_agent();
        let turn = self.looks % processes.len().div_ceil(LOOKS).max(1);
        self.looks += 1;
        for process in processes.into_iter().skip(turn * LOOKS).take(LOOKS) {
            // The clock that is to stop a thread must not be sent elsewhere.
            if self.stops.is_under_way(process) {
                continue;
            }
            let user_time = user_time(process as u32).unwrap_or_default();
            let why = if filters_system_calls(process) {
                "it began to filter its system calls (seccomp)"
            } else if self.tree.quiet_for(process, user_time)
                > LONGEST_QUIET + self.tree.longest_period(process) * QUIET_PERIODS
            {
                "the clock's signal does not come through: blocked, or the program has a handler for it now"
            } else {
                continue;
            };
            self.refused(process, process, Refusal::Never(why));
        }
    }

    /// A clock that overflows once, and whose burst does not come, is started again.
    fn start_standing(&mut self) {
        let now = self.kernel.now();
        let mut looks = LOOKS;
        for (thread, since) in std::mem::take(&mut self.standing) {
            let Some(watched) = self.tree.get(thread).filter(|watched| watched.stands) else { continue };
            let waits = now < since + LONGEST_STAND;
            if now >= since + BLOCKED
                && looks > 0
                && let Some(State::With { signal }) = self.tree.state(watched.process)
            {
                looks -= 1;
                if blocks(thread, signal) {
                    self.begin_visits(thread);
                    continue;
                }
            }
            if !waits {
                // If it has overflowed, and the burst failed, this starts it; one that has not is left as it is.
                let _ = watched.clock.enable();
            }
            self.standing.push((thread, if waits { since } else { now }));
        }
    }

    /// A thread that is asked to stop, and waits in a system call instead, keeps others from their turn. Where system calls are filtered,
    /// making one again could kill.
    fn interrupt_late(&mut self) {
        for (process, thread) in self.stops.asked_before(self.kernel.now().checked_sub(LONGEST_STOP)) {
            if !is_alive(thread as u32) {
                // A first thread that ends alone is not reported before the last one has ended.
                self.stops.ended(process, thread);
                self.next_turn(process);
            } else if !filters_system_calls(process) {
                let _ = self.kernel.interrupt(thread);
            }
        }
    }

    /// The clock of a thread overflows once, until its burst is seen, which is soon.
    fn stands(&mut self, thread: i32) {
        let now = self.kernel.now();
        self.standing.push((thread, now));
        self.last_stand = Some(now);
        self.next_tick = self.next_tick.min(now + SOON_SEEN);
    }

    /// Looks whether agents could be mapped.
    fn see_loaded(&mut self) {
        for process in std::mem::take(&mut self.loading) {
            let Some(State::Loading { signal }) = self.tree.state(process) else { continue };
            match load_status(process) {
                LoadStatus::Loaded => self.has_agent(process, signal),
                LoadStatus::Working => self.loading.push(process),
                LoadStatus::Failed => {
                    self.injected -= 1;
                    self.refused(
                        process,
                        process,
                        Refusal::Never("it could not map the agent (another namespace, a limit?)"),
                    );
                }
            }
        }
    }

    /// Lets a thread go that stands still, with this signal or 0.
    fn release(&mut self, thread: i32, signal: i32) {
        if self.kernel.detach(thread, signal).is_err() {
            self.stops.dies(self.process_of(thread), thread, self.kernel.now());
        }
    }

    /// It has stopped for something of its own.
    fn let_go(&mut self, thread: i32) {
        if let Some(watched) = self.tree.get_mut(thread) {
            watched.tell_tracer();
        }
        self.put_off += 1;
        let process = self.process_of(thread);
        self.stops.answered(process, thread);
        self.release(thread, 0);
        self.try_again(thread);
        self.next_turn(process);
    }

    /// Takes bursts out, chooses when the next ones come, and looks what it cost.
    fn tick(&mut self) {
        self.see_happenings();
        self.watch_grown_up();
        self.see_loaded();
        self.start_standing();
        self.interrupt_late();
        if let Some(image) = self.collecting.made_image().filter(|image| image.slots.is_crowded()) {
            image.slots.release(|_| true);
        }
        self.collecting.collect(&self.shared);
        let new = std::mem::take(&mut self.collecting.held().new);
        for &NewBurst { cost, period, .. } in &new {
            self.budget.governor.spent(cost);
            self.budget.governor.burst(cost, period as f64);
            self.budget.took_inside(cost);
            self.burst_took += (cost.as_nanos() as f64 - self.burst_took) / 16.0;
        }
        // Not for each burst: the CPU that a thread runs on is interrupted for it.
        for number in new.iter().map(|burst| burst.clock).collect::<HashSet<i32>>() {
            if let Some(thread) = self.collecting.thread_of_clock(number) {
                self.tree.saw_burst(thread);
                self.arm(number, thread);
            }
        }
        self.look_after();
        let passed = {
            let mut held = self.collecting.held();
            let statistics = &mut held.statistics;
            let before = statistics.time.application;
            self.budget.governor.threads = self.tree.thread_count();
            self.budget.look_at_time(OFTEN, &self.kernel, statistics);
            self.budget.charge_the_rest(&self.kernel, &mut statistics.time.other);
            statistics.time.application - before
        };
        if !passed.is_zero() {
            let allowed = passed.mul_f64(self.settings.overhead / 100.0);
            self.attention.next_window(std::mem::take(&mut self.looking), allowed);
        }
        let now = self.kernel.now();
        // The first bursts tell what bursts cost here: until then their periods are guesses.
        let often = OFTEN.min(FIRST_TICK * 2_u32.saturating_pow(self.ticks));
        self.ticks += u32::from(!new.is_empty() && often < OFTEN);
        let next = match new.len() {
            _ if !self.young.is_empty() => 2 * YOUNG,
            0 => SELDOM,
            // Slots must not run out.
            bursts if bursts > FEW => often * FEW as u32 / bursts as u32,
            _ => often,
        };
        let is_soon = self.last_stand.is_some_and(|since| now < since + OFTEN);
        let next = if is_soon { next.min(SOON_SEEN) } else { next };
        self.next_look = (2 * self.next_look).min(SELDOM);
        self.next_tick = now + if self.loading.is_empty() { next } else { next.min(self.next_look) };
    }

    /// Chooses when the next burst of a thread comes.
    fn arm(&mut self, number: i32, thread: i32) {
        let mean = self.budget.period();
        // The clock goes on while the agent works. Without that, a thread might come to nothing else.
        let next = (mean * self.budget.governor.jitter() + self.burst_took) as u64;
        let Some(watched) = self.tree.get_mut(thread) else { return };
        watched.arm(next);
        if std::mem::take(&mut watched.stands) {
            watched.will_overflow = false;
            let _ = watched.clock.enable();
        }
        if let Some((_, period)) = self.collecting.held().clocks.get_mut(&number) {
            *period = mean as u64;
        }
    }

    /// Closes all clocks. Agents that are in programs get no signal any more.
    fn finish(mut self) -> TracerStatistics {
        // The kernel lets go what is traced when this thread ends.
        self.tree.stop_clocks();
        if let Some(image) = self.collecting.made_image() {
            image.slots.switch(false);
            image.slots.release(|_| true);
        }
        self.collecting.collect(&self.shared);
        let mut held = self.collecting.held();
        let inside = held.new.drain(..).map(|burst| burst.cost).sum();
        self.budget.took_inside(inside);
        let statistics = &mut held.statistics;
        self.budget.look_at_all_time(&self.kernel, statistics);
        self.budget.end(&self.kernel, statistics);
        let tally = self.collecting.made_image().map(|image| image.slots.tally()).unwrap_or_default();
        statistics.predictions = Predictions { checked: tally.came, diverged: tally.diverged };
        statistics.agents = Some(Agents {
            injected: self.injected,
            put_off: self.put_off,
            visited: self.visited,
            barred: self.barred,
            refused: std::mem::take(&mut self.refused)
                .into_iter()
                .map(|(why, count)| (why.to_owned(), count))
                .collect(),
            tally,
            failed: self.failed,
        });
        statistics.clone()
    }
}
