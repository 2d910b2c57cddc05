//! What is done for threads now and then, whether they stop or not.

use std::time::{Duration, Instant};

use crate::tracer::engine::executor::Executor;
use crate::tracer::kernel::Kernel;
use crate::tracer::thread::Thread;
use crate::tracer::thread::event::Event;
use crate::tracer::turns::Turns;

/// How often threads are looked after.
pub(crate) const HOUSEKEEPING: Duration = Duration::from_millis(250);
/// For so long what the recorder does is part of starting: it writes what was there before, and starts its own events.
const STARTING: Duration = Duration::from_millis(500);
/// How often to look how much CPU time passed where no thread stops.
const WITHOUT_STOP: Duration = Duration::from_millis(500);
/// Threads that are looked at each time.
const LOOKS: usize = 32;

/// Looks for breakpoints that are not reached, for threads that do not stop, and for those that were left out.
#[derive(Debug)]
pub(crate) struct Upkeep {
    next: Instant,
    /// Until then, what is charged is part of starting, where the program is running.
    starting_until: Option<Instant>,
    turns: Turns,
}

impl Upkeep {
    /// `is_program_running`: it is not a command that the recording starts.
    pub(crate) fn new(now: Instant, is_program_running: bool) -> Self {
        Self { next: now, starting_until: is_program_running.then_some(now + STARTING), turns: Turns::default() }
    }

    /// Looks after the threads, if it is time. `all_attached`: all threads are traced that were there before.
    pub(crate) fn go_on<K: Kernel>(&mut self, executor: &mut Executor<K>, now: Instant, all_attached: bool) {
        if now < self.next {
            return;
        }
        executor.budget.governor.threads = executor.threads.len();
        executor.look_at_time(WITHOUT_STOP);
        give_up_breakpoints(executor);
        start_slow_clocks_anew(executor);
        self.find_blocked_signals(executor);
        if all_attached {
            find_missing(executor);
        }
        let took = executor.charge_the_rest();
        if self.starting_until.is_some_and(|end| now < end) {
            executor.statistics.starting.took += took;
        }
        self.next = now + HOUSEKEEPING;
    }

    /// Finds threads whose signal does not come through because they block it.
    fn find_blocked_signals<K: Kernel>(&mut self, executor: &mut Executor<K>) {
        // Not all at once: there may be many.
        let Executor { kernel, threads, .. } = executor;
        let threads = self.turns.next(threads.iter_mut(), LOOKS);
        let blocking: Vec<i32> =
            threads.filter_map(|thread| thread.blocks_its_signal(kernel).then_some(thread.id.tid)).collect();
        for tid in blocking {
            executor.happens(tid, Event::SignalIsBlocked);
        }
    }
}

/// Gives up breakpoints that are not reached.
fn give_up_breakpoints<K: Kernel>(executor: &mut Executor<K>) {
    for tid in executor.threads.ids(|thread| thread.state.is_in_burst()) {
        if let Some(mut thread) = executor.threads.take(tid) {
            executor.drive(&mut thread, Event::Look);
            executor.budget.charge_stop_of_burst(&mut thread, Duration::ZERO);
            executor.threads.put(thread);
        }
    }
}

/// Where the budget is exceeded, clocks were started when bursts were thought to cost less. Started anew, they cost nothing until that
/// is made up for.
fn start_slow_clocks_anew<K: Kernel>(executor: &mut Executor<K>) {
    if executor.budget.governor.has_room() {
        return;
    }
    let slowest = executor.budget.period() / 2.0;
    let early = |thread: &Thread<K::Event>| !thread.is_new() && (thread.period as f64) < slowest;
    for tid in executor.threads.ids(early).into_iter().take(LOOKS) {
        executor.happens(tid, Event::PeriodHasGrown);
    }
}

/// Looks for threads and processes that were left out, if there is room for them.
fn find_missing<K: Kernel>(executor: &mut Executor<K>) {
    let Executor { kernel, threads, statistics, .. } = executor;
    let found = executor.budget.governor.has_room() && threads.find_missing(kernel, statistics);
    if found && executor.recording {
        executor.begin_idle_threads();
    }
}
