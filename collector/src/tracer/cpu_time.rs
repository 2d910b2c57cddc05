//! CPU time of everything that was to be traced, whether it is or not.

use std::time::{Duration, Instant};

use perf_event_open_sys::bindings as sys;
use perfdata::{AttrFlags, EventAttr};

use crate::tracer::kernel::{Kernel, ThreadEvent};

/// Reading takes this small a share of the time, however many threads there are.
const SHARE: u32 = 2000;

/// Clocks that only count: one per thread there was at the beginning, which those it starts inherit.
pub(crate) struct CpuTime<E> {
    clocks: Vec<E>,
    inherit: bool,
    seen: u64,
    last: Instant,
    next: Instant,
}

impl<E: ThreadEvent> CpuTime<E> {
    pub(crate) fn new(inherit: bool, now: Instant) -> Self {
        Self { clocks: Vec::new(), inherit, seen: 0, last: now, next: now }
    }

    /// Counts a thread from now on.
    pub(crate) fn add(&mut self, thread: i32, kernel: &mut impl Kernel<Event = E>) {
        let attr = EventAttr {
            kind: sys::PERF_TYPE_SOFTWARE,
            config: u64::from(sys::PERF_COUNT_SW_TASK_CLOCK),
            flags: AttrFlags(if self.inherit { AttrFlags::INHERIT.0 } else { 0 }),
            ..EventAttr::default()
        };
        // Without the permission to see kernel time, what there is.
        let user = EventAttr { flags: attr.flags | AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV, ..attr.clone() };
        self.clocks.extend(kernel.open(&attr, thread).or_else(|_| kernel.open(&user, thread)));
    }

    /// Time that passed since the last time this returned some, if that is so long ago and it is time to look. Where a thread is
    /// running, its CPU has to be interrupted: it is better to look while it is stopped.
    pub(crate) fn passed(&mut self, since: Duration, kernel: &impl Kernel) -> Option<Duration> {
        let began = kernel.now();
        if began < self.next.max(self.last + since) {
            return None;
        }
        let passed = self.passed_until_now();
        self.last = began;
        let now = kernel.now();
        self.next = now + (now - began) * SHARE;
        Some(passed)
    }

    /// As above, at any time.
    pub(crate) fn passed_until_now(&mut self) -> Duration {
        let count = |clock: &E| {
            let mut word = [0];
            clock.read(&mut word).map_or(0, |_| word[0])
        };
        let total: u64 = self.clocks.iter().map(count).sum();
        let passed = total.saturating_sub(self.seen);
        self.seen = self.seen.max(total);
        Duration::from_nanos(passed)
    }
}
