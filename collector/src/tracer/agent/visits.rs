//! Bursts of threads that cannot have the agent: each is stopped for its burst, looked ahead of, and let go. In between nobody traces it.

use std::collections::HashMap;
use std::mem::offset_of;

use crate::tracer::burst::address_space::AddressSpace;
use crate::tracer::burst::path::Path;
use crate::tracer::burst::taker::{BurstTaker, Standing};
use crate::tracer::burst::{BurstEvent, ThreadId};
use crate::tracer::kernel::Kernel;
use crate::tracer::options::{BurstEnd, TracerKind};
use crate::tracer::shared::Shared;
use crate::tracer::statistics::TracerStatistics;
use crate::tracer::thread::event::Answer;
use crate::tracer::thread::system_call_restart::restart_system_call;

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

    /// Takes the burst of a thread that stands still, which stands for `period`. Returns whether there was one.
    pub(crate) fn take<K: Kernel>(
        &mut self,
        (thread, period): (ThreadId, u64),
        kernel: &mut K,
        event: &BurstEvent,
        shared: &Shared,
        statistics: &mut TracerStatistics,
    ) -> bool {
        // Few are visited, so what decoding needs is computed when it is: most code does without.
        let taker = self.taker.get_or_insert_with(|| BurstTaker::new(TracerKind::Lookahead, self.end));
        taker.part(kernel);
        statistics.sampling_stops += 1;
        let Some(registers) = BurstTaker::registers(kernel, statistics, thread.tid) else { return false };
        let space = self.spaces.entry(thread.pid).or_insert_with(|| AddressSpace::new(thread.pid));
        let path = self.paths.entry(thread.tid).or_default();
        let mut standing = Standing { kernel, statistics, id: thread, period, path, space };
        let why = match taker.begin(&mut standing, registers) {
            // It is let go, not followed.
            Answer::Complete(why) | Answer::GoesOnAt { otherwise: why, .. } => why,
            _ => return false,
        };
        path.write(why, thread, event, shared, statistics)
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

/// Has a system call restarted that the stop has interrupted. Returns whether the thread is in one, or comes out of one.
pub(crate) fn leave_system_call(thread: i32, kernel: &mut impl Kernel) -> bool {
    restart_system_call(thread, kernel);
    kernel.register(thread, offset_of!(libc::user_regs_struct, orig_rax)) as i64 >= 0
}
