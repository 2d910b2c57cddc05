//! The tracer whose bursts timers start: admits processes, keeps the budget, looks after all.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use agent::{Clock, Part};

use crate::sys::process::{Mapping, exists, guards, user_time};
use crate::sys::{EventFd, children_time, cpu_time, tick};
use crate::tracer::agent::collecting::NewBurst;
use crate::tracer::agent::injection::{filters_system_calls, harm};
use crate::tracer::agent::quiet::{LONGEST_QUIET, LOOKS, longest_quiet};
use crate::tracer::budget::Budget;
use crate::tracer::kernel::Kernel;
use crate::tracer::kernel::linux::LinuxKernel;
use crate::tracer::settings::Settings;
use crate::tracer::shared::{BeforeDrain, Shared, Wake, monotonic_time};
use crate::tracer::statistics::{Agents, TracerStatistics};
use crate::tracer::timer::census::{Census, Found};
use crate::tracer::timer::preload_file::PreloadFile;
use crate::tracer::timer::processes::NoPart;
use crate::tracer::timer::timed_bursts::TimedBursts;
use crate::tracer::turns::Turns;

/// How often bursts are taken out; in the beginning sooner.
const OFTEN: Duration = Duration::from_millis(200);
const FIRST_TICK: Duration = Duration::from_millis(5);
/// What a signal costs by which no burst begins: an estimate.
const SIGNAL: Duration = Duration::from_micros(6);
/// What it costs a process to map the image and begin: see decision 028.
const BEGINNING: Duration = Duration::from_micros(250);

/// Why processes have no bursts.
const WITHOUT: &str = "no dynamic loader (static), or rights of the file (setuid)";
const OTHER_THREADS: &str = "the first thread of it does not compute, or does not let the timer's signal through";
const DEAF: &str = "the timer's signal does not come through: blocked, or the program has a handler for it";

pub(crate) struct TimerEngine {
    settings: Settings,
    bursts: Arc<TimedBursts>,
    preload: PreloadFile,
    shared: Arc<Shared>,
    kernel: LinuxKernel,
    budget: Budget<EventFd>,
    census: Census,
    agents: Agents,
    /// Processes and what they had computed in user space at their last burst.
    last_bursts: HashMap<i32, Duration>,
    turns: Turns,
    /// What signals were counted already.
    signals: agent::Signals,
    /// The longest that this was.
    longest: Duration,
    tick: Duration,
    next_tick: Instant,
    ticks: u32,
}

impl TimerEngine {
    pub(crate) fn new(
        settings: Settings,
        bursts: Arc<TimedBursts>,
        preload: PreloadFile,
        shared: Arc<Shared>,
        kernel: LinuxKernel,
    ) -> Self {
        let (now, seed) = (kernel.now(), kernel.seed());
        let budget = Budget::new(&settings, seed, now);
        let (for_writer, to_wake) = (bursts.clone(), bursts.clone());
        let _ = shared.before_drain.set(BeforeDrain(Box::new(move |shared| for_writer.collect(shared))));
        let _ = shared.wake_tracer.set(Wake(Box::new(move || to_wake.wake())));
        let census = Census::new(bursts.image.token_of_timers(), now);
        let mut engine = Self {
            settings,
            bursts,
            preload,
            shared,
            kernel,
            budget,
            census,
            agents: Agents::default(),
            last_bursts: HashMap::new(),
            turns: Turns::default(),
            signals: agent::Signals::default(),
            longest: Duration::ZERO,
            tick: tick(),
            next_tick: now,
            ticks: 0,
        };
        if let Some(command) = engine.settings.command {
            engine.budget.count_process(command, &engine.kernel);
        }
        engine.choose_period();
        engine.bursts.image.slots.timers().is_there(monotonic_time());
        engine
    }

    /// Works until it is told to stop.
    pub(crate) fn run(mut self) -> TracerStatistics {
        {
            let statistics = &mut self.bursts.held().statistics;
            self.budget.begin(false, &self.kernel, statistics);
        }
        while !self.shared.stopping.load(Ordering::Acquire) {
            let rung = self.bursts.image.slots.timers().bell().load(Ordering::Acquire);
            self.admit_new();
            let now = self.kernel.now();
            if now >= self.next_tick {
                self.tick();
            } else {
                self.bursts.wait(rung, self.next_tick - now);
            }
        }
        self.finish()
    }

    /// Processes that wait to be looked at.
    fn admit_new(&mut self) {
        let timers = self.bursts.image.slots.timers();
        let new: Vec<(usize, i32)> = timers
            .entries()
            .filter(|(_, _, part)| *part == Part::New)
            .map(|(place, process, _)| (place, process as i32))
            .collect();
        for (place, process) in new {
            let was_known = self.bursts.held().processes.contains_key(&process);
            // It has mapped the image, whether it may take bursts or not.
            self.spent(BEGINNING);
            let (preload, searched) = (&self.preload, &self.settings.searched);
            let harm = |maps: &[Mapping]| {
                // The recorder's own has no sections, and is known.
                let others: Vec<Mapping> = maps.iter().filter(|map| !preload.is_of(map)).cloned().collect();
                harm(process, &guards(process as u32), &others, &mut Vec::new(), searched)
            };
            match self.bursts.admit(process, place, harm, &self.shared) {
                Ok(()) => {
                    self.agents.injected += 1;
                    if !was_known {
                        // It was forked by one that is counted, and counts from its beginning on.
                        self.budget.process_begins(process);
                        let statistics = &mut self.bursts.held().statistics;
                        statistics.processes += 1;
                        statistics.threads += 1;
                    }
                    self.saw_burst(process);
                }
                Err(NoPart::Ended) => {
                    TracerStatistics::count(&mut self.agents.refused, "ended before it could be looked at");
                    self.bursts.image.slots.timers().free(place);
                }
                Err(NoPart::Because(why)) => TracerStatistics::count(&mut self.agents.refused, why),
            }
        }
    }

    fn spent(&mut self, cost: Duration) {
        self.bursts.held().statistics.time.stops += cost;
        self.budget.governor.spent(cost);
        self.budget.took_inside(cost);
    }

    fn saw_burst(&mut self, process: i32) {
        let used = user_time(process as u32).unwrap_or_default();
        self.last_bursts.insert(process, used);
    }

    /// Takes bursts out, sees who has ended, and chooses when the next bursts come.
    fn tick(&mut self) {
        self.bursts.image.slots.timers().is_there(monotonic_time());
        self.bursts.collect(&self.shared);
        self.see_ended();
        self.follow_switch();
        self.take_signals();
        self.charge_bursts();
        self.look_after();
        let entries: HashSet<u32> = self.bursts.image.slots.timers().entries().map(|(_, process, _)| process).collect();
        let takes_part = |process: i32| entries.contains(&(process as u32));
        let Found { without, deaf } = self.census.look(
            takes_part,
            [self.first_signal(), LONGEST_QUIET + self.longest],
            &self.preload,
            &self.kernel,
            self.kernel.now(),
        );
        for (why, processes) in [(WITHOUT, without), (self.deaf(), deaf)] {
            if processes > 0 {
                TracerStatistics::add(&mut self.agents.refused, why, processes);
            }
        }
        {
            let mut held = self.bursts.held();
            self.budget.governor.threads = held.processes.len().max(1);
            self.budget.look_at_time(OFTEN, &self.kernel, &mut held.statistics);
            self.budget.charge_the_rest(&self.kernel, &mut held.statistics.time.other);
        }
        self.choose_period();
        let next = OFTEN.min(FIRST_TICK * 2_u32.saturating_pow(self.ticks));
        self.ticks += u32::from(next < OFTEN);
        self.next_tick = self.kernel.now() + next;
    }

    /// CPU time within which a process that begins now has its first signal.
    fn first_signal(&self) -> Duration {
        Duration::from_nanos(self.budget.period() as u64) + 2 * self.tick
    }

    /// The kernel is half a tick late on average.
    fn choose_period(&mut self) {
        let period = self.budget.period() as u64;
        let set = period.saturating_sub(self.tick.as_nanos() as u64 / 2).max(1);
        self.longest = self.longest.max(self.first_signal());
        self.bursts.image.slots.timers().set_period(set);
        self.preload.set_period(set);
        let mut held = self.bursts.held();
        if held.period == 0 {
            held.period = period.max(self.tick.as_nanos() as u64);
        }
    }

    /// How much CPU time passes between two signals in truth: each burst stands for that, without what the bursts themselves took.
    fn take_signals(&mut self) {
        let signals = self.bursts.image.slots.timers().signals();
        // A program could have written anything.
        let count = signals.count.saturating_sub(self.signals.count);
        let passed = signals.passed.saturating_sub(self.signals.passed);
        let without = signals.after_calls.saturating_sub(self.signals.after_calls);
        self.spent(SIGNAL * u32::try_from(without).unwrap_or(u32::MAX));
        self.agents.put_off = signals.after_calls;
        self.signals = signals;
        if count == 0 {
            return;
        }
        let mean = (passed as f64 / count as f64 - self.budget.burst_took()).max(1.0);
        let mut held = self.bursts.held();
        // What is new counts as much as there is of it.
        let weight = (count as f64 / 16.0).min(1.0);
        held.period = (held.period as f64 + (mean - held.period as f64) * weight) as u64;
    }

    fn charge_bursts(&mut self) {
        let new = std::mem::take(&mut self.bursts.held().new);
        for &NewBurst { cost, period, .. } in &new {
            self.budget.burst_inside(cost, period);
        }
        for process in new.iter().map(|burst| burst.clock).collect::<HashSet<i32>>() {
            self.saw_burst(process);
        }
    }

    fn see_ended(&mut self) {
        let known: Vec<i32> = self.bursts.held().processes.keys().copied().collect();
        for process in known {
            if cpu_time(process).is_none() {
                self.bursts.ended(process, &self.shared);
                self.budget.thread_ends(process, &self.kernel);
                self.last_bursts.remove(&process);
            }
        }
        // Of those that were refused, the entries only.
        let timers = self.bursts.image.slots.timers();
        let gone: Vec<usize> = timers
            .entries()
            .filter(|(_, process, part)| *part == Part::Barred && cpu_time(*process as i32).is_none())
            .map(|(place, ..)| place)
            .collect();
        gone.into_iter().for_each(|place| timers.free(place));
        self.bursts.image.slots.reclaim(|thread| !exists(thread as u32));
        if self.bursts.image.slots.is_crowded() {
            self.bursts.image.slots.release(|_| true);
        }
    }

    fn follow_switch(&mut self) {
        if !self.shared.switch.is_used() {
            return;
        }
        let now = monotonic_time();
        let bursts = self.bursts.clone();
        let timers = bursts.image.slots.timers();
        let entries: Vec<(usize, u32, Part)> = timers.entries().collect();
        for (place, process, part) in entries {
            match (self.shared.switch.is_off(process as i32, now), part) {
                (true, Part::Allowed) => timers.set(place, Part::Off),
                (false, Part::Off) => {
                    timers.set(place, Part::Allowed);
                    // It has computed meanwhile, and was not to have bursts.
                    self.saw_burst(process as i32);
                }
                _ => {}
            }
        }
    }

    /// Looks whether processes have begun to filter their system calls, or have no bursts though they compute.
    fn look_after(&mut self) {
        let timers = self.bursts.image.slots.timers();
        let entries: Vec<(usize, u32, Part)> = timers.entries().collect();
        for (place, process, _) in entries.iter().filter(|(_, _, part)| *part == Part::Asleep) {
            TracerStatistics::count(
                &mut self.agents.refused,
                "threads that compute block the timer's signal, and others were interrupted by it",
            );
            self.last_bursts.remove(&(*process as i32));
            timers.set(*place, Part::Barred);
        }
        let allowed: Vec<_> = entries.iter().filter(|(_, _, part)| *part == Part::Allowed).collect();
        let longest = longest_quiet(self.first_signal());
        for &(place, process, _) in self.turns.next(allowed.into_iter(), LOOKS) {
            let process = process as i32;
            let at = self.last_bursts.get(&process).copied();
            let quiet = user_time(process as u32).zip(at).map(|(used, at)| used.saturating_sub(at));
            let why = if filters_system_calls(process) {
                "it began to filter its system calls (seccomp)"
            } else if quiet.is_some_and(|quiet| quiet > longest) {
                self.deaf()
            } else {
                continue;
            };
            TracerStatistics::count(&mut self.agents.refused, why);
            timers.set(place, Part::Barred);
        }
    }

    /// Why a process that computes takes no signal of its timer.
    fn deaf(&self) -> &'static str {
        match self.bursts.clock {
            Clock::Process => DEAF,
            Clock::Thread => OTHER_THREADS,
        }
    }

    /// No more bursts. Programs that go on have an agent that is never called again.
    fn finish(mut self) -> TracerStatistics {
        let slots = &self.bursts.image.slots;
        slots.timers().end();
        slots.switch(false);
        slots.release(|_| true);
        let late = slots.timers().entries().filter(|(_, _, part)| *part == Part::New).count() as u64;
        if late > 0 {
            TracerStatistics::add(&mut self.agents.refused, "ended before it could be looked at", late);
        }
        self.bursts.collect(&self.shared);
        self.take_signals();
        self.charge_bursts();
        let mut held = self.bursts.held();
        let statistics = &mut held.statistics;
        self.budget.look_at_all_time(&self.kernel, statistics);
        // What has ended was seen up to the last look only.
        let inside = statistics.time.stops + statistics.time.lookahead + statistics.time.decoding;
        statistics.time.application = statistics.time.application.max(children_time().saturating_sub(inside));
        self.budget.end(&self.kernel, statistics);
        let no_entry = self.signals.no_entry;
        if no_entry > 0 {
            TracerStatistics::add(&mut self.agents.refused, "too many at a time", no_entry);
        }
        if let Some((processes, path)) = self.preload.leave() {
            let why = format!("what they start looks for {}, which stays, too", path.display());
            TracerStatistics::add(&mut self.agents.kept, &why, processes);
        }
        statistics.conclude(self.agents, self.bursts.image.slots.tally());
        statistics.clone()
    }
}
