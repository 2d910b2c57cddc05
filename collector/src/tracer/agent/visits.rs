//! Bursts of threads that cannot have the agent: each is stopped for its burst, looked ahead of, and let go. In between nobody traces it.

use std::collections::HashMap;
use std::mem::offset_of;

use addresses::Avma;

use crate::tracer::burst::address_space::AddressSpace;
use crate::tracer::burst::path::{Goal, Path};
use crate::tracer::burst::taker::{BurstTaker, Standing};
use crate::tracer::burst::{BurstEvent, ThreadId};
use crate::tracer::kernel::Kernel;
use crate::tracer::options::{BurstEnd, TracerKind};
use crate::tracer::shared::Shared;
use crate::tracer::statistics::TracerStatistics;
use crate::tracer::thread::event::Answer;
use crate::tracer::thread::system_call_restart::restart_system_call;
use crate::tracer::waits::may_wait;

/// What came of a stop for a burst.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Visited {
    /// There is no burst here.
    Nothing,
    /// The burst is over, for this reason.
    Complete(&'static str),
    /// It goes on where the thread has to go itself.
    GoesOn(Onward),
}

/// Where a burst goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Onward {
    pub(crate) address: Avma,
    /// The thread stands there: the second time is meant.
    pub(crate) again: bool,
    /// Why the burst ends if it does not go on.
    pub(crate) otherwise: &'static str,
}

pub(crate) struct Visits {
    end: BurstEnd,
    /// Made when the first thread is visited.
    taker: Option<BurstTaker>,
    spaces: HashMap<i32, AddressSpace>,
    paths: HashMap<i32, Path>,
}

impl Visits {
    /// Of bursts that end so.
    pub(crate) fn new(end: BurstEnd) -> Self {
        Self { end, taker: None, spaces: HashMap::new(), paths: HashMap::new() }
    }

    /// Begins the burst of a thread that stands still, which stands for `period`.
    pub(crate) fn begin<K: Kernel>(
        &mut self,
        (thread, period): (ThreadId, u64),
        kernel: &mut K,
        statistics: &mut TracerStatistics,
    ) -> Visited {
        made(&mut self.taker, self.end).part(kernel);
        statistics.sampling_stops += 1;
        let Some(registers) = BurstTaker::registers(kernel, statistics, thread.tid) else { return Visited::Nothing };
        self.on_standing((thread, period), kernel, statistics, |taker, standing| taker.begin(standing, registers))
    }

    /// Goes on with the burst of a thread that has come where it was to go itself, or so its breakpoint says.
    pub(crate) fn go_on<K: Kernel>(
        &mut self,
        (thread, period): (ThreadId, u64),
        onward: Onward,
        kernel: &mut K,
        statistics: &mut TracerStatistics,
    ) -> Visited {
        statistics.breakpoints += 1;
        made(&mut self.taker, self.end).part(kernel);
        let registers = BurstTaker::registers(kernel, statistics, thread.tid);
        let goal = self.paths.get_mut(&thread.tid).and_then(|path| path.goal.take());
        let (Some(registers), Some(goal)) = (registers, goal) else {
            return Visited::Complete("breakpoint without registers");
        };
        if Avma(registers.rip) != onward.address {
            statistics.breakpoints_missed += 1;
            return Visited::Complete("breakpoint reached elsewhere");
        }
        self.on_standing((thread, period), kernel, statistics, |taker, standing| taker.go_on(standing, registers, goal))
    }

    fn on_standing<K: Kernel>(
        &mut self,
        (thread, period): (ThreadId, u64),
        kernel: &mut K,
        statistics: &mut TracerStatistics,
        act: impl FnOnce(&mut BurstTaker, &mut Standing<'_, K>) -> Answer,
    ) -> Visited {
        let taker = made(&mut self.taker, self.end);
        let space = self.spaces.entry(thread.pid).or_insert_with(|| AddressSpace::new(thread.pid));
        let path = self.paths.entry(thread.tid).or_default();
        let mut standing = Standing { kernel, statistics, id: thread, period, path, space };
        match act(taker, &mut standing) {
            Answer::Complete(why) => Visited::Complete(why),
            Answer::GoesOnAt { address, again, otherwise } => Visited::GoesOn(Onward { address, again, otherwise }),
            _ => Visited::Nothing,
        }
    }

    /// Whether a thread may be let run to where its burst goes on, with a breakpoint there: it does not wait on the way, and is not kept
    /// from ever coming through.
    pub(crate) fn may_follow(&mut self, thread: ThreadId, onward: Onward, kernel: &impl Kernel) -> bool {
        let Some(path) = self.paths.get(&thread.tid) else { return false };
        let waits = match &path.goal {
            Some(Goal::AfterSystemCall(registers)) => may_wait(thread.tid, registers),
            _ => false,
        };
        let is_critical =
            self.spaces.get_mut(&thread.pid).is_some_and(|space| space.is_critical(kernel, onward.address));
        !waits && !is_critical
    }

    /// A thread is on its way to where its burst goes on.
    pub(crate) fn follows(&mut self, thread: i32, onward: Onward, statistics: &mut TracerStatistics) {
        if let Some(path) = self.paths.get_mut(&thread) {
            path.burst.continuations += 1;
            TracerStatistics::count(&mut statistics.continued, onward.otherwise);
        }
    }

    /// The burst of a thread is over, for this reason: makes samples of it. Returns whether it is worth one.
    pub(crate) fn end(
        &mut self,
        thread: ThreadId,
        why: &str,
        event: &BurstEvent,
        shared: &Shared,
        statistics: &mut TracerStatistics,
    ) -> bool {
        self.paths.get_mut(&thread.tid).is_some_and(|path| path.write(why, thread, event, shared, statistics))
    }

    /// A thread has ended.
    pub(crate) fn forget_thread(&mut self, thread: i32) {
        self.paths.remove(&thread);
    }

    /// A process has ended, or has another program.
    pub(crate) fn forget_process(&mut self, process: i32) {
        self.spaces.remove(&process);
    }
}

/// What bursts are taken with: made when the first thread is visited. Where there are agents few are, so what decoding needs is computed when
/// it is: most code does without.
fn made(taker: &mut Option<BurstTaker>, end: BurstEnd) -> &mut BurstTaker {
    taker.get_or_insert_with(|| BurstTaker::new(TracerKind::Lookahead, end))
}

/// Has a system call restarted that the stop has interrupted. Returns whether the thread is in one, or comes out of one.
pub(crate) fn leave_system_call(thread: i32, kernel: &mut impl Kernel) -> bool {
    restart_system_call(thread, kernel);
    kernel.register(thread, offset_of!(libc::user_regs_struct, orig_rax)) as i64 >= 0
}
