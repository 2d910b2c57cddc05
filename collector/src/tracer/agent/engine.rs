//! The tracer whose bursts are taken by agents: knows the processes, puts agents in, keeps the budget.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use agent::{Image, Limits, LoadStatus};
use perfdata::{AttrFlags, EventAttr};

use crate::errno::Errno;
use crate::machine::cpu_list::CpuList;
use crate::sys::process::user_time;
use crate::sys::{EventFd, Report, own_thread, realtime_signal, share_memory};
use crate::tracer::agent::attention::Attention;
use crate::tracer::agent::collecting::{Collecting, NewBurst};
use crate::tracer::agent::injection::{
    Candidate, Refusal, filters_system_calls, inherited_signal, lets_through, load_status,
};
use crate::tracer::agent::sideband::{Happening, Sideband};
use crate::tracer::agent::tree::{State, Tree, Watched};
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
/// The first burst of a process comes as soon after the agent as this, ns of CPU time: at the moment that chance has chosen.
const FIRST_PERIOD: u64 = 50_000;
/// The kernel's own least period is not much shorter, ns.
const SHORTEST: u64 = 20_000;
/// Where a thread was in a system call when it was to get the agent: so many times it is tried again soon, after so many ns of its CPU time on
/// average.
const TRIES: u32 = 4;
const SOON: f64 = 100_000.0;
/// How soon first bursts are looked for while threads have begun lately, and how long a clock waits for one.
const SOON_SEEN: Duration = Duration::from_millis(20);
const LONGEST_STAND: Duration = Duration::from_secs(1);
/// How long an agent that is asked for may take to get the thread to stop.
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
    /// Children of fork that have not become another program yet.
    young: VecDeque<(Instant, i32, i32)>,
    candidates: BTreeMap<i32, (Candidate, Instant)>,
    budget: Budget<EventFd>,
    /// What bursts cost lately, ns.
    burst_took: f64,
    seed: fastrand::Rng,
    /// Processes that did not get the agent, by reason; agents that were put in, and times it was put off.
    refused: BTreeMap<&'static str, u64>,
    injected: u64,
    put_off: u64,
    /// Processes of which it is not known yet whether the agent could be mapped.
    loading: Vec<i32>,
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
        let cost = StopCost::built_in("agents take no stops");
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
            young: VecDeque::new(),
            candidates: BTreeMap::new(),
            budget,
            burst_took: 0.0,
            seed: fastrand::Rng::with_seed(seed),
            refused: BTreeMap::new(),
            injected: 0,
            put_off: 0,
            loading: Vec::new(),
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
        if let Some(thread) = self.collecting.thread_of_clock(number) {
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
        // Their clocks told an agent that is no more.
        for (thread, begun) in after {
            self.watch(process, thread, 1.0, begun);
        }
        self.watch(process, process, self.attention.part(), time);
    }

    /// A child of fork has what its parent has, one of vfork has its parent's memory.
    fn forked(&mut self, process: i32, parent: i32) {
        self.tree.set_state(process, State::Young);
        let begun = self.kernel.now();
        self.young.push_back((begun, process, parent));
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
            let state = inherited_signal(process).map_or(State::Without, |signal| State::With { signal });
            self.tree.set_state(process, state);
            for thread in self.kernel.threads(process) {
                self.watch(process, thread, 1.0, 0);
            }
        }
    }

    fn ended(&mut self, process: i32, thread: i32) {
        self.candidates.remove(&thread);
        self.stop_watching(thread);
        self.tree.forget(process);
    }

    /// Opens the clock of a thread, which tells the tracer, or the agent if the process has it. The first burst comes within this part
    /// of a period.
    fn watch(&mut self, process: i32, thread: i32, part: f64, begun: u64) {
        let state = self.tree.state(process).unwrap_or(State::Without);
        if matches!(state, State::Never | State::Young)
            || matches!(state, State::With { signal } if !lets_through(thread, signal))
        {
            return;
        }
        let attr = self.settings.clock.attr();
        // Since Linux 5.13.
        let on_exec = EventAttr { flags: attr.flags | AttrFlags::REMOVE_ON_EXEC, ..attr.clone() };
        let opened = self.kernel.open(&on_exec, thread).or_else(|_| self.kernel.open(&attr, thread));
        let Ok(clock) = opened else { return };
        let mean = self.budget.period();
        // A first overflow may come at any time: threads that live shorter than a period get their share.
        let first = self.by_chance(mean * part);
        // A short period that went on until the first burst is seen would leave the thread no time of its own.
        let (whom, signal, stands) = match state {
            State::With { signal } => (thread, signal, true),
            _ => (own_thread(), realtime_signal(), false),
        };
        let started = clock.signal_to(whom, signal).and_then(|()| clock.set_period(first));
        if started.and_then(|()| if stands { clock.once() } else { clock.enable() }).is_err() {
            return;
        }
        if self.tree.get(thread).is_some() {
            self.stop_watching(thread);
        }
        let number = clock.number();
        let (new_thread, new_process) =
            self.tree.add(thread, Watched { process, begun, clock, period: first, stands, tries: 0 });
        let mut held = self.collecting.held();
        held.clocks.insert(number, (ThreadId { pid: process, tid: thread }, mean as u64));
        held.statistics.threads += u64::from(new_thread);
        held.statistics.processes += u64::from(new_process);
        drop(held);
        if stands {
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
        if let Some(number) = self.tree.remove(thread) {
            self.collecting.held().clocks.remove(&number);
            if let Some(image) = self.collecting.made_image() {
                image.slots.reclaim(|event| event == number);
            }
        }
    }

    /// The clock of a thread has overflowed whose process has no agent.
    fn overflowed(&mut self, thread: i32) {
        let Some(process) = self.tree.get(thread).map(|watched| watched.process) else { return };
        if self.tree.state(process) != Some(State::Without) {
            return;
        }
        if let Some(signal) = inherited_signal(process) {
            return self.has_agent(process, signal);
        }
        match Candidate::of(process, thread) {
            Ok(candidate) => {
                // Only what runs is stopped: a system call that it waits in would be interrupted.
                if !self.kernel.is_computing(thread) {
                    self.put_off += 1;
                    return self.try_again(thread);
                }
                match self.kernel.seize(thread, 0) {
                    Ok(()) => {
                        let _ = self.kernel.interrupt(thread);
                        self.tree.set_state(process, State::Stopping(thread));
                        let now = self.kernel.now();
                        self.candidates.insert(thread, (candidate, now));
                    }
                    Err(errno) if errno.is_permission() => {
                        let why = Refusal::Never("it may not be traced (another user's, or a debugger has it)");
                        self.refused(process, thread, why);
                    }
                    Err(_) => self.put_off += 1,
                }
            }
            Err(refusal) => self.refused(process, thread, refusal),
        }
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
        for thread in self.tree.threads_of(process) {
            if !lets_through(thread, signal) {
                self.stop_watching(thread);
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
        watched.arm(first);
        let _ = watched.clock.once();
        watched.stands = true;
        self.stands(thread);
    }

    fn refused(&mut self, process: i32, thread: i32, refusal: Refusal) {
        match refusal {
            Refusal::NotNow | Refusal::Signal(_) => {
                self.put_off += 1;
                self.tree.set_state(process, State::Without);
                self.try_again(thread);
            }
            Refusal::Ended(_) => self.ended(process, thread),
            Refusal::Never(why) => {
                *self.refused.entry(why).or_default() += 1;
                self.tree.set_state(process, State::Never);
                for thread in self.tree.threads_of(process) {
                    self.stop_watching(thread);
                }
            }
        }
    }

    fn take_reports(&mut self) {
        while let Some((thread, report)) = self.kernel.next_report() {
            match report {
                Report::Ended(status) => self.report_end(thread, status),
                Report::Event(libc::PTRACE_EVENT_STOP, libc::SIGTRAP) => self.stopped(thread),
                // A signal of its own, which it gets; job control.
                Report::Signal(signal) => self.let_go(thread, signal),
                Report::Event(..) => self.let_go(thread, 0),
            }
        }
    }

    fn report_end(&mut self, thread: i32, status: i32) {
        if self.settings.command == Some(thread) {
            let _ = self.shared.status.set(status);
        }
        let process = self.tree.get(thread).map_or(thread, |watched| watched.process);
        self.ended(process, thread);
    }

    /// A thread stands still that was asked to.
    fn stopped(&mut self, thread: i32) {
        let process = self.tree.get(thread).map(|watched| watched.process);
        let (Some((candidate, _)), Some(process)) = (self.candidates.remove(&thread), process) else {
            return self.let_go(thread, 0);
        };
        let (began, own) = (self.kernel.now(), self.kernel.own_time());
        let done = match self.collecting.image(self.limits) {
            Ok(image) => candidate.inject(process, thread, image),
            Err(error) => {
                self.failed.get_or_insert_with(|| error.to_string());
                Err(Refusal::Never("no agent could be made"))
            }
        };
        if let Err(Refusal::Ended(status)) = done {
            return self.report_end(thread, status);
        }
        if done.is_ok() {
            self.injected += 1;
            self.loading.push(process);
            if self.ticks == 0 {
                self.next_tick = self.kernel.now() + FIRST_TICK;
            }
            self.has_agent(process, candidate.signal);
            // Its moment was chosen before.
            if let Some(watched) = self.tree.get_mut(thread) {
                watched.arm(FIRST_PERIOD);
            }
        }
        let signal = if let Err(Refusal::Signal(signal)) = done { signal } else { 0 };
        let _ = self.kernel.detach(thread, signal);
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
        for (thread, since) in std::mem::take(&mut self.standing) {
            let Some(watched) = self.tree.get(thread).filter(|watched| watched.stands) else { continue };
            let waits = now < since + LONGEST_STAND;
            if !waits {
                // If it has overflowed, and the burst failed, this starts it; one that has not is left as it is.
                let _ = watched.clock.enable();
            }
            self.standing.push((thread, if waits { since } else { now }));
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
            match load_status(process) {
                LoadStatus::Loaded => {}
                LoadStatus::Working if self.tree.state(process).is_some() => self.loading.push(process),
                LoadStatus::Working => {}
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

    fn let_go(&mut self, thread: i32, signal: i32) {
        let _ = self.kernel.detach(thread, signal);
        self.put_off += 1;
        self.candidates.remove(&thread);
        self.give_up_stop(thread);
    }

    fn give_up_stop(&mut self, thread: i32) {
        if let Some(process) = self.tree.get(thread).map(|watched| watched.process)
            && self.tree.state(process) == Some(State::Stopping(thread))
        {
            self.tree.set_state(process, State::Without);
        }
    }

    /// Takes bursts out, chooses when the next ones come, and looks what it cost.
    fn tick(&mut self) {
        self.see_happenings();
        self.watch_grown_up();
        self.see_loaded();
        self.start_standing();
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
        let late: Vec<i32> = self
            .candidates
            .iter()
            .filter(|(_, (_, asked))| now >= *asked + LONGEST_STOP)
            .map(|(&thread, _)| thread)
            .collect();
        for thread in late {
            // Another thread may do it. This one is let go when it stops.
            self.candidates.remove(&thread);
            self.give_up_stop(thread);
        }
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
        self.next_tick = now + if is_soon { next.min(SOON_SEEN) } else { next };
    }

    /// Chooses when the next burst of a thread comes.
    fn arm(&mut self, number: i32, thread: i32) {
        let mean = self.budget.period();
        // The clock goes on while the agent works. Without that, a thread might come to nothing else.
        let next = (mean * self.budget.governor.jitter() + self.burst_took) as u64;
        let Some(watched) = self.tree.get_mut(thread) else { return };
        watched.arm(next);
        if std::mem::take(&mut watched.stands) {
            let _ = watched.clock.enable();
        }
        if let Some((_, period)) = self.collecting.held().clocks.get_mut(&number) {
            *period = mean as u64;
        }
    }

    /// Closes all clocks. Agents that are in programs get no signal any more.
    fn finish(mut self) -> TracerStatistics {
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
