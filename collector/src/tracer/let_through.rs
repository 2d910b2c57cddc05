//! Signals of a thread's events that it blocks. It takes them before it is let go: later, a handler of the program's would get them.
//!
//! A thread that stands still has its mask changed so that they come through (`PTRACE_SETSIGMASK`), goes on, stops for the first of them before
//! it executes anything (`get_signal` in the kernel's `signal.c`), and blocks again what it blocked. A recorder that is killed between these two
//! stops, some microseconds apart, leaves the mask as it is then.

use std::collections::HashMap;

use crate::sys::SignalInfo;
use crate::tracer::kernel::Kernel;
use crate::tracer::notice::SIGNALS;

/// Threads that take what they blocked.
#[derive(Debug, Default)]
pub(crate) struct LetThrough {
    /// The signals that each blocked before: bit n - 1 for signal n.
    masks: HashMap<i32, u64>,
}

impl LetThrough {
    /// Lets through what waits for a thread that stands still, that it blocks, and that one of its events has sent. Returns whether there is
    /// such a signal: the thread is to go on without one, and stops for that.
    pub(crate) fn signals(
        &mut self,
        thread: i32,
        is_of_event: impl Fn(SignalInfo) -> bool,
        kernel: &mut impl Kernel,
    ) -> bool {
        let Ok(blocked) = kernel.signal_mask(thread) else { return false };
        let is_let = |&&signal: &&i32| {
            let waits = || kernel.waiting_signal(thread, signal);
            blocked & 1 << (signal - 1) != 0 && waits().is_some_and(&is_of_event)
        };
        let through = SIGNALS.iter().filter(is_let).fold(0, |set, signal| set | 1 << (signal - 1));
        let is_changed = through != 0 && kernel.set_signal_mask(thread, blocked & !through).is_ok();
        if is_changed {
            self.masks.insert(thread, blocked);
        }
        is_changed
    }

    /// A thread stands still: it blocks again what it blocked.
    pub(crate) fn block_again(&mut self, thread: i32, kernel: &mut impl Kernel) {
        if let Some(mask) = self.masks.remove(&thread) {
            let _ = kernel.set_signal_mask(thread, mask);
        }
    }

    /// A thread has ended.
    pub(crate) fn forget(&mut self, thread: i32) {
        self.masks.remove(&thread);
    }

    /// Whether none is on its way.
    pub(crate) fn is_over(&self) -> bool {
        self.masks.is_empty()
    }
}
