//! Keeps the tracer on the CPU of the thread it stops: waking it on another one takes three times as long in a virtual machine.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::process::last_cpu;

/// Stops between two looks where the thread runs.
const LOOK: u32 = 8;

/// Follows threads from CPU to CPU.
pub(super) struct CpuFollower {
    allowed: Option<CpuSet>,
    present: Option<u32>,
    stops: u32,
}

impl CpuFollower {
    pub(super) fn new() -> Self {
        Self { allowed: sched_getaffinity(None).ok(), present: None, stops: 0 }
    }

    /// A thread was stopped and let go again.
    pub(super) fn follow(&mut self, thread: i32) {
        self.stops += 1;
        if self.stops % LOOK != 1 {
            return;
        }
        let Some(cpu) = last_cpu(thread as u32) else { return };
        let may = self.allowed.as_ref().is_some_and(|allowed| allowed.is_set(cpu as usize));
        if self.present != Some(cpu) && may {
            let mut set = CpuSet::new();
            set.set(cpu as usize);
            self.present = sched_setaffinity(None, &set).is_ok().then_some(cpu);
        }
    }
}
