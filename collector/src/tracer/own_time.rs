//! CPU time of the tracer itself. Threads may stand still for longer where others want the CPU, but not at the cost of theirs.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// CPU time of the calling thread.
pub(crate) fn own_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// Tells parts of a piece of work apart, with one look at the clock between two of them: each is a system call.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    began: Duration,
}

impl Parts {
    /// CPU time since the last time: one part ends, another one begins.
    pub(crate) fn next(&mut self) -> Duration {
        let now = own_time();
        now.saturating_sub(std::mem::replace(&mut self.began, now))
    }
}
