//! The bursts of visited threads, part by part: a thread runs on to a breakpoint, where its burst goes on.
//!
//! It is traced meanwhile. So that is done where a thread does not wait on the way, which takes microseconds.

use std::time::{Duration, Instant};

use crate::sys::process::guards;
use crate::sys::{EventFd, POLL_IN};
use crate::tracer::agent::engine::AgentEngine;
use crate::tracer::agent::injection::own_filters;
use crate::tracer::agent::visits::{Onward, Visited, leave_system_call};
use crate::tracer::burst::ThreadId;
use crate::tracer::kernel::Kernel;
use crate::tracer::notice::{Notice, best_notice};
use crate::tracer::statistics::TracerStatistics;
use crate::tracer::thread::breakpoint_at;

/// Files that breakpoints leave to what is read of processes.
const FILES_TO_READ: u64 = 4;
/// How long a breakpoint is waited for.
const PATIENCE: Duration = Duration::from_millis(50);

/// A thread on its way to a breakpoint.
pub(super) struct Followed {
    id: ThreadId,
    /// What its burst stands for, ns.
    period: u64,
    /// What it has cost so far.
    cost: Duration,
    onward: Onward,
    breakpoint: EventFd,
    since: Instant,
    /// It has been asked to stop, wherever it is.
    is_late: bool,
}

impl Followed {
    /// Whether it is a thread of this process.
    pub(super) fn is_of(&self, process: i32) -> bool {
        self.id.pid == process
    }
}

impl AgentEngine {
    /// Does a part of the burst of a thread that stands still, and lets it go if the burst is over. `cost`: what the burst has cost before;
    /// `own`: the tracer's time when this stop began.
    pub(super) fn take_part(
        &mut self,
        (id, period): (ThreadId, u64),
        cost: Duration,
        own: Duration,
        act: impl FnOnce(&mut Self, &mut TracerStatistics) -> Visited,
    ) {
        let collecting = self.collecting.clone();
        let mut held = collecting.held();
        let measured = held.statistics.time.measured();
        let visited = act(self, &mut held.statistics);
        let had_burst = self.see_visited((id, period), visited, &mut held.statistics);
        if had_burst.is_some() {
            self.release_in_place(id.tid);
        }
        let measured = held.statistics.time.measured() - measured;
        drop(held);
        let cost = cost + self.charge_stop(id.tid, own, measured);
        match had_burst {
            None => {
                if let Some(followed) = self.followed.get_mut(&id.tid) {
                    followed.cost = cost;
                }
            }
            Some(false) => self.try_again(id.tid),
            Some(true) => {
                self.agents.visited += 1;
                self.budget.governor.burst(cost, period as f64);
                if let Some(watched) = self.tree.get_mut(id.tid) {
                    (watched.tries, watched.computes) = (0, true);
                }
                if self.is_by_cpu() {
                    self.stop_watching(id.tid);
                } else {
                    self.arm(id.tid, 0.0);
                }
            }
        }
    }

    /// What is to be done when a visited thread stands still: its burst ends, and the thread is let go, or goes on. Returns whether there was
    /// a burst; `None` if it is not over.
    fn see_visited(
        &mut self,
        (id, period): (ThreadId, u64),
        visited: Visited,
        statistics: &mut TracerStatistics,
    ) -> Option<bool> {
        let why = match visited {
            Visited::Nothing => return Some(false),
            Visited::Complete(why) => why,
            Visited::GoesOn(onward) => match self.follow(id, onward, statistics) {
                Some(breakpoint) => {
                    let since = self.kernel.now();
                    self.next_tick = self.next_tick.min(since + PATIENCE);
                    let cost = Duration::ZERO;
                    let followed = Followed { id, period, cost, onward, breakpoint, since, is_late: false };
                    self.followed.insert(id.tid, followed);
                    self.stops.stays(id.pid, id.tid, since);
                    return None;
                }
                None => onward.otherwise,
            },
        };
        Some(self.visits.end(id, why, &self.collecting.event, &self.shared, statistics))
    }

    /// Lets a thread run to where its burst goes on. Returns the breakpoint there; `None` if it cannot be followed.
    fn follow(&mut self, id: ThreadId, onward: Onward, statistics: &mut TracerStatistics) -> Option<EventFd> {
        let guards = guards(id.tid as u32);
        if guards.filters > own_filters() || !self.visits.may_follow(id, onward, &self.kernel) {
            return None;
        }
        let Notice::Signal(signal) = best_notice(guards.blocked, guards.caught) else { return None };
        let opened = self.kernel.open(&breakpoint_at(onward.address), id.tid);
        let opened = opened.and_then(|breakpoint| breakpoint.leaving_room_for(FILES_TO_READ));
        let opened = opened.and_then(|breakpoint| breakpoint.signal_to(id.tid, signal).map(|()| breakpoint));
        let Self { kernel, placement, .. } = self;
        let resumed = |breakpoint| placement.in_place(|| kernel.resume(id.tid, 0)).map(|()| breakpoint);
        match opened.and_then(resumed) {
            Ok(breakpoint) => {
                self.visits.follows(id.tid, onward, statistics);
                Some(breakpoint)
            }
            Err(errno) => {
                TracerStatistics::count(&mut statistics.continued, &format!("no breakpoint: {errno}"));
                None
            }
        }
    }

    /// Whether a thread has stopped for the signal of its breakpoint.
    pub(super) fn is_its_breakpoint(&self, thread: i32) -> bool {
        let Some(followed) = self.followed.get(&thread) else { return false };
        let info = self.kernel.signal_info(thread);
        info.is_ok_and(|info| info.code == POLL_IN && followed.breakpoint.number() == info.fd)
    }

    /// A thread stands where its burst goes on, or so its breakpoint says.
    pub(super) fn reached(&mut self, thread: i32) {
        let own = self.kernel.own_time();
        let Some(mut followed) = self.followed.remove(&thread) else { return };
        if std::mem::take(&mut followed.onward.again) {
            // It stood there, and was hit at once.
            let _ = self.kernel.resume(thread, 0);
            self.followed.insert(thread, followed);
            return;
        }
        let Followed { id, period, cost, onward, breakpoint, .. } = followed;
        drop(breakpoint);
        self.stops.answered(id.pid, thread);
        self.placement.stopped(thread);
        self.take_part((id, period), cost, own, |engine, statistics| {
            engine.visits.go_on((id, period), onward, &mut engine.kernel, statistics)
        });
        self.next_turn(id.pid);
    }

    /// A followed thread stands still elsewhere. Its burst is over.
    pub(super) fn stopped_on_the_way(&mut self, thread: i32) {
        let own = self.kernel.own_time();
        leave_system_call(thread, &mut self.kernel);
        if self.takes_signal_next(thread)
            && let Some(followed) = self.followed.get_mut(&thread)
        {
            // Let go now, it would get the breakpoint's signal, if that is what waits. It stops for it next.
            (followed.is_late, followed.since) = (false, self.kernel.now());
            let _ = self.kernel.resume(thread, 0);
            return;
        }
        let Some(Followed { id, period, cost, breakpoint, .. }) = self.followed.remove(&thread) else { return };
        drop(breakpoint);
        self.stops.answered(id.pid, thread);
        self.take_part((id, period), cost, own, |_, statistics| {
            statistics.breakpoints_missed += 1;
            Visited::Complete("breakpoint not reached")
        });
        self.next_turn(id.pid);
    }

    /// A followed thread has ended.
    pub(super) fn ended_on_the_way(&mut self, thread: i32, why: &str) {
        let Some(Followed { id, .. }) = self.followed.remove(&thread) else { return };
        let statistics = &mut self.collecting.held().statistics;
        self.visits.end(id, why, &self.collecting.event, &self.shared, statistics);
    }

    /// The threads of a process that were followed are no more.
    pub(super) fn forget_followed(&mut self, process: i32) {
        let of_process = |(thread, followed): (&i32, &Followed)| (followed.id.pid == process).then_some(*thread);
        for thread in self.followed.iter().filter_map(of_process).collect::<Vec<i32>>() {
            self.ended_on_the_way(thread, "exec");
        }
    }

    /// The descriptor of the breakpoint of a followed thread.
    pub(super) fn breakpoint_of(&self, thread: i32) -> Option<i32> {
        self.followed.get(&thread).map(|followed| followed.breakpoint.number())
    }

    /// The breakpoint of a followed thread sends no signal from now on.
    pub(super) fn silence_breakpoint(&self, thread: i32) {
        if let Some(followed) = self.followed.get(&thread) {
            followed.breakpoint.silence();
        }
    }

    /// Stops threads that do not come to their breakpoints.
    pub(super) fn give_up_following(&mut self) {
        let now = self.kernel.now();
        for (&thread, followed) in &mut self.followed {
            if !followed.is_late && now >= followed.since + PATIENCE {
                followed.is_late = true;
                let _ = followed.breakpoint.disable();
                let _ = self.kernel.interrupt(thread);
            } else if !followed.is_late {
                self.next_tick = self.next_tick.min(followed.since + PATIENCE);
            }
        }
    }
}
