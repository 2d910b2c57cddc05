//! Who comes into the control group that is recorded, and who leaves it, by other ways than fork and exit.

use std::collections::HashSet;
use std::time::Duration;

use crate::tracer::agent::engine::{AgentEngine, Running};
use crate::tracer::kernel::{Kernel, Processes};

/// How often it is looked at least,
const OFTEN: Duration = Duration::from_millis(400);
/// and how small a share of the time that takes, however many there are.
const SHARE: u32 = 1000;

impl AgentEngine {
    /// Looks who is in the group, if it is time. Those who have left have no bursts any more.
    pub(super) fn see_members(&mut self) {
        let Some(group) = self.settings.group.clone() else { return };
        // Clocks of CPUs see who is in it.
        if self.is_by_cpu() || self.kernel.now() < self.next_members {
            return;
        }
        let own = self.kernel.own_time();
        match Running::of_group(&group) {
            Running::Processes(processes) => self.see_processes(&processes),
            Running::Threads(threads) => self.see_threads(&threads),
        }
        let took = self.kernel.own_time().saturating_sub(own);
        self.next_members = self.kernel.now() + OFTEN.max(took * SHARE);
    }

    fn see_processes(&mut self, there: &[i32]) {
        let starting = self.starting.ids();
        let is_new = |process: &i32| self.tree.state(*process).is_none() && !starting.contains(process);
        let new: Vec<i32> = there.iter().copied().filter(is_new).collect();
        new.iter().for_each(|&process| self.budget.count_process(process, &self.kernel));
        let there: HashSet<i32> = there.iter().copied().collect();
        self.starting.keep(|_, process| there.contains(&process));
        self.start_others(new, Vec::new());
        for process in self.tree.processes() {
            if there.contains(&process) || self.is_busy_with(process) {
                continue;
            }
            for thread in self.tree.threads_of(process).into_iter().chain([process]) {
                self.ended(process, thread);
            }
        }
    }

    /// The same of a threaded group, in which a process may have only some of its threads.
    fn see_threads(&mut self, there: &[i32]) {
        let starting = self.starting.ids();
        let is_new = |thread: &i32| self.tree.get(*thread).is_none() && !starting.contains(thread);
        let with_process = |thread: i32| Some((thread, self.kernel.process_of(thread)?));
        let new: Vec<(i32, i32)> = there.iter().copied().filter(is_new).filter_map(with_process).collect();
        new.iter().for_each(|&(thread, _)| self.budget.count_thread(thread, &mut self.kernel));
        let there: HashSet<i32> = there.iter().copied().collect();
        self.starting.keep(|thread, _| there.contains(&thread));
        self.start_others(Vec::new(), new);
        for process in self.tree.processes() {
            for thread in self.tree.threads_of(process) {
                if !there.contains(&thread) && !self.is_busy_with(process) {
                    self.ended(process, thread);
                }
            }
        }
    }

    /// Those who have come get their clocks as those who were there when recording began.
    fn start_others(&mut self, processes: Vec<i32>, threads: Vec<(i32, i32)>) {
        let lasted = self.collecting.held().statistics.starting.lasted;
        self.starting.add(processes, threads, lasted, self.kernel.now());
    }

    /// Whether one of the threads of a process is being stopped, or traced: it is let go first.
    fn is_busy_with(&self, process: i32) -> bool {
        self.stops.is_under_way(process) || self.followed.values().any(|followed| followed.is_of(process))
    }
}
