//! Becoming the tracer of threads that were there before the recording: one at first, the others as the budget allows.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::tracer::AttachError;
use crate::tracer::budget::stop_cost::NEW_THREAD;
use crate::tracer::engine::executor::Executor;
use crate::tracer::kernel::Kernel;
use crate::tracer::thread::event::Event;

/// How often to look at least whether there is room for one more of them,
const OFTEN: Duration = Duration::from_millis(20);
/// and where there is none for long.
const SELDOM: Duration = Duration::from_millis(250);
/// How often at most the threads of processes are listed to find some that are not traced.
const MOST_LISTS: u32 = 4;
/// So many of them at once at most, and if there are as many, no fewer: each time costs something by itself.
const AT_ONCE: usize = 16;

/// The threads that were there before.
#[derive(Debug)]
pub(crate) struct Attaching {
    /// Those still to be traced, with their process if that is known.
    waiting: VecDeque<(i32, Option<i32>)>,
    /// The processes whose threads are all to be traced, until none is found that is not.
    whole: Vec<i32>,
    lists: u32,
    /// When recording began.
    began: Instant,
    /// How long to wait until there may be room for one more.
    interval: Duration,
    next: Instant,
}

impl Attaching {
    pub(crate) fn new(now: Instant) -> Self {
        let (waiting, whole) = (VecDeque::new(), Vec::new());
        Self { waiting, whole, lists: 0, began: now, interval: OFTEN, next: now }
    }

    /// Becomes the tracer of one of the threads of these processes, or of these threads. The others follow when recording has begun.
    ///
    /// # Errors
    /// None can be traced, and why.
    pub(crate) fn first<K: Kernel>(
        &mut self,
        executor: &mut Executor<K>,
        ids: &[u32],
        whole_processes: bool,
    ) -> Result<(), AttachError> {
        let Executor { kernel, threads, budget, statistics, .. } = executor;
        let mut refused = None;
        for id in ids.iter().map(|&id| id as i32) {
            let listed = if whole_processes { kernel.threads(id) } else { vec![id] };
            if whole_processes {
                self.whole.push(id);
                budget.count_process(id, kernel);
            }
            for thread in listed {
                if !whole_processes {
                    budget.count_thread(thread, kernel);
                }
                self.waiting.push_back((thread, whole_processes.then_some(id)));
            }
        }
        while threads.is_empty()
            && let Some((thread, process)) = self.waiting.pop_front()
        {
            match threads.seize(thread, process, kernel, statistics) {
                Ok(is_traced) => statistics.starting.threads += u64::from(is_traced),
                Err(errno) => refused = refused.or(Some(AttachError { thread, errno })),
            }
        }
        match refused {
            Some(error) if threads.is_empty() => Err(error),
            _ => Ok(()),
        }
    }

    /// Recording begins now.
    pub(crate) fn recording_begins(&mut self, now: Instant) {
        self.began = now;
    }

    /// How long to wait before it is time for the next ones; `None` if there are none any more.
    pub(crate) fn interval(&self) -> Option<Duration> {
        (!self.waiting.is_empty() || !self.whole.is_empty()).then_some(self.interval)
    }

    /// Becomes the tracer of more of them, if it is time to look, as the budget allows.
    pub(crate) fn go_on<K: Kernel>(&mut self, executor: &mut Executor<K>, now: Instant) {
        if self.interval().is_none() || now < self.next {
            return;
        }
        executor.look_at_time(SELDOM);
        self.attach_more(executor);
        self.next = now + self.interval;
    }

    fn attach_more<K: Kernel>(&mut self, executor: &mut Executor<K>) {
        let next = self.waiting.len().min(AT_ONCE);
        if !executor.budget.governor.affords(NEW_THREAD * next as u32) {
            // Where no CPU time passes that could pay for it, looking often would cost more than what is waited for.
            self.interval = (2 * self.interval).min(SELDOM);
            return;
        }
        for (thread, process) in self.waiting.drain(..next) {
            let Executor { kernel, threads, statistics, .. } = executor;
            // It may have ended, or have been started by a traced one just now.
            if !threads.contains(thread) && threads.seize(thread, process, kernel, statistics) == Ok(true) {
                executor.happens(thread, Event::Begin { standing: false });
                executor.statistics.starting.threads += 1;
            }
        }
        if self.waiting.is_empty() {
            self.list_again(executor);
        }
        let took = executor.charge_the_rest();
        executor.statistics.starting.took += took;
        executor.statistics.starting.lasted = executor.kernel.now() - self.began;
        self.interval = OFTEN;
    }

    /// Looks for threads that were started, before they were traced, by those that were waiting.
    fn list_again<K: Kernel>(&mut self, executor: &Executor<K>) {
        self.lists += 1;
        for &process in &self.whole {
            let listed = executor.kernel.threads(process).into_iter();
            let new = listed.filter(|&thread| !executor.threads.contains(thread));
            self.waiting.extend(new.map(|thread| (thread, Some(process))));
        }
        // What is there still cannot be traced.
        if self.waiting.is_empty() || self.lists == MOST_LISTS {
            self.whole.clear();
        }
    }
}
