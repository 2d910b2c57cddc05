//! Processes that ran before they are recorded, from the beginning or from when they come into a group: the clocks of their threads, the first
//! at once, the others as the budget allows.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::sys::control_group::{ControlGroup, Members};
use crate::tracer::agent::engine::AgentEngine;
use crate::tracer::budget::Budget;
use crate::tracer::budget::stop_cost::END;
use crate::tracer::kernel::{Kernel, Processes};

/// How often to look at least whether there is room for more of them,
const OFTEN: Duration = Duration::from_millis(20);
/// and where there is none for long.
const SELDOM: Duration = Duration::from_millis(250);
/// How often at most the threads of processes are listed to find some that have no clock.
const MOST_LISTS: u32 = 4;
/// So many of them at once at most.
const AT_ONCE: usize = 16;
/// What it is taken to cost to open the clock of a thread, and to have it tell the agent.
const CLOCK: Duration = Duration::from_micros(50);

/// What is recorded that runs already; nothing, if a command is.
#[derive(Debug)]
pub(crate) enum Running {
    /// All threads of these processes.
    Processes(Vec<i32>),
    /// These threads.
    Threads(Vec<i32>),
}

impl Running {
    /// What is in a control group, without this process.
    pub(crate) fn of_group(group: &ControlGroup) -> Self {
        let own = std::process::id();
        match group.members() {
            Members::Processes(ids) => {
                Self::Processes(ids.into_iter().filter(|id| *id != own).map(|id| id as i32).collect())
            }
            Members::Threads(ids) => {
                let others = ids.into_iter().filter(|(process, _)| *process != own);
                Self::Threads(others.map(|(_, thread)| thread as i32).collect())
            }
        }
    }

    /// The processes of which all threads are.
    pub(super) fn processes(&self) -> &[i32] {
        match self {
            Self::Processes(processes) => processes,
            Self::Threads(_) => &[],
        }
    }

    /// Whether there is nothing.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Processes(ids) | Self::Threads(ids) if ids.is_empty())
    }

    /// The threads, as of now.
    pub(super) fn threads(&self, kernel: &impl Processes) -> Vec<i32> {
        match self {
            Self::Processes(processes) => processes.iter().flat_map(|&process| kernel.threads(process)).collect(),
            Self::Threads(threads) => threads.clone(),
        }
    }

    /// Counts their CPU time from now on.
    pub(super) fn count<K: Kernel>(&self, budget: &mut Budget<K::Event>, kernel: &mut K) {
        match self {
            Self::Processes(processes) => processes.iter().for_each(|&process| budget.count_process(process, kernel)),
            Self::Threads(threads) => threads.iter().for_each(|&thread| budget.count_thread(thread, kernel)),
        }
    }
}

/// The threads that were there before.
#[derive(Debug)]
pub(super) struct Starting {
    /// Those that have no clock yet, with their process.
    waiting: VecDeque<(i32, i32)>,
    /// The processes whose threads are listed, until none is found that has no clock.
    processes: Vec<i32>,
    lists: u32,
    began: Instant,
    /// How long it lasted for those who came earlier.
    lasted: Duration,
    interval: Duration,
    /// Times in a row that there was no room.
    waits: u32,
    next: Instant,
}

impl Starting {
    pub(super) fn new(running: Running, kernel: &impl Processes, now: Instant) -> Self {
        let (waiting, processes) = match running {
            Running::Processes(processes) => (VecDeque::new(), processes),
            Running::Threads(threads) => {
                let with_process = |thread| kernel.process_of(thread).map(|process| (thread, process));
                (threads.into_iter().filter_map(with_process).collect(), Vec::new())
            }
        };
        Self { waiting, processes, lists: 0, began: now, lasted: Duration::ZERO, interval: OFTEN, waits: 0, next: now }
    }

    /// How long to wait before it is time for the next ones; `None` if there are none any more.
    pub(super) fn interval(&self) -> Option<Duration> {
        (!self.is_over()).then_some(self.interval)
    }

    /// Whether all threads have a clock.
    pub(super) fn is_over(&self) -> bool {
        self.waiting.is_empty() && self.processes.is_empty()
    }

    fn wait_longer(&mut self) {
        self.interval = (OFTEN * 2_u32.saturating_pow(self.waits.min(8))).min(SELDOM);
        self.waits += 1;
    }

    /// Others have come: all threads of these processes, or these threads with their processes. `lasted`: how long it took until all had a
    /// clock who came earlier.
    pub(super) fn add(&mut self, processes: Vec<i32>, threads: Vec<(i32, i32)>, lasted: Duration, now: Instant) {
        if processes.is_empty() && threads.is_empty() {
            return;
        }
        if self.is_over() {
            (self.began, self.lasted, self.next) = (now, lasted, now);
            (self.interval, self.waits) = (OFTEN, 0);
        }
        self.lists = 0;
        self.processes.extend(processes);
        self.waiting.extend(threads);
    }

    /// Forgets what is not there any more, by its thread and its process.
    pub(super) fn keep(&mut self, is_there: impl Fn(i32, i32) -> bool) {
        self.processes.retain(|&process| is_there(process, process));
        self.waiting.retain(|&(thread, process)| is_there(thread, process));
    }

    /// The processes and threads that are still to be watched.
    pub(super) fn ids(&self) -> HashSet<i32> {
        let waiting = self.waiting.iter().flat_map(|(thread, process)| [*thread, *process]);
        waiting.chain(self.processes.iter().copied()).collect()
    }

    /// A thread has ended; its id may be another's soon.
    pub(super) fn ended(&mut self, thread: i32) {
        self.waiting.retain(|(waiting, _)| *waiting != thread);
    }
}

impl AgentEngine {
    /// Recording begins: with what runs already when the recorder says so, with a command when that does.
    pub(super) fn start(&mut self) {
        let is_running = self.settings.group.is_some() || self.is_by_cpu() || !self.starting.is_over();
        while is_running
            && !self.shared.started.load(Ordering::Acquire)
            && !self.shared.stopping.load(Ordering::Acquire)
        {
            self.attention.wait_for_signal(SELDOM);
            while self.attention.next_signal().is_some() {}
        }
        {
            let statistics = &mut self.collecting.held().statistics;
            statistics.starting.took = self.budget.begin(is_running, &self.kernel, statistics);
        }
        self.budget.governor.spread(END);
        if is_running {
            self.starting.began = self.kernel.now();
            self.list_running();
            self.watch_more();
        }
        self.start_cpu_clocks();
    }

    /// Opens the clocks of more of the threads that were there, if it is time to look, as the budget allows.
    pub(super) fn watch_more(&mut self) {
        let now = self.kernel.now();
        if self.starting.is_over() || now < self.starting.next {
            return;
        }
        self.starting.interval = OFTEN;
        while !self.starting.is_over() {
            let next = self.starting.waiting.len().min(AT_ONCE);
            if !self.budget.governor.affords(CLOCK * next as u32) && self.tree.thread_count() > 0 {
                // Where little CPU time passes that could pay for it, looking often would cost more than what is waited for.
                self.starting.wait_longer();
                break;
            }
            self.watch_so_many(next);
        }
        self.starting.next = now + self.starting.interval;
    }

    fn watch_so_many(&mut self, next: usize) {
        let mut begun = 0;
        for _ in 0..next {
            let Some((thread, process)) = self.starting.waiting.pop_front() else { break };
            // One that was started by a thread with a clock has one.
            if self.tree.get(thread).is_none() {
                self.watch(process, thread, 1.0, 0);
                begun += u64::from(self.tree.get(thread).is_some());
            }
        }
        if self.starting.waiting.is_empty() {
            self.list_running();
        }
        let statistics = &mut self.collecting.held().statistics;
        let took = self.budget.charge_the_rest(&self.kernel, &mut statistics.time.other);
        statistics.starting.took += took;
        statistics.starting.threads += begun;
        statistics.starting.lasted = self.starting.lasted + (self.kernel.now() - self.starting.began);
        self.starting.waits = 0;
    }

    /// Looks for threads that have no clock.
    fn list_running(&mut self) {
        self.starting.lists += 1;
        for &process in &self.starting.processes {
            let without = self.kernel.threads(process).into_iter().filter(|&thread| self.tree.get(thread).is_none());
            self.starting.waiting.extend(without.map(|thread| (thread, process)));
        }
        // What is there still cannot have one.
        if self.starting.waiting.is_empty() || self.starting.lists == MOST_LISTS {
            self.starting.processes.clear();
        }
    }
}
