//! Processes that are switched off take no bursts.

use crate::tracer::agent::engine::AgentEngine;
use crate::tracer::kernel::Kernel;
use crate::tracer::shared::monotonic_time;

impl AgentEngine {
    /// Stops the clocks of processes that are switched off, and lets those go on that are on again.
    pub(super) fn follow_switch(&mut self) {
        if !self.shared.switch.is_used() {
            return;
        }
        let now = monotonic_time();
        let mut on_again = Vec::new();
        for (thread, watched) in self.tree.threads_mut() {
            let off = self.shared.switch.is_off(watched.process, now);
            // A clock that is to stop its thread goes on until it has: it is traced as long.
            if off != watched.is_off && !self.stops.is_under_way(watched.process) {
                watched.switch(off);
                on_again.extend((!off).then_some(thread));
            }
        }
        // What is off is not looked after: filters of system calls may have come meanwhile.
        if !on_again.is_empty() {
            self.next_look_after = self.kernel.now();
        }
        // It has computed meanwhile, and was not to have bursts.
        on_again.into_iter().for_each(|thread| self.tree.is_not_quiet(thread));
    }

    /// Whether a process is switched off.
    pub(super) fn is_off(&self, process: i32) -> bool {
        self.shared.switch.is_off(process, monotonic_time())
    }
}
