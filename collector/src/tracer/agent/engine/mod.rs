//! The tracer that touches threads for moments only: knows the processes, puts agents in or visits threads, keeps the budget.

mod agents;
mod by_cpu;
mod following;
mod happenings;
mod leaving;
mod membership;
mod serving;
mod starting;
mod stopping;
mod switching;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use agent::{Image, Limits};

use crate::errno::Errno;
use crate::machine::cpu_list::CpuList;
use crate::session::last_thread::LastThreads;
use crate::sys::EventFd;
use crate::tracer::agent::attention::Attention;
use crate::tracer::agent::collecting::{Collecting, NewBurst};
use crate::tracer::agent::cpu_clocks::CpuClocks;
use crate::tracer::agent::engine::agents::Standing;
use crate::tracer::agent::engine::following::Followed;
use crate::tracer::agent::engine::serving::Looks;
pub(crate) use crate::tracer::agent::engine::starting::Running;
use crate::tracer::agent::engine::starting::Starting;
use crate::tracer::agent::injection::OnTheWay;
use crate::tracer::agent::sideband::Sideband;
use crate::tracer::agent::stops::Stops;
use crate::tracer::agent::tree::Tree;
use crate::tracer::agent::visits::Visits;
use crate::tracer::budget::Budget;
use crate::tracer::budget::signal_cost::SignalCost;
use crate::tracer::budget::stop_cost::{StopCost, calibrate};
use crate::tracer::burst::BurstEvent;
use crate::tracer::kernel::Kernel;
use crate::tracer::kernel::linux::LinuxKernel;
use crate::tracer::placement::Placement;
use crate::tracer::settings::Settings;
use crate::tracer::shared::{BeforeDrain, Shared};
use crate::tracer::statistics::{Agents, TracerStatistics};
use crate::tracer::turns::Turns;

/// How often bursts are taken out.
const OFTEN: Duration = Duration::from_millis(400);
/// The first time; then twice as long, and so on.
const FIRST_TICK: Duration = Duration::from_millis(5);
/// So many bursts at a time are no reason to come sooner: clocks keep their period for them, whatever they cost.
const FEW: usize = 32;
/// Where they are of many threads, two of each and no more than this: slots might run out.
const MANY: usize = 64;
/// How long a child of fork is left alone: most become another program at once.
const YOUNG: Duration = Duration::from_millis(3);
/// How soon first bursts are looked for while threads have begun lately.
const SOON_SEEN: Duration = Duration::from_millis(10);
/// and how long ago is lately.
const LONG_AGO: Duration = Duration::from_millis(200);
/// How soon it is looked for an agent that is being mapped.
const LOADING: Duration = Duration::from_millis(1);
/// The kernel's own least period is not much shorter, ns.
const SHORTEST: u64 = 20_000;

/// Why there are no agents at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentError {
    #[error(transparent)]
    Image(#[from] agent::ImageError),
    #[error("the records of forks and execs: {0}")]
    Sideband(Errno),
    #[error("the clocks of CPUs: {0}")]
    CpuClocks(Errno),
}

pub(crate) struct AgentEngine {
    settings: Settings,
    shared: Arc<Shared>,
    limits: Limits,
    /// CPUs of the machine.
    cpus: usize,
    collecting: Arc<Collecting>,
    kernel: LinuxKernel,
    placement: Placement,
    sideband: Sideband,
    /// Where they start the bursts, not clocks of threads.
    cpu_clocks: Option<CpuClocks>,
    /// Threads that have had a turn by these.
    turned: HashSet<i32>,
    /// What turns without a burst stood for, by threads, ns.
    owed: HashMap<i32, u64>,
    /// Threads that had a clock of their own for a turn at the last look.
    open_before: HashSet<i32>,
    /// Turns since the last look.
    turns_lately: usize,
    next_sweep: Instant,
    last_threads: LastThreads,
    attention: Attention,
    /// What looking at processes cost in this window.
    looking: Duration,
    tree: Tree,
    starting: Starting,
    /// Threads that got no clock, as no more files may be open.
    without_file: HashSet<i32>,
    visits: Visits,
    /// Children of fork that have not become another program yet.
    young: VecDeque<(Instant, i32, i32)>,
    stops: Stops,
    /// Agents that are being mapped, by their processes.
    on_the_way: HashMap<i32, OnTheWay>,
    /// Visited threads on their way to a breakpoint.
    followed: HashMap<i32, Followed>,
    budget: Budget<EventFd>,
    seed: fastrand::Rng,
    agents: Agents,
    /// How soon it is looked again for agents that are being mapped.
    next_look: Duration,
    turns: Turns,
    /// When processes with agents are looked at next.
    next_look_after: Instant,
    served: Looks,
    /// When it is looked who is in the group.
    next_members: Instant,
    standing: Vec<Standing>,
    /// When the last of them was added.
    last_stand: Option<Instant>,
    /// Times that bursts were taken out,
    ticks: u32,
    /// and how often there were none since then.
    quiet_ticks: u32,
    next_tick: Instant,
}

impl AgentEngine {
    /// For a command that is about to begin, or for processes that run already.
    ///
    /// # Errors
    /// No agent can be made here, or nothing tells of processes.
    pub(crate) fn new(
        settings: Settings,
        event: BurstEvent,
        shared: Arc<Shared>,
        mut kernel: LinuxKernel,
        cpus: &CpuList,
        running: Running,
    ) -> Result<Self, AgentError> {
        let has_agents = settings.kind.has_agents();
        if has_agents {
            Image::possible()?;
            leaving::take_out_what_is_left(running.processes(), &mut kernel);
        }
        let end = settings.end;
        let limits = end.limits();
        let list = || match settings.command {
            Some(command) => vec![command],
            None => running.threads(&kernel),
        };
        let sideband = match &settings.group {
            Some(group) => Sideband::of_group(cpus, group),
            None if settings.by_cpu.is_some() => Sideband::of_cpus(cpus),
            None => Sideband::open(cpus, list),
        };
        let sideband = sideband.map_err(AgentError::Sideband)?;
        let cpu_clocks = settings.by_cpu.map(|_| CpuClocks::open(cpus, settings.group.as_ref()));
        let cpu_clocks = cpu_clocks.transpose().map_err(AgentError::CpuClocks)?;
        let polled = cpu_clocks.iter().flat_map(CpuClocks::polled);
        let attention = Attention::new(&sideband, polled, kernel.seed()).map_err(AgentError::Sideband)?;
        let cost = if has_agents { StopCost::built_in("agents take few stops") } else { calibrate(&mut kernel) };
        let mut statistics = TracerStatistics::new(&settings, cost);
        if has_agents {
            let signal_cost = SignalCost::measure();
            statistics.time.other += signal_cost.took;
            statistics.signal_cost = signal_cost;
        }
        let collecting = Arc::new(Collecting::new(event, statistics));
        if has_agents && !running.is_empty() {
            // They have computed for a while, so it is needed at once.
            let _ = collecting.image(limits);
        }
        let (now, seed) = (kernel.now(), kernel.seed());
        let mut budget = Budget::new(&settings, seed, now);
        settings.command.into_iter().for_each(|command| budget.count_thread(command, &mut kernel));
        running.count(&mut budget, &mut kernel);
        let mut tree = Tree::default();
        let running = match settings.by_cpu {
            Some(_) => by_cpu::follow(&running, &mut tree),
            None => running,
        };
        let for_writer = collecting.clone();
        let _ = shared.before_drain.set(BeforeDrain(Box::new(move |shared| for_writer.collect(shared))));
        Ok(Self {
            settings,
            shared,
            limits,
            cpus: cpus.len().max(1),
            collecting,
            sideband,
            cpu_clocks,
            turned: HashSet::new(),
            owed: HashMap::new(),
            open_before: HashSet::new(),
            turns_lately: 0,
            next_sweep: now,
            last_threads: LastThreads::default(),
            attention,
            looking: Duration::ZERO,
            tree,
            starting: Starting::new(running, &kernel, now),
            without_file: HashSet::new(),
            kernel,
            // Where there are agents, stops are rare.
            placement: if has_agents { Placement::afar() } else { Placement::prefer_tracer() },
            visits: Visits::new(end),
            young: VecDeque::new(),
            stops: Stops::default(),
            on_the_way: HashMap::new(),
            followed: HashMap::new(),
            budget,
            seed: fastrand::Rng::with_seed(seed),
            agents: Agents::default(),
            next_look: LOADING,
            turns: Turns::default(),
            next_look_after: now,
            served: Looks::new(now),
            next_members: now,
            standing: Vec::new(),
            last_stand: None,
            ticks: 0,
            quiet_ticks: 0,
            next_tick: now,
        })
    }

    /// Works until it is told to stop.
    pub(crate) fn run(mut self) -> TracerStatistics {
        self.start();
        while !self.shared.stopping.load(Ordering::Acquire) {
            let now = self.kernel.now();
            let came = self.attention.wait(self.next_tick.saturating_duration_since(now));
            if came.happenings {
                self.see_happenings();
            }
            if came.turns {
                self.take_turns();
            }
            while let Some((signal, info)) = self.attention.next_signal() {
                match signal {
                    libc::SIGCHLD => {
                        self.take_reports();
                        self.follow_switch();
                    }
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

    /// A moment within so many ns.
    fn by_chance(&mut self, longest: f64) -> u64 {
        ((longest * self.seed.f64()) as u64).max(SHORTEST)
    }

    /// Takes bursts out, chooses when the next ones come, and looks what it cost.
    fn tick(&mut self) {
        self.see_happenings();
        self.see_members();
        self.look_after_turns();
        self.watch_more();
        self.watch_grown_up();
        // Another thread may have taken the signal that tells of them.
        self.take_reports();
        self.see_loaded();
        self.follow_switch();
        self.start_standing();
        if let Some(image) = self.collecting.made_image().filter(|image| image.slots.is_crowded()) {
            image.slots.release(|_| true);
        }
        self.collecting.collect(&self.shared);
        let new = std::mem::take(&mut self.collecting.held().new);
        for &NewBurst { cost, period, .. } in &new {
            self.budget.burst_inside(cost, period);
        }
        let clocks: HashSet<i32> = new.iter().map(|burst| burst.clock).collect();
        let threads: Vec<i32> =
            clocks.into_iter().filter_map(|number| self.collecting.thread_of_clock(number)).collect();
        threads.iter().for_each(|&thread| self.tree.saw_burst(thread));
        if self.kernel.now() >= self.next_look_after {
            self.look_after();
        }
        self.look_for_served();
        let passed = {
            let mut held = self.collecting.held();
            let statistics = &mut held.statistics;
            let before = statistics.time.application;
            if !self.is_by_cpu() {
                self.budget.governor.threads = self.tree.computing();
            }
            self.budget.look_at_time(OFTEN, &self.kernel, statistics);
            self.budget.charge_the_rest(&self.kernel, &mut statistics.time.other);
            statistics.time.application - before
        };
        // Not for each burst: the CPU that a thread runs on is interrupted for it.
        for thread in threads {
            // The clock goes on while the agent works. Without that, a thread might come to nothing else.
            self.arm(thread, self.budget.burst_took());
        }
        if !passed.is_zero() {
            let allowed = passed.mul_f64(self.settings.overhead / 100.0);
            self.attention.next_window(std::mem::take(&mut self.looking), allowed);
        }
        let now = self.kernel.now();
        // The first bursts tell what bursts cost here: until then their periods are guesses.
        let often = |ticks: u32| OFTEN.min(FIRST_TICK * 2_u32.saturating_pow(ticks));
        let next;
        if new.is_empty() {
            next = often(self.ticks.saturating_add(self.quiet_ticks));
            self.quiet_ticks = self.quiet_ticks.saturating_add(1);
        } else {
            next = often(self.ticks).min(self.until_few());
            self.ticks = self.ticks.saturating_add(1);
            self.quiet_ticks = 0;
        }
        let next = if self.young.is_empty() { next } else { 2 * YOUNG };
        let is_soon = self.last_stand.is_some_and(|since| now < since + LONG_AGO);
        let next = if is_soon { next.min(SOON_SEEN) } else { next };
        let next = self.starting.interval().map_or(next, |interval| next.min(interval));
        self.next_look = (2 * self.next_look).min(OFTEN);
        self.next_tick = now + if self.tree.loading().is_empty() { next } else { next.min(self.next_look) };
        self.interrupt_late();
        self.give_up_following();
    }

    /// How long it takes at least until so many bursts have come that it is time to look what they cost.
    fn until_few(&self) -> Duration {
        let running = self.budget.governor.threads.clamp(1, self.cpus);
        let few = (2 * running).clamp(FEW, MANY);
        Duration::from_nanos((self.budget.period() * few as f64 / running as f64) as u64).max(FIRST_TICK)
    }

    /// Chooses when the next burst of a thread comes, whose clock counts so many ns of a burst, too.
    fn arm(&mut self, thread: i32, counted: f64) {
        let mean = self.budget.period();
        let until = OFTEN.min(self.until_few());
        let Some(watched) = self.tree.get_mut(thread) else { return };
        // A clock that tells the agent repeats its period until the next tick: all together are to be as random as if each were chosen.
        let repeats = if watched.tells_agent { (until.as_nanos() as f64 / mean).max(1.0) } else { 1.0 };
        let jitter = 1.0 + (self.budget.governor.jitter() - 1.0) / repeats.sqrt();
        watched.arm((mean * jitter + counted) as u64);
        if watched.tells_agent {
            // The burst may be one of before the clock was told to overflow once: the next one is not.
            watched.stands = std::mem::take(&mut watched.will_overflow);
            watched.go_on();
        }
        if let Some((_, period)) = self.collecting.held().clocks.get_mut(&watched.clock.number()) {
            *period = mean as u64;
        }
    }

    /// Closes all clocks. Agents that are in programs get no signal any more.
    fn finish(mut self) -> TracerStatistics {
        // The kernel lets go what is traced when this thread ends.
        self.cpu_clocks.iter().for_each(CpuClocks::stop);
        self.tree.stop_clocks();
        if let Some(image) = self.collecting.made_image() {
            image.slots.switch(false);
            image.slots.release(|_| true);
        }
        self.collecting.collect(&self.shared);
        let mut held = self.collecting.held();
        let inside = held.new.drain(..).map(|burst| burst.cost).sum();
        self.budget.took_inside(inside);
        self.budget.look_at_all_time(&self.kernel, &mut held.statistics);
        drop(held);
        self.leave();
        self.on_the_way.drain().for_each(|(_, way)| way.stays());
        for thread in self.followed.keys().copied().collect::<Vec<i32>>() {
            self.ended_on_the_way(thread, "end of the recording");
        }
        let mut held = self.collecting.held();
        let statistics = &mut held.statistics;
        self.budget.end(&self.kernel, statistics);
        if self.settings.kind.has_agents() {
            let tally = self.collecting.made_image().map(|image| image.slots.tally()).unwrap_or_default();
            statistics.conclude(self.agents, tally);
        } else {
            statistics.barred = self.agents.barred;
        }
        statistics.clone()
    }
}
